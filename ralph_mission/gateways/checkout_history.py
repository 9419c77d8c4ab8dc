"""Refs and commits of a checkout: what a session may not move is put back, what it committed can be rebuilt.

Nothing is thrown away: whatever a ref of a session held is kept below `refs/ralph/aside/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ralph_mission.gateways import checkout_live as live
from ralph_mission.gateways import wire
from ralph_mission.gateways.checkout_listed import Index
from ralph_mission.gateways.git import EMPTY_TREE, Git, GitError
from ralph_mission.loop.model import Change, Commit
from ralph_mission.trouble import Trouble

NAME = re.compile("[0-9a-f]{40}([0-9a-f]{24})?")
ASIDE, MARKS = "refs/ralph/aside", "refs/ralph/mark"
PUT_BACK = "put back"
ROWS = ("--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none")
"""Every path that differs, a submodule too: `log` heeds `diff.ignoreSubmodules`, and both heed `.gitmodules`."""
SIGNATURE = re.compile(rb"^gpgsig(?:-sha256)? .*\n(?: .*\n)*", re.MULTILINE)
"""The header of a commit that would be false in any other commit."""

Refs = Mapping[str, str]
"""Name -> object id, or `ref: NAME` for a symbolic one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the history stands: the commit, the branch ("" when detached), all other refs.

    `elsewhere` are branches that loops in other work trees work on; `noted` says of which branches one ever did.
    """

    head: str
    branch: str
    refs: Refs
    elsewhere: frozenset[str] = frozenset()
    noted: Refs = field(default_factory=dict)

    @property
    def tip(self) -> str:
        """The ref that a commit moves."""
        return self.branch or "HEAD"


def place(git: Git) -> Place:
    """Where it stands now; marks are not among the refs."""
    raw = git.text("for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)")
    rows = [row.split("\0") for row in raw.split("\n") if row]
    refs = {name: f"ref: {target}" if target else oid for name, oid, target in rows if not name.startswith(MARKS)}
    name = branch(git)
    return Place(refs.get(name, "") if name else git.resolve("HEAD"), name, refs, live.branches(git), live.noted(git))


def put_back(git: Git, before: Place, aside: str) -> tuple[Place, tuple[Change, ...]]:
    """Every ref is as it was again but the current branch, and those that loops in other work trees move; a
    rewritten branch stands on its old head again.

    A loop that has come and gone since is known by its note alone, which a session could forge. So a note holds only
    for a branch that was not there, and for one that a loop had noted before and that has grown on its old head.
    """
    now = place(git)
    tip = now.refs.get(before.branch, "") if before.branch else before.head if now.branch else now.head
    told = _switched_back(git, before, now, aside) + _others(git, before, now, aside)
    if before.head and tip != before.head and not _contains(git, tip, before.head):
        told.append(Change(before.tip, "history rewritten" if tip else "deleted", f"{PUT_BACK}; kept in {aside}"))
        _keep(git, aside, before.tip, tip)
        tip = moved(git, before.tip, _on_old_head(git, before.head, tip), tip)
    return Place(tip, before.branch, before.refs), tuple(told)


def commits(git: Git, before: Place, tip: str) -> tuple[Commit, ...]:
    """The commits made since, newest first."""
    if not tip or tip == before.head:
        return ()
    raw = git.run("log", "--no-show-signature", "-z", "--format=%H %s", "--stdin", stdin=_since(before, tip))
    rows = raw.decode("utf-8", "replace").split("\0")
    return tuple(Commit(*row.split(" ", 1)) for row in rows if row)


def touched(git: Git, before: Place, tip: str) -> dict[str, str]:
    """Every path that a commit made since touches, even if a later one takes it back: path -> how."""
    if not tip or tip == before.head:
        return {}
    flags = ("--no-show-signature", "--format=%P", *ROWS, "--root")
    raw = git.run("log", *flags, "--diff-merges=first-parent", "--stdin", stdin=_since(before, tip))
    parents, paths = _rows(raw)
    if parents == [before.head]:  # one commit: what it touches is what differs
        return dict.fromkeys(paths, "committed")
    return dict.fromkeys(paths, "committed and taken back") | dict.fromkeys(net(git, before.head, tip), "committed")


def net(git: Git, old: str, new: str) -> list[str]:
    """The paths in which two commits ("" for none) differ."""
    ends = (old or EMPTY_TREE, new or EMPTY_TREE)
    return _rows(git.run("diff-tree", "-r", *ROWS, *ends))[1]


def rebuilt(git: Git, before: Place, tip: str, old: Index, paths: Sequence[str]) -> str:
    """The commits made since, without what they did to `paths`: author, message and dates stay, empty ones go.

    `old` is what those paths are at the old head. What cannot be told apart commit by commit (a branch of
    others that was taken over whole) becomes one commit on the old head.
    """
    rows = [
        line.split()
        for line in git.text(
            "rev-list", "--topo-order", "--reverse", "--parents", "--stdin", stdin=_since(before, tip)
        ).split("\n")
        if line
    ]
    contents = git.blobs(row[0] for row in rows)
    made: dict[str, str] = {}
    for name, *parents in rows:
        made[name] = _again(git, contents[name], parents, made, old, paths)
    if tip in made:
        return made[tip]
    return _commit_on(git, before.head, _without(git, tip, old, paths), git.blobs([tip])[tip])


def moved(git: Git, ref: str, new: str, old: str) -> str:
    """Move the branch from `old` to `new`; gives `new`. Raises Trouble when somebody moved it meanwhile."""
    if new != old and not git.move_ref(ref, new, old):
        raise Trouble(f"{ref} moved while it was put right", "see that nothing else commits here, then run again")
    return new


def landed(git: Git, commit: str) -> bool:
    """Whether HEAD has the commit of this id behind it; False for anything else, and when git gives no answer."""
    if not NAME.fullmatch(commit):
        return False
    try:
        git.run("merge-base", "--is-ancestor", commit, "HEAD")
    except GitError:
        return False
    return True


def tree_of(git: Git, commit: str = "") -> str:
    """The tree of a commit, the empty one for none."""
    return git.text("rev-parse", f"{commit}^{{tree}}") if commit else git.text("mktree", stdin=b"")


def entries(git: Git, commit: str, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """What those paths are in a commit ("" for none)."""
    if not commit:
        return {}
    wanted = set(paths)
    return {entry.path: (entry.mode, entry.oid) for entry in git.listing(commit) if entry.path in wanted}


def index_lines(old: Index, paths: Iterable[str]) -> bytes:
    """What tells `update-index --replace -z --index-info` to have `paths` as in `old`."""
    gone = {path: None for path in paths if path not in old}
    there = {path: old[path] for path in paths if path in old}
    return wire.index_info(gone) + wire.index_info(there)


def branch(git: Git) -> str:
    """The full name of the branch that is checked out, "" when HEAD is detached."""
    try:
        head = (git.git_dir / "HEAD").read_text().strip()
    except (OSError, ValueError):
        head = ""
    target = head.removeprefix("ref:").strip() if head.startswith("ref:") else ""
    return git.try_text("symbolic-ref", "--quiet", "HEAD") if target.endswith(".invalid") else target


def _switched_back(git: Git, before: Place, now: Place, aside: str) -> list[Change]:
    if now.branch == before.branch:
        return []
    if not now.branch:
        _keep(git, aside, "HEAD", now.head)
    if before.branch:
        git.run("symbolic-ref", "HEAD", before.branch)
    else:
        git.run("update-ref", "--no-deref", "HEAD", before.head)
    return [Change("HEAD", f"switched to {now.branch or now.head[:12]}", PUT_BACK)]


def _others(git: Git, before: Place, now: Place, aside: str) -> list[Change]:
    """Refs that are not the current branch, put back: first away with what is new, then the old ones again."""
    names = sorted({*before.refs, *now.refs} - {before.branch} - before.elsewhere - now.elsewhere)
    differing = [name for name in names if before.refs.get(name) != now.refs.get(name)]
    wrong = [name for name in differing if not _news_of_ours(name, before) and not _of_a_loop(git, name, before, now)]
    for name in wrong:
        _keep(git, aside, name, now.refs.get(name, ""))
        if name not in before.refs:
            git.run("update-ref", "--no-deref", "-d", name)
    for name in (name for name in wrong if name in before.refs):
        _point(git, name, before.refs[name])
    return [Change(name, _how(before.refs.get(name), now.refs.get(name)), PUT_BACK) for name in wrong]


def _news_of_ours(name: str, before: Place) -> bool:
    return name.startswith(f"{ASIDE}/") and name not in before.refs


def _of_a_loop(git: Git, name: str, before: Place, now: Place) -> bool:
    """Whether a loop that worked elsewhere meanwhile, and works no more, made this of the branch."""
    if name not in before.refs:
        return name in now.noted
    again = name in before.noted and now.noted.get(name, before.noted[name]) != before.noted[name]
    tip, old = now.refs.get(name, ""), before.refs[name]
    return again and bool(tip) and "ref: " not in f"{tip} {old}" and _contains(git, tip, old)


def _point(git: Git, name: str, value: str) -> None:
    if value.startswith("ref: "):
        git.run("symbolic-ref", name, value.removeprefix("ref: "))
    else:
        git.run("update-ref", "--no-deref", name, value)


def _how(before: str | None, now: str | None) -> str:
    return "created" if before is None else "deleted" if now is None else "moved"


def _keep(git: Git, aside: str, name: str, oid: str) -> None:
    if oid and not oid.startswith("ref: "):
        git.run("update-ref", f"{aside}/{name.removeprefix('refs/')}", oid)


def _contains(git: Git, tip: str, old: str) -> bool:
    return git.try_text("merge-base", tip, old) == old


def _on_old_head(git: Git, head: str, tip: str) -> str:
    """One commit on the old head with all that a rewritten history holds; the old head when that is nothing new."""
    if not tip or _contains(git, head, tip):
        return head
    return _commit_on(git, head, tree_of(git, tip), git.blobs([tip])[tip])


def _since(before: Place, tip: str) -> bytes:
    known = {oid for oid in (before.head, *before.refs.values()) if oid and not oid.startswith("ref: ")}
    return b"".join(line.encode() + b"\n" for line in (tip, *(f"^{oid}" for oid in sorted(known))))


def _rows(raw: bytes) -> tuple[list[str], list[str]]:
    """What `--format` says of each commit, and the paths of the rows of `--raw -z`."""
    parts = iter(raw.decode("utf-8", "surrogateescape").split("\0")[:-1])
    said, paths = [], []
    for part in parts:
        if part.lstrip("\n").startswith(":"):
            paths.append(next(parts))
        else:
            said.append(part)
    return said, paths


def _again(
    git: Git, content: bytes, parents: Sequence[str], made: Mapping[str, str], old: Index, paths: Sequence[str]
) -> str:
    """A commit made anew on the new parents; the parent itself ("" for none) when nothing is left of it."""
    head = content.split(b"\n", 1)[0].split()[1].decode()
    tree = _without(git, head, old, paths)
    onto = list(dict.fromkeys(filter(None, (made.get(parent, parent) for parent in parents))))
    unchanged = tree == head and onto == list(parents)
    if len(onto) < 2 and tree != head and tree == tree_of(git, *onto):
        return "".join(onto)
    return git.text("hash-object", "-t", "commit", "-w", "--stdin", stdin=_reheaded(content, tree, onto, unchanged))


def _without(git: Git, tree: str, old: Index, paths: Sequence[str]) -> str:
    with git.scratch_index() as env:
        git.run("read-tree", tree, env=env)
        git.run("update-index", "--replace", "-z", "--index-info", stdin=index_lines(old, paths), env=env)
        return git.run("write-tree", env=env).decode().strip()


def _commit_on(git: Git, head: str, tree: str, content: bytes) -> str:
    if head and tree == tree_of(git, head):
        return head
    raw = _reheaded(content, tree, [head] if head else [], False)
    return git.text("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw)


def _reheaded(content: bytes, tree: str, parents: Sequence[str], unchanged: bool) -> bytes:
    header, _, message = content.partition(b"\n\n")
    kept = header + b"\n"
    if not unchanged:
        kept = SIGNATURE.sub(b"", kept)
    lines = kept.split(b"\n")
    rest = [line for line in lines[1:] if not line.startswith(b"parent ")]
    parts = [b"tree " + tree.encode(), *(b"parent " + parent.encode() for parent in parents), *rest]
    return b"\n".join(parts).rstrip(b"\n") + b"\n\n" + message
