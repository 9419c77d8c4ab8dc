"""What GitHub looks at before it takes a push: protected branches, signatures, workflow files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.fakes.github.bare import NOBODY
from tests.fakes.github.nouns import Protection, Rules, Ruleset, Token
from tests.fakes.github.state import World

WORKFLOWS = ".github/workflows"
ABOUT = "https://docs.github.com/articles/about-protected-branches/ for more information."
DECLINED = "protected branch hook declined"
VIOLATION = "push declined due to repository rule violations"
FORBIDDEN = {
    "creation": "- Cannot create ref due to creations being restricted.\n",
    "update": "- Cannot update this protected ref.\n",
    "deletion": "- Cannot delete this branch\n",
    "non_fast_forward": "- Cannot force-push to this branch\n",
}


@dataclass(frozen=True, slots=True)
class Command:
    """One ref of a push."""

    old: str
    new: str
    ref: str

    @property
    def branch(self) -> str:
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else ""


@dataclass(frozen=True, slots=True)
class Push:
    commands: tuple[Command, ...]
    pack: bytes
    atomic: bool
    sideband: bool


@dataclass(frozen=True, slots=True)
class No:
    """Why a ref is refused: what git prints behind it, and what `remote:` says."""

    reason: str
    remote: str = ""


def read(body: bytes) -> Push:
    """The commands and the pack of a `git-receive-pack` request."""
    lines, rest = _until_flush(body)
    first, _, capabilities = lines[0].partition(b"\0") if lines else (b"", b"", b"")
    commands = [line.decode("utf-8", "surrogateescape").rstrip("\n") for line in [first, *lines[1:]] if line]
    known = capabilities.split()
    if b"push-options" in known:
        _, rest = _until_flush(rest)
    return Push(
        tuple(Command(*line.split(" ", 2)) for line in commands if not line.startswith("shallow ")),
        rest,
        b"atomic" in known,
        b"side-band-64k" in known,
    )


def judge(world: World, push: Push, token: Token) -> dict[str, No]:
    """The refs that are refused."""
    if push.pack:
        world.bare.run("unpack-objects", "-q", stdin=push.pack)
    found = {command.ref: refusal(world, command, token) for command in push.commands}
    return {ref: no for ref, no in found.items() if no}


def _workflows_allowed(token: Token) -> bool:
    if token.kind == "installation":
        return token.permissions.get("workflows") == "write"
    return "workflow" in token.scopes


def refusal(world: World, command: Command, token: Token) -> No | None:
    """Why one ref may not move; None where it may."""
    if command.ref.startswith("refs/pull/"):
        return No("deny updating a hidden ref")
    rules = world.protections.get(command.branch)
    bypassed = rules and token.account.level == "admin" and not rules.enforce_admins
    if rules and not bypassed and (no := _protected(world, command, rules)):
        return no
    if violations := _violations(world, command):
        return No(VIOLATION, _gh013(world, command, violations))
    if command.new == NOBODY:
        return (
            No("refusing to delete the current branch: refs/heads/" + world.default_branch)
            if command.branch == world.default_branch
            else None
        )
    return workflow(world, token, command.new)


def workflow(world: World, token: Token, new: str, *known: str) -> No | None:
    """Why commits that are not on the `known` branches are refused: they touch workflows."""
    if _workflows_allowed(token) or new == NOBODY:
        return None
    made = world.bare.beyond(new, *known) if known else world.bare.new_to_branches(new)
    if not (touching := [sha for sha in made if _touches_workflows(world, sha)]):
        return None
    named = ("--format=", "--name-only", "-m", "--root", "--no-walk", touching[-1], "--", WORKFLOWS)
    path = world.bare.line("log", *named).splitlines()[0]
    if token.kind == "installation":
        who, needs = "GitHub App", "`workflows` permission"
    else:
        who, needs = "Personal Access Token", "`workflow` scope"
    return No(f"refusing to allow a {who} to create or update workflow `{path}` without {needs}")


def _touches_workflows(world: World, sha: str) -> bool:
    before = [world.bare.entry(parent, WORKFLOWS) for parent in world.bare.commit(sha).parents] or [""]
    return any(entry != world.bare.entry(sha, WORKFLOWS) for entry in before)


def _protected(world: World, command: Command, rules: Protection) -> No | None:
    gh006 = f"error: GH006: Protected branch update failed for {command.ref}."
    if command.new == NOBODY:
        return No(DECLINED, f"{gh006}\nerror: Cannot delete this branch")
    if command.old != NOBODY and not world.bare.is_ancestor(command.old, command.new):
        return No(DECLINED, f"{gh006}\nerror: Cannot force-push to this branch")
    if rules.required_reviews:
        return No(DECLINED, f"{gh006}\nerror: Changes must be made through a pull request.")
    if rules.restrict_pushes:
        return No(DECLINED, f"{gh006}\nerror: You're not authorized to push to this branch. Visit {ABOUT}")
    if missing := [name for name in rules.required_checks if not _passed(world, command.new, name)]:
        return No(DECLINED, f'{gh006}\nerror: Required status check "{missing[0]}" is expected.')
    if rules.required_signatures and (unsigned := _unsigned(world, command.new)):
        return No(VIOLATION, _gh013(world, command, [_signatures(unsigned)]))
    return None


def _violations(world: World, command: Command) -> list[str]:
    """What the rulesets of a branch have against a push, in GitHub's words, each once."""
    rulesets = world.rulesets_of(command.branch) if command.branch else []
    return list(dict.fromkeys(found for rules in rulesets for found in _broken(world, command, rules)))


