"""What people may do in between. Each gives the state after it, or None where it makes no sense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ralph_mission.mission.model.forge import Issue, Pull
from tests.mission.build import BOT, MARA
from tests.protocol.server import Server, commit_of

if TYPE_CHECKING:
    from tests.protocol.world import State, World

Move = Callable[["World", "State"], "State | None"]


def _open_pull(server: Server) -> Pull | None:
    return next((pull for pull in server.pulls if pull.state == "open"), None)


def _mission_issue(server: Server) -> Issue | None:
    ours = (issue for issue in server.issues if issue.author == BOT and "ralph:mission" in issue.labels)
    return next((issue for issue in ours if issue.state == "open"), None)


def _on_pull(change: Callable[[Server, Pull], Server]) -> Move:
    def move(world: World, state: State) -> State | None:
        pull = _open_pull(server := world.server(state))
        return replace(state, server=world.number(change(server, pull))) if pull else None

    return move


def _on_issue(change: Callable[[Server, Issue], Server]) -> Move:
    def move(world: World, state: State) -> State | None:
        issue = _mission_issue(server := world.server(state))
        return replace(state, server=world.number(change(server, issue))) if issue else None

    return move


def _push(server: Server, pull: Pull) -> Server:
    """Somebody else's commit on our branch."""
    sha = commit_of(1 << 60, branch=True)
    pushed = replace(pull, head_sha=sha, commits=(*pull.commits, sha))
    return server.with_branch(pull.head, sha).with_pull(pushed)


def _stopping(state: State) -> tuple[int, ...]:
    """Whoever is at work may be in the middle of one effect; nobody begins another."""
    return tuple(int(moment is not None) for moment in state.runners)


def _kill(world: World, state: State) -> State:
    return replace(state, killed=True, grace=_stopping(state))


def _pause(world: World, state: State) -> State | None:
    if not state.head:
        return None
    return replace(state, head=world.history.edited(state.head, paused=True), grace=_stopping(state))


def _lift(world: World, state: State) -> State | None:
    return replace(state, killed=False, grace=None) if state.killed else None


def _resume(world: World, state: State) -> State | None:
    if not state.head or not world.history.commits[state.head].memory.header.paused:
        return None
    return replace(state, head=world.history.edited(state.head, paused=False), grace=None)


MOVES: dict[str, Move] = {
    "approves the pull": _on_pull(lambda server, pull: server.reviewed(pull.number, "approved")),
    "takes the approval back": _on_pull(lambda server, pull: server.reviewed(pull.number, "dismissed")),
    "closes the pull": _on_pull(lambda server, pull: server.closed_pull(pull.number, MARA)),
    "merges the pull": _on_pull(lambda server, pull: server.merged(pull.number, MARA)),
    "pushes to the branch": _on_pull(_push),
    "closes the issue": _on_issue(lambda server, issue: server.closed_issue(issue.number, "not_planned", MARA)),
    "says yes": _on_issue(lambda server, issue: server.labelled(issue.number, ["ralph:approved"], [], MARA)),
    "says no": _on_issue(lambda server, issue: server.labelled(issue.number, ["ralph:rejected"], [], MARA)),
    "throws the kill switch": _kill,
    "takes the kill switch back": _lift,
    "pauses": _pause,
    "resumes": _resume,
}
