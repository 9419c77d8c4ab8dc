"""The composition root of a loop: from options and settings to a spec and its ports."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ralph_mission.adapters import files
from ralph_mission.adapters.fixers.verify import known_red
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import acts_on_github, read_shared
from ralph_mission.adapters.projects.setup import NOTHING, LentSetup, ProjectSetup, lent_environment
from ralph_mission.adapters.sandbox.excerpt import NOT_SET_UP
from ralph_mission.adapters.sandbox.isolation import Found, describe_level
from ralph_mission.adapters.storage.loop import archive, lock, state
from ralph_mission.adapters.storage.loop.events import EventLog
from ralph_mission.adapters.storage.loop.notes import ProgressLog
from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.adapters.storage.memory.recordings import keep_out_of_git
from ralph_mission.adapters.workspace.land import User
from ralph_mission.adapters.workspace.workplace import Workspace
from ralph_mission.app import hosting, workplaces
from ralph_mission.app.run_options import ISSUE_PRESET, RunOptions, follows, read_stories, resolve_run
from ralph_mission.app.secrets import ControlFiles, environment_secrets, require_unaltered
from ralph_mission.config.reading import read
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.loop import cost
from ralph_mission.loop.model.spec import HoldOrder, RunEvent, RunResult, RunSpec
from ralph_mission.loop.model.state import AgentTurn, Prd, Session, UserStory
from ralph_mission.loop.ports import Agent, RunPorts, RunProgress, Workplace
from ralph_mission.loop.stories.lint import is_ui
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.agents.client import CommandAgent, Login

MODEL_KEYS = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY",
)  # fmt: skip  # one list
"""The variables of our environment that a program of one's own may see, besides a path. A known agent sees its own."""
CLONE, TOOLS = ".ralph/workspace/tree", ".ralph/tools"
"""The folder below the checkout where sessions run, which stays for later runs with git-ignored build results; in it,
the set-up's results besides packages."""
HOW = "name a program with --command CMD, or an agent with --agent NAME or hands: {agent: {kind: …}} in ralph.yml"
HOW_HAT = "name one of docs/agents.md, such as claude, codex or acp:gemini"
NEW = "no run of this objective is left to continue (a cancelled one is not): a new one starts"
OUTPUT_LENGTH = 300  # characters of a failed check's output
POLL_SECONDS, SLOW_POLL_SECONDS, LONG = 0.1, 0.5, 30.0
"""Seconds between two polls for the end of a pause, and the length from which the second is used."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Everything for one run. `notes`: for the person, such as settings without effect.

    `after`: shown at the end: where the work is, and how to get it here. `control_files`: the files that the spec
    comes from; `began_with`: their contents. `isolation`: how far sessions are isolated.
    """

    spec: RunSpec
    ports: RunPorts
    store: FileRunStore
    root: Path
    control_files: ControlFiles
    began_with: Mapping[Path, bytes | None]
    notes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    isolation: str = ""
    project: ProjectTools | None = None

    def unaltered(self) -> None:
        """Raises UserError if the spec's files changed: no restart uses them unseen."""
        require_unaltered(self.control_files, self.began_with)


SCRIPTED = "scripted"
"""The agent of a simulation, in a repository of its own."""


