"""Limits as a third party sees them: what stands on a (fake) GitHub, whatever memory says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.crash.dying import mutation
from tests.crash.witness import is_under_way
from tests.helpers import git
from tests.integration.hub import Hub

MISSIONS, LINES = 3, 49
OURS = r"^\(Ralph\|\(github-actions\|ralph-app\)\[bot\]\) "  # the names in our commits
TICKED = re.compile(r"^ *- \[x\] .*<!-- ralph:box approve (\d+) ([0-9a-f]{40}) -->", re.MULTILINE)
PART = re.compile(r"Part of #(\d+)\.")  # what a pull of ours says of its issue


def beyond(hub: Hub, wakes: int = 48) -> list[str]:
    """What is there and should not be; `wakes`: dispatches in a day."""
    return [*_missions(hub), *_merges(hub), *_changes(hub), *_wakes(hub, wakes)]


def _missions(hub: Hub) -> Iterator[str]:
    brought_back = {event.number for event in hub.fake.world.events if _brings_back(event)}
    waiting = [t.number for t in hub.threads if is_under_way(hub, t) and _is_ours(t) and t.number not in brought_back]
    if len(waiting) > MISSIONS:
        yield f"{len(waiting)} missions are under way: {waiting}"


def _brings_back(event: Any) -> bool:
    """Whether a mission went on after it had been over, which is a person's to say."""
    return event.name == "reopened" or (event.name == "labeled" and event.label == "ralph:parked")


def _is_ours(thread: Any) -> bool:
    """Whether we began it; one that is parked is nobody's."""
    return thread.author.is_bot and "ralph:parked" not in thread.labels


def _merges(hub: Hub) -> Iterator[str]:
    """Merges in the journal of requests without a yes of a person to that very commit: a review that stands, or a tick.

    What is put into the merge queue needs it as well.
    """
    said = [one for one in hub.fake.world.reviews.values() if one.state == "APPROVED" and not one.author.is_bot]
    yes = {(one.number, one.sha) for one in said} | _ticked(hub)
    for request in [one for one in list(hub.fake.journal) if _merges_one(hub, one)]:
        number, sha = int(request.below.split("/")[2]), request.body["sha"]
        if (number, sha) not in yes:
            yield f"#{number} was merged at {sha[:8]}, to which nobody had said yes"
    for request in [one for one in list(hub.fake.journal) if mutation(one) == "enqueuePullRequest"]:
        if (sha := request.body["variables"]["input"]["expectedHeadOid"]) not in {agreed for _, agreed in yes}:
            yield f"{sha[:8]} was put into the merge queue, to which nobody had said yes"


def _ticked(hub: Hub) -> set[tuple[int, str]]:
    """The pulls, each at a commit, that people approved by a box of the dashboard."""
    pages = [thread for thread in hub.threads if thread.title == "Ralph" and thread.edits]
    edits = [edit for page in pages for edit in zip(page.edits, page.versions[1:], strict=True)]
    texts = [text or "" for (who, _), text in edits if not who.is_bot]
    return {(int(number), sha) for text in texts for number, sha in TICKED.findall(text)}


def _merges_one(hub: Hub, request: Any) -> bool:
    """Whether we did: an answer that got lost undoes no merge, only a refusal says that there was none."""
    if request.method != "PUT" or not request.below.endswith("/merge") or 400 <= request.status < 500:
        return False
    pull = hub.fake.pull(int(request.below.split("/")[2])).pull
    return bool(pull.merged_by and pull.merged_by.is_bot)


def _changes(hub: Hub) -> Iterator[str]:
    """The commits on branches of ours that we made, by the lines that they add and remove.

    How much may change once a person has said yes to the proposal is hers to say.
    """
    fixes = [t for t in hub.pulls if t.author.is_bot and "ralph:auto-fix" in t.labels]
    heads = {fix.pull.head for fix in fixes if _issue_of(fix) not in _agreed(hub)}
    shown = ("log", f"--author={OURS}", "--no-merges", "--numstat", "--format=%x00%h")
    for branch in sorted(branch for branch in heads if hub.fake.branch(branch)):
        for text in git(hub.fake.bare, *shown, branch, "^main").split("\0")[1:]:
            oid, *lines = text.split("\n")
            changed = sum(int(number) for line in lines if line for number in line.split("\t")[:2])
            if changed > LINES:
                yield f"{oid} on {branch} changes {changed} lines"


def _issue_of(fix: Any) -> int:
    found = PART.search(fix.body or "")
    return int(found[1]) if found else 0


def _agreed(hub: Hub) -> set[int]:
    """The issues to which a person said yes by a label."""
    said = [one for one in hub.fake.world.events if (one.name, one.label) == ("labeled", "ralph:approved")]
    return {one.number for one in said if not one.actor.is_bot}


def _wakes(hub: Hub, limit: int) -> Iterator[str]:
    """Wakes in a day, and for one due time."""
    days = Counter(dispatch.at.date() for dispatch in hub.fake.dispatches)
    times = Counter(str(dispatch.client_payload) for dispatch in hub.fake.dispatches)
    yield from (f"{count} wakes on {day}" for day, count in days.items() if count > limit)
    yield from (f"{count} wakes for {what}" for what, count in times.items() if count > 1)
