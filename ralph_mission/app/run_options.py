"""The options of `ralph run`, before resolution, and their combination with stories.

From options and settings to a `ResolvedRun`: the command line wins, then ralph.yml, then the preset.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters.storage.loop import lock, run_files, state
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.adapters.storage.memory.codec import UnreadableDocument
from ralph_mission.app.secrets import ControlFiles
from ralph_mission.config.loop import HatKeys
from ralph_mission.config.reading import NAME
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.loop import hats, planning
from ralph_mission.loop.model.spec import LoopPreset, RunLimits, RunSpec
from ralph_mission.loop.model.state import RESUME, START, Hat, LoopEvent, Prd, RunState
from ralph_mission.loop.rules import routing, verdicts
from ralph_mission.loop.stories import lint
from ralph_mission.mission.model.agent_job import RedCheck
from ralph_mission.values import dataclass

ISSUE_PRESET = "issue"  # that of an agent on an issue or a mission, whose command has no option for checks


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One command line. Empty texts, None and () mean: as in the settings or the preset.

    `planning`: the stories of the task are written first. `restarted`: this process replaces one that was asked to
    restart. `for_job`: for an issue or a mission, in a clone: sessions cannot restart it, nor write agents'
    configuration. `setup`: the folder of the project's set-ups. `scope`: globs of the only files that sessions may
    change. `red`: checks that may keep failing. `parallel`: the number of simultaneous stories.
    """

    repo: Path = Path()
    config: Path | None = None
    task: str = ""
    prompt_file: Path | None = None
    prd: bool = False
    prd_file: Path | None = None
    preset: str = ""  # the pattern whose limits and habits count, if not `pattern`'s own
    pattern: str = ""
    agent: str = ""
    command: str = ""
    model: str = ""
    iterations: int | None = None
    runtime: float | None = None
    usd: float | None = None
    go_on: bool = False
    worktree: bool = False
    verify: tuple[str, ...] = ()
    require_tests: bool = False
    single_story: bool = False
    archive_previous: bool = True
    build: bool = False
    planning: bool = False
    restarted: bool = False
    for_job: bool = False
    parallel: int = 1
    setup: Path | None = None
    scope: tuple[str, ...] | None = None
    red: tuple[RedCheck, ...] = ()

    @property
    def stories(self) -> bool:
        """Whether stories are requested explicitly: without them there is nothing to do."""
        return self.prd or self.prd_file is not None or self.preset == "prd"


def resolve_options(options: RunOptions) -> RunOptions:
    """The same, where `pattern` may name one without hats. Raises UserError (usage) for two of those, and for an empty
    check."""
    if not all(check.strip() for check in options.verify):
        raise UserError("--verify is empty", "give it a command, or leave it out", usage=True)
    name = options.pattern.strip().lower()
    if name not in hats.WITHOUT_HATS:
        return options
    if options.preset not in ("", name):
        raise UserError(f"--pattern {name} and --preset {options.preset} differ", "leave --preset out", usage=True)
    return replace(options, preset=name, pattern="")


def read_stories(options: RunOptions, root: Path) -> Prd | None:
    """The stories of this run, None in free form. Raises UserError (usage) if unavailable.

    The preset `fresh` uses stories if it finds any.
    """
    going_on = (options.go_on or options.restarted) and left_state(root) is not None
    stories = Stories(root, options.prd_file.absolute() if options.prd_file else None, going_on=going_on)
    if options.planning or (not options.stories and (options.preset != "fresh" or stories.find() is None)):
        return None
    prd = stories.read()
    if prd is None or not prd.stories:
        name = options.prd_file or "prd.json"
        none = f"{name} holds no stories" if prd else f"there is no {name}"
        what = stories.complaint or none
        raise UserError(what, "correct it" if stories.complaint else "write one: ralph plan TASK", usage=True)
    return prd


def needs_planning(options: RunOptions, root: Path) -> bool:
    """Whether a planner has to write the stories of this task first, or resume."""
    if not (options.prd and options.task and options.prd_file is None):
        return False
    return Stories(root).find() is None or left_planning(options, root)