def build_run(
    options: RunOptions,
    progress: RunProgress,
    planned: Path | None = None,
    order: Callable[[], HoldOrder] | None = None,
) -> RunSetup:
    """The spec and the ports of one run; it only creates a work tree. Raises UserError for invalid options.

    `planned`: the work tree where the first part of this run has just written its stories. `order`: who may end it
    between sessions, if not the progress' watcher alone.
    """
    git, root = workplaces.open_checkout(options.repo)
    keep_out_of_git(git)
    settings = read(git, read_shared, options.config)
    found = _find_level(options, settings)
    options = replace(options, go_on=True) if planned else options
    if not options.for_job and options.agent != SCRIPTED:
        workplaces.require_committed(git, root, _choose_agent(options, settings)[1])
    apart = options.worktree
    if apart and (previous := _left_worktree(options, git)):
        options, (git, root) = replace(options, worktree=False), workplaces.open_checkout(previous)
    prd = read_stories(options, root)
    ordered = resolve_run(options, settings, root, prd)
    spec, began_with = ordered.spec, ordered.control_files.read()
    if options.worktree:
        here, named = root, options.prd_file.resolve() if options.prd_file else None
        git, root = workplaces.open_worktree(git, here, prd.branch if prd else "", spec.objective, named)
        if named and named.is_relative_to(here):
            options = replace(options, prd_file=root / named.relative_to(here))
    project = ProjectTools.of(options, settings, git, root, progress.note)
    by_hats = tuple(dict.fromkeys(hat.agent for hat in spec.hats if hat.agent))
    if not options.for_job:
        _require_agents(options, settings, by_hats, found, progress.note)
    agent = agent_of(
        options, settings, git, root, spec.model, found, root / CLONE, project.environment, progress.agent, by_hats
    )
    store, workplace = _store_and_place(
        options,
        settings,
        git,
        root,
        prd,
        ordered.exempt,
        planned,
        found,
        project,
        order or progress.watch.current_order,
    )
    ports = RunPorts(agent, workplace, store, PausingClock(), progress, environment_secrets())
    after = (workplaces.describe_worktree(git, root),) if apart else ()
    notes = (*settings.warnings, *ordered.doubts)
    if options.go_on and not planned and not options.for_job and not follows(root, spec.objective):
        progress.note(NEW)
    progress.note(f"isolation: {describe_level(found)}")
    if login := _find_login(options, settings) if found.level == "env" else None:
        progress.note(f"the agent uses your login in {login[1]}, which whatever it runs can read")
    if not (options.verify or settings.hands.verify or options.for_job or options.agent == SCRIPTED):
        advice = _suggest_check(project.setup, git.resolve("HEAD"), by_file=options.preset == ISSUE_PRESET)
        progress.note(f"no check verifies this run; {advice}")
    return RunSetup(
        spec, ports, store, root, ordered.control_files, began_with, notes, after, describe_level(found), project
    )


def describe_work(setup: RunSetup, account: RunResult) -> Iterator[str]:
    """The work of this process's sessions, its record, and how to view it."""
    git = Git.open(setup.root)
    passed = [story for output in account.outputs for story in output.passed]
    made_here = [commit for output in account.outputs for commit in output.commits]
    if passed:
        yield f"passed: {', '.join(passed)}"
    if made_here:
        first, last = made_here[0].hash, made_here[-1].hash
        count = f"{len(made_here)} commit{'s'[: len(made_here) != 1]}"
        stat = git.try_text("diff", "--shortstat", f"{first}~1", last).strip()
        branch = git.try_text("symbolic-ref", "--short", "HEAD").strip() or "a detached HEAD"
        yield f"on {branch}: {', '.join(filter(None, (count, stat)))}; show: git log -p {first[:10]}~1..{last[:10]}"
    if account.outputs:
        yield f"records: {(setup.root / state.RUNS / account.state.run_id).relative_to(setup.root)}, live: ralph logs"


def _suggest_check(setup: ProjectSetup, commit: str, by_file: bool) -> str:
    """`by_file`: the command has no option for it."""
    checks = setup.detect(commit).checks if commit else ()
    found = [check.line for check in checks if check.name == "test"]
    option = "hands.verify in ralph.yml, " if by_file else "--verify "
    if found:
        return f"this repository has one: {option}{shlex.quote(found[0])}"
    return f"give one with {'hands.verify in ralph.yml' if by_file else '--verify CMD'}"


def _left_worktree(options: RunOptions, git: Git) -> Path | None:
    """The linked work tree whose run is to be continued, if the options name none."""
    named = options.task or options.prompt_file or options.prd or options.prd_file
    return workplaces.find_newest_worktree(git, state.STATE) if options.go_on and not named else None


@dataclass(frozen=True, slots=True)
class ProjectTools:
    """What the project's set-up lends to a run's clone; `environment` is empty if there is nothing to lend."""

    setup: ProjectSetup
    clone: Path
    environment: Mapping[str, str]
    note: Callable[[str], None]

    def lend_apart(self, folder: Path, commit: str) -> LentSetup:
        """Lend it to another clone of `commit` at `folder` too."""
        try:
            return self.setup.lend(commit, folder, folder / TOOLS) if self.environment else NOTHING
        except UserError as problem:
            self.note(f"{problem.what}; sessions begin without it")
            return NOTHING

    @classmethod
    def of(
        cls, options: RunOptions, settings: Config, git: Git, root: Path, note: Callable[[str], None]
    ) -> ProjectTools:
        """The tools of a run in the checkout at `root`."""
        setup = workplaces.project_setup(settings, git, options.setup or git.state_dir / "setup", note)
        if not options.setup:
            setup.forget_failures()  # a person began this run, perhaps as what was missing is here now
        needed = setup.needed(git.resolve("HEAD"))
        return cls(setup, root / CLONE, lent_environment(root / CLONE, root / CLONE / TOOLS) if needed else {}, note)

    def lend(self, git: Git, required: bool) -> LentSetup:
        """Raises UserError if the set-up fails and checks are `required`: no session could make them pass."""
        if required and self.environment:
            return self.setup.lend(git.resolve("HEAD"), self.clone, self.clone / TOOLS)
        return self.lend_apart(self.clone, git.resolve("HEAD"))


