"""An auditor with git alone finds for every effect its finding, its tier, the rules' answer and who said yes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.crash.stages import EVERY, come_to_rest, staged
from tests.crash.witness import key_in
from tests.helpers import git
from tests.integration.hub import Hub

FIX, FINISHED = "open-fix spelling low", "finish spelling low, by mara"
ASKED, WAITS = "open-proposal bug high", "open-proposal bug high: hold by new-mission-cap"
EDITED = "open-fix bug high, by mara: deny by approval-content"
LISTED = "monitor todo low"
LIVES: dict[str, tuple[str, ...]] = {
    "a fix is opened": (FIX,),
    "an approved pull is merged": (FIX, FINISHED),
    "an approved pull goes through the merge queue": (FIX, FINISHED, FINISHED),
    "a yes is taken back in the merge queue": (FIX, FINISHED, "answer spelling low"),
    "a box that was ticked on the dashboard is obeyed": (FIX, FINISHED),
    "a pull to be changed is escalated": (FIX, "answer spelling low"),
    "a fix may not be opened, and a person is asked": (FIX,),
    "a merge is refused for good, and a person is asked": (FIX, FINISHED, "answer spelling low"),
    "a closed pull ends its mission": (FIX, FINISHED),
    "a proposal is made": (ASKED,),
    "an approved proposal is carried on": (ASKED, "answer bug high, by mara"),
    "an edited proposal is asked anew": (ASKED, EDITED, "answer bug high", EDITED),
    "a first cycle with two kinds and a list": (ASKED, LISTED, f"{FIX}: hold by new-mission-cap", FIX),
    "a list is brought up to date": (LISTED, LISTED),
    "nothing is left to do": (FIX,),
    "a person's pull does it already": ("open-fix spelling low: hold by human-duplicate",),
    "a person fixed what a pull of ours corrects": (FIX, "finish spelling low"),
    "an approved proposal is acted on": ("open-proposal spelling high", "open-fix spelling low, by mara"),
    "a review is answered": ("open-fix human high", "answer human high", "revise human high"),
    "a merge is announced": (FIX, FINISHED, "publish completed low"),
    "approved content goes to three networks, one of which fails": (
        "open-proposal content high",
        "publish content high, by mara",
        "finish content high",
    ),
    "a wake comes early": (FIX,),
    "a person closes every pull she sees": (FIX, FINISHED),
    "two runners wake together": (FIX, FINISHED),
    **{name: (FIX, FINISHED, FINISHED) for name in EVERY if name.startswith("two runners find")},
    "three missions are under way and two more are wanted": (
        *(ASKED, WAITS, WAITS, WAITS, WAITS),
        *(ASKED, WAITS, WAITS, WAITS),
        *(ASKED, *["open-proposal bug high: hold by new-mission-cap, thread-cap"] * 2),
        *["open-proposal bug high: hold by thread-cap"] * 2,
    ),
}
"""By stage, all that was decided until it rested: what, of which tier; who said so; and what spoke against it.

