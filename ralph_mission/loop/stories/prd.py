"""`prd.json` as text: read with its synonyms, written back so that only what changed differs.

The keys are those of snarktank/ralph, which oh-my-claudecode shares; unknown keys (`architectVerified`) stay as they
are, in their order. A file written by others keeps its indent, and is rendered anew only when nothing else is left.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralph_mission.loop.model.state import Prd, UserStory

MAX_CHARS = 4_000_000
"""A thousand stories of a page each; more than that is no list of stories."""
MAX_STORIES = 5_000

STORIES = ("userStories", "user_stories", "stories")
BRANCH = ("branchName", "branch_name", "branch")
PROJECT = ("project", "projectName", "project_name", "name")
DESCRIPTION = ("description", "summary", "overview", "story", "userStory", "user_story")
ID = ("id", "storyId", "story_id", "key")
TITLE = ("title", "name", "summary")
CRITERIA = ("acceptanceCriteria", "acceptance_criteria", "acceptance", "criteria")
PASSES = ("passes", "passed", "done", "completed", "complete")
STATUS = ("status", "state")
TEXT = ("text", "description", "criterion", "title")
FINISHED = frozenset({"done", "passed", "passes", "complete", "completed", "closed"})
WORDS = {"critical": 1, "urgent": 1, "high": 1, "medium": 2, "normal": 2, "low": 3}


class UnreadablePrd(ValueError):
    """A file that holds no stories; the message says where and why, in a few words."""


def parse_prd(text: str) -> Prd:
    """The stories in `text`. A story without a priority has that of its place. Raises Unreadable."""
    root = _root(text)
    top = root if isinstance(root, Mapping) else {}
    stories = _first(top, STORIES) if top else root
    if not isinstance(stories, list):
        raise UnreadablePrd("no list of userStories")
    if len(stories) > MAX_STORIES:
        raise UnreadablePrd(f"more than {MAX_STORIES} stories")
    return Prd(
        _text(_first(top, PROJECT)),
        _text(_first(top, BRANCH)),
        _text(_first(top, DESCRIPTION)),
        tuple(_story(one, place) for place, one in enumerate(stories, 1)),
    )


def shape(prd: Prd) -> Prd:
    """Everything that a session may not change: all but `passes` and `notes`."""
    return replace(prd, stories=tuple(replace(story, passes=False, notes="") for story in prd.stories))


def update_progress(text: str, prd: Prd) -> str:
    """`text` with the `passes` and `notes` of `prd`. Raises Unreadable when it holds other stories than `prd`."""
    now = parse_prd(text)
    if shape(now) != shape(prd):
        raise UnreadablePrd("other stories than these")
    if now == prd:
        return text
    root = _root(text)
    listed = _first(root, STORIES) if isinstance(root, dict) else root
    for one, old, new in zip(listed, now.stories, prd.stories, strict=True):
        if old != new and isinstance(one, dict):
            _set_progress(one, old, new)
    written = _dump_like(text, root)
    if parse_prd(written) != prd:  # a story that is a mere text
        raise UnreadablePrd("a form that cannot be edited in place")
    return written


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
        }
        for story in prd.stories
    ]
    top = {"project": prd.project, "branchName": prd.branch, "description": prd.description, "userStories": stories}
    return json.dumps(top, indent=2, ensure_ascii=False) + "\n"


def _root(text: str) -> Any:
    if len(text) > MAX_CHARS:
        raise UnreadablePrd(f"longer than {MAX_CHARS} characters")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadablePrd(f"line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise UnreadablePrd("a number or a nesting that no list of stories needs") from None


def _story(one: Any, place: int) -> UserStory:
    if isinstance(one, str):
        one = {"title": one}
    if not isinstance(one, Mapping):
        raise UnreadablePrd(f"story {place} is neither an object nor a text")
    name = _text(_first(one, ID)) or f"US-{place:03}"
    description = _text(_first(one, DESCRIPTION))
    return UserStory(
        name,
        _text(_first(one, TITLE)) or description.split("\n")[0][:80] or name,
        description,
        _criteria(_first(one, CRITERIA)),
        _priority(one.get("priority"), place),
        _passes(one),
        _text(one.get("notes")),
    )


def _criteria(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    texts = (_text(_first(one, TEXT) if isinstance(one, Mapping) else one) for one in listed)
    return tuple(text for text in texts if text)


def _priority(value: Any, place: int) -> int:
    if isinstance(value, str):
        word = value.strip().lower()
        value = WORDS.get(word, int(word.lstrip("p")) if word.lstrip("p").isdecimal() and len(word) < 8 else None)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return place
    return math.floor(value)


def _passes(one: Mapping[str, Any]) -> bool:
    key = next((key for key in PASSES if key in one), "")
    if key:
        return one[key] is True or str(one[key]).strip().lower() == "true"
    return str(_first(one, STATUS)).strip().lower() in FINISHED


def _first(one: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((one[key] for key in keys if key in one), None)


def _text(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    # A half of a surrogate pair is legal in JSON and cannot be written to any file.
    return value.strip().encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _set_progress(one: dict[str, Any], old: UserStory, new: UserStory) -> None:
    if old.passes != new.passes:
        key = next((key for key in PASSES if key in one), "")
        status = "" if key else next((key for key in STATUS if key in one), "")
        if status:
            one[status] = "done" if new.passes else "pending"
        else:
            one[key or "passes"] = new.passes
    if old.notes != new.notes:
        one["notes"] = new.notes


def _dump_like(text: str, root: Any) -> str:
    """The value laid out as `text` is: its indent, its spaces, its ends of lines, and whether it escapes."""
    body = text.strip(" \t\r\n")
    start = text.index(body)
    found = re.search(r"\n([ \t]*)\S", body)
    comma, colon = (", " if found is None and '", "' in body else ","), (": " if '": ' in body else ":")
    made = json.dumps(root, indent=found[1] if found else None, separators=(comma, colon), ensure_ascii="\\u" in body)
    made = made.replace("\n", "\r\n") if "\r\n" in body else made
    return text[:start] + made + text[start + len(body) :]