def _store_and_place(
    options: RunOptions, settings: Config, git: Git, root: Path, prd: Prd | None, exempt: tuple[str, ...],
    planned: Path | None, found: Found, project: ProjectTools, hold_order: Callable[[], HoldOrder],
) -> tuple[FileRunStore, Workplace]:  # fmt: skip  # as one reads it
    checks = options.verify or settings.hands.verify
    if options.require_tests and not checks:
        raise UserError("--require-tests needs a check", "give --verify CMD, or hands: {verify: […]}", usage=True)
    clone = root / CLONE
    workplace = Workspace(
        git, clone, checks, settings.hands.verify_timeout,
        lambda: _browser_check(settings.loop.browser_check, store.item()), workplaces.checks_sandbox(found, git, clone),
        no_agent_settings=options.for_job, lists=lambda: store.paths.engine_files, shared=root / ".ralph",
        environment=project.environment, known=known_red(options.red),
    )  # fmt: skip  # one call

    def ready(spec: RunSpec) -> None:
        exempt_paths = (*exempt, *store.paths.engine_files)
        workplace.undo_cut_off()
        for path in exempt_paths:
            files.remove_drafts(root / path)
        workplaces.settle_branch(git, prd.branch if prd else "", exempt_paths, project.note)
        if planned and prd:
            _take_over(options, planned, root, prd)
        workplace.prepare()
        workplace.exclude(project.lend(git, required=bool(checks)).names)
        if not options.for_job and not (settings.hands.agent and settings.hands.agent.fallback):
            workplaces.require_program(_choose_agent(options, settings)[1], project.environment.get("PATH"))
        if checks and not options.for_job and not options.go_on:
            _look_at_base(settings, git, checks, project.note)

    store = FileRunStore(
        root, git.git_dir, workplace.tree, PausingClock().now, go_on=options.go_on,
        archive_previous=options.archive_previous, restarts=not options.for_job, ready=ready,
        prd=options.prd_file.absolute() if options.prd_file else None, owner=lock.place(os.getpid()), clone=clone,
        hold=hold_order, news=(partial(_look_at_files, git, root), partial(_look_at_issues, git, options.config)),
    )  # fmt: skip  # one call
    return store, workplace


def _look_at_files(git: Git, root: Path) -> str:
    """The commit and uncommitted changes, as a text that only changes with them."""
    status = git.try_text("status", "--porcelain", "-z")
    stamps = []
    for entry in status.split("\0"):
        with suppress(OSError):
            found = (root / entry[3:]).lstat()
            stamps.append((found.st_size, found.st_mtime_ns))
    return repr((git.resolve("HEAD"), status, stamps))


def _look_at_issues(git: Git, config: Path | None) -> str:
    """The open issues, as a text that only changes with them. Raises UserError if unavailable."""
    from ralph_mission.app.hosting import choose_hosting

    forge = choose_hosting(git, config, "auto", hosting.SystemClock(), hosting.QuietProgress()).forge
    return repr([(issue.number, issue.title, sorted(issue.labels), issue.updated_at) for issue in forge.issues()])


def _look_at_base(settings: Config, git: Git, checks: tuple[str, ...], note: Callable[[str], None]) -> None:
    """Report checks that fail before the first session: they still have to pass, as a person gave them to this run.
    Raises UserError if packages are missing, which no session can install."""
    with tempfile.TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as scratch:
        base = workplaces.check_runner(settings, git, checks, note).base(git.resolve("HEAD"), scratch)
    for check in base.red:
        if check.broken.startswith(NOT_SET_UP) and settings.hands.setup != ():
            raise UserError(f"`{check.command}`: {check.broken}", "give the commands in hands.setup, or [] for none")
        note(f"red before the first session: `{check.command}`: {' '.join(check.said.split())[:OUTPUT_LENGTH]}")


