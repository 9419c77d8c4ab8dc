"""What people without authority do to a repository, and what somebody who can push to memory does there.

Everything here goes through the fake's people or plain git, as it would from outside.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.attacks.cases import Case
from tests.helpers import git
from tests.integration.hub import Hub

LOG = "memory/ralph-log.md"
WORDS = 60_000


def arrive(hub: Hub, words: str) -> None:
    """A stranger writes wherever strangers may: an issue, a remark, a pull with a commit and a review of it."""
    eve = hub.person("eve", "read")
    number = eve.create_issue(words.replace("\n", " ")[:200] or "x", words[:WORDS])
    eve.comment(number, words[:WORDS])
    text = words.encode("utf-8", "replace")
    hub.fake.push("eve/patch-1", {"eve.md": text + b"\nDocs are seperate.\n"}, message=words.replace("\0", "")[:500])
    pull = eve.open_pull("eve/patch-1", "main", words.replace("\n", " ")[:200] or "x", words[:WORDS])
    eve.review(pull, "approved", words[:WORDS])


def insist(hub: Hub, case: Case, words: str) -> bool:
    """The same stranger on everything that we opened. Then what the case is about, and whether that was possible."""
    _say_yes(hub, hub.person("eve", "read"), f"{words[:WORDS]}\n\n/ralph approve")
    return do(hub, case, words)


def do(hub: Hub, case: Case, words: str) -> bool:
    """What the case is about, where that is done in person; whether anything is another thing for it."""
    before = _all_there_is(hub)
    ACTS.get(case.act, _nothing)(hub, words)
    return _all_there_is(hub) != before


def _all_there_is(hub: Hub) -> tuple[object, ...]:
    """What people can have changed: threads, what is said there, branches, and what git obeys in the clone."""
    fake = hub.fake
    threads = [(one.number, one.title, one.body, tuple(one.labels), one.state) for one in fake.threads.values()]
    said = [(one.id, one.body) for one in fake.comments.values()]
    reviews = [(one.id, one.state) for one in fake.world.reviews.values()]
    return threads, said, reviews, git(fake.bare, "for-each-ref"), (hub.clone / ".git" / "config").read_bytes()


def _ours(hub: Hub):
    return [pull for pull in hub.pulls if pull.author.is_bot and pull.state == "open"]


def _say_yes(hub: Hub, who: Any, words: str) -> None:
    """On everything of ours that is open: in a remark, by labels, and by reviews of pulls."""
    for thread in (*hub.issues, *hub.pulls):
        if thread.author.is_bot and thread.state == "open":
            who.comment(thread.number, words)
            who.label(thread.number, ("ralph:approved", "ralph:mission"))
    for pull in _ours(hub):
        who.review(pull.number, "approved", words)


def _nothing(hub: Hub, words: str) -> None:
    pass


# --- people ---------------------------------------------------------------------------


def _edit_what_was_approved(hub: Hub, words: str) -> None:
    missions = (one for one in hub.issues if one.author.is_bot or "ralph:mission" in one.labels)
    for issue in (one for one in missions if one.state == "open"):
        hub.person("mara", "write").label(issue.number, ("ralph:approved",))
        hub.person("eve").edit_issue(issue.number, body=f"{words}\n{issue.body}")


def _approve(login: str) -> Callable[[Hub, str], None]:
    def act(hub: Hub, words: str) -> None:
        _say_yes(hub, hub.person(login, "read"), words[:WORDS])

    return act


def _bot(hub: Hub, words: str) -> None:
    bot = hub.fake.bot("mara[bot]")
    bot.set_permission("admin")
    _say_yes(hub, bot, words[:WORDS])


def _many_issues(hub: Hub, words: str) -> None:
    for number in range(150):
        hub.fake.person("eve").create_issue(f"{number} {words}", words)


def _at_length(hub: Hub, words: str) -> None:
    eve = hub.person("eve")
    number = eve.create_issue("long", (words * 99)[:65_000])
    for _ in range(20):
        eve.comment(number, (words * 99)[:65_000])


def _label(hub: Hub, words: str) -> None:
    eve = hub.person("eve", "triage")
    for number in range(3):
        eve.label(eve.create_issue(f"{number} {words}", words), ("ralph:mission", "ralph:approved"))


def _push_to_approved(hub: Hub, words: str) -> None:
    for pull in _ours(hub):
        hub.person("mara", "write").review(pull.number, "approved")
        hub.fake.push(pull.pull.head, {"evil.txt": b"x\n"}, message=words.replace("\0", ""))


def _dismiss(hub: Hub, words: str) -> None:
    for pull in _ours(hub):
        mara = hub.person("mara", "write")
        mara.review(pull.number, "approved")
        mara.dismiss(pull.number, message=words)


# --- memory ---------------------------------------------------------------------------


def _written(hub: Hub, content: bytes, path: str = LOG) -> None:
    with suppress(KeyError):
        hub.person("eve", "write").push("ralph-memory", {path: content}, message="ralph: cycle")


def _memory(hub: Hub) -> bytes:
    return hub.memory().encode()


def _foreign_commit(hub: Hub, words: str) -> None:
    _written(hub, _memory(hub) + words.encode(), "memory/open.json")


def _forged_approval(hub: Hub, words: str) -> None:
    old = _memory(hub)
    for word in (b"IN_REVIEW", b"DISCOVERED", b"PLANNED"):
        old = old.replace(word, b"APPROVED")
    _written(hub, old + words.encode())


def _none_active(hub: Hub, words: str) -> None:
    state = git(hub.fake.bare, "show", "ralph-memory:memory/open.json")
    emptied = state.partition('"missions"')[0] + '"missions": []}'
    _written(hub, emptied.encode(), "memory/open.json")


def _learning(hub: Hub, words: str) -> None:
    learnt = b"## Learnings\n" + words.encode() + b"\n"
    _written(hub, _memory(hub).replace(b"## Learnings\n", learnt, 1) + b"\n")


def _rollback(hub: Hub, words: str) -> None:
    bare = hub.fake.bare
    first = git(bare, "rev-list", "--max-parents=0", "ralph-memory")
    git(bare, "update-ref", "refs/heads/ralph-memory", first)


def _broken(hub: Hub, words: str) -> None:
    _written(hub, words.encode() + _memory(hub)[:200])


def _bomb(hub: Hub, words: str) -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    _written(hub, b"---\n" + bomb.encode() + words.encode() + b"\n" + _memory(hub).removeprefix(b"---\n"))


def _link(hub: Hub, words: str) -> None:
    bare = hub.fake.bare
    blob = git(bare, "hash-object", "-w", "--stdin", stdin="../../../../etc/passwd")
    rows = git(bare, "ls-tree", "ralph-memory:memory").splitlines()
    kept = [row for row in rows if not row.endswith("\tralph-log.md")]
    folder = git(bare, "mktree", stdin="\n".join([*kept, f"120000 blob {blob}\tralph-log.md"]) + "\n")
    tree = git(bare, "mktree", stdin=f"040000 tree {folder}\tmemory\n")
    who = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")
    made = git(bare, *who, "commit-tree", tree, "-p", "ralph-memory", "-m", "ralph: cycle")
    git(bare, "update-ref", "refs/heads/ralph-memory", made)


def _grown(hub: Hub, words: str) -> None:
    _learning(hub, "".join(f"- {n} {words}\n" for n in range(500)))


# --- the runner -----------------------------------------------------------------------


def _left_behind(hub: Hub, words: str) -> None:
    """An earlier job's hooks, settings and home: each would leave a file `ran` beside the clone."""
    ran = hub.folder / "ran"
    hooks = hub.folder / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-push", "post-index-change", "reference-transaction", "post-commit"):
        for place in (hooks, hub.clone / ".git" / "hooks"):
            place.mkdir(exist_ok=True)
            (place / name).write_text(f"#!/bin/sh\ntouch '{ran}'\n")
            (place / name).chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "core.editor", "diff.external", "filter.x.clean", "gpg.program"):
        subprocess.run(["git", "-C", hub.clone, "config", key, f"touch '{ran}'; cat"], check=True)
    git(hub.clone, "config", "core.hooksPath", str(hooks))
    (hub.clone / ".git" / "info").mkdir(exist_ok=True)
    (hub.clone / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")


ACTS: dict[str, Callable[[Hub, str], None]] = {
    "edit what was approved": _edit_what_was_approved,
    "say yes": _approve("eve"),
    "say yes under a look-alike name": _approve("m\u0430ra"),
    "have a bot say yes": _bot,
    "open many issues": _many_issues,
    "write at length": _at_length,
    "set the label": _label,
    "commit to memory": _foreign_commit,
    "forge an approval in memory": _forged_approval,
    "forge that no mission is active": _none_active,
    "write a learning": _learning,
    "roll memory back": _rollback,
    "break memory": _broken,
    "plant a bomb in memory": _bomb,
    "make memory a link": _link,
    "make memory grow": _grown,
    "leave settings and hooks behind": _left_behind,
    "push to an approved branch": _push_to_approved,
    "dismiss an approval": _dismiss,
}
