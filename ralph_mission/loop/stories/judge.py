"""What a session may claim of the stories: which flips count, what of the list is put back, what the log says of it.

A session may change `passes` and `notes`. Everything else of the list belongs to a person: an agent that cannot meet
a criterion would otherwise amend it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ralph_mission.loop.model.order import RunSpec
from ralph_mission.loop.model.state import CheckResult, HatOutput, PathChange, Prd, ProgressNotes, UserStory

PROVIDER = frozenset({"rate_limit", "server", "auth", "missing"})
SAID = 1500  # characters of the checks' last words that the next session is told


@dataclass(frozen=True, slots=True)
class StoryJudgement:
    """The stories as they may stand, those that newly pass, and what the session has to hear about the rest."""

    prd: Prd | None
    passed: tuple[UserStory, ...] = ()
    complaints: tuple[str, ...] = ()


def flipped_stories(before: Prd | None, after: Prd | None) -> tuple[UserStory, ...]:
    """The stories that pass after and did not before, in the order of the file."""
    if after is None:
        return ()
    if before is None:
        return tuple(story for story in after.stories if story.passes)
    return tuple(new for old, new in _pair_stories(before, after) if new and new.passes and not old.passes)


def judge_stories(
    order: RunSpec, item: str, before: Prd | None, after: Prd | None, checked: CheckResult
) -> StoryJudgement:
    """What of `after` stands: the list of `before` with at most one story more that passes, proven by green checks.

    `item` is the story the session was given. Without a list afterwards (deleted, unreadable) the one before stands.
    """
    if not order.preset.stories:
        return StoryJudgement(after)
    listed, complaints = _restore_list(before, after)
    if listed is None:
        return StoryJudgement(None)
    flips = flipped_stories(before, listed)
    kept, why = _accept_flips(order, item, flips, checked)
    lost = {id(story) for story in flips if story not in kept}
    stories = tuple(replace(story, passes=False) if id(story) in lost else story for story in listed.stories)
    return StoryJudgement(replace(listed, stories=stories), kept, (*complaints, *why))


def commit_message(story: UserStory) -> str:
    """The commit of one story, `feat: US-001 - Title`: the brackets in the published form stand for what goes in."""
    return f"feat: {one_line(story.id)} - {one_line(story.title)}"


def log_entry(order: RunSpec, item: str, output: HatOutput, notes: ProgressNotes, now: datetime) -> str:
    """What the engine appends to progress.txt after a session; "" when there is nothing to say. `notes`: what it holds.

    A failed attempt is always told, with its reason and what was undone; what the provider turned away was none.
    Of a story that passes the agent's own entry is the better one, so ours is written only when there is none.
    """
    name = (*output.passed, item)[0]
    if not order.preset.stories or not name:
        return ""
    if output.failure in PROVIDER and not output.changes:
        return ""
    if output.passed and not output.reason and notes.last_completed == output.passed[0]:
        return ""
    lines = [f"## [{now:%Y-%m-%d %H:%M}] - {name}", *_log_lines(output), "---"]
    return "\n".join(lines) + "\n"


def one_line(text: str, limit: int = 300) -> str:
    """`text` on one line, cut at `limit` characters: it cannot pass for another entry or another commit."""
    words = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return words if len(words) <= limit else f"{words[: limit - 1].rstrip()}…"


def _pair_stories(before: Prd, after: Prd) -> list[tuple[UserStory, UserStory | None]]:
    """Each story of before with the one of after that has its id; of ids that are used twice each goes once."""
    pool: dict[str, list[UserStory]] = {}
    for story in after.stories:
        pool.setdefault(story.id, []).append(story)
    return [(old, pool[old.id].pop(0) if pool.get(old.id) else None) for old in before.stories]


def _restore_list(before: Prd | None, after: Prd | None) -> tuple[Prd | None, list[str]]:
    """The list of before, with what a session may say: `passes` and `notes`."""
    if before is None:
        return after, []
    if after is None:
        return before, ["prd.json was gone or unreadable; the stories stand as they were"]
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
        "changed in": ["project, branchName or description"] if _head(before) != _head(after) else [],
    }
    return [
        f"{', '.join(names[:10])}: {how} prd.json by the session, and put back; it may set passes and notes only"
        for how, names in what.items()
        if names
    ]


def _is_reworded(old: UserStory, new: UserStory) -> bool:
    return replace(new, passes=old.passes, notes=old.notes) != old


def _head(prd: Prd) -> tuple[str, str, str]:
    return prd.project, prd.branch, prd.description


def _accept_flips(
    order: RunSpec, item: str, flips: tuple[UserStory, ...], checked: CheckResult
) -> tuple[tuple[UserStory, ...], list[str]]:
    """The one flip that counts, if any, and why the others do not."""
    names = ", ".join(story.id for story in flips)
    if not checked.green:
        lost = f" {names} does not pass." if flips else ""
        return (), [f"The checks are red.{lost} They said: {checked.said.strip()[-SAID:]}"]
    if flips and order.require_checks and not checked.ran:
        return (), [f"{names} does not pass: no check has run, and this run requires one"]
    if len(flips) < 2:
        return flips, []
    one = next((story for story in flips if story.id == item), None) or min(flips, key=lambda story: story.priority)
    others = ", ".join(story.id for story in flips if story is not one)
    return (one,), [f"one story at a time: {one.id} passes, {others} does not yet"]


def _is_log(change: PathChange) -> bool:
    return change.path.rpartition("/")[2] == "progress.txt"


def _log_lines(output: HatOutput) -> list[str]:
    touched = [change.path for change in output.changes if not change.reverted and not _is_log(change)]
    lessons = [
        f"  - undone: {one_line(f'{change.path} ({change.how}): {change.reverted}')}" for change in output.reverted
    ]
    if output.summary:
        lessons.append(f"  - the session said: {one_line(output.summary)}")
    return [
        *_outcome(output),
        *([f"- Files changed: {one_line(', '.join(touched[:20]))}"] if touched else []),
        *(["- **Learnings for future iterations:**", *lessons] if lessons else []),
    ]


def _outcome(output: HatOutput) -> list[str]:
    who = f"session {output.iteration} ({output.hat})"
    if output.passed:
        told = [f"- Passed in {who}"]
        return [*told, *[f"- Besides: {one_line(line)}" for line in output.reason.splitlines()[:5] if line.strip()]]
    why = one_line(output.reason) or ("it ended without the story passing" if output.progressed else "nothing changed")
    return [f"- Attempted in {who}", f"- Failed because {why}"]
