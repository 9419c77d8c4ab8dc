"""Scanners that run by themselves: where they fit, what their results become, silence about those that are missing."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from ralph_mission.adapters.observers import scanners
from ralph_mission.adapters.observers.scanners import SCANNERS, Scanner, fitting_scanners
from ralph_mission.config.observers import ScannerSettings
from ralph_mission.mission.model.mission import Observation, Severity, Signal
from tests.adapters.observers.place import Place
from tests.fakes.github.server import FakeGitHub
from tests.helpers import copy_bare, git, make_repo, read_head

SHA = "a" * 40
NOTHING: Mapping[str, str] = {}
RELEASE = """name: release
on: {push: {tags: ['v*']}}
permissions:
  contents: write
  id-token: write
jobs:
  out:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {persist-credentials: false}
      - uses: harbour/pilot@main
      - run: echo "VERSION=${{ github.ref_name }}" >> $GITHUB_ENV
  notes:
    runs-on: ubuntu-latest
    steps: [{run: echo hello}]
"""
COMMENTED = """name: comments
on: {issue_comment: {types: [created]}}
permissions: {}
jobs:
  answer:
    runs-on: ubuntu-latest
    steps:
      - run: echo hello
"""
OWNER = "contains(fromJSON('[\"OWNER\"]'), github.event.pull_request.author_association)"
GUARDED = COMMENTED.replace("    runs-on", f"    if: {OWNER}\n    runs-on")
INJECTED = """name: issues
on: {issues: {types: [opened]}}
permissions: {}
jobs:
  answer:
    runs-on: ubuntu-latest
    steps:
      - run: echo '${{ github.event.issue.title }}'
"""
CHECKED_OUT = """name: pulls
on: {pull_request_target: {types: [opened]}}
permissions: {}
jobs:
  answer:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8
        with: {persist-credentials: false, ref: "${{ github.event.pull_request.head.sha }}"}
      - run: make
"""
DEPENDABOT = """version: 2
updates:
  - package-ecosystem: npm
    directory: /
    schedule: {interval: daily}
