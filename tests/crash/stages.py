"""Lives of missions on a (fake) GitHub in stages, each begun anew as often as wanted; and what an end looks like."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from ralph_mission.flows import control
from ralph_mission.mission.account import CycleReport, Telling
from ralph_mission.mission.memory_parse import parse
from tests.crash.witness import STANDING, key_in, open_state
from tests.helpers import git
from tests.integration.hub import Hub, hub
from tests.integration.test_life import BUG, BUGS
from tests.integration.world import CALM, TYPOS

NOW = timedelta(0)
OWNED = f"owners: [mara]\n{CALM}"
TODO = {"a.py": "# TODO: one\nx = 1\n"}
ROUNDS = 6  # cycles in which everything must have come to rest


def nothing(harbour: Hub) -> None:
    """The first cycle."""


def approved(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().review(harbour.pulls[0].number, "approved")


def refused(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().review(harbour.pulls[0].number, "changes_requested", "leave the harbour's own spelling alone")


def closed(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().close_pull(harbour.pulls[0].number)


def agreed(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().label(harbour.issues[0].number, ("ralph:approved",))


def edited(harbour: Hub) -> None:
    harbour.cycle()
    mara, issue = harbour.person(), harbour.issues[0]
    mara.edit_issue(issue.number, body=(issue.body or "").replace("yes", "YES", 1))
    mara.label(issue.number, ("ralph:approved",))


def more_markers(harbour: Hub) -> None:
    harbour.cycle()
    harbour.fake.push("main", {"b.py": b"y = 2\n# FIXME: two\n"})


@dataclass(frozen=True)
class Stage:
    """What has been until now, and the cycle that is looked at comes next."""

    before: Callable[[Hub], None]
    files: Mapping[str, str | bytes] = field(default_factory=lambda: TYPOS)
    config: str = CALM


STAGES = {
    "a fix is opened": Stage(nothing),
    "an approved pull is merged": Stage(approved),
    "a pull to be changed is escalated": Stage(refused, config=OWNED),
    "a closed pull ends its mission": Stage(closed),
    "a proposal is made": Stage(nothing, BUGS, BUG),
    "an approved proposal is carried on": Stage(agreed, BUGS, BUG),
    "an edited proposal is asked anew": Stage(edited, BUGS, BUG),
    "a first cycle with two kinds and a monitoring issue": Stage(
        nothing,
        {**TYPOS, **BUGS, **TODO},
        BUG.replace("fixers: []", "fixers: [codespell]").replace("{markers: {}}", "{}"),
    ),
    "a monitoring issue is brought up to date": Stage(more_markers, TODO, "hands: {fixers: []}\n"),
}


@contextmanager
def staged(folder: Path, name: str) -> Iterator[Hub]:
    """A hub in which the stage's cycle is the next thing to happen, at this very moment."""
    stage = STAGES[name]
    with hub(folder, dict(stage.files), stage.config) as harbour:
        harbour.fake.validate = False
        assert harbour.clone.exists(), "it is there before anything happens"
        stage.before(harbour)
        harbour.now += timedelta(hours=7)
        harbour.fake.journal.clear()
        yield harbour


@dataclass
class Rest:
    """How it came to rest: cycles, and the keys that a person had to settle because nobody else could tell."""

    cycles: int = 0
    doubts: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        return self.outcomes[-1:] == ("done",) and self.cycles < ROUNDS


def come_to_rest(harbour: Hub) -> Rest:
    """Cycles until one has nothing left to do; whoever is asked about a doubt looks, and answers."""
    rest = Rest()
    while rest.cycles < ROUNDS:
        report, telling = harbour.cycle(NOW)
        rest.cycles += 1
        rest.outcomes += (report.outcome,)
        unknown = open_state(harbour).unknown
        rest.untold += tuple(key for key in unknown if not _said(key, report, telling))
        for key in unknown:
            rest.doubts += (key,)
            settle(harbour, key)
        if not unknown and not report.effects and report.outcome == "done":
            return rest
    return rest


def _said(key: str, report: CycleReport, telling: Telling) -> bool:
    return any(f"ralph journal resolve {key}" in line for line in telling.remarks)


def settle(harbour: Hub, key: str) -> None:
    """A person looks whether it is there, and says so."""
    number = made_as(harbour, key)
    control.resolve(harbour.house().store, key, sent=number != 0, number=number)


def made_as(harbour: Hub, key: str) -> int:
    """The number of the issue, pull or comment that carries a key; 0 for none."""
    threads = (t.number for t in harbour.threads if key_in(t.body) == key)
    comments = (c.id for c in harbour.fake.comments.values() if key_in(c.body) == key)
    return next(iter((*threads, *comments)), 0)


# --- what an end looks like -------------------------------------------------------------


