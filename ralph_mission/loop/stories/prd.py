"""Reads and updates `prd.json`, and converts a PRD in markdown.

`prd.json` is read with synonyms of its keys, and updated in place: every other byte stays. The keys are those of
snarktank/ralph, shared by oh-my-claudecode.

In markdown, story headings are read (`### US-001: Title`, `### Story 3 - Title`), or every heading or bullet below
“User Stories”, or else the bullets below “Requirements”. They are ordered and get the standard criteria.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

from ralph_mission.loop.model.state import Prd, UserStory
from ralph_mission.loop.stories import checklist, lint
from ralph_mission.loop.stories.lint import BROWSER, TYPECHECK
from ralph_mission.values import compile_regex, dataclass

MAX_CHARS = 4_000_000
"""The size of a thousand stories of a page each, the most that is read."""
MAX_STORIES = 5_000

STORIES = ("userStories", "user_stories", "stories", "tasks", "features", "items")
BRANCH = ("branchName", "branch_name", "branch")
PROJECT = ("project", "projectName", "project_name", "name")
DESCRIPTION = ("description", "summary", "overview", "story", "userStory", "user_story", "details", "task")
ID = ("id", "storyId", "story_id", "key")
TITLE = ("title", "name", "summary")
CRITERIA = (
    "acceptanceCriteria", "acceptance_criteria", "acceptance", "criteria", "steps",
    "stepsToVerify", "subtasks", "tests",
)  # fmt: skip  # one list
PASSES = ("passes", "passed", "done", "completed", "complete")
STATUS = ("status", "state")
NEEDS = ("needs", "dependsOn", "depends_on", "dependencies", "blockedBy", "blocked_by", "deps")
NEED = ("depends_on_id", "id")
TEXT = ("text", "description", "criterion", "title")
TRACKED = frozenset({"open", "in_progress", "closed"})
"""States as ralph-orchestrator's tasks and beads name them."""
FINISHED = frozenset({"done", "passed", "passes", "complete", "completed", "closed"})
WORDS = {"critical": 1, "urgent": 1, "high": 1, "medium": 2, "normal": 2, "low": 3}


class UnreadablePrd(ValueError):
    """An unreadable file; the message says where and why, in a few words."""


def parse_prd(text: str) -> Prd:
    """The stories in `text`: JSON, one JSON object a line (`tasks.jsonl`, beads), or a markdown check list. The default
    priority of a story is its position.

    Raises UnreadablePrd.
    """
    if len(text) <= MAX_CHARS and checklist.is_checklist(text):
        return _parse_checklist(text)
    root = _parse_root(text)
    top = root if isinstance(root, Mapping) else {}
    stories = next((top[key] for key in STORIES if isinstance(top.get(key), list)), None) if top else root
    if not isinstance(stories, list):
        raise UnreadablePrd("no list of userStories")
    if len(stories) > MAX_STORIES:
        raise UnreadablePrd(f"more than {MAX_STORIES} stories")
    return Prd(
        _text(_first_of(top, PROJECT)),
        _text(_first_of(top, BRANCH)),
        _text(_first_of(top, DESCRIPTION)),
        tuple(_parse_story(one, place) for place, one in enumerate(stories, 1)),
    )


def shape(prd: Prd) -> Prd:
    """Everything that a session must not change: all but `passes` and `notes`."""
    return replace(prd, stories=tuple(replace(story, passes=False, notes="") for story in prd.stories))


def update_progress(text: str, prd: Prd) -> str:
    """`text` with the `passes` and `notes` of `prd`. Raises UnreadablePrd if it contains other stories."""
    now = parse_prd(text)
    if shape(now) != shape(prd):
        raise UnreadablePrd("other stories than these")
    if now == prd:
        return text
    if checklist.is_checklist(text):
        ticked = checklist.tick(text, tuple(story.passes for story in prd.stories))
        if parse_prd(ticked) != prd:  # it has no place for notes
            raise UnreadablePrd("a check list, in which nothing but boxes can be set")
        return ticked
    with suppress(ValueError):
        for start, old, new in reversed(list(zip(_story_places(text), now.stories, prd.stories, strict=True))):
            if old != new and text[start] == "{":
                text = _set_progress(text, start, old, new)
        if parse_prd(text) == prd:
            return text
    raise UnreadablePrd("a form that cannot be edited in place")  # such as a story that is only a text


