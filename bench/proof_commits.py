"""Claims that are true: bug fixes of real repositories, told as an explorer would tell them at the commit before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ralph_mission.adapters.git.git import Git
from ralph_mission.mission.proof.claim import ASSERTION, CodeClaim, CodeQuote, comment_of
from ralph_mission.safety.objections import TEST_PATH
from ralph_mission.safety.patch import FileChange, Patch, changed_spans, measure
from ralph_mission.values import dataclass

LISTED = Path(__file__).with_suffix(".json")
"""The commits: for each repository by its name on GitHub, what its fixes' tests fail with, and which cases prove it."""


@dataclass(frozen=True, slots=True)
class FixCommit:
    """A commit that mends a bug and brings a test; `cases` () for each case that fails at its parent."""

    repository: str
    commit: str
    expected: str = ASSERTION
    cases: tuple[str, ...] = ()


def listed_commits() -> tuple[FixCommit, ...]:
    """Those of the committed list, in its order."""
    found = json.loads(LISTED.read_text())
    return tuple(
        FixCommit(repository, one["commit"], one.get("expected", ASSERTION), tuple(one.get("cases", ())))
        for repository, commits in found.items()
        for one in commits
    )


def claim_of(git: Git, fix: FixCommit) -> tuple[CodeClaim, str]:
    """The claim, and its base: the parent. Raises ValueError for a commit that is no fix with a test."""
    base = git.resolve(f"{fix.commit}^")
    changes = tuple(_changes(git, base, fix.commit))
    test = tuple(change for change in changes if TEST_PATH.search(change.path))
    change = tuple(change for change in changes if not TEST_PATH.search(change.path))
    code = [one for one in change if one.old and one.new and comment_of(one.path) and not one.path.endswith(".md")]
    if not test or not code:
        raise ValueError(f"{fix.commit} has no test, or changes no code")
    blamed = max(code, key=lambda one: measure(Patch(base, (one,))).lines)
    subject = git.text("log", "-1", "--format=%s", fix.commit)
    claim = CodeClaim(
        "bug", subject, blamed.path, (CodeQuote(blamed.path, _quote(blamed)),), fix.expected, test, change,
        cases=fix.cases,
    )  # fmt: skip  # one value
    return claim, base


def _changes(git: Git, base: str, commit: str) -> Iterator[FileChange]:
    raw = git.run("diff-tree", "-r", "-z", "--no-renames", base, commit).decode("utf-8", "surrogateescape")
    words = raw.split("\0")
    for told, path in zip(words[::2], words[1::2], strict=False):
        old_mode, new_mode, old, new, _ = told.removeprefix(":").split()
        blobs = git.blobs([old, new])
        yield FileChange(
            path, "" if old_mode == "000000" else old_mode, "" if new_mode == "000000" else new_mode,
            blobs.get(old), blobs.get(new),
        )  # fmt: skip  # one value


def _quote(change: FileChange) -> str:
    """The longest line that the fix takes away, or else the one before what it adds."""
    old = (change.old or b"").decode("utf-8", "surrogateescape").split("\n")
    new = (change.new or b"").decode("utf-8", "surrogateescape").split("\n")
    spans = changed_spans(old, new)
    near = [line for a, b, _, _ in spans for line in old[a:b]] or [
        line for a, *_ in spans for line in old[max(0, a - 3) : a]
    ]
    found = max(near, key=len, default="")
    return found if len(found.strip()) >= 8 else max(old, key=len)
