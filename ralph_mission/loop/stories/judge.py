"""Judges a session's claims about stories: which flips count, what is restored in the list, the log entry.

A session may change `passes` and `notes`. Everything else in the list belongs to people: an agent that cannot meet a
criterion would otherwise change it.

`progress.txt` has patterns on top and an entry per session; nothing is ever removed. Two formats of entries are read:
snarktank/ralph's (`- **Learnings for future iterations:**` and a list below it) and oh-my-claudecode's (bold headings,
brackets around the date).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from ralph_mission.loop.model.spec import RunSpec
from ralph_mission.loop.model.state import (
    CheckResult,
    HatOutput,
    LoopEvent,
    NetChange,
    PathChange,
    Prd,
    ProgressNotes,
    UserStory,
)
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import stamp

PROVIDER = frozenset({"rate_limit", "server", "auth", "missing"})
UNCHANGED = NetChange()
OUTPUT_LENGTH = 1500  # characters of the checks' output for the next session


@dataclass(frozen=True, slots=True)
class StoryJudgement:
    """The accepted stories, those that newly pass, and the feedback about the rest. `built`: stories that may pass
    later without a change of their own, as they were done along with one that passes."""

    prd: Prd | None
    passed: tuple[UserStory, ...] = ()
    complaints: tuple[str, ...] = ()
    built: tuple[str, ...] = ()


def flipped_stories(before: Prd | None, after: Prd | None) -> tuple[UserStory, ...]:
    """The stories that newly pass, in the file's order."""
    if after is None:
        return ()
    if before is None:
        return tuple(story for story in after.stories if story.passes)
    return tuple(new for old, new in _pair_stories(before, after) if new and new.passes and not old.passes)


def mark_story(spec: RunSpec, item: str, event: LoopEvent | None, prd: Prd | None) -> Prd | None:
    """The list, where the session's own story is marked by its event."""
    if prd is None or event is None or event.topic != spec.claim:
        return prd
    return replace(prd, stories=tuple(replace(one, passes=one.passes or one.id == item) for one in prd.stories))


def judge_stories(
    spec: RunSpec, item: str, before: Prd | None, after: Prd | None, checked: CheckResult,
    net: NetChange = UNCHANGED, built: Collection[str] = (),
) -> StoryJudgement:  # fmt: skip  # as one reads it
    """Judge `after`: the list of `before` with at most one more passing story, proven by passing checks and, if the run
    requires it, by changed files (`net`, since the story was started). One that was `built` before needs no change.

    `item` is the story the session was given. Without a list afterwards (deleted, unreadable) the one before stands.
    """
    if not spec.preset.stories:
        return StoryJudgement(after)
    listed, complaints = _restore_list(before, after)
    if listed is None:
        return StoryJudgement(None)
    flips = flipped_stories(before, listed)
    passing, why = _accept_flips(spec, item, flips, checked, net, built)
    lost = {id(story) for story in flips if story not in passing}
    stories = tuple(replace(story, passes=False) if id(story) in lost else story for story in listed.stories)
    also = _find_built(spec, passing, flips, net, built)
    return StoryJudgement(replace(listed, stories=stories), passing, (*complaints, *why), also)


def commit_message(story: UserStory) -> str:
    """The commit message of a story, `feat: US-001 - Title`.

    For a story of a check list without an id, only its title."""
    if re.sub(r"[^\w]+|_", "-", story.title.lower()).strip("-").startswith(story.id):
        return f"feat: {one_line(story.title)}"
    return f"feat: {one_line(story.id)} - {one_line(story.title)}"


def log_entry(spec: RunSpec, item: str, output: HatOutput, notes: ProgressNotes, now: datetime) -> str:
    """The entry the engine appends to progress.txt after a session, or "". `notes`: the current content.

    A failed attempt is always recorded, with its reason and what was undone; a provider's failure is not an attempt.
    For a passing story the agent's own entry is better, so ours is only written if there is none.
    """
    name = (*output.passed, item)[0]
    if not spec.preset.stories or not name:
        return ""
    if output.failure in PROVIDER and not output.changes:
        return ""
    if output.passed and not output.reason and notes.last_completed == output.passed[0]:
        return ""
    lines = [f"## [{now:%Y-%m-%d %H:%M}] - {name}", *_log_lines(output), "---"]
    return "\n".join(lines) + "\n"


def one_line(text: str, limit: int = 300) -> str:
    """`text` on one line, cut at `limit` characters, so that it cannot look like another entry or commit."""
    words = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return words if len(words) <= limit else f"{words[: limit - 1].rstrip()}…"


def _pair_stories(before: Prd, after: Prd) -> list[tuple[UserStory, UserStory | None]]:
    """Pair the stories of before and after by id; duplicate ids pair once each."""
    pool: dict[str, list[UserStory]] = {}
    for story in after.stories:
        pool.setdefault(story.id, []).append(story)
    return [(old, pool[old.id].pop(0) if pool.get(old.id) else None) for old in before.stories]