def render_prd(prd: Prd) -> str:
    """A new file in snarktank's form."""
    stories = [
        {
            "id": story.id,
            "title": story.title,
            "description": story.description,
            "acceptanceCriteria": list(story.criteria),
            "priority": story.priority,
            "passes": story.passes,
            "notes": story.notes,
            **({"needs": list(story.needs)} if story.needs else {}),
        }
        for story in prd.stories
    ]
    top = {"project": prd.project, "branchName": prd.branch, "description": prd.description, "userStories": stories}
    return json.dumps(top, indent=2, ensure_ascii=False) + "\n"


def _parse_checklist(text: str) -> Prd:
    if not checklist.names_boxes(text) and any(_HEADED.match(line) for line in text.splitlines()):
        raise UnreadablePrd("a PRD whose stories are headings: convert it with ralph agent prd convert FILE")
    prd = checklist.parse_checklist(text)
    if len(prd.stories) > MAX_STORIES:
        raise UnreadablePrd(f"more than {MAX_STORIES} stories")
    return prd


def _parse_root(text: str) -> Any:
    if len(text) > MAX_CHARS:
        raise UnreadablePrd(f"longer than {MAX_CHARS} characters")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if lines := _parse_lines(text):
            return lines
        if text.strip() and text.strip()[0] not in '{["':
            raise UnreadablePrd("neither JSON nor a check list with boxes (- [ ])") from None
        raise UnreadablePrd(f"line {error.lineno}: {error.msg.removesuffix(' at')}") from None
    except (ValueError, RecursionError):
        raise UnreadablePrd("a number or a nesting that no list of stories needs") from None


def _parse_lines(text: str) -> list[Any]:
    """The objects of a file with one a line; [] for any other file."""
    rows = [row for row in text.splitlines() if row.strip()]
    if len(rows) < 2 or not all(row.lstrip().startswith("{") for row in rows):
        return []
    try:
        return [json.loads(row) for row in rows]
    except (ValueError, RecursionError):
        return []


def _parse_story(document: Any, place: int) -> UserStory:
    if isinstance(document, str):
        document = {"title": document}
    if not isinstance(document, Mapping):
        raise UnreadablePrd(f"story {place} is neither an object nor a text")
    name = _text(_first_of(document, ID)) or f"US-{place:03}"
    description = _text(_first_of(document, DESCRIPTION))
    return UserStory(
        name,
        _text(_first_of(document, TITLE)) or description.split("\n")[0][:80] or name,
        description,
        _parse_criteria(_first_of(document, CRITERIA)),
        _parse_priority(document.get("priority"), place),
        _parse_passes(document),
        _text(document.get("notes")),
        _parse_needs(_first_of(document, NEEDS)),
    )