def left_planning(options: RunOptions, root: Path) -> bool:
    """Whether the run to be continued, or restarted, was interrupted while its stories were written."""
    previous = left_state(root) if options.go_on or options.restarted else None
    return previous is not None and previous.kind == planning.KIND and previous.objective == options.task


def recall_planning(options: RunOptions, root: Path) -> RunOptions:
    """The same; if no task is named and a planning is to be continued, with its task."""
    named = options.task or options.prompt_file or options.prd_file or options.pattern or options.preset
    previous = left_state(root) if options.go_on and not named else None
    return (
        replace(options, task=previous.objective, prd=True) if previous and previous.kind == planning.KIND else options
    )


def follows(root: Path, objective: str) -> bool:
    """Whether a run of this objective was left here, ours or another tool's."""
    left = left_state(root) or lock.left_by_others(root)
    return left is not None and left.objective == objective


def left_state(root: Path) -> RunState | None:
    """The state of the run that was left here, if it can be read."""
    try:
        return state.load(root)
    except (UnreadableDocument, UserError):
        return None  # reported when the run begins


LONGEST = 200_000  # bytes of an objective: it is in every prompt


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """The spec, the paths besides the engine's own that may be uncommitted at the start, doubts about its hats, and its
    source files."""

    spec: RunSpec
    exempt: tuple[str, ...]
    doubts: tuple[str, ...]
    control_files: ControlFiles


def resolve_run(options: RunOptions, settings: Config, root: Path, prd: Prd | None) -> ResolvedRun:
    """The run. Raises UserError (usage) for invalid options."""
    objective, prompt = _objective(options, settings, root, prd)
    worn = _hats(options, settings, root)
    preset = _preset(options, settings, tuple(hat for hat, _ in worn), prd)
    control_files = _control_files(options, settings, root, "" if options.task or prd else prompt)
    spec = RunSpec(
        objective,
        preset,
        options.model or (settings.hands.agent.model if settings.hands.agent else ""),
        threshold=_threshold(_kind(options, preset), settings, root),
        open_tasks=settings.completion.open_tasks,
        persistent=settings.event_loop.persistent,
        cooldown=settings.event_loop.cooldown_delay_seconds,
        memory_budget=settings.memories.characters(RunSpec(objective, preset).memory_budget),
        single_story=options.single_story,
        require_checks=options.require_tests,
        require_change=not options.for_job,
        required_events=settings.event_loop.required_events,
        kind=_kind(options, preset),
        protected=control_files.globs,
        scope=options.scope,
        no_agent_settings=options.for_job,
    )
    doubts = (*(warning for _, warnings in worn for warning in warnings), *_find_doubts(options, spec, prd))
    named = options.prd_file.absolute() if options.prd_file else None
    folder = _inside(Stories(root, named).folder / "archive", root)
    exempt = (prompt, NAME, f"{folder}/" if folder else "", _inside(named, root))
    return ResolvedRun(spec, tuple(filter(None, exempt)), doubts, control_files)


def _control_files(options: RunOptions, settings: Config, root: Path, prompt: str) -> ControlFiles:
    """The spec's files, `prompt` only if it holds the objective."""
    named = (
        root / NAME,
        *([options.config.absolute()] if options.config else []),
        *([root / prompt] if prompt else []),
    )
    return ControlFiles(root, named, (settings.loop.hats or "").lstrip("/"))


def _inside(path: Path | None, root: Path) -> str:
    """The path in git's form, "" outside the work tree."""
    return path.relative_to(root).as_posix() if path and path.is_relative_to(root) else ""


# --- what is wanted ------------------------------------------------------------------


