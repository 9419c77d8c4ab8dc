"""Watches a (fake) GitHub as a third party would: was each action intended before it was done, and was none forced?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from ralph_mission.adapters.forges.github.dashboard import KEY as STANDING
from ralph_mission.adapters.publishers import networks as post_networks
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.mission import memory as layout
from ralph_mission.mission.model import effects
from ralph_mission.mission.model.effects import MARKER, Effect
from ralph_mission.mission.model.ledger import EffectRecord, OpenState, Record
from tests.crash.dying import NETWORKS, describe_request, mutation, writes
from tests.crash.snapshots import networks_of
from tests.fakes.github.nouns import Request
from tests.helpers import descends, git
from tests.integration.hub import Hub

MEMORY, MAIN = "refs/heads/ralph-memory", "refs/heads/main"
CAPS = {"POST /pulls": 1, "missions": 1, "POST /issues": 3, "active": 3, "wakes": 48}
"""Pulls, new missions and issues in one cycle, missions at any time, wakes in a day: a stage is no longer than that."""
RESTING = {"ralph:parked", "ralph:rejected"}
BEGUN = {"ralph:approved", "ralph:escalated"}
LABELS = re.compile(r"/issues/(\d+)/labels")


@dataclass
class Witness:
    """`wrong` says what should not have been, `breaches` which cap was passed; `actions` counts what was looked at.

    A label of a pull may come in a later cycle, because the pull that it was intended with does not wait for it.
    """

    hub: Hub
    wrong: list[str] = field(default_factory=list)
    actions: int = 0
    heads: dict[str, str] = field(default_factory=dict)
    finished: set[tuple[str, str]] = field(default_factory=set)  # branches that may go, at the commit where they may
    mains: dict[int, str] = field(default_factory=dict)  # where main was, for each push that is under way
    pulls: set[effects.OpenPull] = field(default_factory=set)
    breaches: list[str] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)  # in this cycle

    def begins(self) -> None:
        """A cycle begins: its caps are counted anew."""
        self.made.clear()

    def coming(self, request: Request) -> None:
        """Before a request is carried out."""
        if request.below == "/git-receive-pack":
            self.heads, self.finished = heads(self.hub), finished(self.hub)
            self.mains[id(request)] = self.heads.get(MAIN, "")
        elif writes(request) and request.login.endswith("[bot]") and not is_ours_to_keep(request):
            self.actions += 1
            now = intended(self.hub)
            owed = self.pulls if request.below.endswith("/labels") else set()
            self.pulls.update(effect for effect in now if isinstance(effect, effects.OpenPull))
            if request.below.endswith("/merge") and (bad := _not_green(self.hub, request)):
                self.wrong.append(f"merged while {bad}: {describe_request(request)}")
            if not any(covers(effect, request) and self._is_its_pull(effect, request) for effect in (*now, *owed)):
                self.wrong.append(f"not intended: {describe_request(request)}")

    def answered(self, request: Request, response: object) -> None:
        """After it, before its answer is heard."""
        if request.method != "GET" and request.login.endswith("[bot]") and request.transport == "rest":
            self._counted(request, response)
        if request.below == "/git-receive-pack":
            with self.hub.fake.world.lock:  # of another runner's merge, the branch and what is known of it
                now = heads(self.hub)
            before = {**self.heads, MAIN: self.mains.pop(id(request), "")}
            for ref in before.keys() | now.keys():
                self._moved(ref, before.get(ref, ""), now.get(ref, ""))

    def posting(self, url: str) -> None:
        """Before a network is told something."""
        self.actions += 1
        path = urlsplit(url).path
        network = next(name for begins, name in NETWORKS.items() if path.startswith(begins))
        meant = {effect.network for effect in intended(self.hub) if isinstance(effect, effects.Publish)}
        if network not in meant:
            self.wrong.append(f"not intended: a post on {network}")

    def _counted(self, request: Request, response: Any) -> None:
        """Count what was made, and compare it with the ceilings that nobody can raise."""
        if response.status == 201 and key_in((request.body or {}).get("body")) != STANDING:
            labels = (request.body or {}).get("labels", ())
            self.made[f"{request.method} {request.below}"] += 1
            self.made["missions"] += request.below == "/issues" and "ralph:mission" in labels
        found = {**self.made, "active": active(self.hub), "wakes": len(self.hub.fake.dispatches)}
        self.breaches += [f"{name}: {found[name]} > {most}" for name, most in CAPS.items() if found.get(name, 0) > most]

    def _moved(self, ref: str, old: str, new: str) -> None:
        if old == new or (ref == MAIN and old and new and _by_merges(self.hub, old, new)):
            return
        self.actions += 1
        if not new and (ref, old) in self.finished:
            return
        meant = intended(self.hub)
        begun = {(f"refs/heads/{e.branch}", e.base_sha) for e in meant if isinstance(e, effects.PushBranch)}
        if not new and (ref, old) in begun:
            return  # one that was begun and got no commit
        if old and (not new or not descends(self.hub.fake.bare, new, old)):
            self.wrong.append(f"forced: {ref}")
        wanted = {f"refs/heads/{e.branch}" for e in meant if isinstance(e, effects.PushBranch)}
        if ref not in wanted | {MEMORY}:
            self.wrong.append(f"not intended: a push to {ref}")

    def _is_its_pull(self, effect: Effect, request: Request) -> bool:
        """Whether labels go to the pull that was intended with them; of anything else, true.

        That intent has no number, and one of an earlier cycle would cover labels of any issue for good.
        """
        at = LABELS.fullmatch(request.below)
        if not at or not isinstance(effect, effects.OpenPull):
            return True
        thread = self.hub.fake.threads.get(int(at[1]))
        return bool(thread and thread.pull and thread.pull.head == effect.head)


@contextmanager
def watched(hub: Hub) -> Iterator[Witness]:
    """Watch while something happens."""
    witness = Witness(hub)
    undo = [hub.fake.before(witness.coming), hub.fake.after(witness.answered)]
    cycle = Hub.cycle

    def begun(self, *arguments: Any, **request: Any) -> Any:
        witness.begins()
        return cycle(self, *arguments, **request)

    class Watched(post_networks.HttpSession):
        def request(self, method: str, url: str, **options: Any) -> Any:
            if method != "GET":
                witness.posting(url)
            return super().request(method, url, **options)

    try:
        with mock.patch.object(Hub, "cycle", begun), mock.patch.object(post_networks, "HttpSession", Watched):
            yield witness
    finally:
        for end in undo:
            end()


def active(hub: Hub) -> int:
    """How many missions are under way through our doing, by the threads that are open."""
    return sum(
        is_under_way(hub, t) and not RESTING & set(t.labels) and not _peoples(hub, t.number)
        for t in list(hub.fake.threads.values())
    )


def is_under_way(hub: Hub, thread: Any) -> bool:
    """Whether work on a mission goes on there: a question that nobody has answered yet takes no slot."""
    if thread.state != "open" or not holds_mission(thread):
        return False
    fixes = [t for t in list(hub.fake.threads.values()) if t.pull and t.state == "open"]
    begun = any(f"Part of #{thread.number}." in (fix.body or "") for fix in fixes)
    return bool(thread.pull or begun or BEGUN & set(thread.labels))


def holds_mission(thread: Any) -> bool:
    """Whether a mission lives there: in an issue, or in a pull that says that it has none."""
    return "ralph:mission" in thread.labels and (not thread.pull or " issue=0 -->" in (thread.body or ""))


def _peoples(hub: Hub, number: int) -> bool:
    """Whether a person made a mission of an issue, or opened it again: no cap of ours can keep them from that."""
    events = [event for event in list(hub.fake.world.events) if event.number == number]
    made = [e for e in events if e.name == "reopened" or (e.name, e.label) == ("labeled", "ralph:mission")]
    return bool(made) and not made[-1].actor.is_bot


def _not_green(hub: Hub, request: Request) -> str:
    """The check that keeps that commit from being merged, "" if there is none."""
    world, head = hub.fake.world, (request.body or {}).get("sha")
    found = {check.name: check.conclusion or "running" for check in world.checks if check.sha == head}
    found |= {f"run {run.id}": run.conclusion or "running" for run in world.runs.values() if run.head_sha == head}
    asked = dict.fromkeys((name for rules in world.rulesets for name in rules.required_checks), "missing")
    return next((f"{name} is {how}" for name, how in (asked | found).items() if how != "success"), "")


def heads(hub: Hub) -> dict[str, str]:
    """The branches of the server."""
    lines = git(hub.fake.bare, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads").splitlines()
    return dict(line.split(" ") for line in lines)


def finished(hub: Hub) -> set[tuple[str, str]]:
    """Branches of pulls of ours that are over, with their last commit: that may go at any time, and nothing is lost."""
    over = [t for t in list(hub.fake.threads.values()) if t.pull and t.author.is_bot and t.state == "closed"]
    return {(f"refs/heads/{thread.pull.head}", thread.pull.head_sha) for thread in over if thread.pull}


def _by_merges(hub: Hub, old: str, new: str) -> bool:
    """Whether a branch went from one commit to the other by the merge API alone, as another runner's push may see it.

    A pull whose own commits were pushed there is called merged as well, at its head.
    """
    pulls = [thread.pull for thread in list(hub.fake.threads.values()) if thread.pull]
    merges = {pull.merge_sha for pull in pulls if pull.merged_at and pull.merge_sha != pull.head_sha}
    lines = git(hub.fake.bare, "log", "--first-parent", "--format=%H %P", new, f"^{old}").splitlines()
    steps = [line.split() for line in lines]
    return bool(steps) and merges.issuperset(sha for sha, *_ in steps) and steps[-1][1:2] == [old]


def intended(hub: Hub) -> list[Effect]:
    """The effects that the server's memory branch says, at this moment, are about to be done."""
    state = open_state(hub)
    paths = [f"ralph-memory:{layout.record(key)}" for key in (*state.effects, *state.unknown)]
    records = [codec.load(Record, git(hub.fake.bare, "show", path).encode()) for path in paths]
    return [r.effect for r in records if isinstance(r, EffectRecord) and r.effect]