def portrait(harbour: Hub) -> dict[str, Any]:
    """Everything that must be the same whatever went wrong. Issues and pulls go by key, since numbers may differ."""
    fake, names = harbour.fake, _names(harbour)
    memory, state = parse(git(fake.bare, "show", "ralph-memory:memory/ralph-log.md").encode()), open_state(harbour)
    text = _renamer(names, harbour)
    return {
        "threads": {names[t.number]: _thread(t, text) for t in harbour.threads},
        "comments": sorted((names[c.number], text(c.body)) for c in fake.comments.values()),
        "labels": sorted(fake.labels),
        "branches": {ref: text(_commits(harbour, ref)) for ref in _branches(harbour)},
        "default": git(fake.bare, "log", "--format=%T %s", "main"),
        "missions": [(m.id, m.status, names.get(m.issue), names.get(m.pull), m.pending) for m in state.missions],
        "failures": [m.failures for m in state.missions],
        "open": (state.claim, state.effects, state.unknown, state.next_mission, state.silenced),
        "counted": (state.acceptance, [(path, lines) for _, path, lines in state.recent]),
        "waiting": [finding.fingerprint for finding in state.backlog],
        # The cycle that died has no number, so what came in the one after it may now have come in the first.
        "active": [re.sub(r"started_cycle=\d+", "started", text(str(note))) for note in memory.active],
        "completed": [text(str(note)) for note in memory.completed],
        "measured": memory.measured,
        "cursors": memory.header.cursors,
    }


def _branches(harbour: Hub) -> list[str]:
    return git(harbour.fake.bare, "for-each-ref", "--format=%(refname)", "refs/heads/ralph").splitlines()


def _commits(harbour: Hub, ref: str) -> str:
    """What a branch of ours adds; not by object ids, since a message names its issue by number."""
    return git(harbour.fake.bare, "log", "--topo-order", "--format=%T %an %ae %aI %cI%n%B", ref, "^main")


def _thread(thread: Any, text: Callable[[str], str]) -> tuple[Any, ...]:
    body = "" if key_in(thread.body) == STANDING else text(thread.body or "")
    people = [account.login for account in thread.assignees]
    merged = thread.pull.merged_at is not None if thread.pull else None
    return thread.title, body, thread.state, thread.state_reason, sorted(thread.labels), people, merged


def _names(harbour: Hub) -> dict[int, str]:
    return {t.number: f"{'pull' if t.pull else 'issue'}-{key_in(t.body) or t.title}" for t in harbour.threads}


def _renamer(names: dict[int, str], harbour: Hub) -> Callable[[str], str]:
    merges = {t.pull.merge_sha or "": "MERGED" for t in harbour.threads if t.pull}

    def named(found: re.Match[str]) -> str:
        return f"{found[1]}{names.get(int(found[2]), found[2])}"

    def text(raw: str) -> str:
        for sha, name in merges.items():
            raw = raw.replace(sha, name).replace(sha[:8], name) if sha else raw
        return re.sub(r"(#|/issues/|/pull/|issue=|pull=|pull_request=)(\d+)\b", named, raw)

    return text


def differences(
    expected: dict[str, Any], found: dict[str, Any], doubts: tuple[str, ...] = (), late: bool = False
) -> list[str]:
    """The parts that differ.

    After a doubt that a person had to settle, the remark in doubt may be missing (it is never sent again), so may the
    list (until there is something new for it), and her "not sent" counts as a failure. Then, as after anything
    that came `late`, cycles and missions have other numbers.
    """
    forgiven = bool(doubts) or late
    mine, theirs = ({**side, **_forgiving(side, doubts)} if forgiven else side for side in (expected, found))
    return [f"{name}: {mine[name]!r} became {theirs[name]!r}" for name in mine if mine[name] != theirs[name]]


def _forgiving(side: dict[str, Any], doubts: tuple[str, ...]) -> dict[str, Any]:
    comments = [(name, body) for name, body in side["comments"] if key_in(body) not in doubts]
    return {
        "threads": {
            name: (title, *rest)
            for name, (title, _, *rest) in side["threads"].items()
            if name.removeprefix("issue-") not in doubts or "ralph:mission" in rest[2]
        },
        "comments": [(name, re.sub(r"cycle \d+", "cycle N", body)) for name, body in comments],
        "missions": sorted(rest for _, *rest in side["missions"]),
        "failures": (),
        "open": (*side["open"][:3], side["open"][4]),
        "active": sorted(_numberless(note) for note in side["active"]),
        "completed": sorted(_numberless(note) for note in side["completed"]),
        "cursors": (),
    }


def _numberless(note: str) -> str:
    return re.sub(r"(\(id|cycle|cycles)=\d+", r"\1=N", note)


def lost(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The keys of what the undisturbed end has, and this one has not."""
    threads = expected["threads"].keys() - found["threads"].keys()
    comments = {key_in(body) for _, body in expected["comments"]} - {key_in(body) for _, body in found["comments"]}
    return sorted(threads | comments)
