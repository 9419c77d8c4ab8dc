"""Git's data about the commits between two runs: their authors and changed files."""

from __future__ import annotations

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers.text import one_line
from ralph_mission.values import dataclass

SHOWN = 10  # commits that are named
MOST = 500  # that are counted


@dataclass(frozen=True, slots=True)
class SuspectCommit:
    """A commit of the default branch; for a merge, `authors` are those of its commits `holds`."""

    sha: str
    authors: str
    subject: str
    holds: int = 1


def suspects(git: Git, passed: str, failed: str) -> tuple[SuspectCommit, ...] | None:
    """The commits that came onto the branch between a run that passed and one that failed, newest first.

    None if unknown: one of them is not here, or history was rewritten in between.
    """
    if not git.resolve(passed) or not git.resolve(failed):
        return None
    try:
        git.run("merge-base", "--is-ancestor", passed, failed)
        lines = git.text("log", "--first-parent", f"-{MOST}", "--format=%H%x1f%an%x1f%P%x1f%s", f"{passed}..{failed}")
    except GitError:
        return None
    rows = [line.split("\x1f", 3) for line in lines.splitlines() if line.count("\x1f") == 3]
    return tuple(_suspect(git, passed, row, place < SHOWN) for place, row in enumerate(rows))


def _suspect(git: Git, passed: str, row: list[str], named: bool) -> SuspectCommit:
    sha, author, parents, subject = row
    if " " not in parents or not named:
        return SuspectCommit(sha, one_line(author, 60), one_line(subject))
    merged = git.try_text("log", "--no-merges", "--format=%an", f"-{MOST}", sha, f"^{sha}^1", f"^{passed}").splitlines()
    authors = ", ".join(list(dict.fromkeys(merged))[:3]) or author
    return SuspectCommit(sha, one_line(authors, 60), one_line(subject), max(1, len(merged)))


def changed_files(git: Git, one: str, other: str) -> frozenset[str] | None:
    """The files that differ between two commits; None if one of them is not here."""
    try:
        raw = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other)
    except GitError:
        return None
    return frozenset(path for path in raw.decode("utf-8", "replace").split("\0") if path)


def workflow_text(git: Git, head: str, path: str) -> str:
    """The text of a workflow's file at a commit; "" if it was removed."""
    return git.try_text("cat-file", "blob", f"{head}:{path}")