def open_state(hub: Hub) -> OpenState:
    """`open.json` on the server."""
    if not hub.fake.branch("ralph-memory"):
        return OpenState()
    return codec.load(OpenState, git(hub.fake.bare, "show", f"ralph-memory:{layout.OPEN}").encode())


def key_in(text: str | None) -> str:
    """The key of the last marker in a text, "" when there is none."""
    found = MARKER.findall(text or "")
    return found[-1] if found else ""


def duplicates(hub: Hub) -> list[str]:
    """Keys that more than one of our issues or pulls, or comments or reviews, carries; no standing issue. And posts.

    People may copy a marker as often as they like.
    """
    fake = hub.fake
    own = [thread for thread in fake.threads.values() if thread.author.is_bot]
    threads = Counter((bool(t.pull), key_in(t.body)) for t in own if key_in(t.body) != STANDING)
    comments = Counter(("comment", key_in(c.body)) for c in fake.comments.values() if c.author.is_bot)
    reviews = Counter(("review", key_in(r.body)) for r in fake.world.reviews.values() if r.author.is_bot)
    heads = Counter(("head", t.pull.head) for t in own if t.pull)
    found = threads + comments + reviews + heads + _posts(hub)
    return [f"{what} {key}" for (what, key), n in found.items() if key and n > 1]