"""


def look(
    tmp_path: Path, files: dict[str, str], only: str = "", environ: Mapping[str, str] = NOTHING, **settings: object
) -> Observation:
    scratch = tmp_path / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    place = Place(make_repo(tmp_path / "repo", files), scratch)
    chosen = [one for one in SCANNERS if only in ("", one.name)]
    asked = ScannerSettings.model_validate(settings)
    watch = scanners.build(asked, place.git, tmp_path / "cache", scanners=chosen, environ=environ)
    return watch.observe(place.context())


def test_an_action_that_is_not_pinned_as_the_others_are_becomes_a_pin(tmp_path: Path) -> None:
    source = make_repo(tmp_path / "pilot")
    git(source, "tag", "v4.2.1")
    git(source, "tag", "v4")
    uses = [f"{action}@{SHA}" for action in ("a/b", "c/d", "e/f")]
    steps = "".join(f"      - uses: {used}\n" for used in (*uses, "harbour/pilot@v4"))
    files = {".github/workflows/a.yml": COMMENTED.replace("issue_comment: {types: [created]}", "push: {}") + steps}
    with FakeGitHub(copy_bare(source, tmp_path / "pilot.git"), "harbour/pilot") as server:
        (one,) = look(tmp_path, files, "zizmor", environ={"GITHUB_SERVER_URL": server.url}).signals
    assert one.patch is not None and one.kind == "workflow-fix"
    (change,) = one.patch.changes
    pin = f"harbour/pilot@{read_head(source)} # v4.2.1\n"
    assert change.new == files[change.path].replace("harbour/pilot@v4\n", pin).encode()
    assert one.title == "Pin harbour/pilot to a commit in .github/workflows/a.yml, as others here are"
    unanswered = look(tmp_path / "later", files, "zizmor", environ={"GITHUB_SERVER_URL": server.url})
    assert (unanswered.signals, unanswered.complete) == ((), False)  # which says nothing about what was found before


def test_what_is_to_be_pinned_stays_found_while_an_outdated_action_is_there(tmp_path: Path) -> None:
    source = make_repo(tmp_path / "pilot")
    git(source, "tag", "v4")
    pinned = [f"{action}@{SHA}" for action in ("a/b", "c/d", "e/f")]
    uses = (*pinned, "actions/cache@v5", "actions/cache@v5", "actions/cache@v3", "harbour/pilot@v4")
    steps = "".join(f"      - uses: {used}\n" for used in uses)
    files = {".github/workflows/a.yml": COMMENTED.replace("issue_comment: {types: [created]}", "push: {}") + steps}
    with FakeGitHub(copy_bare(source, tmp_path / "pilot.git"), "harbour/pilot") as server:
        found = look(tmp_path, files, "zizmor", environ={"GITHUB_SERVER_URL": server.url}).signals
    assert [one.title.split()[0] for one in found if one.patch] == ["Use", "Pin"]


def by_rule(seen: Observation) -> dict[str, Signal]:
    return {str(dict(signal.facts).get("rule", signal.kind)): signal for signal in seen.signals}


def program(folder: Path, name: str, prints: str, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> None:
    """A scanner of that name that says this, whatever it is asked."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.out").write_text(prints)
    script = folder / name
    script.write_text(f"#!/bin/sh\ncat '{folder}/{name}.out'\nexit {code}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_what_only_people_with_write_access_reach_is_counted_and_told_to_nobody(tmp_path: Path) -> None:
    seen = look(tmp_path, {".github/workflows/release.yml": RELEASE}, "zizmor")
    assert (seen.signals, seen.detail, seen.complete) == ((), "zizmor: 5 results, none reported", True)


def test_words_of_a_stranger_in_a_script_ask_a_person(tmp_path: Path) -> None:
    seen = look(tmp_path, {f".github/workflows/{name}.yml": INJECTED for name in "ab"}, "zizmor")
    (one,) = seen.signals
    assert (one.kind, one.severity, dict(one.facts)["rule"]) == ("workflow-risk", Severity.HIGH, "template-injection")
    assert one.title.endswith("in 2 files")  # which are both named
    assert [(quote.text, quote.path, quote.line) for quote in one.quotes] == [
        ("- run: echo '${{ github.event.issue.title }}'", f".github/workflows/{name}.yml", 8) for name in "ab"
    ]


@pytest.mark.parametrize(
    ("workflow", "asks"),
    [
        (CHECKED_OUT, True),
        (CHECKED_OUT.replace("    runs-on", f"    if: {OWNER}\n    runs-on"), False),  # guarded
        (CHECKED_OUT.replace("${{ github.event.pull_request.head.sha }}", "main"), False),  # their code is not run
        (COMMENTED, False),
    ],
)
def test_a_trigger_of_strangers_asks_where_their_code_is_checked_out_unguarded(
    tmp_path: Path, workflow: str, asks: bool
) -> None:
    seen = look(tmp_path, {".github/workflows/a.yml": workflow}, "zizmor")
    assert [signal.kind for signal in seen.signals] == ["workflow-risk"] * asks


def test_what_zizmor_mends_safely_is_one_change_and_no_line_besides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {".github/dependabot.yml": DEPENDABOT, ".github/workflows/a.yml": GUARDED.replace("issue_comment", "push")}
    files[".github/workflows/a.yml"] = "on: push\npermissions: {}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}\n"
    assert look(tmp_path / "taste", files, "zizmor").signals == ()  # nobody is asked about what is no fault
    monkeypatch.setattr(scanners, "STYLE_RULES", frozenset[str]())
    seen = look(tmp_path, files, "zizmor")
    (one,) = seen.signals
    assert (one.kind, one.essence) == ("workflow-fix", ("workflow-fix", "zizmor", "dependabot-cooldown"))
    assert one.title == "Let Dependabot wait some days before it proposes a new release in .github/dependabot.yml"
    assert one.patch and one.patch.paths == (".github/dependabot.yml",)
    assert b"default-days: 7" in (one.patch.changes[0].new or b"")


def test_a_commit_is_scanned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {".github/workflows/release.yml": RELEASE}
    first = look(tmp_path, files, "zizmor")
    monkeypatch.setattr(scanners, "run_check", None)
    (tmp_path / "repo").rename(tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "repo")
    place = Place(tmp_path / "repo", tmp_path / "scratch")
    again = scanners.build(ScannerSettings(), place.git, tmp_path / "cache", scanners=SCANNERS[:1])
    assert again.observe(place.context()).signals == first.signals


def test_a_scanner_that_is_missing_is_named_if_ralph_installs_it_and_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanners, "is_installed", lambda name: False)
    seen = look(tmp_path, {".github/workflows/release.yml": RELEASE})
    assert (seen.status, seen.signals, seen.detail) == ("ok", (), "no files for the installed scanners")
    assert seen.unchecked == ("zizmor: not installed, `ralph doctor` names the command",)
    assert look(tmp_path / "other", {"a.py": ""}).unchecked == ()
    left_out = look(tmp_path / "third", {".github/workflows/release.yml": RELEASE}, exclude=[".github/**"])
    assert left_out.unchecked == ()


