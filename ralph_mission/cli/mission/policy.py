"""What is in force: `ralph config show` prints the settings and the file of each, `ralph policy` asks the rules about a
patch, as a cycle would before it opens a pull request.

`ralph sanitize`: makes a text safe for where it will be shown; standard input to standard output.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.adapters.git.git import Git
from ralph_mission.cli.options import SharedGroup, at_repository, json_option, print_json, read_settings, repo_option
from ralph_mission.errors import UserError
from ralph_mission.safety.objections import inspect, verdict
from ralph_mission.words import count_noun

if TYPE_CHECKING:
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.safety.objections import Objection
    from ralph_mission.safety.patch import Measure, Patch

NEXT = {
    "diff-size": "split it, or let a person approve it",
    "protected-path": "leave this file alone, or let a person approve it",
    "file-mode": "keep ordinary files ordinary, or let a person approve it",
    "scope": "leave this out",
    "secret": "take it out, and replace the secret if it was ever real",
}
WIDEST = 60  # columns before an origin


@click.group(cls=SharedGroup)
def policy() -> None:
    """Check a patch against the rules."""


@policy.command()
@repo_option
@click.option("--patch", metavar="FILE", help="A git diff against HEAD; - reads it from standard input.")
@click.option(
    "--claims", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Judge claims about bugs, by their tests.",
)  # fmt: skip  # one option
@json_option
@click.pass_context
def check(context: click.Context, repo: Path, patch: str | None, claims: Path | None, as_json: bool) -> None:
    """Judge a patch as if Ralph had made it; without --patch, the work tree against HEAD.

    Exit code 0 only if it would be done unasked; for claims, if all are proven.
    """
    if claims is not None:
        context.exit(0 if _tell_claims(repo, claims, as_json) else 1)
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.safety.objections import describe_weakening
    from ralph_mission.safety.patch import measure

    git = Git.open(repo)
    limit = _limit(git)
    raw = _read(patch) if patch is not None else None
    try:
        change = _change(git, raw)
    except UserError as problem:
        if problem.exit_code == 2:
            raise
        _refuse(problem, as_json)
        context.exit(1)
    found = inspect(change, max_lines=limit, secrets=environment_secrets())
    outcome = verdict(found)
    _tell(outcome, measure(change), found, as_json)
    for weaker in describe_weakening(change):
        click.echo(f"  look at this first: it {weaker}", err=as_json)
    context.exit(0 if outcome == "allow" else 1)


def _tell_claims(repo: Path, place: Path, as_json: bool) -> bool:
    """Print each claim's result; returns whether all are proven."""
    from ralph_mission.app.agent_jobs import prove_claims

    judged = []
    for claim in prove_claims(repo, place, lambda note: click.echo(f"  {_plain(note)}", err=True)):
        judged.append(claim)
        if not as_json:
            click.echo(f"{'proven' if claim.proven else f'dropped, {claim.rule}'}: {_plain(claim.title)}")
            click.echo("\n".join(f"  {_plain(line)}" for line in claim.why.splitlines()))
    if as_json:
        print_json({"claims": [asdict(claim) for claim in judged]})
    return bool(judged) and all(claim.proven for claim in judged)


def _limit(git: Git) -> int:
    """The changed lines that this repository allows, by its committed settings, never a changed file."""
    from ralph_mission.adapters.git.remote import read_shared
    from ralph_mission.config.reading import read

    return read(git, read_shared, commit="HEAD").limits.auto_pr_lines


def _change(git: Git, raw: bytes | None) -> Patch:
    from ralph_mission.adapters.git.patches import from_diff, from_work_tree

    return from_work_tree(git) if raw is None else from_diff(git, raw)


def _read(name: str) -> bytes:
    if name == "-":
        buffer = getattr(sys.stdin, "buffer", None)
        return bytes(buffer.read()) if buffer else sys.stdin.read().encode("utf-8", "surrogateescape")
    try:
        return Path(name).read_bytes()
    except OSError as error:
        why = (error.strerror or "cannot be read").lower()
        hint = "name a file that holds a git diff, or - for standard input"
        raise UserError(f"{name}: {why}", hint, usage=True) from None


def _refuse(problem: UserError, as_json: bool) -> None:
    """Deny an unmeasurable change: the size rule could not be evaluated."""
    if as_json:
        print_json({"verdict": "deny", "tier": "high", "rules": ["diff-size"], "files": [], "lines": 0, "bytes": 0})
    why = f"  diff-size: cannot be evaluated: {_plain(problem.what)}"
    click.echo(f"deny\n{why}\n    next: {problem.next_step}", err=as_json)


def _tell(outcome: str, size: Measure, found: tuple[Objection, ...], as_json: bool) -> None:
    if as_json:
        print_json(_document(outcome, size, found))
    amount = ", ".join(
        (count_noun(len(size.files), "file"), count_noun(size.lines, "line"), count_noun(size.bytes, "byte"))
    )
    if not as_json or found:
        click.echo("\n".join((f"{outcome}: {amount}", *_reasons(found))), err=as_json)


def _document(outcome: str, size: Measure, found: tuple[Objection, ...]) -> dict[str, object]:
    keys = ("path", "status", "lines", "bytes", "mode")
    files = [{key: getattr(file, key) for key in keys} for file in size.files]
    return {
        "verdict": outcome,
        "tier": "low" if outcome == "allow" else "high",
        "rules": sorted({objection.rule for objection in found}),
        "files": [file | {"path": _plain(file["path"])} for file in files],
        "lines": size.lines,
        "bytes": size.bytes,
    }


def _reasons(found: tuple[Objection, ...]) -> list[str]:
    return [
        line
        for objection in found
        for line in (
            f"  {objection.rule}: {_plain(objection.path) or 'the patch'} {objection.why}",
            f"    next: {NEXT[objection.rule]}",
        )
    ]


def _plain(text: str) -> str:
    """A name, with special characters escaped."""
    from ralph_mission.safety.text import sanitise

    return text if sanitise(text, "log") == text and text.isprintable() else ascii(text)


SINKS = ("issue", "pr", "commit", "post", "summary", "log", "prompt")


@click.command()
@click.option("--sink", type=click.Choice(SINKS), required=True, help="Where the text goes; titles go to `commit`.")
def sanitize(sink: str) -> None:
    """Make untrusted text inert."""
    from ralph_mission.safety.text import sanitise

    click.echo(sanitise(_text(), sink), nl=False)


def _text() -> str:
    buffer = getattr(sys.stdin, "buffer", None)
    return buffer.read().decode("utf-8", "replace") if buffer else sys.stdin.read()


@click.group("config", cls=SharedGroup)
def config_group() -> None:
    """Show the settings of this repository."""


@config_group.command()
@at_repository
@json_option
def show(repo: Path, config: Path | None, as_json: bool) -> None:
    """Print each value that is set, and which file sets it; the rest are defaults."""
    from ralph_mission.safety.text import sanitise

    settings = read_settings(repo, config)
    if as_json:
        values = [{"key": _dotted(path), "value": value, "file": file} for path, value, file in settings.origins]
        print_json({"set": values, "settings": settings.model_dump(mode="json", by_alias=True)})
        return
    lines = [(f"{_dotted(path)}: {_flow(value)}", file) for path, value, file in settings.origins]
    width = min(max((len(line) for line, _ in lines), default=0), WIDEST)
    for line, file in lines:
        click.echo(sanitise(f"{line:<{width}}  # {file}", "log"))
    click.echo(f"# everything{' else' if lines else ''} has its default: docs/configuration.md")


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))


def _flow(value: object) -> str:
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("...").rstrip()
