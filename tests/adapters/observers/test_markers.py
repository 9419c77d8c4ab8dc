"""What is a marker, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.observers.markers import excluder, marker
from ralph_mission.cli.setup.settings import render_settings
from ralph_mission.config.observers import MARKERS

TODO, IGNORE, ANY = (marker(kind, pattern) for kind, pattern in MARKERS.items())


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "# TODO"),
        ("a.py", "x = 1  # FIXME later"),
        ("a.ts", "// TODO(mara): it"),
        ("a.c", " * HACK around a bug"),
        ("a.sql", "-- TODO tidy"),
        ("a.html", "<!-- TODO: words -->"),
        ("a.py", "    TODO: inside a docstring"),
        ("a.py", '    raise NotImplementedError("TODO: write it")'),
        ("a.py", "TODO = 1  # TODO: rename"),
        ("notes.md", "TODO: write this chapter"),
    ],
)
def test_a_marker_is_seen(path: str, line: str) -> None:
    assert TODO.find(path, line) in ("TODO", "FIXME", "HACK")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "todo = todos[0]"),
        ("a.py", "# all TODOs are listed"),
        ("a.ts", 'status = "TODO"'),
        ("a.ts", "  TODO: 'to do',"),
        ("a.ts", "if (x === Status.TODO) {"),
        ("a.py", "TODO = 1"),
        ("a.py", 'assert found == ["TODO", "FIXME"]'),
        ("a.c", "case TODO: return 1;"),
        ("a.py", "# prints 'TODO' when empty"),
        ("README.md", "# The TODO list"),
        ("README.md", "It finds TODO and FIXME markers."),
        ("a.py", "TODO_LIST = []  # nothing"),
        ("a.js", "fetch('http://x/TODO')"),
        ("ralph.yml", "    # markers: {todo: 'TODO|FIXME|HACK'}"),
    ],
)
def test_what_only_looks_like_a_marker_is_not(path: str, line: str) -> None:
    assert TODO.find(path, line) is None


def test_what_init_writes_holds_no_marker() -> None:
    assert [line for line in render_settings(()).splitlines() if TODO.find("ralph.yml", line)] == []


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        ("a.ts", "let x: any = 1", True),
        ("a.tsx", "  #cache: any;", True),
        ("a.ts", "f(a: any[], b: string)", True),
        ("a.ts", "let x: anything", False),
        ("a.ts", "// note: any value will do", False),
        ("a.ts", " * @returns: any", False),
        ("a.py", "x: any = 1", False),
        ("a.md", "in this case: any", False),
    ],
)
def test_any_is_a_type_in_typescript_code(path: str, line: str, found: bool) -> None:
    assert (ANY.find(path, line) is not None) is found


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        ("a.ts", "// @ts-ignore", True),
        ("a.tsx", "{/* @ts-ignore: old types */}", True),
        ("a.vue", "  // @ts-ignore", True),
        ("a.ts", 'const rule = "@ts-ignore"', False),
        ("a.ts", "  isTypeScript ? ` //@ts-ignore\\n` : ``", False),
        ("a.md", "// @ts-ignore", False),
    ],
)
def test_ts_ignore_stands_in_a_comment_of_a_script(path: str, line: str, found: bool) -> None:
    assert (IGNORE.find(path, line) is not None) is found


@pytest.mark.parametrize("pattern", [r"(a+)+b", "x.y", "[ab]", "a{2}", r"\w", "^a", r"a\|b"])
def test_python_never_matches_a_pattern_that_is_not_literal(pattern: str) -> None:
    assert marker("mine", pattern).literals == ()


@given(st.text(max_size=200), st.sampled_from(["a.py", "b.ts", "c.md"]))
def test_whatever_is_found_stands_in_the_line(line: str, path: str) -> None:
    for one in (TODO, IGNORE, ANY):
        assert (one.find(path, line) or "") in line


@pytest.mark.parametrize(
    ("path", "is_excluded"),
    [
        ("node_modules/a.js", True), ("src/vendor/a.py", True), ("a/b.min.js", True), ("package-lock.json", True),
        ("go.sum", True), ("vendor.py", False), ("src/myvendor/a.py", False), ("src/a.py", False), ("dist", False),
    ],
)  # fmt: skip  # one table
def test_what_others_wrote_or_a_program_is_excluded(path: str, is_excluded: bool) -> None:
    assert excluder(())(path) is is_excluded
    assert excluder(["*.py"])(path) is (is_excluded or path.endswith(".py"))
