"""What of an agent's work may not be sent, or even kept, and why: told by rules and paths, never by a value. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ralph_mission.mission.coder.model import CodingResult, CodingTask
from ralph_mission.mission.issues.model import WorkResult
from ralph_mission.mission.ports import Coder
from ralph_mission.mission.proposals.draft_parts import PATCH_LINES, showable
from ralph_mission.mission.proposals.wording import plain
from ralph_mission.safety.objections import DENIES, Objection, inspect, verdict
from ralph_mission.safety.patch import Patch, measure
from ralph_mission.safety.secrets import redact, strip_known


@dataclass(frozen=True, slots=True)
class RedactingCoder:
    """A coder that is told no secret, and of whose words and changes none gets into memory, a recording or a log.

    `secrets` are the values that this runner knows; whoever wrote the issue may have said one.
    """

    coder: Coder
    secrets: tuple[str, ...]

    def work(self, commission: CodingTask) -> CodingResult:
        """As in the port."""
        return redact_result(self.coder.work(strip_known(commission, self.secrets)), self.secrets)

    def tidy(self, missions: Collection[int]) -> None:
        """As in the port."""
        self.coder.tidy(missions)


def redact_result(made: CodingResult, secrets: Sequence[str]) -> CodingResult:
    """What an agent came to, with its words redacted; a change that holds a secret is a try that failed."""
    words, learned = redact(made.words, secrets), tuple(redact(line, secrets) for line in made.learned)
    made = replace(made, reason=redact(made.reason, secrets), words=words, learned=learned)
    found = inspect(made.patch, secrets=secrets) if made.patch else ()
    if made.patch is None or "secret" not in _rules(found):
        return made
    if made.outcome == "made":
        made = replace(made, outcome="failed", reason=why_not(made.patch, found))
    return replace(made, patch=None)


def unspoken(played: WorkResult, secrets: Sequence[str]) -> WorkResult:
    """What the loop of an issue came to, with nothing secret in its words; its change is judged when it is sent."""
    learned = tuple(redact(line, secrets) for line in played.learned)
    return replace(played, reason=redact(played.reason, secrets), words=redact(played.words, secrets), learned=learned)


def why_not(patch: Patch, found: Sequence[Objection]) -> str:
    """Why no yes could send a change, given what speaks against it; "" when it may be asked about."""
    if verdict(found) == "deny":
        return _refusal_text(", ".join(rule for rule in _rules(found) if rule in DENIES))
    return "" if showable(patch) else _refusal_text(_unshown(patch))


def _unshown(patch: Patch) -> str:
    """Why nobody could be shown it whole."""
    size = measure(patch)
    odd = [plain(file.path, 80) for file in size.files if file.binary]
    if odd:
        more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
        return f"`{odd[0]}`{more} is no UTF-8 text, and nobody says yes to what cannot be shown"
    if size.lines > PATCH_LINES:
        return f"{size.lines:,} changed lines are more than can be shown whole ({PATCH_LINES:,})"
    return "its lines are too long to be shown whole"


def _refusal_text(why: str) -> str:
    return f"its change may not be sent: {why}"


def _rules(found: Iterable[Objection]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(objection.rule for objection in found))
