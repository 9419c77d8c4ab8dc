"""Front matter is read strictly, and what stands below it is kept byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.safety.front_matter import YamlError, parse_front_matter, render_front_matter


def _export(metadata: Mapping[str, Any]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in metadata.items())


@given(st.text(st.sampled_from("- \n\r\t\ufeff\u2028a:=") | st.characters(codec="utf-8")))
def test_the_text_below_is_kept_as_it_is(body: str) -> None:
    found = parse_front_matter(render_front_matter({"a": 1, "content": "two"}, body, _export))
    assert (found.value, found.body, found.body_line) == ({"a": 1, "content": "two"}, body, 5)
    assert found.lines == {"a": 2, "content": 3}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_may_end_as_they_like(ends: str) -> None:
    found = parse_front_matter(ends.join(("---", "a: 1", "---  ", "", "text", "---", "more")))
    assert found.body == ends.join(("", "text", "---", "more")) and found.value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "must begin"),
        ("a: 1\n", 1, "must begin"),
        ("\n---\na: 1\n---\n", 1, "must begin"),
        (" ---\na: 1\n---\n", 1, "must begin"),
        ("text\n---\na: 1\n---\n", 1, "must begin"),
        ("----\na: 1\n---\n", 1, "must begin"),
        ("---\na: 1\n", 1, "no end"),
        ("---\na: 1\n----\n", 1, "no end"),
        ("---\na: &x 1\nb: *x\n---\n", 2, "aliases"),
        ("---\nb: 1\na: !!python/name:os.system\n---\n", 3, "tags"),
        ("---\na: 1\nb: 2\na: 3\n---\n", 4, "twice"),
        ("---\na: [1\n---\n", 3, ""),
        ("---\na: 1\n...\n%TAG ! x\n---\n", 5, ""),
    ],
)
def test_what_is_no_plain_front_matter_is_named_by_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_front_matter(text)
    assert (caught.value.line, said in caught.value.what) == (line, True), caught.value.what