def _objective(options: RunOptions, settings: Config, root: Path, prd: Prd | None) -> tuple[str, str]:
    """The objective, and its file ("" for none)."""
    if options.task and options.prompt_file:
        raise UserError("there are two tasks: in words and in a file", "give one of them", usage=True)
    named = (options.prompt_file or root / settings.event_loop.prompt_file).absolute()
    place = _inside(named, root)
    if options.task:
        return options.task, place
    if options.prompt_file:
        return _text(named, None), place
    found = _left_objective(options, root, prd) or (_of_stories(prd) if prd else "")
    if not found and named.exists():
        found = _text(named, root if Path(os.path.normpath(named)).is_relative_to(root) else None)
    if not found.strip():
        raise UserError("there is no task", "give one: ralph run TASK, -P FILE, or write PROMPT.md", usage=True)
    return found, place


def _left_objective(options: RunOptions, root: Path, prd: Prd | None) -> str:
    """The objective of the run to be continued: in free form it is that run's own."""
    if not options.go_on:
        return ""
    try:
        ours = state.load(root)
    except UnreadableDocument:
        ours = None  # reported when the run begins
    if ours and prd:
        return ""
    left = ours or lock.left_by_others(root)
    return left.objective if left else ""


def _of_stories(prd: Prd) -> str:
    return ": ".join(filter(None, (prd.project, prd.description))) or "Make every story of prd.json pass."


def _text(path: Path, top: Path | None) -> str:
    """The text of a named file, or of one in the work tree `top`, without following links out of it."""
    content = run_files.read(path, LONGEST, top) if top else run_files.read_named(path, LONGEST)
    if content is None or not content.strip():
        wrong = "is not there" if content is None else "is empty"
        raise UserError(f"{path} {wrong}", "write the task into it", usage=True)
    return content.decode("utf-8-sig", errors="replace")


# --- how it is gone about ------------------------------------------------------------


def _preset(options: RunOptions, settings: Config, worn: tuple[Hat, ...], prd: Prd | None) -> LoopPreset:
    usual = "prd" if prd or options.prd else "hats" if worn else "loop"
    preset, loop = hats.find_preset(options.preset or usual), settings.event_loop
    limits = hats.PERSISTENT if loop.persistent else preset.limits
    return replace(
        preset,
        limits=_limits(options, settings, limits),
        promise=loop.completion_promise.strip() or preset.promise,
        stories=prd is not None,
        hats=worn or preset.hats,
    )


def _limits(options: RunOptions, settings: Config, usual: RunLimits) -> RunLimits:
    loop = settings.event_loop

    def first(*values: float | None) -> float | None:
        return next((value for value in values if value is not None), None)

    return replace(
        usual,
        iterations=int(first(options.iterations, loop.max_iterations, usual.iterations) or 1),
        runtime=first(options.runtime, loop.max_runtime_seconds, usual.runtime) or usual.runtime,
        usd=first(options.usd, loop.max_cost_usd, usual.usd),
        unpriced=usual.unpriced and first(options.usd, loop.max_cost_usd) is None,
        failures=min(usual.failures or 1, loop.max_consecutive_failures or usual.failures or 1),
        stuck=settings.loop.stuck,
    )


def _hats(options: RunOptions, settings: Config, root: Path) -> tuple[hats.Found, ...]:
    """The pattern's hats, or those of hat files and of ralph.yml, with doubts; for equal names the last one counts."""
    usual = hats.find_pattern(options.pattern).hats if options.pattern else ()
    # The settings' own warnings cover meaningless keys of ralph.yml.
    named = () if options.pattern else tuple(_hat(name, keys, settings) for name, keys in settings.hats.items())
    every: tuple[hats.Found, ...] = (
        *((hat, ()) for hat in usual), *_in_files(settings, root), *((hat, ()) for hat in named),
    )  # fmt: skip  # one list
    every = tuple(_with_backend(options, settings, hat, doubts) for hat, doubts in every)
    worn = tuple({hat.name: (_with_guardrails(hat, settings), doubts) for hat, doubts in every}.values())
    return _with_resume(worn) if settings.event_loop.persistent else worn


