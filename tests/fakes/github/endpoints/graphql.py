"""The slivers of GraphQL that tell an installation who it is, who edited what, and files of several branches."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.fakes.github import pushes
from tests.fakes.github.actions import pulls, refs
from tests.fakes.github.bare import Signature
from tests.fakes.github.nouns import ACTIONS_LOGIN, REPOSITORY_ID, Account, Review
from tests.fakes.github.refusal import Unknown
from tests.fakes.github.routing import Call, route
from tests.fakes.github.shapes.basics import node, stamp

VIEWER = re.compile(
    r"\s*(?:query\s*\w*\s*)?\{\s*viewer\s*\{((?:\s*,?\s*(?:login|databaseId|__typename))+)\s*\}\s*"
    r'(repository\(owner: "([\w.-]+)", name: "([\w.-]+)"\) \{ id stargazerCount \} )?\}\s*'
)
WHO = r"\{ login \.\.\. on User \{ databaseId \} \.\.\. on Bot \{ databaseId \} \}"
EDITS = re.compile(
    r'\{ repository\(owner: "([\w.-]+)", name: "([\w.-]+)"\) \{ (?:issue|issue: pullRequest)\(number: (\d+)\) \{ '
    rf"lastEditedAt editor {WHO} userContentEdits\(first: 100\) \{{ nodes \{{ editedAt editor {WHO} \}} \}} "
    rf"timelineItems\(itemTypes: \[RENAMED_TITLE_EVENT\], last: 1\) "
    rf"\{{ nodes \{{ \.\.\. on RenamedTitleEvent \{{ createdAt actor {WHO} \}} \}} \}} \}} \}} \}}"
)

VERSIONS = re.compile(
    r'\{ repository\(owner: "([\w.-]+)", name: "([\w.-]+)"\) \{ issue\(number: (\d+)\) \{ '
    rf"userContentEdits\(first: 100\) \{{ nodes \{{ editedAt diff editor {WHO} \}} \}} \}} \}} \}}"
)
WORDS = (
    rf"author {WHO} lastEditedAt editor {WHO} "
    rf"userContentEdits\(first: 20\) \{{ totalCount nodes \{{ editor {WHO} \}} \}}"
)
REVIEWS = re.compile(
    r'\{ repository\(owner: "([\w.-]+)", name: "([\w.-]+)"\) \{ pullRequest\(number: (\d+)\) \{ '
    rf"reviews\(last: 50\) \{{ nodes \{{ fullDatabaseId {WORDS} "
    rf"comments\(first: 50\) \{{ totalCount nodes \{{ {WORDS} \}} \}} \}} \}} \}} \}} \}}"
)
COMMENTS = re.compile(r"\{ nodes\(ids: (\[[^\]]+\])\) \{ \.\.\. on IssueComment \{ id lastEditedAt \} \} \}")

FILES = re.compile(
    r'\{ repository\(owner: "([\w.-]+)", name: "([\w.-]+)"\) \{ '
    r'((?:f\d: object\(expression: "(?:HEAD|refs/heads/[\w./-]+):[^"]*"\) \{ \.\.\. on Blob \{ text \} \} ?)+)\} \}'
)


@route("POST", "/graphql", body=("query", "variables", "operationName"))
def graphql(call: Call) -> dict[str, Any]:
    query = call.text("query") or ""
    if (action := MUTATIONS.get(query)) is not None:
        return _mutate(call, *action)
    if (edits := EDITS.fullmatch(query)) and not call.body.get("variables"):
        return {"data": {"repository": {"issue": _edits(call, int(edits[3]))}}}
    if (queued := QUEUED.fullmatch(query)) and not call.body.get("variables"):
        return {"data": {"repository": {"pullRequest": _queued(call, int(queued[3]))}}}
    if (versions := VERSIONS.fullmatch(query)) and not call.body.get("variables"):
        return {"data": {"repository": {"issue": {"userContentEdits": {"nodes": _versions(call, int(versions[3]))}}}}}
    if (reviews := REVIEWS.fullmatch(query)) and not call.body.get("variables"):
        return {"data": {"repository": {"pullRequest": {"reviews": {"nodes": _reviews(call, int(reviews[3]))}}}}}
    if (comments := COMMENTS.fullmatch(query)) and not call.body.get("variables"):
        return {"data": {"nodes": _comments(call, json.loads(comments[1]))}}
    if (files := FILES.fullmatch(query)) and not call.body.get("variables"):
        return {"data": {"repository": _files(call, re.findall(r'(f\d): object\(expression: ("[^"]*")\)', files[3]))}}
    asked = VIEWER.fullmatch(query)
    if asked is None or call.body.get("variables"):
        raise Unknown(f"GraphQL: {query}")
    kind = "Bot" if call.actor.is_bot else "User"
    known = {"login": call.actor.login, "databaseId": call.actor.id, "__typename": kind}
    viewer = {name: known[name] for name in re.findall(r"\w+", asked[1])}
    if asked[2] is None:
        return {"data": {"viewer": viewer}}
    if f"{asked[3]}/{asked[4]}" != call.world.full_name:
        return {"data": {"viewer": viewer, "repository": None}}
    return {"data": {"viewer": viewer, "repository": {"id": node("R", REPOSITORY_ID), "stargazerCount": 0}}}


@dataclass
class Wrong(Exception):
    """An error that GraphQL tells in an answer of status 200."""

    kind: str
    message: str


def _mutate(call: Call, name: str, action: Callable[[Call, dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"data": {name: action(call, call.body["variables"]["input"])}}
    except Wrong as wrong:
        error = {"type": wrong.kind, "path": [name], "message": wrong.message}
        return {"data": {name: None}, "errors": [error]}


def _commit(call: Call, order: dict[str, Any]) -> dict[str, Any]:
    """As https://docs.github.com/en/graphql/reference/mutations#createcommitonbranch says."""
    if set(order) != {"branch", "message", "fileChanges", "expectedHeadOid"}:
        raise Unknown(f"createCommitOnBranch: {sorted(order)}")
    world, branch, changes = call.world, order["branch"]["branchName"], order["fileChanges"]
    if order["branch"]["repositoryNameWithOwner"] != world.full_name:
        raise Wrong("NOT_FOUND", "Could not resolve to a Repository.")
    _may_write(call)
    before = refs.follow(world, call.actor)
    tip = before.get(branch)
    if tip is None:
        raise Wrong("NOT_FOUND", f"A branch by the name {branch} does not exist in the repository.")
    if tip != order["expectedHeadOid"]:
        words = f'Expected branch to point to "{order["expectedHeadOid"]}" but it did not.  Pull and try again.'
        raise Wrong("STALE_DATA", words)
    files = {one["path"]: base64.b64decode(one["contents"], validate=True) for one in changes["additions"]}
    tree = world.bare.write_files(tip, files | {one["path"]: None for one in changes["deletions"]})
    text = "\n\n".join(filter(None, (order["message"]["headline"], order["message"]["body"])))
    at = world.clock.present()  # as a push: it moves no clock
    made = world.bare.commit_tree(
        tree, [tip], text, refs.signature(call.actor, at), Signature(*pulls.GITHUB, at), signed=True
    )
    assert call.token
    if no := pushes.refusal(world, pushes.Command(tip, made, f"refs/heads/{branch}"), call.token):
        raise Wrong("UNPROCESSABLE", no.remote or no.reason)
    world.bare.set_ref(f"refs/heads/{branch}", made, tip)
    refs.after_push(world, call.actor, before, world.bare.heads())
    return {"commit": {"oid": made}}


