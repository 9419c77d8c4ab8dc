"""`ralph init`: what a repository needs so that Ralph looks after it. Overwrites nothing unasked.

For editors and shells: `ralph schema` prints the published contracts, `ralph completion` click's script.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.shell_completion import ShellComplete, get_completion_class

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.git.remote import PUBLIC_API
from ralph_mission.adapters.projects.detection import DetectedProject, detect_project
from ralph_mission.adapters.wakers import WAKERS
from ralph_mission.cli.options import json_option, print_json, repo_option
from ralph_mission.cli.setup import files
from ralph_mission.cli.setup.choices import PRESETS, ask, preset_choices, survey
from ralph_mission.cli.setup.files import (
    Planned,
    SetupFile,
    State,
    read_text,
    refuse_differing,
    render_template,
    write_planned,
)
from ralph_mission.cli.setup.settings import plan_settings, read_within
from ralph_mission.cli.spelling import type_commands
from ralph_mission.config.reading import NAME, load
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

LOOP = files.PLACES["cycle"]
AGENTS = ("work", "review")
"""Modes in which an agent plays."""


@dataclass(frozen=True, slots=True)
class InitOptions:
    """What was asked for. `wake` None: it was not named; `usual`: the runner where nobody names one."""

    runner: str | None
    wake: str | None
    service: bool
    server: bool
    action: str | None
    units: Path | None
    agents: tuple[str, ...] = ()  # work, review, publish: workflows beside the loop
    preset: str = ""
    pull_request: bool = False
    usual: tuple[str, ...] = files.LABELS

    @property
    def has_more_options(self) -> bool:
        """Whether more was asked for than a ralph.yml: one that is there then stays as it is."""
        settings = (self.runner, self.wake, self.action, self.units)
        return self.service or self.server or bool(self.agents) or any(each is not None for each in settings)


@click.command()
@repo_option
@click.option(
    "--runner",
    metavar="LABELS",
    help="Labels of the runner; default: self-hosted in a private repository, else ubuntu-latest.",
)
@click.option("--wake", type=click.Choice(["auto", *WAKERS]), help="What starts the next cycle.")
@click.option("--service", is_flag=True, help="A systemd service for `ralph watch`, without GitHub Actions.")
@click.option("--work", is_flag=True, help="A workflow in which an agent works on labelled issues.")
@click.option("--review", is_flag=True, help="A workflow in which an agent reviews Ralph's pull requests.")
@click.option("--publish", is_flag=True, help="A workflow that publishes approved texts.")
@click.option("--action", metavar="OWNER/NAME@COMMIT", help="The action that the workflow uses.")
@click.option("--units", "folder", type=click.Path(path_type=Path), metavar="DIR", help="The folder for systemd units.")
@click.option("--server", is_flag=True, help="Units for a tunnel and a runner, and SQL for a read-only role.")
@click.option("--preset", type=click.Choice(PRESETS), help="Settings for a kind of project, with all workflows.")
@click.option("--pull-request", is_flag=True, help="Prepare a pull request; leave the checkout alone.")
@click.option("--force", is_flag=True, help="Overwrite existing files that differ.")
@json_option
def init(
    repo: Path, work: bool, review: bool, publish: bool, folder: Path | None, preset: str | None, force: bool,
    as_json: bool, **settings: Any,
) -> None:  # fmt: skip  # one option after another
    """Write a commented ralph.yml, and on GitHub the workflow that runs it."""
    git = Git.open(repo)
    top = git.work_tree
    if top is None:
        raise UserError(
            f"{repo} is bare: there is no place for {NAME}", "run it in a clone, commit and push", usage=True
        )
    agents = tuple(
        mode for mode, enabled in (("work", work), ("review", review), ("publish", publish)) if enabled or preset
    )
    units = folder.absolute() if folder else None
    options = InitOptions(**settings, units=units, agents=agents, preset=preset or "")
    if options.pull_request and (options.service or options.server or options.wake == "timer"):
        raise UserError("systemd units belong to a host, not into a pull request", "run it twice", usage=True)
    _install(git, top, options, force, as_json, repo)


def _install(git: Git, top: Path, options: InitOptions, force: bool, as_json: bool, repo: Path) -> None:
    from ralph_mission.adapters.storage.memory.recordings import keep_out_of_git

    paths, read = [name for name in git.text("ls-files", "-z").split("\0") if name], read_within(top)
    project = detect_project(paths, read)
    found = survey(paths, read, files.github_name(git).rpartition("/")[2] or top.name)
    chosen = preset_choices(options.preset, found)
    undecided = _for_github(git, options) and options.runner is None and not files.labels_in(read(LOOP))
    api = os.environ.get("GITHUB_API_URL") or PUBLIC_API
    public = files.is_public(files.github_name(git), api) if undecided else False
    if not as_json and sys.stdin.isatty() and sys.stdout.isatty() and (force or not (top / NAME).exists()):
        chosen = ask(found, project, chosen)
        if public is None:
            public = click.confirm("Is the repository public? Then its jobs run on GitHub's own runners", default=True)
        if files.github_name(git) and not options.pull_request:
            apart = click.confirm("Prepare this as a pull request, and leave the checkout as it is?", default=False)
            options = replace(options, pull_request=apart)
    options = replace(options, usual=files.LABELS if public is False else files.HOSTED)
    settings, names = plan_settings(top, options.wake, options.has_more_options, project, chosen, found)
    files_planned = [settings, *_workflows(git, top, options, project), *_units(top, options)]
    planned = [(file, file.state(top, force)) for file in files_planned]
    if not options.pull_request:  # which shows what differs
        refuse_differing(planned)
    unchanged = planned[0][1] == "kept"
    config = load((read_text(settings.place) or "") if unchanged else settings.text)
    steps = list(_steps(git, top, options, planned, config))
    notes = list(_notes(top, planned))
    keep_out_of_git(git)
    if options.pull_request:
        _prepare(git, top, planned, steps, notes, as_json)
        return
    write_planned(planned)
    if git.text("remote") and not files.github_name(git) and not _for_github(git, options):
        notes.append("no workflow is written, because no remote of this clone is on github.com")
    _tell(planned, names, config.hands.verify, steps, notes, as_json, repo)


# --- what would be written ------------------------------------------------------------


def _workflows(git: Git, top: Path, options: InitOptions, project: DetectedProject) -> Iterator[SetupFile]:
    """The loop's, those of the agents that were asked for, and with another runner or action those that are there."""
    if not _for_github(git, options):
        return
    node = files.node_version(top) if any("node" in step.needs for step in project.steps) else ""
    loop, renewed = read_text(top / LOOP) or "", options.runner is not None or options.action is not None
    for mode, name in files.PLACES.items():
        present = read_text(top / name) or ""
        action = files.action_of(options.action, present or loop)
        labels = files.labels_of(options.runner) if options.runner is not None else files.labels_in(present or loop)
        labels = labels or options.usual
        applies = mode in options.agents or (mode == "cycle") or (renewed and present)
        if action and applies:
            keep = mode == "cycle" and options.has_more_options and not renewed
            yield SetupFile(top / name, files.render_workflow(mode, action, labels, node), keep=keep)


