"""What an end looks like, by what people and machines find on the server; and how two ends differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ralph_mission.adapters.forges.github.dashboard import KEY as STANDING
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.errors import UserError
from ralph_mission.mission import memory as layout
from ralph_mission.mission.memory.text import parse_memory
from tests.crash.snapshots import networks_of
from tests.crash.witness import heads, key_in, open_state
from tests.helpers import git
from tests.integration.hub import Hub

DATED = re.compile(r" \d{4}-\d\d-\d\d \d\d:\d\d [+-]\d{4}")
"""When a commit was made: that of an action is its first try's, which a refusal may have left for a later cycle."""
ANSWERED = re.compile(
    r"an agent worked on it \(\d+ sessions?\) and answered the review|nothing is left of the review to answer"
)
"""The same end in two words: a runner that died with the answer sent finds it there, and no session to tell of."""

RANKED = re.compile(r"\bnumber \d+ of \d+\b")
"""A finding's place among those of its cycle, which others may have left by the cycle after a death."""
TICKED = re.compile(r"^ *- \[x\].*", re.MULTILINE)
"""All of the dashboard that must be the same: no box stands ticked that was obeyed."""
FAILED_RUNS = re.compile(r'"seen":\[[^]]*\]')
"""Which failed runs of workflows were looked at: the run that died is one, where it was a run of a workflow."""
RECEIPT = re.compile(r"^- (twitter|telegram|discord): .*$", re.MULTILINE)
SENT = re.compile(r"^- cycle N: approved by \w+; goes to .*\n", re.MULTILINE)


def portrait(hub: Hub) -> dict[str, Any]:
    """Everything that must be the same whatever went wrong. Issues and pulls go by key, since numbers may differ."""
    fake, names = hub.fake, _names(hub)
    text = _renamer(names, hub)
    return {
        "threads": {names[t.number]: _thread(t, text) for t in hub.threads},
        "comments": sorted((names[c.number], text(c.body)) for c in fake.comments.values()),
        "labels": sorted(fake.labels),
        "branches": {ref: text(_commits(hub, ref)) for ref in _branches(hub)},
        "default": git(fake.bare, "log", "--format=%T %s", "main"),
        "posts": {name: list(network.texts) for name, network in networks_of(hub).items()},
        **_remembered(hub, names, text),
    }


def _remembered(hub: Hub, names: dict[int, str], text: Callable[[str], str]) -> dict[str, Any]:
    """What memory says. One that is gone or damaged is told by its commit alone."""
    try:
        memory = parse_memory(git(hub.fake.bare, "show", f"ralph-memory:{layout.MEMORY}").encode())
        state = open_state(hub)
    except (UserError, codec.UnreadableDocument, AssertionError):
        return {"memory": heads(hub).get("refs/heads/ralph-memory", "")}
    return {
        "missions": [(m.id, m.status, names.get(m.issue), names.get(m.pull), m.pending) for m in state.missions],
        "failures": [m.progress.failures for m in state.missions],
        "open": (state.claim, state.effects, state.unknown, state.next_mission, state.silenced),
        "counted": (state.acceptance, [(path, lines) for _, path, lines in state.recent]),
        "waiting": [finding.fingerprint for finding in state.backlog],
        # The cycle that died has no number, so what came in the one after it may now have come in the first.
        "active": [re.sub(r"started_cycle=\d+", "started", text(str(note))) for note in memory.active],
        "completed": [text(str(note)) for note in memory.completed],
        "measured": memory.measured,
        "cursors": [(name, FAILED_RUNS.sub('"seen":[]', cursor)) for name, cursor in memory.header.cursors],
    }


def _branches(hub: Hub) -> list[str]:
    return git(hub.fake.bare, "for-each-ref", "--format=%(refname)", "refs/heads/ralph").splitlines()


