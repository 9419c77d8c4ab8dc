"""What a person asked of `ralph run`, before any of it is looked up, and what the stories say to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ralph_mission.loop.model import Prd
from ralph_mission.stores.loop.stories import Stories
from ralph_mission.trouble import Trouble


@dataclass(frozen=True, slots=True)
class Asked:
    """One command line. Empty texts, None and () mean: as the settings or the preset have it."""

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
    iterations: int | None = None
    runtime: float | None = None
    usd: float | None = None
    go_on: bool = False
    worktree: bool = False
    allow_dirty: bool = False
    verify: tuple[str, ...] = ()
    require_tests: bool = False
    single_story: bool = False
    archive_previous: bool = True


def read_stories(asked: Asked, root: Path) -> Prd | None:
    """The stories this run works through, None in free form. Raises Trouble (usage) when they cannot be had.

    The preset `fresh` takes stories where it finds them and does without where there are none.
    """
    wanted = asked.prd or asked.prd_file is not None or asked.preset == "prd"
    stories = Stories(root, asked.prd_file.absolute() if asked.prd_file else None)
    if not wanted and (asked.preset != "fresh" or stories.find() is None):
        return None
    prd = stories.read()
    if prd is None or not prd.stories:
        none = f"{asked.prd_file or 'prd.json'} holds no stories" if prd else "there is no prd.json"
        what = stories.complaint or none
        raise Trouble(what, "write one: ralph plan TASK, or ralph prd new TASK", usage=True)
    return prd


def stories_wanted(asked: Asked) -> bool:
    """Whether a planner has to write the stories of this task first."""
    from ralph_mission.bootstrap.ground import open_checkout

    if not (asked.prd and asked.task and asked.prd_file is None):
        return False
    return Stories(open_checkout(asked.repo)[1]).find() is None
