"""Which threads are ours to write on, and which change our own issue announced. Memory proves neither.

An issue belongs to a mission if our account wrote it and its marker names this mission, or if an authorised person set
`ralph:mission` on it. A pull request does if our account opened it from the mission's branch with such a marker, and
its issue is ours, or a person's that the pull request names. A pull request of `ralph work` names no mission and
vouches for its issue by itself. A fix that asks nobody has no issue: its pull request vouches for itself, and where a
person rewrote its text, an authorised person's label or approval does.

Memory keeps a change until it can be sent, so the issue announces it by a digest on a line of its own. Approving the
issue's text approves that digest, and branch and pull request are made of exactly that. Text from others cannot contain
such a line: sanitised text has none (`safety.detect.SEAL`), and verbatim text is shown as code.

A list or a standing comment is created once. If people delete it, the key of its successor names all that were lost
before: nothing is created twice under one key, and a lost one is not mistaken for an existing one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict

from ralph_mission.mission.lifecycle.approval import on_pull, standing_label
from ralph_mission.mission.model.effects import MARKER, OpenPull, PushBranch, fact, marker
from ralph_mission.mission.model.forge import Issue, Pull, ThreadComment
from ralph_mission.mission.model.ledger import SETTLED, EffectRecord, Record, key_of
from ralph_mission.mission.model.mission import Mission
from ralph_mission.safety.markdown import prose
from ralph_mission.values import compile_regex

_ANNOUNCEMENT = compile_regex(r"^the change (is|would be) ((?:`[0-9a-f]{16}`(?:, )?)+)\r?$", re.MULTILINE)

Change = PushBranch | OpenPull
LATER = ("issue", "patch_ids", "touches")  # fields that earlier versions did not announce


def change_digest(effect: Change) -> str:
    """Sixteen hex digits over everything that would be sent, except the date."""
    fields = asdict(effect).items()
    content = {name: value for name, value in fields if name != "date" and (value or name not in LATER)}
    return key_of("change", type(effect).__name__, json.dumps(content, sort_keys=True))


def announcement_line(effects: Iterable[Change], needs_approval: bool) -> str:
    """The line of an issue that announces what will be sent, or sent after approval; "" for nothing."""
    digests = ", ".join(f"`{change_digest(effect)}`" for effect in effects)
    return f"the change {'would be' if needs_approval else 'is'} {digests}" if digests else ""


def announced_digests(body: str, needs_approval: bool) -> frozenset[str]:
    """The digests that a text of ours announces: for sending without, or with, approval."""
    verb, lines = "would be" if needs_approval else "is", list(_ANNOUNCEMENT.finditer(body))
    text = prose(body) if lines else ""  # in our own line only the digests are code
    ours = (line for line in lines if line[1] == verb and text.startswith("the change", line.start()))
    return frozenset(found for line in ours for found in re.findall("[0-9a-f]{16}", line[2]))


def own_remarks(issue: Issue, key: str, us: int) -> list[ThreadComment]:
    """Our comments on an issue under a key, by author and marker, oldest first."""
    return [one for one in issue.remarks if one.author.id == us and MARKER.findall(one.body)[-1:] == [key]]


SuccessorKeys = tuple[str, ...]  # parts of the first one's key


def of_remark(mission: str) -> SuccessorKeys:
    """The line of standing comments of the mission with this key."""
    return mission, "comment", "standing"


def successor_keys(line: SuccessorKeys, records: Mapping[str, Record]) -> Iterator[str]:
    """The keys of those that were created, oldest first; then the key of the next one."""
    lost: tuple[str, ...] = ()
    while True:
        key = key_of(*line, *lost)
        yield key
        record = records.get(key)
        if not isinstance(record, EffectRecord) or record.state not in SETTLED or record.receipt is None:
            return
        lost = (*lost, str(record.receipt.number))


def next_key(line: SuccessorKeys, records: Mapping[str, Record]) -> str:
    """The key of the next one, which was never used."""
    *_, last = successor_keys(line, records)
    return last


def last_key(line: SuccessorKeys, records: Mapping[str, Record]) -> str:
    """The key of the last one that was created, or else of the first."""
    *earlier, last = successor_keys(line, records)
    return earlier[-1] if earlier else last


def read_successors(
    lines: Iterable[SuccessorKeys], get: Callable[[set[str]], Mapping[str, Record]]
) -> dict[str, Record]:
    """The records of these successions; `get` looks keys up."""
    lines, known, found = tuple(lines), set[str](), dict[str, Record]()
    while missing := {key for line in lines for key in successor_keys(line, found)} - known:
        known |= missing
        found |= get(missing)
    return found


_FACT = compile_regex(r" ([a-z]+)=([^\s>]+)")
BRANCHES = "ralph/"


def facts_in(text: str) -> dict[str, str]:
    """The facts in one of our markers, besides its key."""
    return dict(_FACT.findall(text.removesuffix("-->").partition(" key=")[2]))


def why_foreign(mission: Mission, issue: Issue | None, pull: Pull | None, us: int, authorised: frozenset[int]) -> str:
    """Why nothing may be written there for this mission, or "" if both threads are its own."""
    written = issue is not None and issue.author.id == us and _names(issue.body, mission)
    requested = issue is not None and (is_requested(issue, authorised) or _is_approved(mission, pull, authorised))
    if issue is not None and not (written or requested or _is_by_work(pull, mission, us)):
        return f"issue #{issue.number} does not belong to this mission"
    borne_by_us = written or issue is None or _is_claimed(issue, us)
    if pull is not None and not mission.issue and not written and borne_by_us and _is_from(pull, mission, us):
        return ""  # the pull request is its thread and lost its marker, and a person vouched for it
    if pull is not None and not _carries(pull, mission, us, named=not borne_by_us):
        return f"pull request #{pull.number} does not belong to this mission"
    return ""


def is_requested(issue: Issue, authorised: frozenset[int]) -> bool:
    """Whether an authorised person set the current `ralph:mission` label."""
    label = standing_label(issue, "ralph:mission")
    return label is not None and label.actor.id in authorised


def _is_approved(mission: Mission, pull: Pull | None, authorised: frozenset[int]) -> bool:
    """Whether an authorised person's approval of a pull request that is its mission's thread stands, at its head."""
    alone = pull if pull is not None and not mission.issue and pull.head_sha == mission.head_sha else None
    return alone is not None and on_pull(alone, mission, authorised).state == "approved"


def _is_claimed(issue: Issue, us: int) -> bool:
    """Whether our issue lost its marker and a person vouched for it: then it is no other mission's."""
    return issue.author.id == us and not any(_markers(issue.body))