def _may_write(call: Call) -> None:
    token = call.token
    assert token
    if token.kind == "installation" and not token.allows("contents", "write"):
        raise Wrong("FORBIDDEN", "Resource not accessible by integration")
    if token.kind == "pat" and ("repo" not in token.scopes or not token.account.at_least("write")):
        raise Wrong("FORBIDDEN", f"{token.account.login} does not have the correct permissions")
    if call.world.settings.archived:
        raise Wrong("UNPROCESSABLE", "Repository was archived so is read-only.")


def _open_pull(call: Call, order: dict[str, Any]) -> dict[str, Any]:
    """As https://docs.github.com/en/graphql/reference/mutations#createpullrequest says, for a pull that cannot be."""
    if call.actor.login == ACTIONS_LOGIN and not call.world.settings.actions_can_create_pulls:
        raise Wrong("FORBIDDEN", "GitHub Actions is not permitted to create or approve pull requests.")
    if set(order) != {"repositoryId", "baseRefName", "headRefName", "title"} or order["repositoryId"] != node(
        "R", REPOSITORY_ID
    ):
        raise Unknown(f"createPullRequest: {order}")
    if order["baseRefName"] != order["headRefName"]:
        raise Unknown("createPullRequest: of another branch")
    words = f"No commits between {order['baseRefName']} and {order['headRefName']}"
    raise Wrong("UNPROCESSABLE", words)