def _restore_list(before: Prd | None, after: Prd | None) -> tuple[Prd | None, list[str]]:
    """The list of before, with `passes` and `notes` of the session."""
    if before is None:
        return after, []
    if after is None:
        return before, ["prd.json was gone or unreadable; the stories were restored"]
    pairs = _pair_stories(before, after)
    stories = tuple(replace(old, passes=new.passes, notes=new.notes) if new else old for old, new in pairs)
    return replace(before, stories=stories), _list_amendments(before, after, pairs)


def _list_amendments(before: Prd, after: Prd, pairs: Sequence[tuple[UserStory, UserStory | None]]) -> list[str]:
    stayed = [story.id for story, old in _pair_stories(after, before) if old]
    what = {
        "taken out of": [old.id for old, new in pairs if new is None],
        "added to": [story.id for story, old in _pair_stories(after, before) if old is None],
        "reworded in": [old.id for old, new in pairs if new and _is_reworded(old, new)],
        "reordered in": ["the stories"] if stayed != [old.id for old, new in pairs if new] else [],
        "changed in": ["project, branchName or description"] if _list_head(before) != _list_head(after) else [],
    }
    return [
        f"{', '.join(names[:10])}: {how} prd.json by the session, and put back; it may set passes and notes only"
        for how, names in what.items()
        if names
    ]


def _is_reworded(old: UserStory, new: UserStory) -> bool:
    return replace(new, passes=old.passes, notes=old.notes) != old


def _list_head(prd: Prd) -> tuple[str, str, str]:
    return prd.project, prd.branch, prd.description


def _accept_flips(
    spec: RunSpec, item: str, flips: tuple[UserStory, ...], checked: CheckResult, net: NetChange, built: Collection[str]
) -> tuple[tuple[UserStory, ...], list[str]]:
    """The flip that counts, if any, and why the others do not."""
    names = ", ".join(story.id for story in flips)
    fails = f"{names} {'does' if len(flips) == 1 else 'do'} not pass"
    if not checked.green:
        lost = f" {fails}." if flips else ""
        return (), [f"The checks are red.{lost} Output: {checked.said.strip()[-OUTPUT_LENGTH:]}"]
    if flips and spec.require_checks and not checked.ran:
        return (), [f"{fails}: no check has run, and this run requires one"]
    if not flips:
        return (), []
    one = next((story for story in flips if story.id == item), None) or min(flips, key=lambda story: story.priority)
    if spec.require_change and one.id not in built and not net.paths:
        return (), [f"{fails}: nothing but the list was changed; what is there already needs a test"]
    if spec.require_change and one.id not in built and spec.require_checks and not net.tests:
        return (), [f"{fails}: no test was added or changed, and this run requires one"]
    if len(flips) == 1:
        return flips, []
    others = ", ".join(story.id for story in flips if story is not one)
    return (one,), [f"one story at a time: {one.id} passes, {others} does not yet"]


def _find_built(
    spec: RunSpec, stories: tuple[UserStory, ...], flips: tuple[UserStory, ...], net: NetChange, built: Collection[str]
) -> tuple[str, ...]:
    """Stories that only had to wait for their turn, at most one per changed file."""
    if not stories:
        return ()
    spare = len(net.tests if spec.require_checks else net.paths) - (stories[0].id not in built)
    waiting = sorted((story for story in flips if story not in stories), key=lambda story: story.priority)
    return tuple(story.id for story in waiting[: max(0, spare)])


def _is_log(change: PathChange) -> bool:
    return change.path.rpartition("/")[2] == "progress.txt"


def _log_lines(output: HatOutput) -> list[str]:
    touched = [change.path for change in output.changes if not change.reverted and not _is_log(change)]
    lessons = [
        f"  - undone: {one_line(f'{change.path} ({change.how}): {change.reverted}')}" for change in output.reverted
    ]
    if output.summary:
        lessons.append(f"  - the session reported: {one_line(output.summary)}")
    return [
        *_outcome_lines(output),
        *([f"- Files changed: {one_line(', '.join(touched[:20]))}"] if touched else []),
        *(["- **Learnings for future iterations:**", *lessons] if lessons else []),
    ]


def _outcome_lines(output: HatOutput) -> list[str]:
    who = f"session {output.iteration} ({output.hat})"
    if output.passed:
        lines = [f"- Passed in {who}"]
        return [*lines, *[f"- Besides: {one_line(line)}" for line in output.reason.splitlines()[:5] if line.strip()]]
    why = one_line(output.reason) or ("it ended without the story passing" if output.progressed else "nothing changed")
    return [f"- Attempted in {who}", f"- Failed because {why}"]


TITLE = "# Ralph Progress Log"
PATTERNS = "## Codebase Patterns"
RULE = "---"
MAX_HEADING = 300
"""Characters of an entry's heading; a longer line is prose, or an attack."""