def _for_github(git: Git, options: InitOptions) -> bool:
    """Whether a workflow is wanted: asked for, or unasked on a clone of a repository on GitHub."""
    explicit = bool(options.agents) or any(
        option is not None for option in (options.wake, options.runner, options.action)
    )
    return explicit or (not (options.service or options.server) and bool(files.github_name(git)))


def _units(top: Path, options: InitOptions) -> Iterator[SetupFile]:
    texts = _unit_texts(options)
    if texts:
        yield from (SetupFile(_folder(top, options) / name, text) for name, text in texts.items())
        yield SetupFile(top / files.ENVIRONMENT, render_template("ralph.env"), keep=True, private=True)
    if options.server:
        yield from (SetupFile(_folder(top, options) / name, text) for name, text in files.host().items())
        yield SetupFile(top / files.TUNNEL_SETTINGS, render_template("tunnel.env"), keep=True, private=True)


def _unit_texts(options: InitOptions) -> dict[str, str]:
    return {
        **(files.timer() if options.wake == "timer" else {}),
        **(files.service() if options.service else {}),
    }


def _folder(top: Path, options: InitOptions) -> Path:
    return options.units or top / files.FOLDER


# --- the summary ----------------------------------------------------------------------


def _steps(git: Git, top: Path, options: InitOptions, planned: Sequence[Planned], config: Config) -> Iterator[str]:
    """What only a person can do, one line each."""
    states = {file.place: state for file, state in planned}
    modes = {mode: states[top / name] for mode, name in files.PLACES.items() if top / name in states}
    if options.wake and config.schedule.wake != options.wake:
        yield f"in {NAME}: schedule: {{wake: {options.wake}}}"
    if options.service and config.forge.kind == "auto" and files.github_name(git):
        yield f"in {NAME}: forge: {{kind: github}}, or `ralph watch` keeps issues in files here"
    if _for_github(git, options) and "cycle" not in modes:
        yield f"{LOOP} is not written, because {files.UNKNOWN}: {files.name_action()}"
    if "cycle" in modes:
        loop = next(file.text for file, _ in planned if file.place == top / LOOP)
        if "self-hosted" in files.labels_in(loop):
            yield "Settings, Actions, Runners: register a runner of your own, which runs these jobs"
        *most, last = [NAME, *(files.PLACES[mode] for mode in modes)]
        if not options.pull_request:
            yield f"commit {', '.join(most)} and {last} to the default branch and push them"
            if ignored := _list_ignored(git, [*most, last]):
                yield f"git ignores {', '.join(ignored)}: git add -f {' '.join(ignored)}"
    if _for_github(git, options):
        yield "Settings, Actions, General: allow GitHub Actions to create and approve pull requests"
        yield from _agent_steps(top, modes, config)
    if "cycle" in modes:
        yield "Actions, ralph-loop, Run workflow with staged ticked: it shows what a cycle would do"
    yield from _unit_steps(top, options)


