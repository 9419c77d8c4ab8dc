"""Takes commits that were made elsewhere over into a checkout, beside whatever stands uncommitted in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ralph_mission.gateways import checkout_history as history
from ralph_mission.gateways.checkout_user import User
from ralph_mission.gateways.git import Git, GitError
from ralph_mission.trouble import Trouble

MOVED = "see that nothing else commits here, then run again"


def uncommitted(git: Git) -> frozenset[str]:
    """Every path that differs from the last commit, in the index or in the files, or is not tracked."""
    entries = iter(git.text("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all").split("\0"))
    return frozenset(entry[3:] for entry in entries if entry)


def met(paths: Sequence[str], others: Iterable[str]) -> tuple[str, ...]:
    """Those of `paths` that are among `others`, or a folder of one, or in one."""
    known = tuple(others)
    return tuple(
        path for path in paths
        if any(one == path or one.startswith(f"{path}/") or path.startswith(f"{one}/") for one in known)
    )  # fmt: skip  # one value


def grown(git: Git, base: str) -> tuple[str, frozenset[str]]:
    """The commit to land on, and the paths that a person's commits since `base` touch; `base` itself when the branch
    did not grow from there."""
    head = git.resolve("HEAD")
    if not head or git.try_text("merge-base", head, base) != base:
        return base, frozenset()
    return head, frozenset(history.net(git, base, head))


def land(git: Git, base: str, commit: str) -> None:
    """The branch, the index and the files go from `base` to `commit`, through the user's filters.

    Raises Trouble, with everything as it was, when the branch moved or a file stands in the way; `commit` is kept
    below `refs/ralph/aside/` then.
    """
    if commit == base:
        return
    here = Git(git.git_dir, git.common_dir, git.work_tree, (*git.extra, *User.of(git).settings))
    tip = here.try_text("symbolic-ref", "--quiet", "HEAD") or "HEAD"
    if here.resolve("HEAD") != base:
        raise _moved(here, commit)
    try:
        here.try_text("update-index", "-q", "--refresh")
        here.run("read-tree", "-m", "-u", base, commit)
    except GitError as error:
        what = f"what was built cannot be taken over: {error.detail.strip()}; it is kept in {_kept(here, commit)}"
        raise Trouble(what, "mend that, then --continue") from None
    if not here.move_ref(tip, commit, base):
        here.run("read-tree", "-m", "-u", commit, base)
        raise _moved(here, commit)


def _moved(git: Git, commit: str) -> Trouble:
    what = f"the branch moved while others worked apart; what they built is kept in {_kept(git, commit)}"
    return Trouble(what, MOVED)


def _kept(git: Git, commit: str) -> str:
    ref = f"{history.ASIDE}/{commit[:12]}/apart"
    git.run("update-ref", ref, commit)
    return ref