def _take_over(options: RunOptions, planned: Path, root: Path, prd: Prd) -> None:
    """The start of a run with stories, for a run that began by writing them."""
    now, stories = PausingClock().now, Stories(root)
    if options.archive_previous:
        archive.turn(stories, ProgressLog(stories.folder, root), prd, now())
    if planned != root and (begun := state.load(planned)):
        archive.archive_run(root, state.rescue(root)[0], EventLog(root / ".ralph", now), now())
        state.save(root, begun)
        (planned / state.STATE).unlink()


def _browser_check(check: str | None, story: UserStory | None) -> tuple[str, ...]:
    """The extra check that a user interface story must pass."""
    return (check,) if check and story and is_ui(story) else ()


# --- who plays -----------------------------------------------------------------------


def _find_login(options: RunOptions, settings: Config) -> tuple[Login, Path] | None:
    """The login of a person for the requested agent, and its folder, if no key of it is set."""
    from ralph_mission.adapters.agents.clients import find_client, find_login, is_client

    try:
        name, command = _choose_agent(options, settings)
    except UserError:
        return None  # reported when the agent is built
    client = find_client(name, workplaces.split_command(command)) if is_client(name) else None
    place = find_login(client, os.environ) if client else None
    return (client.login, place) if client and client.login and place else None


def _find_level(options: RunOptions, settings: Config) -> Found:
    """The level of the settings; if they name none and there is only a person's login, one that sees it."""
    found, choice = workplaces.agent_level(settings), settings.hands.agent
    unasked = choice is None or choice.sandbox is None
    if found.level == "bwrap" and unasked and not acts_on_github(os.environ):
        login = _find_login(options, settings)
        return Found("env", lacking=login[0].token, wrap=found.wrap) if login else found
    return found


def agent_of(
    options: RunOptions, settings: Config, git: Git, root: Path, model: str, found: Found, clone: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}), tell: Callable[[Session, RunEvent], None] | None = None,
    named_by_hats: tuple[str, ...] = (),
) -> Agent:  # fmt: skip  # as one reads it
    """The agent for the work tree `root` of `git`, or its `clone`, isolated by `found`, with additions to its
    `environment`; `tell` receives its steps. Raises UserError if no agent is named."""
    from ralph_mission.adapters.agents.client import CommandAgent
    from ralph_mission.adapters.agents.clients import FallbackAgent, HatAgents
    from ralph_mission.adapters.agents.scripted import ScriptedAgent, load

    name, command = _choose_agent(options, settings)
    choice = settings.hands.agent
    env = {**environment, "RALPH_OWNER": lock.place(os.getpid())}
    if clone:
        env["GIT_CEILING_DIRECTORIES"] = str(clone.parent)  # without its `.git` it is not part of the parent repository
    player = CommandAgent(
        command, clone or root, root / ".ralph/loop/home", MODEL_KEYS, env,
        identity=User.of(git).identity, trusted=choice is not None and choice.trust, tell=tell,
    )  # fmt: skip  # one call

    def sandbox_for(player: CommandAgent) -> CommandAgent:
        sandbox = workplaces.agent_sandbox(found, git, player.allow, player.command, clone)
        return replace(player, sandbox=workplaces.sharing(sandbox, root / ".ralph") if clone else sandbox)

    if name == SCRIPTED:
        agent: Agent = ScriptedAgent(load(Path(str(command))), sandbox_for(player), root / ".ralph/loop/calls.json")
    else:
        others = () if choice is None else choice.fallback
        named = ((name, command), *((other, "") for other in others if other != name))
        every = tuple(sandbox_for(_make_agent(player, *one, found.level)) for one in named)
        agent = FallbackAgent(every) if others else every[0]
    prices = {model: price.model_dump() for model, price in settings.cost.prices.items()}
    agent = PricedAgent(agent, prices, model) if prices else agent
    more = {other: sandbox_for(_make_agent(player, other, "", found.level)) for other in named_by_hats}
    return HatAgents(agent, more) if more else agent


