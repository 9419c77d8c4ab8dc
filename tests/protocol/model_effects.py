"""Each kind of effect on the modelled server: how it is found again, and what becomes of the server when it is done.

The same two verbs as in the adapters; a definite no is `Refused`. What the model does not need is refused loudly.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from ralph_mission.adapters.forges import ForgeRefused, mark, refused_push
from ralph_mission.mission.lifecycle.approval import merge_objection
from ralph_mission.mission.model.effects import (
    CloseIssue,
    ClosePull,
    Comment,
    EditComment,
    Effect,
    Label,
    LeaveQueue,
    MergePull,
    OpenIssue,
    OpenPull,
    PushBranch,
    Receipt,
)
from ralph_mission.mission.model.forge import Actor
from tests.mission.build import BOT, MARA
from tests.protocol.server import AFTER, Server, commit_of, mask_of

Made = tuple[Server, Receipt]


class NotModelled(BaseException):
    """The model lacks something. No cycle may take it for a failed effect, as it does any exception."""


def may_approve(actor: Actor) -> bool:
    """Who has write access here."""
    return actor.id == MARA.id


def commit(effect: PushBranch) -> str:
    """The id of a commit is a function of the effect alone. Paths name the findings."""
    mended = sum(1 << number_of(file.path) for file in effect.files)
    return commit_of(mask_of(effect.base_sha) | mended, branch=True)


def number_of(path: str) -> int:
    """`docs/3.md` is what finding 3 is about."""
    return int(path.removeprefix("docs/").removesuffix(".md"))


def adopted(effect: Effect, number: int = 0, sha: str = "") -> Receipt:
    return Receipt(effect.key, "adopted", number, sha=sha)


def done(effect: Effect, number: int = 0, sha: str = "") -> Receipt:
    return Receipt(effect.key, "done", number, sha=sha)


# --- found


@singledispatch
def found(effect: Effect, server: Server) -> Receipt | None:
    raise NotModelled(f"the model knows no {effect!r}")


@found.register
def _(effect: OpenIssue, server: Server) -> Receipt | None:
    ours = (i for i in server.listed(server.issues, "all") if i.author == BOT and mark(i.body) == effect.key)
    return next((adopted(effect, issue.number) for issue in ours), None)


@found.register
def _(effect: Comment, server: Server) -> Receipt | None:
    assert isinstance(effect.issue, int)
    said = (r for r in server.thread(effect.issue).remarks if r.id not in server.hidden)
    return next((adopted(effect, r.id) for r in said if r.author == BOT and mark(r.body) == effect.key), None)


@found.register
def _(effect: PushBranch, server: Server) -> Receipt | None:
    here = server.branch(effect.branch)
    return adopted(effect, sha=here) if here == commit(effect) else None


@found.register
def _(effect: OpenPull, server: Server) -> Receipt | None:
    on_it = (pull for pull in server.listed(server.pulls, "all") if pull.head == effect.head)
    return next((adopted(effect, pull.number) for pull in on_it), None)


@found.register
def _(effect: MergePull, server: Server) -> Receipt | None:
    pull = server.pull(effect.pull)
    merged = pull.state == "merged" and pull.head_sha == effect.head_sha
    return adopted(effect, pull.number, pull.merged_sha) if merged else None


@found.register
def _(effect: LeaveQueue, server: Server) -> Receipt | None:
    return adopted(effect, effect.pull)  # nothing is ever queued here


@found.register
def _(effect: CloseIssue, server: Server) -> Receipt | None:
    return adopted(effect, effect.issue) if server.issue(effect.issue).state == "closed" else None


@found.register
def _(effect: ClosePull, server: Server) -> Receipt | None:
    pull = server.pull(effect.pull)
    kept = effect.head_sha and server.branch(pull.head) == effect.head_sha
    over = pull.state == "closed" or (pull.state == "merged" and effect.head_sha)
    return adopted(effect, effect.pull) if over and not kept else None


@found.register
def _(effect: EditComment, server: Server) -> Receipt | None:
    return adopted(effect, effect.comment) if _text(effect, server) == effect.body else None


@found.register
def _(effect: Label, server: Server) -> Receipt | None:
    assert isinstance(effect.issue, int)
    have = server.thread(effect.issue).labels
    missing = set(effect.add) - have or have & set(effect.remove)
    return None if missing else adopted(effect, effect.issue)


def _text(effect: EditComment, server: Server) -> str:
    thread = server.thread(effect.issue)
    texts = {0: thread.body, **{remark.id: remark.body for remark in thread.remarks}}
    return texts[effect.comment]


# --- done


@singledispatch
def do(effect: Effect, server: Server) -> Made:
    """Raises Refused, Missing."""
    raise NotModelled(f"the model knows no {effect!r}")


@do.register
def _(effect: OpenIssue, server: Server) -> Made:
    return server.opened_issue(effect.title, effect.body, effect.labels), done(effect, server.next_number)


@do.register
def _(effect: Comment, server: Server) -> Made:
    assert isinstance(effect.issue, int)
    return server.remarked(effect.issue, effect.body), done(effect, server.next_remark)


@do.register
def _(effect: PushBranch, server: Server) -> Made:
    if effect.onto:
        raise NotModelled("the model pushes no second commit")
    if server.branch(effect.branch):
        raise refused_push(effect)
    return server.with_branch(effect.branch, commit(effect)), done(effect, sha=commit(effect))


@do.register
def _(effect: OpenPull, server: Server) -> Made:
    if any(pull.head == effect.head and pull.state == "open" for pull in server.pulls):
        raise ForgeRefused("a pull request already exists")
    if not server.branch(effect.head):
        raise ForgeRefused("there is no such branch")
    made = server.opened_pull(effect.title, effect.body, effect.head, effect.base, effect.labels)
    return made, done(effect, server.next_number)


@do.register
def _(effect: MergePull, server: Server) -> Made:
    pull = server.pull(effect.pull)
    if pull.state != "open":
        raise ForgeRefused(f"pull request #{pull.number} is {pull.state}")
    if rule := merge_objection(pull, effect, may_approve):
        raise ForgeRefused(rule)
    after = server.merged(effect.pull).without_branch(pull.head, effect.head_sha)
    return after, done(effect, effect.pull, after.branch("main"))


@do.register
def _(effect: CloseIssue, server: Server) -> Made:
    return server.closed_issue(effect.issue, effect.reason), done(effect, effect.issue)


@do.register
def _(effect: ClosePull, server: Server) -> Made:
    pull = server.pull(effect.pull)
    if pull.state == "merged" and not effect.head_sha:
        raise ForgeRefused(f"pull request #{effect.pull} is merged")
    after = server.closed_pull(effect.pull) if pull.state == "open" else server
    return after.without_branch(pull.head, effect.head_sha), done(effect, effect.pull)


@do.register
def _(effect: EditComment, server: Server) -> Made:
    thread = server.thread(effect.issue)
    if not effect.comment:
        return server.with_thread(effect.issue, body=effect.body, updated_at=AFTER), done(effect)
    said = (replace(r, body=effect.body, updated_at=AFTER) if r.id == effect.comment else r for r in thread.remarks)
    return server.with_thread(effect.issue, remarks=tuple(said)), done(effect, effect.comment)


@do.register
def _(effect: Label, server: Server) -> Made:
    assert isinstance(effect.issue, int)
    return server.labelled(effect.issue, effect.add, effect.remove), done(effect, effect.issue)
