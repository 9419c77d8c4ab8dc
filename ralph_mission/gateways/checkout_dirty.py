"""Whether anything stands uncommitted: the parts of `git status` at the same time, itself only where one may say yes.

A session leaves a clean checkout as a rule, and on a large one `git status` takes longer than all else that is asked.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ralph_mission.gateways.checkout_files import Reading
from ralph_mission.gateways.checkout_listed import GITLINK
from ralph_mission.gateways.git import Git, GitError

PARTS = (
    ("diff-index", "--cached", "--quiet", "--ignore-submodules=all", "HEAD"),
    ("diff-files", "--quiet", "--ignore-submodules=all"),
    ("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory"),
)
"""Each says nothing and exits 0 when all is clean; of a file that was only touched the second says yes."""
WHOLE = ("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all", "--untracked-files=normal")


def dirty(git: Git, seen: Reading | None = None) -> bool:
    """Whether the files, the index and HEAD differ, or something is untracked. Raises GitError.

    Where the files were just `seen` to be as in the index, only the index is asked about.
    """
    asked = PARTS[:1] if seen and _as_indexed(seen) else PARTS
    with ThreadPoolExecutor(len(asked)) as beside:
        clean = all(beside.map(lambda part: _quiet(git, part), asked))
    return not clean and bool(git.run(*WHOLE))


def _as_indexed(seen: Reading) -> bool:
    links = sum(mode == GITLINK for mode, _ in seen.index.values())
    same = (seen.index.get(path) == (file.mode, file.oid) for path, file in seen.files.items())
    return not seen.nested and len(seen.files) + links == len(seen.index) and all(same)


def _quiet(git: Git, part: tuple[str, ...]) -> bool:
    try:
        return not git.run(*part)
    except GitError:
        return False
