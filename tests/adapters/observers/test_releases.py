"""What waits for a release: told where releases are a habit, and only what users would notice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.releases import build, kind_of, noted_kind
from ralph_mission.config.observers import ReleaseSettings
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation, Severity
from ralph_mission.mission.model.proposal import ObservationContext
from tests.helpers import git, make_repo

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
REGULAR = ("v1.0.0", "v1.1.0", "v1.1.1", "v1.2.0")


class Project:
    """A repository whose days pass one by one; a release comes every 20 of them."""

    def __init__(self, folder: Path) -> None:
        self.repo, self.now = make_repo(folder, {"src/a.py": "0\n"}), START

    def commit(self, subject: str, path: str = "src/a.py", body: str = "") -> None:
        self.now += timedelta(days=1)
        file = self.repo / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{self.now}\n")
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-q", "-m", f"{subject}\n\n{body}".strip(), env=self.dated())

    def dated(self) -> dict[str, str]:
        stamp = f"{self.now:%Y-%m-%dT%H:%M:%S+00:00}"
        who = {f"GIT_{role}_{part}": "mara@x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        return who | {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}

    def tag(self, *names: str) -> None:
        for name in names:
            self.now += timedelta(days=20)
            git(self.repo, "tag", "-m", name, name, env=self.dated())

    def look(self, days: float, cache: Path | None = None, **settings: timedelta) -> Observation:
        opened = Git.open(self.repo)
        head = Branch("main", opened.resolve("HEAD"))
        context = ObservationContext(head, self.now + timedelta(days=days), None, "", str(self.repo))
        return build(ReleaseSettings(**settings), opened, cache).observe(context)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "repo")


def test_a_fix_that_waits_longer_than_twice_the_usual_pause_is_told_once_for_each_release(project):
    project.tag(*REGULAR)
    project.commit("fix: no crash without a config")
    project.commit("docs: say more", "README.md")
    assert project.look(days=45).signals == ()  # for one fix, nobody makes a release
    project.commit("fix: no hang either")
    assert project.look(days=30).signals == ()
    (told,) = project.look(days=45).signals
    assert told.title == "2 fixes since v1.2.0 not released, the oldest for 47 days"
    assert (told.kind, told.severity, told.essence, told.occurrence) == (
        "unreleased", Severity.LOW, ("unreleased", "v1.2.0"), "")  # fmt: skip  # one identity
    assert dict(told.facts) == {"commits": 3, "features": 0, "fixes": 2, "days": 47}
    project.tag("v1.2.1")
    assert project.look(days=100).signals == ()


def test_the_patience_can_be_longer(project):
    project.tag(*REGULAR)
    project.commit("feat: more")
    assert project.look(days=80, after=timedelta(days=90)).signals == ()
    assert len(project.look(days=95, after=timedelta(days=90)).signals) == 1


@pytest.mark.parametrize(
    "tags",
    [
        (),
        REGULAR[:3],
        ("v1.0.0-rc1", "v1.0.0-rc2", "v1.0.0", "v2.0.0-beta.1", "nightly", "latest"),
        ("core-1.0.0", "core-1.1.0", "cli-1.0.0", "cli-1.1.0", "cli-1.2.0", "cli-1.3.0"),
    ],
)
def test_without_a_habit_of_releases_nothing_is_told(project, tags):
    project.tag(*tags)
    project.commit("fix: something")
    assert project.look(days=400).signals == ()


@pytest.mark.parametrize(
    "tags", [("1.0", "1.1", "1.2", "1.10"), ("tool-1.0.0", "tool-1.1.0", "tool-1.2.0", "tool-1.10.0")]
)
def test_versions_count_with_one_name_before_them_or_none_and_by_number(project, tags):
    project.tag(*tags)
    project.commit("feat: something")
    (told,) = project.look(days=400).signals
    assert told.essence == ("unreleased", tags[-1])


def test_where_the_newest_release_is_on_another_branch_nothing_is_told(project):
    project.tag(*REGULAR)
    git(project.repo, "checkout", "-q", "-b", "1.3")
    project.commit("fix: something")
    project.tag("v1.3.0")
    git(project.repo, "checkout", "-q", "main")
    project.commit("fix: something else")
    assert project.look(days=400).detail == "no look at releases: the newest, v1.3.0, was made on another branch"
    assert project.look(days=400).signals == ()


@pytest.mark.parametrize(
    ("subject", "path", "body"),
    [
        ("feat(api): take lists", "src/a.py", ""),
        ("fix!: another name", "src/a.py", ""),
        ("perf: half the time", "src/a.py", ""),
        ("Add a way to stop (#12)", "src/a.py", ""),
        ("Fixed crash on empty input (#12)", "src/a.py", ""),
    ],
)
def test_features_and_fixes_count(project, subject, path, body):
    project.tag(*REGULAR)
    project.commit("fix: something else")
    assert project.look(days=400).signals == ()
    project.commit(subject, path, body)
    assert len(project.look(days=400).signals) == 1


@pytest.mark.parametrize(
    ("title", "pull", "files"),
    [
        ("fix: a typo", True, ["docs/a.md"]),
        ("fix: the tests", True, ["tests/test_a.py"]),
        ("fix: pin the action", True, [".github/workflows/ci.yml"]),
        ("chore: bump x", True, ["src/a.py"]),
        ("Fix typo in a comment (#3)", True, ["src/a.py"]),
        ("Add tests for lists (#3)", True, ["src/a.py"]),
        ("Fix CI (#3)", True, ["src/a.py"]),
        ("Fix it", False, ["src/a.py"]),
        ("Refactor (#3)", True, ["src/a.py"]),
        ("fix: nothing", True, []),
    ],
)
def test_what_users_would_not_notice_does_not_count(title, pull, files):
    assert kind_of(title, pull, files) == ""


def test_a_merged_pull_request_counts_by_its_title(project):
    project.tag(*REGULAR)
    git(project.repo, "checkout", "-q", "-b", "idea")
    project.commit("wip")
    git(project.repo, "checkout", "-q", "main")
    project.commit("chore: x", "b.txt")
    said = "Merge pull request #7 from mara/idea\n\nSupport lists of lists"
    git(project.repo, "merge", "-q", "--no-ff", "-m", said, "idea", env=project.dated())
    (told,) = project.look(days=400).signals
    assert "Support lists of lists" in told.detail and dict(told.facts)["features"] == 1


def test_what_the_release_branch_holds_by_the_same_title_is_released(project):
    project.tag(*REGULAR)
    git(project.repo, "switch", "-q", "-c", "1.3.x")
    project.commit("feat: ask twice (#8)")
    project.tag("v1.3.0")
    git(project.repo, "switch", "-q", "main")
    project.commit("feat: ask twice (#7)", "src/b.py")
    git(project.repo, "merge", "-q", "-s", "ours", "-m", "Back", "v1.3.0", env=project.dated())
    project.commit("feat: ask thrice (#9)", "src/b.py")
    (signal,) = project.look(days=200).signals
    assert "ask thrice" in signal.detail and "ask twice" not in signal.detail


def test_a_second_look_at_the_same_commit_and_tags_reads_no_history(project, tmp_path, monkeypatch):
    project.tag(*REGULAR)
    project.commit("feat: something")
    first = project.look(days=400, cache=tmp_path / "cache")
    questions: list[str] = []
    run = Git.run

    def recorded(self: Git, *arguments: str, **options) -> bytes:
        questions.append(" ".join(arguments))
        return run(self, *arguments, **options)

    monkeypatch.setattr(Git, "run", recorded)
    assert project.look(days=400, cache=tmp_path / "cache") == first
    assert questions and not [one for one in questions if one.startswith("log ") or "--merged" in one]


def test_an_empty_repository_has_nothing_to_release(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    context = ObservationContext(Branch("main", ""), START, None, "", str(tmp_path))
    assert build(ReleaseSettings(), Git.open(tmp_path)).observe(context).signals == ()


def test_a_fix_of_a_vulnerability_counts_though_it_moves_a_dependency_alone() -> None:
    assert kind_of("fix: bump qs minimum to ^6.14.2 for CVE-2026-2391", False, ["package.json"]) == "fix"
    assert kind_of("deps: bump qs", False, ["package.json"]) == ""


NOTED = """# Changelog