def _enqueue(call: Call, order: dict[str, Any]) -> dict[str, Any]:
    """As https://docs.github.com/en/graphql/reference/mutations#enqueuepullrequest says."""
    if set(order) != {"pullRequestId", "expectedHeadOid"}:
        raise Unknown(f"enqueuePullRequest: {sorted(order)}")
    _may_write(call)
    thread = next(one for one in call.world.threads.values() if _pull_id(one.number) == order["pullRequestId"])
    assert thread.pull
    if thread.pull.head_sha != order["expectedHeadOid"]:
        raise Wrong("STALE_DATA", "Head branch was modified. Review and try the merge again.")
    if thread.pull.queued:
        raise Wrong("UNPROCESSABLE", "Pull request is already in the merge queue")
    pulls.enqueue(call.world, call.actor, thread)
    return {"mergeQueueEntry": {"position": 1}}


def _dequeue(call: Call, order: dict[str, Any]) -> dict[str, Any]:
    """As https://docs.github.com/en/graphql/reference/mutations#dequeuepullrequest says: `id` is the pull's."""
    if set(order) != {"id"}:
        raise Unknown(f"dequeuePullRequest: {sorted(order)}")
    _may_write(call)
    thread = next(one for one in call.world.threads.values() if _pull_id(one.number) == order["id"])
    if not thread.pull or not thread.pull.queued:
        raise Wrong("UNPROCESSABLE", "Pull request is not in the merge queue")
    pulls.leave_queue(call.world, call.actor, thread, "manual")
    return {"mergeQueueEntry": {"position": 1}}


def _pull_id(number: int) -> str:
    return node("PR", number)


def _queued(call: Call, number: int) -> dict[str, Any]:
    thread = call.world.threads[number]
    assert thread.pull
    gone = [one for one in call.world.events if one.number == number and one.name == "removed_from_merge_queue"]
    put = [one for one in call.world.events if one.number == number and one.name == "added_to_merge_queue"]
    return {
        "id": _pull_id(number),
        "mergeQueueEntry": {
            "state": thread.pull.queued,
            "position": 1,
            "enqueuer": {"databaseId": put[-1].actor.id},
        }
        if thread.pull.queued
        else None,
        "timelineItems": {
            "nodes": [{"createdAt": stamp(one.created_at), "reason": one.extra["reason"]} for one in gone[-1:]]
        },
    }


QUEUED = re.compile(
    r'\{ repository\(owner: "([\w.-]+)", name: "([\w.-]+)"\) \{ pullRequest\(number: (\d+)\) \{ '
    r"id mergeQueueEntry \{ state position enqueuer "
    r"\{ \.\.\. on User \{ databaseId \} \.\.\. on Bot \{ databaseId \} \} \} "
    r"timelineItems\(itemTypes: \[REMOVED_FROM_MERGE_QUEUE_EVENT\], last: 1\) "
    r"\{ nodes \{ \.\.\. on RemovedFromMergeQueueEvent \{ createdAt reason \} \} \} \} \} \}"
)


def _pin(call: Call, order: dict[str, Any]) -> dict[str, Any]:
    """As https://docs.github.com/en/graphql/reference/mutations#pinissue says: three at most, by who may write."""
    if set(order) != {"issueId"}:
        raise Unknown(f"pinIssue: {sorted(order)}")
    _may_write(call)
    thread = next(one for one in call.world.threads.values() if node("I", one.id) == order["issueId"])
    if sum(one.pinned for one in call.world.threads.values()) >= 3:
        raise Wrong("UNPROCESSABLE", "Maximum 3 pinned issues per repository")
    thread.pinned = True
    return {"issue": {"number": thread.number}}


def _react(call: Call, order: dict[str, Any], add: bool) -> dict[str, Any]:
    """As https://docs.github.com/en/graphql/reference/mutations#addreaction says, and of its opposite."""
    if set(order) != {"subjectId", "content"} or order["content"] not in ("EYES", "THUMBS_UP", "CONFUSED"):
        raise Unknown(f"reaction: {order}")
    subjects = {node("IC", one.id) for one in call.world.comments.values()}
    subjects |= {node("PRR", one.id) for one in call.world.reviews.values()}
    subjects |= {node("I", one.id) for one in call.world.threads.values()}
    if order["subjectId"] not in subjects:
        raise Wrong("NOT_FOUND", "Could not resolve to a node.")
    change = call.world.reactions.add if add else call.world.reactions.discard
    change((order["subjectId"], order["content"]))
    return {"reaction": {"content": order["content"]}}


