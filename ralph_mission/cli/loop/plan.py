"""From a task to checked user stories: `ralph plan` has them written, `ralph agent prd` converts and checks them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.loop import run
from ralph_mission.cli.options import (
    SharedGroup,
    allow_dirty_option,
    at_repository,
    command_option,
    json_option,
    limit_options,
    model_option,
    now_option,
    print_json,
    print_outcome,
    repo_option,
    run_progress,
)
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.report.loop_progress import PlainRunProgress
    from ralph_mission.app.run import RunSetup
    from ralph_mission.app.run_options import RunOptions
    from ralph_mission.loop.model.spec import RunResult
    from ralph_mission.loop.model.state import Prd


@click.command()
@click.argument("task")
@click.option("--agent", default="", metavar="NAME", help="The agent that plans.")
@command_option
@model_option
@limit_options
@click.option("--continue", "go_on", is_flag=True, help="Resume planning the same task.")
@allow_dirty_option
@click.option("--force", is_flag=True, help="Let the planner replace existing stories.")
@click.option("--consensus", is_flag=True, help="Have planner, critic and architect agree on a plan first.")
@at_repository
@json_option
def plan(as_json: bool, force: bool, consensus: bool, **options: Any) -> int:
    """Let an agent write prd.json for TASK: user stories that each fit into one session.

    Ends and exits as `ralph run` does.
    """
    from ralph_mission.app.run_options import RunOptions

    request = run.mark_restarted(RunOptions(**options))
    agreed_on = _writing(request, force)
    with run_progress(request.repo, "plan") as progress:
        setup, account = _plan(request, progress, force, consensus and not agreed_on)
    if account.ending.reason == "restart":
        run.again(setup)
    if account.ending.code:
        return _not_planned(account, setup, as_json)
    _print_plan(account, setup.root, request.repo, as_json)
    return 0


def _writing(options: RunOptions, force: bool) -> bool:
    """Whether stories are already being written. Raises UserError if they exist."""
    from ralph_mission.adapters.storage.loop.stories import Stories
    from ralph_mission.app.run_options import left_planning
    from ralph_mission.app.workplaces import open_checkout

    root = open_checkout(options.repo)[1]
    found, writing = Stories(root).find(), left_planning(options, root)
    if found and not (force or writing):
        raise UserError(
            f"{found} is there already", "run it with ralph run --prd, or plan again with --force", usage=True
        )
    return writing


def _plan(options: RunOptions, progress: PlainRunProgress, force: bool, consensus: bool) -> tuple[RunSetup, RunResult]:
    """The stories of the task; by consensus those of a plan that was agreed on. All of it is one run."""
    from ralph_mission.app import teams

    if not consensus:
        return teams.write_stories(options, progress, replacing=force)
    setup, first = teams.agree_on_plan(options, progress)
    if first.ending.code:
        return setup, first
    setup.unaltered()
    setup, account = teams.write_stories(replace(options, go_on=True), progress, replacing=force)
    return setup, replace(account, outputs=(*first.outputs, *account.outputs))


def _not_planned(account: RunResult, setup: RunSetup, as_json: bool) -> int:
    from ralph_mission.adapters.report.loop_progress import account_document

    if as_json:
        print_json(account_document(account, None, setup.store.complaints, setup.isolation, setup.ports.secrets))
    return account.ending.code


def _print_plan(account: RunResult, root: Path, repo: Path, as_json: bool) -> None:
    from ralph_mission.adapters.storage.loop.stories import Stories

    prd = Stories(root).read()
    if prd is None:
        raise UserError("the stories have disappeared", "plan again")
    stories = [{"id": story.id, "title": story.title, "priority": story.priority} for story in prd.stories]
    advice = type_commands("Read prd.json, change what you disagree with, then: ralph run --prd", repo)
    lines = [*(f"{story.id}  {story.title}" for story in prd.stories), advice]
    facts = {"branch": prd.branch, "stories": stories, "sessions": account.state.iteration}
    print_outcome("\n".join(lines), facts, as_json)


FILE = click.Path(path_type=Path)
force_option = click.option("--force", is_flag=True, help="Replace existing files.")


@click.group(cls=SharedGroup)
def prd() -> None:
    """Convert and check user stories for `ralph run --prd`; `ralph plan` writes them."""


@prd.command()
@click.argument("file", type=FILE)
@click.option("--out", type=FILE, help="Where to write the stories.  [default: prd.json]")
@click.option("--project", default="", help="The project's name.  [default: the repository's folder]")
@force_option
@repo_option
@now_option
@json_option
def convert(
    file: Path, out: Path | None, project: str, force: bool, repo: Path, now: str | None, as_json: bool
) -> None:
    """Turn a markdown PRD into prd.json: ordered, with the criteria of every story.

    Stories of another branch and their progress.txt are archived first.
    """
    from ralph_mission.loop.stories import prd as form

    target = out or repo / "prd.json"
    stories = _readable(file, lambda text: form.convert_prd(text, project or repo.resolve().name))
    archived = _make_room(target, stories, force, now)
    _write_file(target, form.render_prd(stories), force=True)
    for finding in (findings := _findings(stories)):
        click.echo(_line(finding), err=True)
    facts = {"written": str(target), "stories": len(stories.stories), "archived": archived, "findings": findings}
    print_outcome(f"{target} written: {_count(stories)} on {stories.branch}", facts, as_json)


@prd.command()
@click.argument("file", type=FILE, required=False)
@repo_option
@json_option
def lint(file: Path | None, repo: Path, as_json: bool) -> int:
    """Report what is certainly wrong with open stories. Exit code 1 if anything is.

    FILE is a prd.json or a markdown PRD; without it, the prd.json that a run would use.
    """
    path = file or _find_prd(repo)
    stories = _readable(path, _reader(path))
    findings = _findings(stories)
    text = "\n".join(map(_line, findings)) or f"{path}: {_count(stories)}, nothing to fix"
    print_outcome(text, {"file": str(path), "stories": len(stories.stories), "findings": findings}, as_json)
    return 1 if findings else 0


_check = copy(lint)
_check.hidden = True
prd.add_command(_check, "check")


@prd.command(hidden=True)
@click.option("--out", type=FILE, help="The folder to copy them to.  [default: skills]")
@force_option
@repo_option
@json_option
def skills(out: Path | None, force: bool, repo: Path, as_json: bool) -> None:
    """Copy the skills `prd` and `ralph`, by which an agent writes and converts PRDs."""
    from importlib.resources import files

    target = out or repo / "skills"
    source = files("ralph_mission") / "skills"
    written = []
    for name in ("prd", "ralph"):
        text = (source / name / "SKILL.md").read_text(encoding="utf-8")
        _write_file(target / name / "SKILL.md", text, force)
        written.append(str(target / name / "SKILL.md"))
    print_outcome("\n".join(written), {"written": written}, as_json)


def _reader(path: Path) -> Callable[[str], Prd]:
    from ralph_mission.loop.stories import prd as form

    def read(text: str) -> Prd:
        """A check list is read as a run reads it, another document as it would be converted."""
        if _is_markdown(path):
            with suppress(form.UnreadablePrd):
                return form.parse_prd(text)
            return form.convert_prd(text, complete=False)
        return form.parse_prd(text)

    return read


def _count(prd: Prd) -> str:
    number = len(prd.stories)
    return f"{number} stor{'y' if number == 1 else 'ies'}"


def _is_markdown(path: Path) -> bool:
    return path.suffix.lower() in (".md", ".markdown")


def _readable(path: Path, read: Callable[[str], Prd]) -> Prd:
    try:
        return read(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UserError(
            f"{path}: {(error.strerror or 'unreadable').lower()}", "name another file", usage=True
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8", "save it as UTF-8", usage=True) from None
    except ValueError as error:
        another = "" if _is_markdown(path) else ", or make one from markdown: ralph agent prd convert FILE"
        raise UserError(f"{path}: {error}", f"fix it{another}", usage=True) from None


def _find_prd(repo: Path) -> Path:
    from ralph_mission.adapters.storage.loop.stories import Stories

    found = Stories(repo).find()
    if found is None:
        raise UserError(
            f"there is no prd.json in {repo}", "name the file, or make one: ralph agent prd convert FILE", usage=True
        )
    return found


def _make_room(target: Path, stories: Prd, force: bool, now: str | None) -> str:
    """Move the contents of `target` away; returns the folder, or ""."""
    if not target.exists():
        return ""
    from datetime import UTC, datetime

    from ralph_mission.adapters.storage.loop import archive
    from ralph_mission.adapters.storage.loop.notes import ProgressLog
    from ralph_mission.cli.spelling import moment

    text = target.read_bytes().decode("utf-8", "replace")
    old = _old_branch(text)
    if old == stories.branch and not force:
        raise UserError(f"{target} holds stories of {old} already", "--force puts them into archive/", usage=True)
    log, at = ProgressLog(target.parent), moment(now) or datetime.now(UTC)
    put = archive.archive_stories(target.parent, old or "unnamed", text, log.text(), at)
    if log.path.exists():
        log.begin(at)
    archive.mark(target.parent, stories.branch)
    return str(put or "")


def _old_branch(text: str) -> str:
    from ralph_mission.loop.stories import prd as form

    try:
        return form.parse_prd(text.removeprefix("\ufeff")).branch
    except ValueError:
        return ""


def _write_file(path: Path, text: str, force: bool) -> None:
    from ralph_mission.adapters.storage.loop import run_files

    if path.exists() and not force and path.read_bytes() != text.encode():
        raise UserError(f"{path} is there already", "--force replaces it, --out names another", usage=True)
    run_files.write(path, text.encode())


def _findings(stories: Prd) -> list[dict[str, str]]:
    from ralph_mission.loop.stories.lint import lint_prd

    return [{"rule": one.rule, "story": one.story, "what": one.what} for one in lint_prd(stories)]


def _line(finding: dict[str, str]) -> str:
    from ralph_mission.safety.text import sanitise

    return sanitise(f"{finding['story'] or 'the list'}: {finding['what']} [{finding['rule']}]", "log").rstrip("\n")
