"""Do Not Repeat: what is forbidden, and what is reported instead of being half-obeyed."""

from __future__ import annotations

import pytest

from ralph_mission.mission.findings.bans import Ban, KindBan, PathBan, ReferenceBan, forbids, understand
from ralph_mission.mission.model.kinds import KINDS


def bans(text: str) -> set[object]:
    return set(understand(text, KINDS)[0])


def unclear(text: str) -> tuple[str, ...]:
    return understand(text, KINDS)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- `vendor/**`", {PathBan("vendor/**")}),
        ("- `**/a*/b*/*.md`", {PathBan("**/a*/b*/*.md")}),
        ("- #12", {ReferenceBan(12)}),
        ("- `#12` is known", {ReferenceBan(12)}),
        ("- `spelling`", {KindBan("spelling")}),
        ("- spelling", {KindBan("spelling")}),
        ("* spelling: enough of these", {KindBan("spelling")}),
        ("1. `spelling` in `docs/**`, see #3", {KindBan("spelling"), PathBan("docs/**"), ReferenceBan(3)}),
        ("- [ ] `a.md`", {PathBan("a.md")}),
        ("- known already:\n  `a.md`", {PathBan("a.md")}),
        ("`a.md`\r\n`b.md`\r\n", {PathBan("a.md"), PathBan("b.md")}),
    ],
)
def test_a_line_is_understood(text: str, expected: set[object]) -> None:
    assert bans(text) == expected
    assert not unclear(text)


@pytest.mark.parametrize(
    "line",
    ["please be careful", "any file of the old API", "bug reports are fine", "`!docs/**`", "issue 12", "`\\`", "x#12"],
)
def test_a_line_that_cannot_be_obeyed_is_reported(line: str) -> None:
    assert unclear(f"- {line}") == (line,)
    assert not bans(f"- {line}")


def test_headings_and_comments_only_explain() -> None:
    assert understand("\n### Paths\n<!-- `a/**`\nand #7 -->\n\n", KINDS) == ((), ())


def test_an_unclosed_comment_hides_the_rest() -> None:
    assert bans("- `a`\n<!-- \n- `b`") == {PathBan("a")}


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("vendor/**", "vendor/a/b.py", True),
        ("vendor/**", "src/vendor.py", False),
        ("*.md", "docs/deep/a.md", True),
        ("/README.md", "docs/README.md", False),
        ("docs/", "docs/a.md", True),
    ],
)
def test_globs_are_gitignore_patterns(glob: str, path: str, covered: bool) -> None:
    assert forbids([PathBan(glob)], path=path) is covered


def test_kinds_and_numbers_forbid_exactly_themselves() -> None:
    some: list[Ban] = [KindBan("todo"), ReferenceBan(7)]
    assert forbids(some, kind="todo")
    assert forbids(some, reference=7)
    assert not forbids(some, path="todo", kind="spelling", reference=70)


def test_a_path_ban_forbids_nothing_without_a_path() -> None:
    assert not forbids([PathBan("**")])


@pytest.mark.parametrize("glob", [" a.md", "a.md ", "a" * 513])
def test_a_glob_that_is_not_written_as_one_is_not_understood(glob: str) -> None:
    assert not bans(f"- x `{glob}` y")
    assert len(unclear(f"- x `{glob}` y")) == 1


def test_a_glob_that_would_take_for_ever_is_not_understood() -> None:
    line = f"`{'*a' * 20}b`"
    assert unclear(f"- {line}") == (line,)
