"""What git itself knows of branches and pulls. Reads only."""

from __future__ import annotations

from collections.abc import Mapping

from ralph_mission.forges.history import is_ancestor
from ralph_mission.forges.local.threads import LocalThread, PullChange, mark_merged
from ralph_mission.gateways.git import Git
from ralph_mission.mission.threads import Branch
from ralph_mission.trouble import UserError

HEADS = "refs/heads/"
ORIGIN = "refs/remotes/origin/"


def tips(git: Git) -> dict[str, str]:
    """Every local branch and the commit it points at, in one question."""
    listed = git.text("for-each-ref", "--format=%(objectname) %(refname)", HEADS)
    pairs = (line.split(" ", 1) for line in listed.split("\n") if line)
    return {ref.removeprefix(HEADS): oid for oid, ref in pairs}


def default_branch(git: Git, configured: str = "") -> Branch:
    """The configured one, else what origin calls its own, main, master, the only one, HEAD's. Raises Trouble."""
    known = tips(git)
    if configured and configured not in known:
        raise UserError(f"there is no branch {configured}", "create it, or name another default branch", usage=True)
    origin = git.try_text("symbolic-ref", "--quiet", f"{ORIGIN}HEAD").removeprefix(ORIGIN)
    people = [name for name in known if name != "ralph-memory" and not name.startswith("ralph/")]
    wanted = (configured, origin, "main", "master", people[0] if len(people) == 1 else "")
    name = next((name for name in wanted if name in known), "") or _current(git)
    if name in known:
        return Branch(name, known[name])
    if people:
        raise UserError("it is not clear which branch is the default one", "check one out: git switch BRANCH")
    raise UserError("the repository has no commits", "make a first commit, then run again")


def _current(git: Git) -> str:
    return git.try_text("symbolic-ref", "--quiet", "HEAD").removeprefix(HEADS)


def settle_thread(git: Git, thread: LocalThread, known: Mapping[str, str]) -> LocalThread:
    """The pull as it truly stands: merged when its commits are on its base, whoever brought them there."""
    change = thread.change
    base = known.get(change.base, "") if change else ""
    if change is None or thread.state != "open" or not base:
        return thread
    if change.merging and is_ancestor(git, change.merging, base):
        return mark_merged(thread, change.head_sha, change.merging, change.merged_by, thread.updated_at)
    head = known.get(change.head, change.head_sha)
    if is_ancestor(git, change.head_sha, base) and is_ancestor(git, head, base):
        return mark_merged(thread, head, head, None, thread.updated_at)
    return thread


def head_of(thread: LocalThread, known: Mapping[str, str]) -> str:
    """Where the head is, or was when the pull ceased to be open; "" when an open pull lost its branch."""
    change = thread.change
    assert change
    return known.get(change.head, "") if thread.state == "open" else change.head_sha


def base_of(git: Git, change: PullChange, known: Mapping[str, str]) -> str:
    """The commit to compare the head with: before the merge, when there was one."""
    before = git.resolve(f"{change.merged_sha}^1") if change.merged_sha not in ("", change.head_sha) else ""
    return before or known.get(change.base, "")
