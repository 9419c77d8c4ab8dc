"""A markdown check list as stories: each top-level `- [ ]` is one, and passes when it is ticked.

Nested boxes are its criteria; other nested lines, and the headings above, its description. A story is identified by the
id it begins with (`US-001`, `T012`, `#7`), else by its words, so lines that a person adds above do not matter. Only the
mark between the brackets is ever written. Code blocks and comments contain no stories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, replace

from ralph_mission.loop.model.state import Prd, UserStory
from ralph_mission.values import compile_regex, dataclass

BOX = compile_regex(r"^(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<mark>[ xX])\][ \t]+(?P<text>\S.*)")
_HEADING = compile_regex(r"^(?P<marks>#{1,6})[ \t]+(?P<title>.*?)[ \t#]*$")
_FENCE = compile_regex(r"^[ \t]*(?:```|~~~)")
_ID = compile_regex(r"^(?P<id>#\d+|[A-Z][A-Z0-9]*-\d+|T\d{2,})\b")
TITLE, NAME = 100, 40
"""Characters of a title (as in a commit's first line), and of an id made of words."""


@dataclass(slots=True)
class _Item:
    """A story: the position of its mark, and its lines."""

    mark: int
    indent: int
    text: str
    done: bool
    section: str
    more: list[str] = field(default_factory=list)
    criteria: list[str] = field(default_factory=list)


def is_checklist(text: str) -> bool:
    """Whether any line has a box; JSON never does."""
    return any(BOX.match(line) for line in text.splitlines())


def names_boxes(text: str) -> bool:
    """Whether a story begins with an id: then the boxes are the stories, whatever the headings read like."""
    return any(_ID.match(item.text.replace("**", "").strip()) for item in _items(text))


def parse_checklist(text: str) -> Prd:
    """The stories, in the order of the file, which is their priority."""
    stories: list[UserStory] = []
    counts: dict[str, int] = {}
    for place, item in enumerate(_items(text), 1):
        story = _story(item, place)
        counts[story.id] = counts.get(story.id, 0) + 1
        again = f"{story.id}-{counts[story.id]}" if counts[story.id] > 1 else story.id
        stories.append(replace(story, id=again))
    heading = next((found["title"] for line in text.splitlines() if (found := _HEADING.match(line))), "")
    return Prd(heading, "", "", tuple(stories))


def tick(text: str, passes: tuple[bool, ...]) -> str:
    """Tick the boxes in `text` as `passes` says, one for each story; every other character stays."""
    for item, passed in zip(list(_items(text)), passes, strict=True):
        if item.done != passed:
            text = f"{text[: item.mark]}{'x' if passed else ' '}{text[item.mark + 1 :]}"
    return text


def _story(item: _Item, place: int) -> UserStory:
    words = item.text.replace("**", "").strip()
    found = _ID.match(words)
    slug = re.sub(r"[^\w]+|_", "-", words.lower()).strip("-")
    short = slug if len(slug) <= NAME else slug[:NAME].rpartition("-")[0] or slug[:NAME]
    words = words[found.end() :].lstrip(" :.)-–—") or words if found else words  # noqa: RUF001  # people write all dashes
    title = words if len(words) <= TITLE else f"{words[: TITLE - 1].rstrip()}…"
    paragraphs = (words if title != words else "", *item.more, f"Listed under: {item.section}" if item.section else "")
    name = found["id"] if found else short or f"item-{place}"
    return UserStory(name, title, "\n".join(filter(None, paragraphs)), tuple(item.criteria), place, item.done)


def _items(text: str) -> Iterator[_Item]:
    current: _Item | None = None
    headings: dict[int, str] = {}
    for start, line in read_prose(text):
        if found := BOX.match(line):
            indent, words = len(found["indent"].expandtabs(4)), found["text"].strip()
            if current and indent > current.indent:
                current.criteria.append(words)
                continue
            if current:
                yield current
            section = " / ".join(headings[level] for level in sorted(headings) if level > 1)
            current = _Item(start + found.start("mark"), indent, words, found["mark"] != " ", section)
        elif line.strip() and current and len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip()) > current.indent:
            current.more.append(line.strip())
        elif line.strip() and current:
            yield current
            current = None
        if heading := _HEADING.match(line):
            level = len(heading["marks"])
            headings = {**{above: title for above, title in headings.items() if above < level}, level: heading["title"]}
    if current:
        yield current


def read_prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside code blocks and comments, with their offsets."""
    start, fenced, in_comment = 0, False, False
    for line in text.splitlines(keepends=True):
        fence = bool(_FENCE.match(line)) and not in_comment
        opens = not fenced and line.rfind("<!--") > line.rfind("-->")
        if not (fence or fenced or in_comment or opens):
            yield start, line.rstrip("\r\n")
        fenced ^= fence
        in_comment = opens or (in_comment and "-->" not in line)
        start += len(line)
