"""An owner's chat is told of a mission that got stuck: when memory says so, and once.

What is said rests on the step from one committed state to the next, so it is never said again: a crash before the
commit leaves it to the next cycle, one after it leaves it to the forge, where the owners are assigned. It is a word to
whoever gives the orders and nothing in public, so no quiet hours hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ralph_mission.mission import acting, hearing
from ralph_mission.mission.ledger import MemorySnapshot
from ralph_mission.mission.model import Mission, Status
from ralph_mission.mission.orders import ChatReply
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.safety.text import inline_words

SHOWN = 300  # characters of what a stranger may have written: a title, and what a mission got stuck on


def notify_stuck(
    ports: CyclePorts, past: MemorySnapshot | None, landed: MemorySnapshot, secrets: Sequence[str] = ()
) -> None:
    """Tell the owner's chat of what is escalated in `landed` and was not in `past`. What fails is a line of the cycle;
    a stop leaves it unsaid."""
    stuck = newly_stuck(past.state.missions if past else (), landed.state.missions)
    if not stuck or ports.inbox is None or acting.is_stopped(ports):
        return
    answers = [ChatReply(ports.inbox.chat, notice(mission, ports.forge.how)) for mission in stuck]
    hearing.send_replies(ports.inbox, answers, ports.voice.note, secrets)


def newly_stuck(before: Iterable[Mission], after: Iterable[Mission]) -> tuple[Mission, ...]:
    """The missions that went on before and are escalated now. One that memory did not know is no news: it was lost
    there, and is found again."""
    went_on = {mission.id for mission in before if mission.status is not Status.ESCALATED}
    return tuple(mission for mission in after if mission.status is Status.ESCALATED and mission.id in went_on)


def notice(mission: Mission, how: Callable[[str, int], str]) -> str:
    """Which one, why, and where to look; all that others may have worded is one harmless line."""
    words = inline_words(f"{mission.title}: {mission.last_action}", SHOWN)
    return f"Mission {mission.id} is stuck and needs a person.\n{words}\n{how('show_issue', mission.issue)}"