## [UNRELEASED]

### Removed

* Drop support for Python 3.8

## 1.2.0

### Added

* A client
"""


def noted(project: Project, changelog: str, subject: str) -> None:
    (project.repo / "CHANGELOG.md").write_text(changelog)
    project.commit(subject, "pyproject.toml")


def test_what_people_noted_as_unreleased_counts_whatever_its_title_says(project: Project) -> None:
    project.tag(*REGULAR)
    noted(project, NOTED, "Drop Python 3.8 (#1)")
    noted(project, NOTED.replace("3.8\n", "3.8\n* Drop the old name\n"), "Drop the old name (#2)")
    (told,) = project.look(days=100).signals
    assert told.essence == ("unreleased", "v1.2.0") and "2 to release" in project.look(days=1).detail


def test_a_folder_or_a_submodule_named_like_a_changelog_is_none(project: Project) -> None:
    project.tag(*REGULAR)
    project.commit("ci: gather notes", "CHANGES/1.md")
    (project.repo / "NEWS.md").write_text(NOTED)
    project.commit("Drop Python 3.8 (#1)", "pyproject.toml")
    assert "1 to release" in project.look(days=1).detail
    git(project.repo, "update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},CHANGELOG")
    git(project.repo, "commit", "-q", "-m", "ci: add a submodule", env=project.dated())
    assert "1 to release" in project.look(days=1).detail


def test_a_note_on_the_changelog_alone_or_of_a_release_counts_for_nothing(project: Project) -> None:
    project.tag(*REGULAR)
    noted(project, NOTED, "Fix a typo in the changelog (#1)")
    assert "0 to release" in project.look(days=1).detail
    noted(project, NOTED.replace("## [UNRELEASED]", "## 1.3.0"), "Prepare it (#2)")
    assert "0 to release" in project.look(days=1).detail


@pytest.mark.parametrize(
    ("changelog", "kind"),
    [
        (NOTED, "fix"),
        (NOTED.replace("Removed", "Added"), "feature"),
        ("## Unreleased\n\n## 1.0\n\n### Added\n\n- a client\n", ""),
        ("Version 2\n=========\n\nUnreleased\n----------\n\n-   A client.\n\nVersion 1\n---------\n\n-   x\n", "fix"),
        ("Unreleased\n----------\n\nVersion 1\n---------\n\n-   x\n", ""),
        ("# Changelog\n\nEverything unreleased is on main.\n\n- x\n", ""),
    ],
)
def test_a_changelog_says_what_is_unreleased_in_a_section_of_that_name(changelog: str, kind: str) -> None:
    assert noted_kind(changelog) == kind