def _commits(hub: Hub, ref: str) -> str:
    """What a branch of ours adds; not by object ids, since a message names its issue by number, nor by seconds, which
    each request takes of the server's clock."""
    shown = ("--date=format:%F %R %z", "--format=%T %an %ae %ad %cd%n%B")
    return git(hub.fake.bare, "log", "--topo-order", *shown, ref, "^main")


def _thread(thread: Any, text: Callable[[str], str]) -> tuple[Any, ...]:
    body = str(TICKED.findall(thread.body)) if key_in(thread.body) == STANDING else text(thread.body or "")
    people = [account.login for account in thread.assignees]
    merged = thread.pull.merged_at is not None if thread.pull else None
    return thread.title, body, thread.state, thread.state_reason, sorted(thread.labels), people, merged


def _names(hub: Hub) -> dict[int, str]:
    return {t.number: f"{'pull' if t.pull else 'issue'}-{key_in(t.body) or t.title}" for t in hub.threads}


def _renamer(names: dict[int, str], hub: Hub) -> Callable[[str], str]:
    merges = {t.pull.merge_sha or "": "MERGED" for t in hub.threads if t.pull}

    def named(found: re.Match[str]) -> str:
        return f"{found[1]}{names.get(int(found[2]), found[2])}"

    def text(raw: str) -> str:
        for sha, name in merges.items():
            raw = raw.replace(sha, name).replace(sha[:8], name) if sha else raw
        raw = RANKED.sub("number N of N", ANSWERED.sub("the review was answered", raw))
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
    names = dict.fromkeys((*mine, *theirs))
    return [f"{n}: {mine.get(n)!r} became {theirs.get(n)!r}" for n in names if mine.get(n) != theirs.get(n)]


def _forgiving(side: dict[str, Any], doubts: tuple[str, ...]) -> dict[str, Any]:
    if "missions" not in side:
        return {}
    comments = [(name, _loosely(body)) for name, body in side["comments"] if key_in(body) not in doubts]
    return {
        "threads": {
            name: (title, *rest)
            for name, (title, _, *rest) in side["threads"].items()
            if name.removeprefix("issue-") not in doubts or "ralph:mission" in rest[2]
        },
        "comments": comments,
        "branches": {ref: DATED.sub("", commits) for ref, commits in side["branches"].items()},
        "missions": sorted(rest for _, *rest in side["missions"]),
        "failures": (),
        "open": (*side["open"][:3], side["open"][4]),
        "active": sorted(_numberless(note) for note in side["active"]),
        "completed": sorted(_numberless(note) for note in side["completed"]),
        "cursors": (),
    }


def _loosely(body: str) -> str:
    """A remark whatever the number of the cycle, whoever said how a post of it fared, and however often it was sent."""
    body = RECEIPT.sub(r"- \1: told", re.sub(r"cycle \d+", "cycle N", body))
    return SENT.sub("", body)


def _numberless(note: str) -> str:
    return re.sub(r"(\(id|cycle|cycles)=\d+", r"\1=N", note)


def lost(expected: dict[str, Any], found: dict[str, Any], doubts: Sequence[str] = ()) -> list[str]:
    """What the undisturbed end has and this one has not, but for what a person was asked about: nobody knows of it."""
    threads = {name.partition("-")[2] for name in expected["threads"].keys() - found["threads"].keys()}
    gone = (comments(expected) - comments(found)) | (posts(expected) - posts(found))
    return sorted((threads | gone) - set(doubts))


def comments(end: dict[str, Any]) -> set[str]:
    """All comments: by key, or as `thread: text` where there is none."""
    return {key_in(body) or f"{name}: {_loosely(body)}" for name, body in end["comments"]}


def answers(end: dict[str, Any]) -> set[str]:
    """The comments that have a key, which are ours."""
    return {key for _, body in end["comments"] if (key := key_in(body))}


def posts(end: dict[str, Any]) -> set[str]:
    """What networks were told, as `network: text`."""
    return {f"{network}: {text}" for network, texts in end["posts"].items() for text in texts}
