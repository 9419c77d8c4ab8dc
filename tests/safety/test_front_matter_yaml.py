"""Strict YAML: the plain part reads like any YAML, the rest is refused at a bounded cost."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.safety.front_matter import MAX_BYTES, MAX_DEPTH, YamlError, parse

WORDS = st.text("abcdefghij -_é", min_size=1, max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
STEPS = zip("abcdefg", "bcdefgh", strict=True)
BOMB = "\n".join(["a: &a [x, x]", *(f"{b}: &{b} [*{a}, *{a}]" for a, b in STEPS)])


@pytest.mark.benign("memory")
@given(st.dictionaries(WORDS, VALUES, max_size=5))
def test_plain_yaml_reads_as_it_always_does(value: dict[str, object]) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    if "&" in text:  # the dumper itself made an alias of two equal objects
        return
    assert parse(text).value == yaml.safe_load(text)


@pytest.mark.attack(24)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except YamlError as error:
        assert error.what
        assert "\n" not in error.what


def test_every_path_knows_its_line() -> None:
    lines = parse("a: 1\nb:\n  c:\n    - x\n    - y: 2\n").lines
    assert (lines["a",], lines["b", "c"], lines["b", "c", 0], lines["b", "c", 1, "y"]) == (1, 3, 4, 5)


@pytest.mark.attack(24)
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: &x 2", 2),
        (BOMB, 1),
        ("a: 1\nb: !!set {c}", 2),
        ("a: 1\n\na: 2", 3),
        ("a:\n  b: 1\n  b: 2", 3),
        ("a: 1\n--- \nb: 2", 2),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), 1),
        ("a: 1\nb: 2026-13-45", 2),
        ("a: 1\nb: " + "9" * 5000, 2),
        ("a: 1\n? {b: c}\n: d", 2),
        ("a: \x00", 0),
        ("a: \ud800", 0),
        ("#" * (MAX_BYTES + 1), 0),
    ],
)
def test_cleverness_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(YamlError) as caught:
        parse(text)
    assert caught.value.line == line


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH).value is not None