Of a mission that a person asked for (`human`) the finding is her issue, which is no proposal that waits for a yes.
"""
SHORT = (
    "an approved pull is merged",
    "an edited proposal is asked anew",
    "approved content goes to three networks, one of which fails",
)
"""A yes that counts, one that does not, and posts: the others are more of the same."""


@dataclass
class Trace:
    """What the memory branch holds, as plain JSON; `marked`: the keys that stand in our texts on the server."""

    journal: list[dict[str, Any]]
    ledger: list[dict[str, Any]]
    marked: set[str]

    @classmethod
    def of(cls, hub: Hub) -> Trace:
        texts = [one.body for one in (*hub.issues, *hub.pulls, *hub.fake.comments.values())]
        marked = {key for key in map(key_in, texts) if key}
        return cls(list(files(hub, "memory/journal")), list(files(hub, "memory/ledger")), marked)

    @property
    def decided(self) -> tuple[str, ...]:
        """All that was, cycle by cycle."""
        return tuple(
            render_decision(line, dict(one["approvers"]).get(line["key"], ""))
            for one in self.journal
            for line in one["report"]["decisions"]
        )

    def gaps(self) -> Iterator[str]:
        """Effects that lead nowhere, or to something that could not be their reason."""
        applied = {receipt["key"]: (one, decision) for one in self.journal for decision, receipt in one["deeds"]}
        effects = [one for one in self.ledger if "action_key" in one]
        findings = {(one["mission"], one["kind"]) for one in self.ledger if "occurrences" in one}
        requirements = {
            (line["id"], "human") for one in self.journal for line in one["report"]["missions"] if line["issue"]
        }
        yield from (f"{key} is in no ledger" for key in self.marked - {effect["key"] for effect in effects})
        for effect in effects:
            what = f"{effect['action']} {effect['key']}"
            if effect["key"] not in applied:
                yield f"{what} is in no journal"
                continue
            cycle, key = applied[effect["key"]]
            decision = next((line for line in cycle["report"]["decisions"] if line["key"] == key), None)
            if decision is None or (decision["verdict"], decision["rules"]) != ("allow", []):
                yield f"{what} was not allowed"
            if (effect["mission"], effect["kind"]) not in findings | requirements:
                yield f"{what} has no finding"


def render_decision(line: dict[str, Any], who: str) -> str:
    """A decision in one line."""
    rules = f": {line['verdict']} by {', '.join(line['rules'])}" if line["verdict"] != "allow" or line["rules"] else ""
    return f"{line['action']} {line['kind']} {line['tier']}{f', by {who}' if who else ''}{rules}"


def files(hub: Hub, folder: str) -> Iterator[dict[str, Any]]:
    """What the memory branch holds below a folder."""
    names = git(hub.fake.bare, "ls-tree", "-r", "--name-only", "ralph-memory", folder).splitlines()
    yield from (json.loads(git(hub.fake.bare, "show", f"ralph-memory:{name}")) for name in names)


def test_every_stage_that_comes_to_rest_is_looked_at():
    assert {name for name, stage in EVERY.items() if not stage.halts} == LIVES.keys()


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in LIVES]
)  # long: a minute in all
def test_every_effect_leads_to_its_finding_tier_rules_and_approver(tmp_path, name):
    with staged(tmp_path, name) as hub:
        come_to_rest(hub, EVERY[name].meanwhile, **EVERY[name].request)
        trace = Trace.of(hub)
    assert trace.decided == LIVES[name]
    assert list(trace.gaps()) == []


SAID = {"key": "d1", "action": "finish", "kind": "spelling", "tier": "low", "verdict": "allow", "rules": []}
REFUSED = {**SAID, "verdict": "deny", "rules": ["approval-head"]}


def trace(decision: dict[str, Any] = SAID, **changes: Any) -> Trace:
    """Of one effect, a merge; with something of it changed."""
    sound = {
        "approvers": [["d1", "mara"]],
        "deeds": [["d1", {"key": "e1"}]],
        "findings": [{"mission": 1, "kind": "spelling", "occurrences": ["o"]}],
        "effects": [{"action_key": "d1", "action": "finish", "key": "e1", "kind": "spelling", "mission": 1}],
    }
    has = sound | changes
    report = {"decisions": [decision], "missions": [{"id": 1, "issue": 1}]}
    cycle = {"report": report, "approvers": has["approvers"], "deeds": has["deeds"]}
    return Trace([cycle], [*has["findings"], *has["effects"]], {"e1"})


@pytest.mark.parametrize(
    ("forged", "missed"),
    [
        (trace(), []),
        (trace(REFUSED), ["finish e1 was not allowed"]),
        (trace({**SAID, "key": "d2"}), ["finish e1 was not allowed"]),
        (trace(deeds=[]), ["finish e1 is in no journal"]),
        (trace(effects=[]), ["e1 is in no ledger"]),
        (trace(findings=[]), ["finish e1 has no finding"]),
        (trace(findings=[{"mission": 2, "kind": "spelling", "occurrences": ["o"]}]), ["finish e1 has no finding"]),
        (trace(findings=[{"mission": 1, "kind": "bug", "occurrences": ["o"]}]), ["finish e1 has no finding"]),
    ],
)
def test_an_effect_that_leads_nowhere_is_seen(forged, missed):
    assert list(forged.gaps()) == missed


@pytest.mark.parametrize(
    ("forged", "reads"),
    [
        (trace(), FINISHED),
        (trace(approvers=[]), "finish spelling low"),
        (trace(approvers=[["d2", "mara"]]), "finish spelling low"),
        (trace(REFUSED), f"{FINISHED}: deny by approval-head"),
    ],
)
def test_a_yes_is_that_of_its_own_decision_and_a_refusal_names_its_rules(forged, reads):
    assert forged.decided == (reads,)