def _broken(world: World, command: Command, rules: Ruleset) -> Iterator[str]:
    yield from (words for kind, words in FORBIDDEN.items() if kind in rules.forbidden and _is(world, command, kind))
    if command.new == NOBODY:
        return
    if rules.by_pull:
        yield "- Changes must be made through a pull request.\n"
    if missing := _missing(world, command, rules):
        yield f"- {missing}\n"
    if rules.required_signatures and (unsigned := _unsigned(world, command.new)):
        yield _signatures(unsigned)


def _is(world: World, command: Command, kind: str) -> bool:
    """Whether a command is a creation, an update, a deletion or not a fast-forward."""
    if NOBODY in (command.old, command.new):
        return kind == ("creation" if command.old == NOBODY else "deletion")
    return kind == "update" or (kind == "non_fast_forward" and not world.bare.is_ancestor(command.old, command.new))


def _missing(world: World, command: Command, rules: Rules) -> str:
    missing = [name for name in rules.required_checks if not _passed(world, command.new, name)]
    if len(missing) == 1:
        return f'Required status check "{missing[0]}" is expected.'
    return f"{len(missing)} of {len(rules.required_checks)} required status checks are expected." if missing else ""


def _passed(world: World, sha: str, name: str) -> bool:
    return any(check.sha == sha and check.name == name and check.conclusion == "success" for check in world.checks)


def _unsigned(world: World, new: str) -> list[str]:
    return [sha for sha in world.bare.new_to_branches(new) if not world.bare.commit(sha).signed]


def _signatures(unsigned: list[str]) -> str:
    found = f"  Found {len(unsigned)} {'violation' if len(unsigned) == 1 else 'violations'}:"
    return "\n".join(["- Commits must have verified signatures.", found, "", *[f"  {sha}" for sha in unsigned], ""])


def _gh013(world: World, command: Command, violations: list[str]) -> str:
    place = f"{world.page}/rules?ref={command.ref.replace('/', '%2F')}"
    head = f"error: GH013: Repository rule violations found for {command.ref}."
    return "\n".join([head, f"Review all repository rules at {place}", "", *violations])


# --- answering in git's own protocol, when something is refused


def carry_out(world: World, push: Push, refusals: dict[str, No]) -> bytes:
    """Do what is not refused and report on all of it, as receive-pack would."""
    lines = [b"unpack ok\n", *[_outcome(world, push, command, refusals) for command in push.commands]]
    report = b"".join(map(_packet, lines)) + b"0000"
    if not push.sideband:
        return report
    remote = "".join(no.remote + "\n" for no in refusals.values() if no.remote).encode()
    return (
        b"".join(_packet(b"\2" + line) for line in remote.splitlines(keepends=True)) + _packet(b"\1" + report) + b"0000"
    )


def _outcome(world: World, push: Push, command: Command, refusals: dict[str, No]) -> bytes:
    name = command.ref.encode("utf-8", "surrogateescape")
    if no := refusals.get(command.ref):
        return b"ng " + name + b" " + no.reason.encode() + b"\n"
    if push.atomic:
        return b"ng " + name + b" atomic transaction failed\n"
    done = world.bare.set_ref(command.ref, command.new, command.old)
    return b"ok " + name + b"\n" if done else b"ng " + name + b" failed to update ref\n"


def _packet(line: bytes) -> bytes:
    return b"%04x" % (len(line) + 4) + line


def _packets(body: bytes) -> Iterator[tuple[bytes, int]]:
    at = 0
    while at + 4 <= len(body):
        size = int(body[at : at + 4], 16)
        yield (b"", at + 4) if size == 0 else (body[at + 4 : at + size], at + size)
        at += size or 4


def _until_flush(body: bytes) -> tuple[list[bytes], bytes]:
    lines: list[bytes] = []
    for line, end in _packets(body):
        if not line:
            return lines, body[end:]
        lines.append(line)
    return lines, b""