def _list_ignored(git: Git, names: Sequence[str]) -> list[str]:
    """Those of the files that git ignores, so that `git add` leaves them out."""
    try:
        plain = {"GIT_LITERAL_PATHSPECS": "0"}  # which this command does not know
        return git.run("check-ignore", *names, env=plain).decode("utf-8", "replace").split()
    except GitError:
        return []


def _notes(top: Path, planned: Sequence[Planned]) -> Iterator[str]:
    """What GitHub's runners cost."""
    texts = {file.place: file.text for file, state in planned if state != "kept"}
    runners = {mode: files.labels_in(texts.get(top / name, "")) for mode, name in files.PLACES.items()}
    if hosted := [mode for mode, labels in runners.items() if files.is_hosted(labels)]:
        yield files.monthly_cost(hosted)


def _agent_steps(top: Path, modes: Mapping[str, State], config: Config) -> Iterator[str]:
    for mode, state in modes.items():
        place, event = files.PLACES[mode], files.LISTENS[mode]
        if state == "kept" and event not in (read_text(top / place) or ""):
            yield f"in {place}, which is yours: listen to {event} and use the action"
    played = any(mode in modes for mode in AGENTS)
    if played and config.hands.agent is None:
        yield f"in {NAME}: hands: {{agent: {{kind: claude}}}}, or another agent that your runner has installed"
    if played:
        yield "Settings, Secrets and variables, Actions: store the key of your agent, such as ANTHROPIC_API_KEY"
    if "publish" in modes:
        yield "Settings, Secrets and variables, Actions: store the secrets of your networks, each optional"