def _posts(hub: Hub) -> Counter[tuple[str, str]]:
    """How often each network got a text: one that is there already was not to be sent, whether it is taken or not."""
    networks = networks_of(hub).items()
    return Counter((f"post on {name}", text) for name, one in networks for text in (*one.texts, *one.twice))


def is_ours_to_keep(request: Request) -> bool:
    """The dashboard, its pin, a wake and the question whether pulls may be opened are no actions: losing or repeating
    them harms nobody."""
    body = request.body if isinstance(request.body, dict) else {}
    kept = request.below == "/dispatches" or mutation(request) in ("pinIssue", "createPullRequest")
    return kept or key_in(body.get("body")) == STANDING


def covers(effect: Effect, request: Request) -> bool:
    """Whether an intent is one for this request."""
    return any(
        request.method == method and fnmatchcase(request.below, path) and fits
        for method, path, fits in _requests(effect, request.body or {})
    )


def _requests(effect: Effect, body: dict[str, Any]) -> Iterable[tuple[str, str, bool]]:
    """The requests that an effect may take: method, path, and whether a body is one for it."""
    issue = getattr(effect, "issue", 0)
    at = f"/issues/{issue if isinstance(issue, int) else '*'}"
    names = {*getattr(effect, "labels", ()), *getattr(effect, "add", ())}
    if names:
        number = "*" if isinstance(effect, effects.OpenPull) else at.removeprefix("/issues/")
        yield "POST", "/labels", body.get("name") in names
        yield "POST", f"/issues/{number}/labels", set(body.get("labels", [None])) <= names
    match effect:
        case effects.OpenIssue():
            yield "POST", "/issues", (key_in(body.get("body")), body.get("title")) == (effect.key, effect.title)
        case effects.Comment():
            yield "POST", f"{at}/comments", key_in(body.get("body")) == effect.key
        case effects.OpenPull():
            yield "POST", "/pulls", key_in(body.get("body")) == effect.key and body.get("head") == effect.head
        case effects.MergePull():
            yield "PUT", f"/pulls/{effect.pull}/merge", body.get("sha") == effect.head_sha
            order = body.get("variables", {}).get("input", {})
            yield "POST", "/graphql", order.get("expectedHeadOid") == effect.head_sha or [*order] == ["id"]
        case effects.LeaveQueue():
            yield "POST", "/graphql", [*body.get("variables", {}).get("input", {})] == ["id"]
        case effects.CloseIssue():
            yield "PATCH", at, body == {"state": "closed", "state_reason": effect.reason}
        case effects.ClosePull():
            yield "PATCH", f"/pulls/{effect.pull}", body == {"state": "closed"}
        case effects.EditComment():
            place = f"/issues/comments/{effect.comment}" if effect.comment else at
            yield "PATCH", place, body == {"body": effect.body}
        case effects.PostReview():
            same = (key_in(body.get("body")), body.get("commit_id")) == (effect.key, effect.head_sha)
            yield "POST", f"/pulls/{effect.pull}/reviews", same and body.get("event") == "COMMENT"
        case effects.EditReview():
            yield "PUT", f"/pulls/{effect.pull}/reviews/{effect.review}", body == {"body": effect.body}
        case effects.Label():
            yield "POST", f"{at}/assignees", set(body.get("assignees", [None])) <= set(effect.assign)
            for name in effect.remove:
                yield "DELETE", f"{at}/labels/{name}", True