_HEADING = compile_regex(r"^##?\s")
_PATTERNS = compile_regex(r"^##\s+codebase patterns\b", re.I)
_ENTRY = compile_regex(r"^##\s+\[?(?P<when>[^\]\n]*?\d[^\]\n]*?)\]?\s+[-–—]\s+\[?(?P<name>[^\]\n]+?)\]?\s*$")  # noqa: RUF001  # people write all three dashes
_BULLET = compile_regex(r"^\s*[-*+]\s+(?P<text>\S.*)$")
_LABEL = compile_regex(
    r"^(?:[-*+]\s+)?(?:\*\*(?P<bold>[^*]+?)(?::\*\*|\*\*:)|(?P<plain>learnings[^:]*):)\s*(?P<rest>.*)$", re.I
)
"""A heading within an entry. Indented ones are not: `  - **Gotcha:** …` is a learning."""
_FAILED = compile_regex(r"^\s*[-*+]\s+(?:attempted\b|failed because\b|not passed\b)", re.I)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A `## [when] - name` entry of the log."""

    name: str
    learnings: tuple[str, ...] = ()
    failed: bool = False


def header(now: datetime) -> str:
    """The head of a new log, as both original tools write it."""
    return f"{TITLE}\nStarted: {stamp(now)}\n\n{PATTERNS}\n(none yet)\n\n{RULE}\n"


def notes(text: str) -> ProgressNotes:
    """Patterns, learnings (oldest first) and the last story whose entry is not a failure."""
    entries = list(_find_entries(text))
    last = {entry.name: entry for entry in entries}
    done = [entry.name for entry in entries if not last[entry.name].failed]
    learnings = dict.fromkeys(learning for entry in entries for learning in entry.learnings)
    return ProgressNotes(patterns(text), tuple(learnings), done[-1] if done else "")


def says(text: str) -> bool:
    """Whether a log has more than its head: an entry, a pattern, any other line."""
    own = [line for line in _past_blocks(text) if line != TITLE and not line.startswith("Started:")]
    return bool(own or patterns(text))


def patterns(text: str) -> tuple[str, ...]:
    """The lists under every `## Codebase Patterns`, also in AGENTS.md and CLAUDE.md."""
    lines = (line for block in blocks(text) if _PATTERNS.match(block) for line in _until_rule(block.splitlines()[1:]))
    found = (match["text"].strip() for line in lines if (match := _BULLET.match(line)))
    return tuple(dict.fromkeys(one for one in found if not (one.startswith("(") and one.endswith(")"))))


def blocks(text: str) -> list[str]:
    """The text split before each heading of level 1 and 2; the first block precedes them all."""
    cut: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if _HEADING.match(line):
            cut.append([])
        cut[-1].append(line)
    return ["".join(lines) for lines in cut]


def has_lost_entries(before: str, after: str) -> bool:
    """Whether anything of the past is lost: a line outside the patterns, or all patterns.

    Patterns may be consolidated; entries and their order must stay.
    """
    if after.startswith(before):
        return False
    rest = iter(_past_blocks(after))
    return any(line not in rest for line in _past_blocks(before)) or bool(patterns(before) and not patterns(after))


def restore_entries(before: str, after: str) -> str:
    """The complete log of before, with what `after` appended, and its patterns if it has any."""
    if not has_lost_entries(before, after):
        return after
    if before.startswith(after.rstrip()):  # possibly cut off within a line
        return before
    old, new = blocks(before), blocks(after)
    fresh = [block for block in new if _PATTERNS.match(block) and patterns(block)]
    earlier = [fresh[0] if fresh and _PATTERNS.match(block) else block for block in old]
    known = {line.strip() for line in before.splitlines()}
    added = [block for block in new if not _PATTERNS.match(block) and _adds(block, known)]
    return _join_parts([*earlier, *added])


def _adds(block: str, known: set[str]) -> bool:
    """Whether a block contains anything new."""
    return any(line.strip() and line.strip() not in known for line in block.splitlines())


def _join_parts(parts: Sequence[str]) -> str:
    return "".join(part if part.endswith("\n") or not part else f"{part}\n" for part in parts)


def _past_blocks(text: str) -> list[str]:
    lines = (line.rstrip() for block in blocks(text) for line in _outside(block))
    return [line for line in lines if line and line != RULE]


def _outside(block: str) -> list[str]:
    lines = block.splitlines()
    if not _PATTERNS.match(block):
        return lines
    return lines[1 + len(_until_rule(lines[1:])) :]


def _until_rule(lines: Sequence[str]) -> list[str]:
    end = next((place for place, line in enumerate(lines) if line.strip() == RULE), len(lines))
    return list(lines[:end])


def _find_entries(text: str) -> Iterator[LogEntry]:
    for block in blocks(text):
        lines = block.splitlines()
        found = _ENTRY.match(lines[0]) if lines and len(lines[0]) <= MAX_HEADING else None
        if found:
            yield LogEntry(found["name"].strip(), tuple(_find_learnings(lines[1:])), any(map(_FAILED.match, lines)))


def _find_learnings(lines: Sequence[str]) -> Iterator[str]:
    learning = False
    for line in lines:
        if line.strip() == RULE:
            learning = False
        elif label := _LABEL.match(line):
            learning = "learning" in (label["bold"] or label["plain"]).lower()
            if learning and label["rest"]:
                yield label["rest"].strip()
        elif learning and (bullet := _BULLET.match(line)):
            yield bullet["text"].strip()