def _unit_steps(top: Path, options: InitOptions) -> Iterator[str]:
    if options.server:
        yield from files.host_steps(_folder(top, options), top)
    if _unit_texts(options):
        yield f"write the credentials into {top / files.ENVIRONMENT}"
    for enabled, texts in ((options.wake == "timer", files.timer), (options.service, files.service)):
        if enabled:
            yield from files.commands(texts(), _folder(top, options), top)
    if options.server or _unit_texts(options):
        yield "to keep them running after logout: loginctl enable-linger"


def _prepare(
    git: Git, top: Path, planned: Sequence[Planned], steps: Sequence[str], notes: Sequence[str], as_json: bool
) -> None:
    from ralph_mission.cli.setup.onboarding import prepare_pull_request

    texts = {file.place.relative_to(top).as_posix(): file.text for file, state in planned if state not in DONE}
    if not texts:
        raise UserError("everything exists already", "to see what is missing, if anything: ralph doctor")
    if not as_json:
        click.echo("looking at what a first cycle would do …", err=True)  # minutes if checks run
    prepared = prepare_pull_request(git, top, texts, steps)
    if as_json:
        files_now = [{"path": str(file.place), "state": state} for file, state in planned]
        print_json(
            {
                "branch": prepared.branch,
                "commit": prepared.commit,
                "text": str(prepared.text),
                "files": files_now,
                "steps": list(prepared.steps),
                "notes": list(notes),
            }
        )
        return
    click.echo(f"committed {', '.join(texts)} to the branch {prepared.branch}; the checkout is as it was")
    click.echo(f"wrote {prepared.text}: what the first cycle would do, as the text of the pull request")
    for note in notes:
        click.echo(f"note: {note}")
    for step in prepared.steps:
        click.echo(f"next: {step}")


DONE: tuple[State, ...] = ("unchanged", "kept")


def _tell(
    planned: Sequence[Planned],
    names: Sequence[str],
    checks: Sequence[str],
    steps: Sequence[str],
    notes: Sequence[str],
    as_json: bool,
    repo: Path,
) -> None:
    settings, state = planned[0]
    wrote = str(settings.place) if state in ("new", "replaced") else None
    if as_json:
        listed = [{"path": str(file.place), "state": state} for file, state in planned]
        print_json({"wrote": wrote, "commands": names, "files": listed, "steps": steps, "notes": notes})
        return
    for file, state in planned:
        click.echo(LINES[state].format(file.place))
    if wrote:
        untried = " (not tried)" if checks else ""
        click.echo(f"must pass before a change is proposed (hands.verify): {'; '.join(checks) or 'nothing'}{untried}")
        if names:
            click.echo(f"your own checks, whose findings are reported (observers.commands): {', '.join(names)}")
    click.echo("/.ralph/ is listed in .git/info/exclude: Ralph's working files stay out of git")
    for note in notes:
        click.echo(type_commands(f"note: {note}", repo))
    for step in steps:
        click.echo(type_commands(f"to do: {step}", repo))
    click.echo(type_commands("next: ralph doctor\nthen: ralph cycle --staged", repo))


LINES: Mapping[State, str] = {
    "new": "wrote {}",
    "replaced": "rewrote {}",
    "unchanged": "unchanged {}",
    "kept": "kept {}: it is yours",
}


SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    For bash: ralph completion bash >> ~/.bash_completion
    """
    completer = get_completion_class(shell)
    assert completer is not None, "click knows every shell of SHELLS"
    # The base class's method: bash's own starts a bash first, only to ask for its version.
    click.echo(ShellComplete.source(completer(context.find_root().command, {}, "ralph", "_RALPH_COMPLETE")))


@click.command()
@click.argument("name", type=click.Choice(["config", "cycle-report"]))
def schema(name: str) -> None:
    """Print the JSON Schema of ralph.yml (config) or of `ralph cycle --json` (cycle-report)."""
    if name == "config":
        from ralph_mission.config import reading

        print_json(reading.schema())
    else:
        from ralph_mission.adapters.report import summary

        print_json(summary.schema())
