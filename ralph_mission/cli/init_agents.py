"""What `ralph init --work --review --publish` writes, and what only a person can do for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ralph_mission.cli import workflow
from ralph_mission.cli.overwriting import Planned
from ralph_mission.cli.uninstall import Fate, read, untouched
from ralph_mission.cli.workflow_agents import PLACES, render
from ralph_mission.config import NAME, Config
from ralph_mission.wakers.facts import PUBLISH, REVIEW, WORK

LISTENS = {"work": WORK, "review": REVIEW, "publish": PUBLISH}
AGENTS = ("work", "review")


def planned(top: Path, modes: Sequence[str], action: str | None, runner: str | None) -> Iterator[Planned]:
    """The workflows of `modes`, and of those that are there the ones that nobody has edited. Raises Trouble (usage)."""
    loop = read(top / workflow.PLACE) or ""
    for mode, name in PLACES.items():
        present = read(top / name) or ""
        used = workflow.action_of(action, present or loop)
        labels = workflow.labels_of(runner) if runner is not None else workflow.labels_in(present or loop)
        if used and (mode in modes or untouched(present)):
            yield Planned(top / name, render(mode, used, labels))


def steps(top: Path, fates: Sequence[Fate], config: Config) -> Iterator[str]:
    """What only a person can do, one line each."""
    here = {mode: fate for mode, name in PLACES.items() for fate in fates if fate.place == top / name}
    for mode, fate in here.items():
        if fate.state == "kept" and LISTENS[mode] not in (read(fate.place) or ""):
            yield f"in {PLACES[mode]}, which is yours: listen to {LISTENS[mode]} and use the action (docs/action.md)"
    played = any(mode in here for mode in AGENTS)
    if played and config.hands.agent is None:
        yield f"in {NAME}: hands: {{agent: {{kind: claude}}}}, or another agent that your runner has installed"
    if played:
        yield "Settings, Secrets and variables, Actions: store the key of your agent, such as ANTHROPIC_API_KEY"
    if "publish" in here:
        yield "Settings, Secrets and variables, Actions: what your networks need, each optional (docs/publishing.md)"


def places(top: Path) -> Iterator[Path]:
    """Where all of them stand."""
    yield from (top / name for name in PLACES.values())


def committed(top: Path, fates: Sequence[Fate]) -> str:
    """The files that have to be on the default branch, as a list in words."""
    places = [workflow.PLACE, *(name for name in PLACES.values() if any(fate.place == top / name for fate in fates))]
    return f"{', '.join([NAME, *places[:-1]])} and {places[-1]}"