def own_remark(mission: Mission, records: Mapping[str, Record], issue: Issue | None, us: int) -> int:
    """The id of the mission's standing comment; 0 if there is none of ours. Taken from memory if there is no issue."""
    if issue is None:
        return mission.comment
    keys = tuple(successor_keys(of_remark(mission.key), records))
    ours = [r.id for r in issue.remarks if r.author.id == us and any(found[1] in keys for found in _markers(r.body))]
    return mission.comment if mission.comment in ours else max(ours, default=0)


def was_rejected(pull: Pull, us: int) -> bool:
    """Whether an open pull request is ours and was rejected; its mission is over."""
    return pull.state == "open" and pull.author.id == us and "ralph:rejected" in pull.labels


def key_of_leaving(pull: Pull) -> str:
    """The key of our comment that a rejected pull request is left to people."""
    return key_of("left to people", str(pull.number))


def was_left(pull: Pull, us: int) -> bool:
    """Whether that was written there."""
    return any(one.author.id == us and marker(key_of_leaving(pull)) in one.body for one in pull.remarks)


def listed_kind(issue: Issue, us: int) -> str:
    """The kind that our issue lists, as earlier versions kept such issues; "" for any other issue."""
    markers = [facts_in(found[0]) for found in _markers(issue.body)][-1:] if issue.author.id == us else []
    return markers[0]["kind"] if markers and {*markers[0]} == {"kind"} and issue.title.startswith("Watching: ") else ""


def own_change(mission: Mission, issue: Issue | None, us: int) -> ThreadComment | None:
    """Our newest comment that announces a change for this mission. An edited one does not count."""
    comments = [r for r in (issue.remarks if issue else ()) if r.author.id == us and r.created_at == r.updated_at]
    return next((r for r in reversed(comments) if _shows(r.body, mission)), None)


def change_remark(mission: Mission, digests: Iterable[str]) -> str:
    """The key of the comment that announces these; each change has its own comment."""
    return key_of(mission.key, "change", *sorted(digests))


def _shows(body: str, mission: Mission) -> bool:
    named = announced_digests(body, False) or announced_digests(body, True)
    return bool(named) and any(found[1] == change_remark(mission, named) for found in _markers(body))


def own_pull(mission: Mission, pull: Pull | None, us: int) -> Pull | None:
    """The pull request, if its own marker (not only its issue) says it is this mission's."""
    return pull if pull is not None and _carries(pull, mission, us, named=True) else None


def _is_by_work(pull: Pull | None, mission: Mission, us: int) -> bool:
    facts = work_facts(mission.issue)
    if pull is None or facts_of(mission) != {"mission": str(mission.id), "kind": facts["kind"]}:
        return False  # memory does not decide this: such a mission is a person's request, without findings
    return _is_from(pull, mission, us) and any(facts_in(m[0]) == facts for m in _markers(pull.body))


def _carries(pull: Pull, mission: Mission, us: int, named: bool) -> bool:
    return _is_by_work(pull, mission, us) or (_is_from(pull, mission, us) and _names(pull.body, mission, named))


def _is_from(pull: Pull, mission: Mission, us: int) -> bool:
    return pull.author.id == us and pull.head.startswith(BRANCHES) and pull.head == mission.branch


def _names(body: str, mission: Mission, named: bool = False) -> bool:
    """Whether a marker names this mission: number, kind, findings; `named`: the issue too."""
    facts = facts_of(mission)
    whole = facts | {"issue": str(mission.issue)}
    return any(facts_in(found[0]) in ((whole,) if named else (facts, whole)) for found in _markers(body))


def facts_of(mission: Mission) -> dict[str, str]:
    """The facts a marker gives about a mission, so that it is found without memory."""
    members = ",".join(mission.members)
    if not mission.issue:
        return facts_of_pull(mission.kind, members)
    facts = {"mission": str(mission.id), "kind": fact(mission.kind), "finding": members}
    return {name: value for name, value in facts.items() if value}


def facts_of_pull(kind: str, members: str) -> dict[str, str]:
    """The facts of a pull request that is its mission's only thread. It belongs to the mission of its findings,
    whatever number that had when it was opened."""
    return {"kind": fact(kind), "finding": members, "issue": "0"}


def work_facts(issue: int) -> dict[str, str]:
    """The facts in the marker of a pull request of `ralph work`: who asked for it. There is no mission yet."""
    return {"kind": "human", "issue": str(issue)}


def _markers(body: str) -> Iterable[re.Match[str]]:
    return MARKER.finditer(body)