MUTATIONS = {
    "mutation($input: AddReactionInput!) { addReaction(input: $input) { reaction { content } } }": (
        "addReaction",
        partial(_react, add=True),
    ),
    "mutation($input: RemoveReactionInput!) { removeReaction(input: $input) { reaction { content } } }": (
        "removeReaction",
        partial(_react, add=False),
    ),
    "mutation($input: PinIssueInput!) { pinIssue(input: $input) { issue { number } } }": ("pinIssue", _pin),
    "mutation($input: EnqueuePullRequestInput!) "
    "{ enqueuePullRequest(input: $input) { mergeQueueEntry { position } } }": ("enqueuePullRequest", _enqueue),
    "mutation($input: DequeuePullRequestInput!) "
    "{ dequeuePullRequest(input: $input) { mergeQueueEntry { position } } }": ("dequeuePullRequest", _dequeue),
    "mutation($input: CreatePullRequestInput!) { createPullRequest(input: $input) { pullRequest { number } } }": (
        "createPullRequest",
        _open_pull,
    ),
    "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }": (
        "createCommitOnBranch",
        _commit,
    ),
}


def _files(call: Call, asked: list[tuple[str, str]]) -> dict[str, Any] | None:
    if call.world.private and (not call.token or call.token.permissions.get("contents") not in ("read", "write")):
        return None
    bare, found = call.world.bare, {}
    for name, quoted in asked:
        branch, _, path = json.loads(quoted).removeprefix("refs/heads/").partition(":")
        head = bare.branch(call.world.default_branch if branch == "HEAD" else branch)
        blob = bare.run("cat-file", "blob", f"{head}:{path}", ok=(0, 128))
        found[name] = None if blob.returncode else {"text": blob.stdout.decode(errors="replace")}
    return found


def _edits(call: Call, number: int) -> dict[str, Any]:
    thread = call.world.threads[number]
    renames = [event for event in call.world.events if event.number == number and event.name == "renamed"]
    nodes = [{"createdAt": stamp(one.created_at), "actor": _who(one.actor)} for one in renames[-1:]]
    who, at = thread.edits[-1] if thread.edits else (None, None)
    edits = [{"editedAt": stamp(at), "editor": _who(who)} for who, at in reversed(thread.edits[-100:])]
    return {
        "lastEditedAt": at and stamp(at),
        "editor": who and _who(who),
        "userContentEdits": {"nodes": edits},
        "timelineItems": {"nodes": nodes},
    }


def _versions(call: Call, number: int) -> list[dict[str, Any]]:
    """The first version counts as an edit once there is another; of each, the whole text is told."""
    thread = call.world.threads[number]
    made = [(thread.author, thread.created_at), *thread.edits] if thread.edits else []
    told = zip(made, thread.versions, strict=True)
    return [{"editedAt": stamp(at), "diff": text, "editor": _who(who)} for (who, at), text in reversed([*told])][:100]


def _reviews(call: Call, number: int) -> list[dict[str, Any]]:
    found = [one for one in call.world.reviews.values() if one.number == number][-50:]
    return [{"fullDatabaseId": str(one.id), **_words(one, 0), "comments": _lines(one)} for one in found]


def _lines(review: Review) -> dict[str, Any]:
    return {"totalCount": len(review.lines), "nodes": [_words(review, line) for line, *_ in review.lines[:50]]}


def _words(review: Review, line: int) -> dict[str, Any]:
    """Its text's author and editors, or those of a line. The first version counts as an edit once there is another."""
    edits = review.edits.get(line, [])
    editors = [*(who for who, _ in reversed(edits)), *([review.author] if edits else [])]
    return {
        "author": _who(review.author),
        "lastEditedAt": stamp(edits[-1][1]) if edits else None,
        "editor": _who(edits[-1][0]) if edits else None,
        "userContentEdits": {"totalCount": len(editors), "nodes": [{"editor": _who(who)} for who in editors[:20]]},
    }


def _comments(call: Call, nodes: list[str]) -> list[dict[str, Any] | None]:
    known = {node("IC", one.id): one for one in call.world.comments.values()}
    found = [(name, known.get(name)) for name in nodes]
    return [
        {"id": name, "lastEditedAt": one.edited_at and stamp(one.edited_at)} if one else None for name, one in found
    ]


def _who(account: Account) -> dict[str, Any]:
    return {"login": account.login.removesuffix("[bot]"), "databaseId": account.id}
