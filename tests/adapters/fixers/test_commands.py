"""What a tool of the repository puts right, in a clone, of what it reports itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.fixers import commands as module
from ralph_mission.adapters.fixers.commands import CommandFixes, ProjectFixer, owners_fixer
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.setup import ProjectSetup
from ralph_mission.adapters.sandbox.isolation import OPEN, of_clone
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from tests.helpers import commit, git, make_repo
from tests.integration.isolation_attacks import level_or_skip

FIX, CHECK = "sed -i s/bad/good/ src/*.js", "! grep -n bad src/*.js"
FILES: dict[str, str | bytes] = {"src/a.js": "one\nbad = 1\n", "src/b.js": "fine\n", ".gitignore": "node_modules\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


Look = Callable[..., Observation]


@pytest.fixture
def look(repo: Path, tmp_path: Path, scratch: Path) -> Look:
    def at(
        tool: ProjectFixer | None = None,
        run: str = FIX,
        check: str = CHECK,
        setup: tuple[str, ...] = (),
        lines: int = 49,
    ) -> Observation:
        source = Git.open(repo)
        tool = tool or ProjectFixer("tool", "formatting", run, check)
        prepared = ProjectSetup(source, tmp_path / "kept", setup)
        observer = CommandFixes("fixers.x", source, prepared, lambda _: OPEN, 49, tmp_path / "cache", (tool,))
        head = Branch("main", source.resolve("HEAD"))
        return observer.observe(ObservationContext(head, datetime(2026, 5, 4, tzinfo=UTC), None, "", str(scratch)))

    return at


def test_each_file_that_it_puts_right_is_a_finding_with_the_change_and_the_command(look, repo):
    seen = look()
    (one,) = seen.signals
    assert one.patch and [(c.path, c.new) for c in one.patch.changes] == [("src/a.js", b"one\ngood = 1\n")]
    assert one.patch.base == git(repo, "rev-parse", "HEAD") and (one.kind, one.line) == ("formatting", 2)
    assert one.title == "1 unformatted file in src/a.js, by tool"
    assert "line 2: bad = 1 → good = 1" in one.detail and FIX in one.detail
    assert (seen.status, seen.complete) == ("ok", True)
    assert git(repo, "status", "--porcelain") == ""


def test_it_looks_once_at_a_commit_and_says_the_same_again(look, repo, tmp_path):
    counter = tmp_path / "counter"
    first = look(run=f"echo x >> {counter}; {FIX}")
    assert look(run=f"echo x >> {counter}; {FIX}").signals == first.signals
    assert counter.read_text() == "x\n"
    commit(repo, {"README.md": "more\n"})
    assert [s.essence for s in look(run=f"echo x >> {counter}; {FIX}").signals] == [s.essence for s in first.signals]
    assert counter.read_text() == "x\nx\n"


def test_what_the_tool_does_not_report_is_not_put_right(look):
    assert look(check="true").signals == ()


def test_more_than_the_limit_is_one_finding_with_the_command_to_run(look, repo):
    commit(repo, {f"src/{number}.js": "bad\nbad\n" for number in range(30)})
    tool = ProjectFixer("tool", "formatting", FIX, CHECK)
    (one,) = look(tool).signals
    assert one.title.startswith("tool puts 31 files right (")
    assert one.patch and len(one.patch.changes) == 31 and FIX in one.detail and CHECK in one.detail
    assert one.essence == ("tool", FIX)


def test_a_tool_that_is_only_configured_is_no_reason_to_rewrite_a_repository(look, repo):
    commit(repo, {f"src/{number}.js": "bad\nbad\n" for number in range(30)})
    assert look(ProjectFixer("tool", "formatting", FIX, CHECK, enforced=False)).signals == ()


@pytest.mark.parametrize("lent", [True, False])
def test_a_tool_that_is_absent_is_left_out_without_a_word(look, lent):
    seen = look(ProjectFixer("tool", "formatting", FIX, CHECK, program="no-such-tool", lent=lent))
    assert (seen.status, seen.signals, seen.detail, seen.complete) == ("ok", (), "", True)


def test_a_tool_of_the_machine_does_not_stand_for_one_of_the_packages(look):
    assert look(ProjectFixer("tool", "formatting", FIX, CHECK, program="sed")).signals
    assert not look(ProjectFixer("tool", "formatting", FIX, CHECK, program="sed", lent=True)).signals


def test_a_tool_that_the_set_up_brought_is_the_one_that_runs(look):
    bring = f"mkdir -p node_modules/.bin; cd node_modules/.bin; printf '#!/bin/sh\\n{FIX}' > own; chmod +x own"
    tool = ProjectFixer("own", "formatting", "own", CHECK, program="own", lent=True)
    assert len(look(tool, setup=(bring,)).signals) == 1


def test_a_tool_that_breaks_is_a_line_and_no_finding(look):
    seen = look(check="echo 'Oops: no config' >&2; exit 2")
    assert seen.signals == () and not seen.complete
    assert seen.detail == "tool: cannot run here (exit code 2): Oops: no config"


@pytest.mark.parametrize(
    "run",
    [
        "rm src/b.js",
        f"{FIX}; chmod +x src/b.js",
        f"{FIX}; rm src/b.js; ln -s a.js src/b.js",
    ],
)
def test_a_tool_that_does_more_than_edit_files_is_left_alone(look, run):
    seen = look(run=run)
    assert seen.signals == () and "does more than edit files" in seen.detail


@pytest.mark.parametrize(
    "path",
    ["package.json", "package-lock.json", ".github/workflows/ci.yml", "vendor/x.js", "dist/x.min.js", "CLAUDE.md"],
)
def test_files_that_no_fixer_may_touch_stay(look, repo, path):
    commit(repo, {path: "bad\n"})
    assert [s.path for s in look(run=f"{FIX}; sed -i s/bad/good/ {path}").signals] == ["src/a.js"]


def test_a_new_file_is_no_part_of_what_it_puts_right(look):
    (one,) = look(run=f"{FIX}; echo cache > .toolcache; echo x > src/new.js").signals
    assert one.path == "src/a.js"


def test_the_owner_s_command_waits_for_the_observer_of_its_name(look):
    checks = {"lint": CHECK}
    assert len(look(owners_fixer("lint", FIX, checks)).signals) == 1
    assert look(owners_fixer("lint", FIX, {"lint": "true"})).signals == ()
    assert len(look(owners_fixer("other", FIX, checks)).signals) == 1


def test_a_set_up_that_fails_is_said_by_the_observer(look):
    with pytest.raises(UserError, match="cannot be set up"):
        look(setup=("exit 1",))


def test_it_has_no_token_and_no_network(repo, tmp_path, scratch, monkeypatch):
    level_or_skip("bwrap")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    source = Git.open(repo)
    tool = ProjectFixer("tool", "formatting", "env > src/b.js; sed -n 's/:.*/!/p' /proc/net/dev >> src/b.js", CHECK)
    observer = CommandFixes(
        "fixers.x", source, ProjectSetup(source, tmp_path / "kept", ()),
        lambda made: of_clone("bwrap", made, made.work_tree or made.git_dir, {}, ()), 49, None, (tool,),
    )  # fmt: skip  # one call
    head = Branch("main", source.resolve("HEAD"))
    seen = observer.observe(ObservationContext(head, datetime(2026, 5, 4, tzinfo=UTC), None, "", str(scratch)))
    (one,) = seen.signals
    assert one.patch and one.patch.changes[0].new
    told = one.patch.changes[0].new.decode()
    assert "PATH=" in told and "ghp_secret" not in told
    assert [line.strip() for line in told.splitlines() if line.endswith("!")] == ["lo!"]


def test_a_change_that_is_too_large_to_show_is_a_number(look, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    seen = look()
    assert seen.signals == () and "would change 1 files" in seen.detail