def _with_backend(options: RunOptions, settings: Config, hat: Hat, doubts: tuple[str, ...]) -> hats.Found:
    """The hat with the agent of ralph-orchestrator's `backend`, if it names none itself."""
    from ralph_mission.adapters.agents.clients import find_client, is_client

    keys, choice = settings.hats.get(hat.name), settings.hands.agent
    backend = keys.backend if keys and not hat.agent else None
    if not backend:
        return hat, doubts
    named = backend.get("type") if isinstance(backend, dict) else backend
    if isinstance(backend, dict) and backend.get("command"):
        return hat, (*doubts, f"hats.{hat.name}.backend is a program of its own: the run's agent is used")
    if named == (options.agent or ("command" if options.command else choice.kind if choice else settings.cli.backend)):
        return hat, doubts
    if not isinstance(named, str) or not is_client(named):
        return hat, (*doubts, f"hats.{hat.name}.backend is not known here: the run's agent is used")
    if not shutil.which(find_client(named).program[0]):
        return hat, (*doubts, f"{named}, the backend of {hat.name}, is not installed: the run's agent is used")
    return replace(hat, agent=named), doubts


def _with_resume(worn: tuple[hats.Found, ...]) -> tuple[hats.Found, ...]:
    """The starting hat resumes a persistent loop, if no hat is declared to."""
    known = [hat for hat, _ in worn]
    first = routing.find_hat(known, LoopEvent(START))
    if first is None or routing.find_hat(known, LoopEvent(RESUME)):
        return worn
    doubt = f"{first.name} listens to {RESUME} too, as no hat does"
    return tuple(
        (replace(hat, triggers=(*hat.triggers, RESUME)), (*doubts, doubt)) if hat is first else (hat, doubts)
        for hat, doubts in worn
    )


def _with_guardrails(hat: Hat, settings: Config) -> Hat:
    rules = "\n".join(f"- {rule}" for rule in settings.core.guardrails)
    return replace(hat, instructions=f"{hat.instructions}\n\n## Rules\n{rules}") if rules else hat


def _in_files(settings: Config, root: Path) -> Iterator[hats.Found]:
    if settings.loop.hats is None:
        return
    paths = sorted(path for path in root.glob(settings.loop.hats.lstrip("/")) if path.is_file())
    if not paths:
        raise UserError(f"no hat file matches {settings.loop.hats}", "fix loop.hats in ralph.yml", usage=True)
    for path in paths:
        yield hats.parse_hats(_text(path, root), path.relative_to(root).as_posix())


def _hat(name: str, keys: HatKeys, settings: Config) -> Hat:
    """A hat of ralph.yml. A hat that listens to the starting event listens to the start.

    A hat with triggers is complete, as in ralph-orchestrator; one without changes the built-in hat of its name.
    """
    fields = keys.model_dump(exclude_unset=True, exclude={"backend"})
    if keys.triggers:
        fields = {"publishes": (), **fields}
    loop, hat = settings.event_loop, hats.from_settings(name, fields)
    starts = loop.starting_event != "" and loop.starting_event in hat.triggers
    return replace(hat, triggers=(*hat.triggers, START)) if starts else hat


def _kind(options: RunOptions, preset: LoopPreset) -> str:
    return hats.find_pattern(options.pattern).name if options.pattern else str(preset.name)


def _threshold(kind: str, settings: Config, root: Path) -> int:
    """The number of issues that may remain: fixed by the settings, else learned from people's verdicts."""
    records = run_files.read_objects(state.path(root), state.VERDICTS_CAP)
    return verdicts.threshold(kind, settings.loop.thresholds or {}, verdicts.read_verdicts(records))


def _find_doubts(options: RunOptions, spec: RunSpec, prd: Prd | None) -> tuple[str, ...]:
    """Doubts about the hats and the stories. Raises UserError for a persistent loop that has stories."""
    if spec.persistent and (spec.preset.stories or options.stories):
        what = "event_loop.persistent works on one task after another, and stories end when all of them pass"
        raise UserError(what, "take event_loop.persistent out of ralph.yml, or run without stories", usage=True)
    circle = lint.find_circle(prd) if prd else ()
    doubts = (f"{', '.join(circle)} need each other, so they are taken as they come",) if circle else ()
    return (*hats.complaints(spec.hats, spec.persistent, spec.preset.promise, spec.required_events), *doubts)
