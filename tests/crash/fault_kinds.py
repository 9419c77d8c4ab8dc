"""Everything that may happen at a call to GitHub (by HTTP or git) or to a network, in the names of the list of faults.

`of` is the fault of that list: crash before; crash after response; applied, response lost; 5xx applied; 5xx not
applied; timeout applied; rate-limited; stale list; CAS lost. What a server refuses for good is one more, and so is a
runner after whose death another machine goes on.

A read applies nothing, so of pairs that differ in that alone it suffers one; and a runner that dies after a read is
one that dies before the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from tests.crash.calls import (
    Call,
    anything,
    conditional,
    first_move,
    making,
    memory_moves,
    new_branch,
    on_github,
    on_network,
    read,
    write,
)
from tests.crash.faults import (
    Striking,
    a_person_writes,
    a_runner_acts,
    a_stranger_takes_the_name,
    another_machine,
    answer,
    death,
    first,
    kill,
    late,
    post,
)
from tests.fakes.networks.serving import Fault

LATE_LIST = 6  # lists that do not show what is new: more than a cycle asks for
RETRIED = 4  # how often a read is sent at most


@dataclass(frozen=True)
class Kind:
    """Of which kind of the list, at which calls, and how; `instead`: what is struck is a cycle of its own."""

    of: str
    at: Callable[[Call], bool]
    strike: Striking
    instead: bool = False


BEFORE, AFTER = "crash before", "crash after response"
LOST, APPLIED, NOT_APPLIED = "applied, response lost", "5xx applied", "5xx not applied"
TIMEOUT, LIMITED, STALE, CAS = "timeout applied", "rate-limited", "stale list", "CAS lost"
REFUSED, ELSEWHERE = "refused", "crash after response, then another machine"
MINUTE = timedelta(minutes=1)
WAIT = {"ok": False, "error_code": 429, "description": "Too Many Requests", "parameters": {"retry_after": 5}}

KINDS: Mapping[str, Kind] = {
    "crash-before": Kind(BEFORE, anything, death("before")),
    "crash-after": Kind(AFTER, write, death("after")),
    "answer-lost": Kind(LOST, on_github, answer("reset_applied")),
    "garbage": Kind(LOST, on_github, answer("garbage")),
    "post-cut": Kind(LOST, on_network, post(Fault(cut=True, delivered=True))),
    "502-applied": Kind(APPLIED, on_github, answer("502_applied")),
    "post-500-applied": Kind(APPLIED, on_network, post(Fault(500, delivered=True))),
    "500": Kind(NOT_APPLIED, on_github, answer("500")),
    "502-not-applied": Kind(NOT_APPLIED, on_github, answer("502_not_applied")),
    "read-502": Kind(NOT_APPLIED, read, answer("502_not_applied", RETRIED)),
    "post-500": Kind(NOT_APPLIED, on_network, post(Fault(500))),
    "timeout-applied": Kind(TIMEOUT, on_github, answer("timeout_applied")),
    "timeout-not-applied": Kind(TIMEOUT, on_github, answer("timeout_not_applied")),
    "post-timeout": Kind(TIMEOUT, on_network, post(Fault(hang=True, delivered=True))),
    "rate-primary": Kind(LIMITED, on_github, answer("rate_primary")),
    "rate-secondary": Kind(LIMITED, on_github, answer("rate_secondary")),
    "rate-429": Kind(LIMITED, on_github, answer("rate_secondary_429")),
    "read-rate-secondary": Kind(LIMITED, read, answer("rate_secondary")),
    "read-rate-primary": Kind(LIMITED, read, answer("rate_primary", RETRIED)),
    "post-429": Kind(LIMITED, on_network, post(Fault(429, body=WAIT, headers={"retry-after": "5"}), MINUTE)),
    "stale-list": Kind(STALE, making, death("after", LATE_LIST)),
    **{f"late-lists-{lag}": Kind(STALE, lambda call: call.at == 1, late(lag)) for lag in (1, 2, 3)},
    "elsewhere": Kind(ELSEWHERE, write, another_machine),
    "cas-person": Kind(CAS, memory_moves, first(a_person_writes)),
    "cas-runner": Kind(CAS, first_move, first(a_runner_acts)),
    "cas-stranger": Kind(CAS, new_branch, first(a_stranger_takes_the_name)),
    "cas-409": Kind(CAS, conditional, answer("409")),
    "reset-not-applied": Kind(REFUSED, on_github, answer("reset_not_applied")),
    "401": Kind(REFUSED, on_github, answer("401")),
    "403": Kind(REFUSED, on_github, answer("403")),
    "404": Kind(REFUSED, on_github, answer("404")),
    "409": Kind(REFUSED, lambda call: on_github(call) and not conditional(call), answer("409")),
    "422": Kind(REFUSED, on_github, answer("422")),
    "redirect": Kind(REFUSED, on_github, answer("redirect")),
    "post-403": Kind(REFUSED, on_network, post(Fault(403))),
}
KILLS: Mapping[str, Kind] = {
    "kill-before": Kind(BEFORE, on_github, kill("before"), instead=True),
    "kill-after": Kind(AFTER, on_github, kill("after"), instead=True),
}
"""The same by SIGKILL, for stages of one cycle that needs nothing of this process."""
LISTED = (BEFORE, LOST, AFTER, APPLIED, NOT_APPLIED, TIMEOUT, LIMITED, STALE, CAS)
"""The list of faults; every one of them is some kind's."""