def _parse_criteria(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    texts = (_text(_first_of(one, TEXT) if isinstance(one, Mapping) else one) for one in listed)
    return tuple(text for text in texts if text)


def _parse_needs(value: Any) -> tuple[str, ...]:
    listed = re.split(r"[,\s]+", value) if isinstance(value, str) else value if isinstance(value, list) else ()
    names = (_text(_first_of(one, NEED)) if isinstance(one, Mapping) else _text(one) for one in listed)
    return tuple(dict.fromkeys(filter(None, names)))


def _parse_priority(value: Any, place: int) -> int:
    if isinstance(value, str):
        word = value.strip().lower()
        value = WORDS.get(word, int(word.lstrip("p")) if word.lstrip("p").isdecimal() and len(word) < 8 else None)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return place
    return math.floor(value)


def _parse_passes(story: Mapping[str, Any]) -> bool:
    key = next((key for key in PASSES if key in story), "")
    if key:
        return story[key] is True or str(story[key]).strip().lower() == "true"
    return str(_first_of(story, STATUS)).strip().lower() in FINISHED


def _first_of(story: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((story[key] for key in keys if key in story), None)


def _text(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    # A half of a surrogate pair is legal in JSON and cannot be written to any file.
    return value.strip().encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _set_progress(text: str, start: int, old: UserStory, new: UserStory) -> str:
    """`text` with the progress of the story whose object begins at `start`."""
    story = json.JSONDecoder().raw_decode(text, start)[0]
    values: dict[str, bool | str] = {}
    if old.passes != new.passes:
        key = next((key for key in PASSES if key in story), "")
        status = "" if key else next((key for key in STATUS if key in story), "")
        finished, begun = ("closed", "open") if str(story.get(status)).lower() in TRACKED else ("done", "pending")
        values = {status: finished if new.passes else begun} if status else {key or "passes": new.passes}
    if old.notes != new.notes:
        values["notes"] = new.notes
    for key, value in values.items():
        text = _set_member(text, start, key, json.dumps(value, ensure_ascii="\\u" in text))
    return text


def _set_member(text: str, start: int, key: str, value: str) -> str:
    """`text` with one more or another value in the object that begins at `start`, in its style."""
    members = list(_members(text, start))
    if found := next((member for member in reversed(members) if member.key == key), None):
        return f"{text[: found.start]}{value}{text[found.end :]}"
    if not members:
        return f'{text[: start + 1]}"{key}": {value}{text[start + 1 :]}'
    first, last = members[0], members[-1]
    gap = text[start + 1 : first.begin]
    comma = text[first.end : members[1].begin] if len(members) > 1 else f",{gap or ' '}"
    name = f'"{key}"{text[first.begin : first.start].rpartition(chr(34))[2]}'
    return f"{text[: last.end]}{comma}{name}{value}{text[last.end :]}"


def _story_places(text: str) -> Iterator[int]:
    """Where each story of a JSON document begins, or of a document with one a line."""
    start = _skip_space(text, 0)
    if _parse_lines(text):
        while start < len(text):
            yield start
            start = _skip_space(text, json.JSONDecoder().raw_decode(text, start)[1])
        return
    if text[start] == "{":
        values = {member.key: member.start for member in _members(text, start)}  # of a repeated key, the last
        start = next(values[key] for key in STORIES if key in values and text[values[key]] == "[")
    yield from (member.start for member in _members(text, start))


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object, or an item of an array (`key` ""): where it begins, where its value starts and ends."""

    key: str
    begin: int
    start: int
    end: int


def _members(text: str, at: int) -> Iterator[_Member]:
    """The members of the valid JSON value that begins at `at`."""
    decoder, named = json.JSONDecoder(), text[at] == "{"
    at = _skip_space(text, at + 1)
    while text[at] not in "}]":
        key, begin = "", at
        if named:
            key, at = decoder.raw_decode(text, at)
            at = _skip_space(text, _skip_space(text, at) + 1)
        end = decoder.raw_decode(text, at)[1]
        yield _Member(key, begin, at, end)
        at = _skip_space(text, end)
        at = _skip_space(text, at + 1) if text[at] == "," else at


def _skip_space(text: str, at: int) -> int:
    while text[at : at + 1].isspace():  # more than JSON's own: `_parse_lines` takes any between two lines
        at += 1
    return at


TYPECHECK_PASSES = "Typecheck passes"
VERIFY_IN_BROWSER = "Verify in browser"

_ID = compile_regex(r"^\W*(?P<id>[A-Z][A-Z0-9]*-\d+)\b[\s:.)\]–—-]*(?P<title>.*)$")  # noqa: RUF001  # people write all dashes
_NUMBER = compile_regex(r"^(?:user )?story\s+#?(?P<number>\d{1,18})\b[\s:.)–—-]*(?P<title>.*)$", re.IGNORECASE)  # noqa: RUF001  # as above
_HEADED = compile_regex(r"^#{1,6}\s+\W*(?:US-\d+\b|(?:user )?story\s+#?\d+\b)", re.IGNORECASE)
_STORIES = compile_regex(r"^\W*(?:\d+[.)]?\s*)?(?:user )?stories\b", re.IGNORECASE)
_REQUIREMENTS = compile_regex(r"^\W*(?:\d+[.)]?\s*)?(?:functional |core )?(?:requirements|features)\b", re.IGNORECASE)
_LABEL = compile_regex(r"^\*\*(?P<name>[^*]+?):?\*\*:?\s*(?P<rest>.*)$", re.DOTALL)
_TICK = compile_regex(r"^\[(?P<mark>[ xX])\]\s+")
_ONLY = compile_regex(r"^\*\*\[[^\]]*\]\*\*\s*")  # “[UI stories only]” of the published template
_PRD = compile_regex(r"^(?:PRD|Product Requirements Document)\b[\s:–—-]*", re.IGNORECASE)  # noqa: RUF001  # as above
_NUMBERED = compile_regex(r"^(?:FR-)?\d+[.):]\s*")


@dataclass(slots=True)
class _Part:
    """A heading with the text below it, up to the next heading."""

    level: int
    title: str
    paragraphs: list[str] = field(default_factory=list)
    bullets: list[tuple[str, str]] = field(default_factory=list)  # the label above it, the text


def convert_prd(text: str, project: str = "", complete: bool = True) -> Prd:
    """The stories of a markdown PRD. `complete` orders them and adds the standard criteria; else they are as written.

    Ticked boxes do not count as passing: that takes a session. Raises UnreadablePrd if there are no stories.
    """
    if len(text) > MAX_CHARS:
        raise UnreadablePrd(f"longer than {MAX_CHARS} characters")
    parts = _split_parts(text)
    stories = _find_stories(parts)
    if not stories:
        raise UnreadablePrd("no user story: none of its headings reads like “### US-001: Title”")
    if len(stories) > MAX_STORIES:
        raise UnreadablePrd(f"more than {MAX_STORIES} stories")
    title = _find_title(parts)
    done = lint.order_by_layer([add_standard_criteria(story) for story in stories]) if complete else tuple(stories)
    numbered = tuple(replace(story, priority=place) for place, story in enumerate(done, 1))
    return Prd(
        _find_label(parts, "project") or project or title,
        branch_of(parts, title),
        _find_summary(parts, title),
        numbered,
    )


def add_standard_criteria(story: UserStory) -> UserStory:
    """Add “Typecheck passes” to the story, and “Verify in browser” if it changes the user interface."""
    needs_browser = lint.is_ui(story) and not any(BROWSER.search(criterion) for criterion in story.criteria)
    typed = any(TYPECHECK.search(criterion) for criterion in story.criteria)
    more = (*(() if typed else (TYPECHECK_PASSES,)), *((VERIFY_IN_BROWSER,) if needs_browser else ()))
    return replace(story, criteria=(*story.criteria, *more))


def slug_of(text: str, limit: int = 50) -> str:
    """`text` in kebab-case for branches and files; "feature" if no letter is left."""
    words = re.sub(r"[^\w]+|_", "-", text.lower()).strip("-")
    return (words if len(words) <= limit else words[:limit].rpartition("-")[0] or words[:limit]).strip("-") or "feature"


def branch_of(parts: Sequence[_Part], title: str) -> str:
    """The branch named by the PRD, else `ralph/` and its title."""
    named = _find_label(parts, "branch", "branchname").strip("` ")
    return named or f"ralph/{slug_of(title)}"


def _find_stories(parts: Sequence[_Part]) -> list[UserStory]:
    named = [story for part in parts if (story := _parse_story_heading(part))]
    if named:
        return named
    for heading in (_STORIES, _REQUIREMENTS):
        below = list(_parts_below(parts, heading))
        listed = [text for part in below[:1] for _, text in part.bullets]
        if len(below) > 1:
            return [_converted_story(f"US-{place:03}", part.title, part) for place, part in enumerate(below[1:], 1)]
        if listed:
            return [_bullet_story(place, one) for place, one in enumerate(listed, 1)]
    return []


def _parts_below(parts: Sequence[_Part], heading: re.Pattern[str]) -> Iterator[_Part]:
    """The first part with such a heading, and its parts one level deeper."""
    start = next((place for place, part in enumerate(parts) if part.level and heading.match(part.title)), None)
    if start is None:
        return
    yield parts[start]
    for part in parts[start + 1 :]:
        if part.level <= parts[start].level:
            return
        if part.level == parts[start].level + 1:
            yield part


def _parse_story_heading(part: _Part) -> UserStory | None:
    found, numbered = _ID.match(part.title), _NUMBER.match(part.title)
    if part.level and found and not found["id"].startswith(("FR-", "NFR-")):
        return _converted_story(found["id"], found["title"], part)
    if part.level and numbered:
        return _converted_story(f"US-{int(numbered['number']):03}", numbered["title"], part)
    return None


def _converted_story(name: str, title: str, part: _Part) -> UserStory:
    criteria = [text for label, text in part.bullets if "criteria" in label] or [text for _, text in part.bullets]
    return UserStory(name, _strip_markup(title) or name, _find_description(part), tuple(criteria))


def _bullet_story(place: int, text: str) -> UserStory:
    bare = _NUMBERED.sub("", text)
    return UserStory(f"US-{place:03}", bare.split("\n")[0][:80], bare, (bare,))


def _find_description(part: _Part) -> str:
    labels = [found for paragraph in part.paragraphs if (found := _LABEL.match(paragraph))]
    descriptions = [
        found["rest"] for found in labels if found["name"].lower() in ("description", "user story", "story")
    ]
    plain = [paragraph for paragraph in part.paragraphs if not _LABEL.match(paragraph)]
    return " ".join(" ".join(descriptions or plain).split())


def _find_title(parts: Sequence[_Part]) -> str:
    headings = sorted((part for part in parts if part.level), key=lambda part: part.level != 1)
    return _PRD.sub("", _strip_markup(headings[0].title)) or "feature"


def _find_summary(parts: Sequence[_Part], title: str) -> str:
    texts = (
        " ".join(paragraph.split()) for part in parts for paragraph in part.paragraphs if not _LABEL.match(paragraph)
    )
    first = next(texts, "")
    return f"{title} - {first}" if first.rstrip(".") not in ("", title) else title


def _find_label(parts: Sequence[_Part], *names: str) -> str:
    """The value of a line such as `**Project:** MyApp` outside the stories."""
    labels = (_LABEL.match(line) for part in parts if not _parse_story_heading(part) for paragraph in part.paragraphs
              for line in paragraph.splitlines())  # fmt: skip  # one walk
    return next((found["rest"].strip() for found in labels if found and found["name"].lower() in names), "")


def _strip_markup(text: str) -> str:
    return text.strip().strip("*[]").strip()


def _split_parts(text: str) -> list[_Part]:
    """The document by its headings, without code blocks, quotes and tables."""
    from markdown_it import MarkdownIt

    parts, label, level, inside = [_Part(0, "")], "", 0, 0
    tokens = MarkdownIt("commonmark").parse(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        inside += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if token.type == "heading_open":
            level, label = int(token.tag[1:]), ""
        if token.type != "inline" or before is None:
            continue
        if before.type == "heading_open":
            parts.append(_Part(level, token.content.strip()))
        elif inside:
            parts[-1].bullets.append((label, _ONLY.sub("", _TICK.sub("", token.content)).strip()))
        else:
            parts[-1].paragraphs += _split_paragraphs(token.content)
            found = _LABEL.match(parts[-1].paragraphs[-1])
            label = found["name"].lower() if found else ""
    return parts


def _split_paragraphs(text: str) -> list[str]:
    """A paragraph cut before each line that starts with a bold label."""
    return [one.strip() for one in re.split(r"\n(?=\*\*[^*\n]+\*\*)", text) if one.strip()] or [text]