def _require_agents(
    options: RunOptions, settings: Config, named: tuple[str, ...], found: Found, note: Callable[[str], None]
) -> None:
    """Check before the first session that all agents are installed and can reach a model, as far as possible.

    A custom program may bring its own key. Raises UserError if no agent can run.
    """
    from ralph_mission.adapters.agents.clients import find_client, is_client, presence

    name, command = _choose_agent(options, settings)
    choice = settings.hands.agent
    usual = [name, *(choice.fallback if choice else ())] if is_client(name) and not command else []
    with tempfile.TemporaryDirectory(prefix="ralph-") as home:

        def lacking(agent: str) -> UserError | None:
            client = find_client(agent)
            there = presence(client, Path(home))
            if not there.version:
                return UserError(f"{agent} is not installed here, or does not start", there.install)
            keyed = there.key or any(os.environ.get(name) for name in client.endpoints)  # a server of one's own
            if client.keys and not keyed and not (there.login and found.level == "env"):
                how = f"{client.login.how}, or " if client.login and not there.login else ""
                return UserError(f"{agent} has no key here", f"{how}set {' or '.join(client.keys)}")
            return None

        problems = [(agent, problem) for agent in usual if (problem := lacking(agent))]
        for _, problem in problems[: len(usual) - 1]:
            note(f"{problem.what} ({problem.next_step}); another takes over")
        if usual and len(problems) == len(usual):
            raise problems[0][1]
        for agent in named:
            if not is_client(agent):
                raise UserError(f"a hat names the agent {agent}, which is not known", HOW_HAT, usage=True)
            if problem := lacking(agent):
                raise UserError(f"a hat names {agent}: {problem.what}", problem.next_step)


def _make_agent(player: CommandAgent, name: str, command: tuple[str, ...] | str, level: str) -> CommandAgent:
    """The agent as one of the known kinds; it only sees that kind's keys and, without keys, at the `level` env, a
    person's login."""
    from ralph_mission.adapters.agents.clients import find_client, find_login

    if name == "command":
        return player
    try:
        words = tuple(shlex.split(command)) if isinstance(command, str) else command
    except ValueError as error:
        what = f"the command of {name} cannot be read: {error}"
        raise UserError(what, "fix its quotation marks", usage=True) from None
    client = find_client(name, words)
    login = find_login(client, os.environ) if level == "env" else None
    env = {**player.extra_env, client.login.variable: str(login)} if client.login and login else player.extra_env
    variables = (*client.keys, *client.endpoints) or player.allow
    return replace(player, command=client.program, allow=variables, client=client, name=name, extra_env=env)


def _choose_agent(options: RunOptions, settings: Config) -> tuple[str, tuple[str, ...] | str]:
    """The agent's name and command: from the command line, else our setting in ralph.yml, else ralph-orchestrator's."""
    from ralph_mission.adapters.agents.clients import ACP_CLIENTS, CLIENTS, is_client

    choice, cli = settings.hands.agent, settings.cli
    name = options.agent or ("command" if options.command else choice.kind if choice else cli.backend)
    if name == "custom" or (name == "command" and not options.command and not (choice and choice.run)):
        name, command = "command", _custom(settings)
    else:
        command = options.command or (choice.run if choice and choice.kind == name else "")
    known = ("command", "scripted", "acp", *CLIENTS, *ACP_CLIENTS)
    if name not in known:
        what = f"the agent {name} is not one of {', '.join(known)}" if name else "no agent is named"
        raise UserError(what, HOW, usage=True)
    if strange := [one for one in (choice.fallback if choice else ()) if not is_client(one)]:
        what = f"hands.agent.fallback: {strange[0]} is not one of {', '.join(CLIENTS)}"
        raise UserError(what, "fix ralph.yml", usage=True)
    if not command and not is_client(name):
        raise UserError(f"the agent {name} has no program to run", HOW, usage=True)
    return name, command


def _custom(settings: Config) -> tuple[str, ...] | str:
    """ralph-orchestrator's custom agent."""
    return (settings.cli.command, *settings.cli.args) if settings.cli.command else ""


@dataclass(frozen=True, slots=True)
class PricedAgent:
    """An agent whose tokens are priced if it reports no cost."""

    agent: Agent
    prices: cost.Prices
    model: str

    @property
    def name(self) -> str:
        """The agent's own."""
        return self.agent.name

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session."""
        turn = self.agent.play(session, stopped)
        usage = turn.usage
        priced = usage.cost_usd is not None or not (usage.input_tokens or usage.output_tokens)
        if priced or turn.agent not in ("", self.agent.name):  # another agent took over, with its own model
            return turn
        return replace(turn, usage=replace(usage, cost_usd=cost.price(usage, session.model, self.prices)))


class PausingClock(hosting.SystemClock):
    """The real time, and real pauses."""

    def sleep(self, seconds: float, until: Callable[[], bool]) -> None:
        """Wait at most `seconds`; return once `until` is true (polled at least twice a second)."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0 and not until():
            time.sleep(min(remaining, POLL_SECONDS if seconds < LONG else SLOW_POLL_SECONDS))
