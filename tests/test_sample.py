"""The sample is what examples/README.md says: real history, real flaws, tests that pass before and after fixes."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers import git

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "examples" / "slackwater"


def _unpacker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("unpack_sample", ROOT / "examples" / "unpack.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


unpacker = _unpacker()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One unpacked sample that nobody changes."""
    target = tmp_path_factory.mktemp("a folder") / "slackwater"
    unpacker.unpack(target)
    return target


def _run(repo: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=repo, capture_output=True, text=True, check=False)


def _tests(repo: Path) -> str:
    return _run(repo, sys.executable, "-B", "-m", "unittest", "-q").stderr


def _misspellings(repo: Path) -> list[tuple[str, str]]:
    rows = map(json.loads, _run(repo, "typos", "--isolated", "--format", "json", ".").stdout.splitlines())
    return [(row["path"].removeprefix("./"), ",".join(row["corrections"])) for row in rows]


def _unused_imports(repo: Path) -> list[dict[str, object]]:
    command = ("ruff", "check", "--isolated", "--no-cache", "--select", "F401", "--output-format", "json", ".")
    return list(json.loads(_run(repo, *command).stdout))


def _markers(repo: Path) -> list[str]:
    found = git(repo, "grep", "-nE", "TODO|FIXME|HACK", "--", "slackwater").splitlines()
    return [":".join(line.split(":")[:2]) for line in found]


def test_history_is_the_same_everywhere(sample: Path) -> None:
    assert git(sample, "rev-parse", "HEAD") == (SOURCE / "head").read_text().strip()
    assert git(sample, "rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_work_tree_is_clean_with_the_forge_in_it(sample: Path) -> None:
    assert git(sample, "status", "--porcelain") == ""
    assert (sample / ".ralph" / "forge" / "issues" / "0001.md").exists()


def test_history_spans_months_and_people(sample: Path) -> None:
    log = git(sample, "log", "--reverse", "--format=%as %an").splitlines()
    days = [line.split(" ", 1)[0] for line in log]
    assert days == sorted(days) and days[0] >= "2026-03-01" and days[-1] <= "2026-10-31"
    assert 30 <= len(log) <= 50 and len({line.split(" ", 1)[1] for line in log}) == 5


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "slackwater").mkdir()
    with pytest.raises(FileExistsError):
        unpacker.unpack(tmp_path / "slackwater")
    assert [path.name for path in tmp_path.rglob("*")] == ["slackwater"]


def test_an_altered_stream_leaves_nothing_behind(tmp_path: Path) -> None:
    source = shutil.copytree(SOURCE, tmp_path / "source")
    (source / "head").write_text("0" * 40)
    with pytest.raises(ValueError, match="altered"):
        unpacker.unpack(tmp_path / "out" / "slackwater", source)
    assert list((tmp_path / "out").iterdir()) == []


def test_every_misspelling_has_one_correction(sample: Path) -> None:
    found = _misspellings(sample)
    assert len(found) == 10 and len({path for path, _ in found}) == 7
    assert [correction for _, correction in found if "," in correction] == []


def test_a_rare_word_is_not_a_misspelling(sample: Path) -> None:
    assert "trough" in (sample / "docs" / "method.md").read_text()
    assert "through" not in [correction for _, correction in _misspellings(sample)]


def test_unused_imports_can_be_removed_safely(sample: Path) -> None:
    found = _unused_imports(sample)
    assert len(found) == 6 and len({item["filename"] for item in found}) == 4
    assert Counter(item["fix"]["applicability"] for item in found) == {"safe": 6}  # type: ignore[index]  # JSON


def test_markers_are_old_and_by_several_people(sample: Path) -> None:
    people = set()
    for place in _markers(sample):
        path, line = place.split(":")
        people |= set(re.findall(r"^author (.+)$", git(sample, "blame", "-pL", f"{line},{line}", path), re.MULTILINE))
    assert len(_markers(sample)) == 6 and len(people) == 3


def test_tests_pass_before_and_after_mending(sample: Path, tmp_path: Path) -> None:
    repo = shutil.copytree(sample, tmp_path / "mended")
    assert _tests(repo).rstrip().endswith("OK")
    _run(repo, "typos", "--isolated", "--write-changes", ".")
    _run(repo, "ruff", "check", "--isolated", "--no-cache", "--select", "F401", "--fix", ".")
    assert (_misspellings(repo), _unused_imports(repo)) == ([], [])
    assert _tests(repo).rstrip().endswith("OK")


@pytest.mark.long  # the sample's own tests, at each of its commits
def test_commits_along_the_way_pass_their_own_tests(sample: Path, tmp_path: Path) -> None:
    repo = tmp_path / "walk"
    git(sample, "worktree", "add", "--quiet", "--detach", str(repo))
    commits = git(sample, "rev-list", "--reverse", "main", "--", "slackwater", "tests", "harbours").splitlines()
    for commit in commits[4::6]:
        git(repo, "checkout", "--quiet", commit)
        assert _tests(repo).rstrip().endswith("OK"), commit
    git(sample, "worktree", "remove", "--force", str(repo))


def test_the_reported_bug_is_real(sample: Path) -> None:
    window = (sys.executable, "-B", "-m", "slackwater", "window")
    assert _run(sample, *window, "skerrow-quay", "2026-08-02", "--draught", "1.4").returncode == 0
    assert "UnboundLocalError" in _run(sample, *window, "lammas-haven", "2026-08-02", "--draught", "1.4").stderr


@pytest.mark.parametrize(("report", "words"), [("errors", {"found"}), ("style", {"raise", "feet", "head=["})])
def test_reports_point_at_the_lines_they_mean(sample: Path, report: str, words: set[str]) -> None:
    results = json.loads((sample / "reports" / f"{report}.sarif").read_text())["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    lines = [
        (sample / place["artifactLocation"]["uri"]).read_text().splitlines()[place["region"]["startLine"] - 1]
        for place in places
    ]
    assert len(lines) == len(words) and all(any(word in line for line in lines) for word in words)


def test_mending_moves_no_line_that_a_report_points_at(sample: Path, tmp_path: Path) -> None:
    # The reports are committed: were they off by a line, their findings would come back as new ones.
    repo = shutil.copytree(sample, tmp_path / "mended")
    _run(repo, "ruff", "check", "--isolated", "--no-cache", "--select", "F401", "--fix", ".")
    for report in sorted((sample / "reports").glob("*.sarif")):
        for result in json.loads(report.read_text())["runs"][0]["results"]:
            place = result["locations"][0]["physicalLocation"]
            path, line = place["artifactLocation"]["uri"], place["region"]["startLine"] - 1
            before, after = ((folder / path).read_text().splitlines() for folder in (sample, repo))
            assert after[line] == before[line], path


@pytest.mark.parametrize("path", sorted((SOURCE / "forge" / "issues").glob("*.md")), ids=lambda path: path.stem)
def test_issues_are_as_the_local_forge_writes_them(path: Path) -> None:
    from ralph_mission.adapters.forges.local import documents

    assert documents.render(documents.parse(path.read_text())) == path.read_text()


def test_settings_are_valid(sample: Path) -> None:
    from ralph_mission.config.reading import load

    settings = load((sample / "ralph.yml").read_text())
    assert [command.name for command in settings.observers.commands] == ["errors", "style"]
