"""Broken products that lives have to find out: real functions replaced, and what is said when they are."""

from __future__ import annotations

from ralph_mission.forges.github.deeds import Deeds
from ralph_mission.forges.github.people import People
from ralph_mission.mission import acting, cycle
from ralph_mission.stores.provenance import Branch
from tests.protocol.mutants import CALM, Mutant, always, intends_in_its_head, never, nothing, settled_blindly

BEARING = {
    "what a dead runner made is not looked for": ("a_cycle", "a_cycle_that_hears_no_answer", "somebody_pushes"),
    "a stranger may write into memory": ("a_cycle", "a_cycle_after_memory_came_to_harm"),
    "anybody may approve": ("a_cycle", "somebody_reviews"),
}
"""By mutant: the rules that bear on it, where it would take all of them too many lives."""
MUTANTS = (
    Mutant(
        "what a dead runner made is not looked for",
        CALM,
        r"'(False|True|comment) [0-9a-f]{16}'",
        ((acting, "_look_up", settled_blindly), (Deeds, "found", nothing)),
    ),
    Mutant("an effect comes before its intent", CALM, "not intended: ", ((cycle, "_intend", intends_in_its_head),)),
    Mutant(
        "nobody asks for the kill switch",
        CALM,
        r"\('done', \[",
        ((cycle, "_reason_to_leave", nothing), (acting, "stopped", never)),
    ),
    Mutant("a stranger may write into memory", CALM, r"\('done', \[", ((Branch, "_refuse_foreign", nothing),)),
    Mutant("anybody may approve", CALM, "without a yes that stands", ((People, "may_write", always),)),
)
