"""Which markers are overdue, and which only sound as if they were."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.markers import Hit
from ralph_mission.adapters.observers.overdue.rules import (
    DeclaredVersions,
    VersionFloor,
    declared_versions,
    last_day,
    lower_bound,
    overdue,
)
from ralph_mission.mission.model.mission import Quote
from tests.helpers import make_repo

TODAY = date(2026, 3, 1)
SAID = Quote("said so", "pyproject.toml", 3, "c" * 40)
DECLARED = DeclaredVersions(
    {
        "python": VersionFloor((3, 10), SAID),
        "node": VersionFloor((20,), SAID),
        "pydantic": VersionFloor((2, 9, 0), SAID),
        "react": VersionFloor((18, 2), SAID),
    },
    {"": ((3, 5, 41), True, SAID), "next": ((4, 0, 0), False, SAID)},
)


def why(text: str, path: str = "src/a.ts", declared: DeclaredVersions = DECLARED) -> str:
    word = next(word for word in ("TODO", "FIXME", "HACK") if word in text)
    found = list(overdue([Hit("todo", path, 1, text, word)], lambda: declared, TODAY))
    return found[0].why if found else ""


@pytest.mark.parametrize(
    "text",
    [
        "// TODO(TEST): revert to 86_400_000 (1 day) and revalidate 300 after manual testing.",
        "# TODO: remove before merging",
        "# FIXME: delete this before we commit",
        "// TODO(DEBUG) print everything",
        "// HACK: don't ship",
        "# FIXME: Remove this after 6/1/2025",
        "// TODO: drop the fallback after 2024",
        "// TODO: remove in favour of the new one by end of June 2025",
        "# TODO: enable again on 2025-12-24",
        "# TODO remove when deprecating Pydantic v1",
        "# TODO: drop once support for Python 3.9 is gone, when we drop Python 3.9",
        "// TODO: Use AggregateError when we drop Node.js v14",
        "// TODO: Use cause when we drop support for Node.js<18.7.0",
        "// TODO: simplify once we require react 18",
        "# HACK: work around a bug in Python < 3.9",
        "# TODO: remove after setting the min Pydantic to v2.9",
        "// TODO adjust order in 3.5",
        " * TODO document for 3.5",
        "// TODO: Enable this after release 3.4",
        "// TODO: remove in v3",
    ],
)
def test_a_condition_that_has_come_true_makes_a_marker_overdue(text: str) -> None:
    assert why(text)


@pytest.mark.parametrize("text", ["// TODO [2025-01-01]: remove", "// TODO(2025-01-01): remove this fallback"])
def test_a_date_in_brackets_is_when_it_is_due(text: str) -> None:
    assert why(text) == "The date that it names is over: 2025-01-01"
    assert why(text.replace("2025", "2026").replace("01-01", "12-31")) == ""
    assert why("// TODO(2025): tidy") == why("// TODO(2025-01-01, mara): tidy") == ""


@pytest.mark.parametrize(
    "text",
    [
        "// TODO: revert to the last snapshot when the user cancels",
        "// TODO(test): cover the empty list",
        "// TODO for testing",
        "# TODO: temporary, think of something better",
        "# FIXME: This is wrong, but not doing this leads to worse",
        "// TODO: Re-enable this test once inner literals work",
        "# TODO: remove after 2026",
        "# TODO: remove after 6/1/2026",
        "// TODO 2019-03-01: tidy",
        "// TODO(mara, 2020-01-01): tidy",
        "# TODO: copyright 2020",
        "# TODO: remove when dropping support for Pydantic < v2.12.3",
        "# TODO: remove after setting the min Pydantic to v2.12.3",
        "# TODO: drop when we drop Python 3.10",
        "// TODO: when we drop support for Node.js < 22",
        "// TODO: Use it when we drop support for IE 11",
        "// TODO: Remove this in v4",
        "// TODO: remove in 3.6",
        "// TODO: works in TypeScript 3.2",
        "// TODO: use index 2.5 for 3.2 seconds",
        "// TODO: remove once most people have updated to v0.33 or higher",
        "# TODO: remove once react 19 is out",
        "# TODO: remove once we require React 19",
        "// TODO(burntsushi): Darwin doesn't like this test",
        "// TODO: never merge two arrays like this",
    ],
)
def test_what_is_not_known_to_be_true_is_not_overdue(text: str) -> None:
    assert why(text) in ("",)


def test_a_version_that_is_not_released_yet_is_not_out() -> None:
    assert why("// TODO: remove in v4", "next/a.ts") == ""
    assert why("// TODO: remove in v3", "next/a.ts")


def test_a_marker_in_tests_and_in_prose_is_left_alone() -> None:
    text = "# TODO: remove before merging"
    assert why(text, "tests/fixtures/a.py") == why(text, "docs/notes.md") == ""


def test_a_runtime_that_a_workflow_still_runs_is_not_dropped() -> None:
    """A package may be built for older versions than its own tools need."""
    workflow = 'jobs:\n  prod:\n    strategy:\n      matrix:\n        node:\n          - "22"\n          - "14"\n'
    ci = DeclaredVersions(DECLARED.floors, DECLARED.own, (workflow,))
    text = "// TODO: Use AggregateError when we drop Node.js v14"
    assert why(text) and why(text, declared=ci) == ""


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("2024", date(2024, 12, 31)),
        ("2024-02", date(2024, 2, 29)),
        ("2024-05-01", date(2024, 5, 1)),
        ("6/1/2025", date(2025, 6, 1)),
        ("1/6/2025", date(2025, 6, 1)),
        ("Q1 2025", date(2025, 3, 31)),
        ("June 2025", date(2025, 6, 30)),
        ("June 3rd, 2025", date(2025, 6, 3)),
        ("3 Sep 2025", date(2025, 9, 3)),
        ("2024-13", None),
        ("31/31/2025", None),
    ],
)
def test_a_date_means_the_last_day_that_it_can_mean(words: str, day: date | None) -> None:
    assert last_day(words) == day


@pytest.mark.parametrize(
    ("constraint", "lowest"),
    [
        (">=3.10", (3, 10)),
        (">=2.9.0,<3", (2, 9, 0)),
        ("~=1.4", (1, 4)),
        ("^18.2.0", (18, 2, 0)),
        (">= 18", (18,)),
        (">=18 <21", (18,)),
        ("^18 || ^20", (18,)),
        ("18.x", (18,)),
        ("14 - 16", (14,)),
        ("<3", ()),
        ("*", ()),
        ("", ()),
        ("^18 || *", ()),
        ("latest", ()),
    ],
)
def test_the_lowest_version_of_a_constraint(constraint: str, lowest: tuple[int, ...]) -> None:
    assert lower_bound(constraint) == lowest


# --- what manifests declare ---


MANIFESTS = {
    "package.json": '{"version": "3.5.41",\n "engines": {"node": ">=20.1"},\n "peerDependencies": {"react": "^18.2.0"},'
    '\n "dependencies": {"left": "workspace:*", "Vue": "~3.4.1"}}\n',
    "pyproject.toml": '[project]\nversion = "1.2.0rc1"\nrequires-python = ">=3.10,<4"\n'
    'dependencies = ["pydantic>=2.9", "not a requirement!"]\n',
    "poetry/pyproject.toml": '[tool.poetry]\nversion = "0.4.0"\n[tool.poetry.dependencies]\n'
    'httpx = "^0.27"\nrich = {version = ">=13"}\n',
    "go.mod": "module slackwater.example/tides\n\ngo 1.22\n",
    "Cargo.toml": '[package]\nversion = "0.9.0"\nrust-version = "1.75"\n',
    "pom.xml": "<project><properties><java.version>1.8</java.version></properties></project>\n",
    ".github/workflows/ci.yml": "steps:\n  - uses: actions/setup-node@v4\n    with:\n      node-version: [18, 20]\n",
}


def declared(folder: Path, files: dict[str, str]) -> DeclaredVersions:
    git = Git.open(make_repo(folder, files))
    return declared_versions(git, git.resolve("HEAD"), lambda path: True)


def test_each_kind_of_manifest_says_what_it_needs_and_what_it_is(tmp_path: Path) -> None:
    found = declared(tmp_path / "repo", MANIFESTS)
    assert {name: floor.version for name, floor in found.floors.items()} == {
        "node": (20, 1), "react": (18, 2, 0), "vue": (3, 4, 1), "python": (3, 10), "pydantic": (2, 9),
        "httpx": (0, 27), "rich": (13,), "go": (1, 22), "rust": (1, 75), "java": (8,),
    }  # fmt: skip  # one table
    lines = {name: (floor.quote.path, floor.quote.line) for name, floor in found.floors.items()}
    assert (lines["node"], lines["go"], lines["pydantic"]) == (
        ("package.json", 2), ("go.mod", 3), ("pyproject.toml", 4)
    )  # fmt: skip  # one table
    own = {
        path: version and version[:2] for path in ("src/a.py", "poetry/b/c.py") if (version := found.own_version(path))
    }
    assert own == {"src/a.py": ((1, 2, 0), False), "poetry/b/c.py": ((0, 4, 0), True)}
    assert found.is_run_below("node", (20,)) and not found.is_run_below("node", (18,))


def test_what_two_manifests_need_is_the_lower_of_both_and_nothing_where_one_does_not_say(tmp_path: Path) -> None:
    two = {"package.json": '{"engines": {"node": ">=20"}}', "a/package.json": '{"engines": {"node": ">=18 <21"}}'}
    assert declared(tmp_path / "two", two).floor("node").version == (18,)
    assert declared(tmp_path / "open", two | {"b/package.json": '{"engines": {"node": "*"}}'}).floor("node") is None
    assert declared(tmp_path / "none", {"package.json": "no JSON"}).own_version("src/a.ts") is None