def test_scanners_have_three_times_their_time_limits_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanners, "is_installed", lambda name: True)
    git = Place(make_repo(tmp_path / "repo", {}), tmp_path).git
    quick = dataclasses.replace(SCANNERS[0], settings={"run": "true", "parse": "sarif", "timeout": 5})
    watch = scanners.build(ScannerSettings(), git, tmp_path / "cache", scanners=(SCANNERS[0], quick))
    assert watch.seconds == 3 * (SCANNERS[0].command.timeout + quick.command.timeout) == 3 * 125


def test_paths_can_be_left_out(tmp_path: Path) -> None:
    files = {".github/workflows/release.yml": RELEASE, ".github/dependabot.yml": DEPENDABOT}
    assert look(tmp_path, files, "zizmor", exclude=[".github/**"]).signals == ()


def test_what_actionlint_says_is_listed_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [
        {
            "message": 'unexpected key "branch" for "push" section',
            "filepath": ".github/workflows/release.yml",
            "line": number,
            "column": 5,
            "kind": kind,
            "snippet": "x",
            "end_column": 11,
        }
        for number, kind in ((3, "syntax-check"), (4, "syntax-check"), (7, "expression"))
    ]
    program(tmp_path / "bin", "actionlint", json.dumps(said), monkeypatch, code=1)
    seen = look(tmp_path, {".github/workflows/release.yml": RELEASE}, "actionlint")
    assert [(signal.kind, signal.essence[2], dict(signal.facts)["places"]) for signal in seen.signals] == [
        ("workflow", "expression", 1),
        ("workflow", "syntax-check", 2),
    ]


def test_a_scanner_that_fails_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "actionlint", "no JSON", monkeypatch)
    seen = look(tmp_path, {".github/workflows/a.yml": INJECTED})
    assert seen.status == "ok" and not seen.complete and "actionlint: no JSON that fits" in seen.detail
    assert "template-injection" in by_rule(seen)


def test_what_needs_the_packages_of_a_project_runs_only_where_they_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "knip", '{"issues": []}', monkeypatch)
    seen = look(tmp_path, {"knip.json": "{}"}, "knip")
    assert seen.detail == "no files for the installed scanners"


@pytest.mark.parametrize("one", SCANNERS, ids=lambda one: one.name)
def test_every_scanner_has_settings_that_can_be_used(one: Scanner) -> None:
    assert one.command.name == one.name and dataclasses.asdict(one)


def test_scanners_fit_by_path() -> None:
    def names(*paths: str) -> list[str]:
        return [one.name for one in fitting_scanners(paths)]

    assert names(".github/workflows/ci.yaml") == ["zizmor", "actionlint"]
    assert names("tools/action.yml") == ["zizmor"]
    assert names("tests/test_a.py", "src/testing.py") == ["ruff"]
    assert names(".github/ISSUE_TEMPLATE/bug.yml", "docs/pyproject.toml") == []


def test_a_test_that_never_runs_and_a_case_given_twice_are_lines_of_a_list(tmp_path: Path) -> None:
    cases = "import pytest\n\n\n@pytest.mark.parametrize('a', [(0, 1),\n    (0, 1)])\ndef test_a(a): ...\n"
    again = "def test_b(): ...\n\n\ndef test_b(): ...\n\n\ndef help(): ...\n\n\ndef help(): ...\n"
    seen = look(tmp_path, {"tests/test_a.py": cases, "tests/test_b.py": again}, "ruff")
    assert [(signal.kind, signal.title) for signal in seen.signals] == [
        ("code-quality", "A test that never runs, as another one has its name in tests/test_b.py:4"),
        ("code-quality", "The same test case twice in tests/test_a.py:5"),
    ]


def test_other_names_that_are_given_twice_are_no_result_and_no_failure(tmp_path: Path) -> None:
    seen = look(tmp_path, {"tests/test_a.py": "def test_a(): ...\n", "b.py": 2 * "def help(): ...\n"}, "ruff")
    assert (seen.status, seen.signals, seen.unchecked) == ("ok", (), ())
