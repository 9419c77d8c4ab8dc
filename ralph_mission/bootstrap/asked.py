"""What a person asked of `ralph run`, before any of it is looked up, and what the stories say to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ralph_mission.loop import planning
from ralph_mission.loop.model import Prd, RunState
from ralph_mission.stores.codec import UnreadableDocument
from ralph_mission.stores.loop import state
from ralph_mission.stores.loop.stories import Stories
from ralph_mission.trouble import UserError


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One command line. Empty texts, None and () mean: as the settings or the preset have it.

    `planning`: the stories of the task are written first, and are not there yet. `restarted`: a process that was asked
    to restart has become this one. `errand`: for an issue or a mission, in a clone: nothing that a session writes there
    restarts it, and none writes what configures agents.
    """

    repo: Path = Path()
    config: Path | None = None
    task: str = ""
    prompt_file: Path | None = None
    prd: bool = False
    prd_file: Path | None = None
    preset: str = ""
    pattern: str = ""
    agent: str = ""
    command: str = ""
    model: str = ""
    iterations: int | None = None
    runtime: float | None = None
    usd: float | None = None
    go_on: bool = False
    worktree: bool = False
    verify: tuple[str, ...] = ()
    require_tests: bool = False
    single_story: bool = False
    archive_previous: bool = True
    build: bool = False
    planning: bool = False
    restarted: bool = False
    errand: bool = False

    @property
    def stories(self) -> bool:
        """Whether stories are asked for by name: without them there is nothing to do."""
        return self.prd or self.prd_file is not None or self.preset == "prd"


def read_stories(asked: RunOptions, root: Path) -> Prd | None:
    """The stories this run works through, None in free form. Raises Trouble (usage) when they cannot be had.

    The preset `fresh` takes stories where it finds them and does without where there are none.
    """
    going_on = (asked.go_on or asked.restarted) and _left_state(root) is not None
    stories = Stories(root, asked.prd_file.absolute() if asked.prd_file else None, going_on=going_on)
    if asked.planning or (not asked.stories and (asked.preset != "fresh" or stories.find() is None)):
        return None
    prd = stories.read()
    if prd is None or not prd.stories:
        none = f"{asked.prd_file or 'prd.json'} holds no stories" if prd else "there is no prd.json"
        what = stories.complaint or none
        raise UserError(what, "write one: ralph plan TASK", usage=True)
    return prd


def needs_planning(asked: RunOptions, root: Path) -> bool:
    """Whether a planner has to write the stories of this task first, or to go on with it."""
    if not (asked.prd and asked.task and asked.prd_file is None):
        return False
    return Stories(root).find() is None or left_planning(asked, root)


def left_planning(asked: RunOptions, root: Path) -> bool:
    """Whether the run that is to be continued, or to start anew, was left while its stories were written."""
    left = _left_state(root) if asked.go_on or asked.restarted else None
    return left is not None and left.kind == planning.KIND and left.objective == asked.task


def recall_planning(asked: RunOptions, root: Path) -> RunOptions:
    """The same; when nothing is named and a planning is to be continued, with its task."""
    named = asked.task or asked.prompt_file or asked.prd_file or asked.pattern or asked.preset
    left = _left_state(root) if asked.go_on and not named else None
    return replace(asked, task=left.objective, prd=True) if left and left.kind == planning.KIND else asked


def _left_state(root: Path) -> RunState | None:
    try:
        return state.load(root)
    except (UnreadableDocument, UserError):
        return None  # said when the run begins
