"""A fleet on one machine: the folders that `fleet.yml` names, planned like a fleet on GitHub, each cycle a process.

Every repository has its own memory and issues. The fleet records its started cycles in `.ralph/` beside `fleet.yml`,
and writes its page there.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.adapters.sandbox.ourselves import OwnProcess, run_side_by_side
from ralph_mission.adapters.storage.fleet import with_memory
from ralph_mission.adapters.storage.memory.recordings import keep_out_of_git
from ralph_mission.app.cycle import FLEET_TERMS
from ralph_mission.config.fleet import FleetConfig
from ralph_mission.config.reading import NAME, read
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import (
    CONFIGURE,
    FleetLimits,
    FleetPlan,
    FleetState,
    FleetThread,
    HeldRepository,
    RepositoryHeader,
    count_verdicts,
    parse_state,
    render_state,
    render_terms,
)
from ralph_mission.mission.fleet.plan import FleetOverview, look_over, plan_fleet
from ralph_mission.mission.model.forge import Issue, Pull
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

STATE, LOCK, DEFAULTS = "fleet.json", "fleet.lock", "fleet-defaults.yml"
PAGES = ("fleet.html", "fleet.md")
Say = Callable[[str], None]


def run_fleet(config: FleetConfig, base: Path, say: Say) -> FleetOverview:
    """Run every due cycle, some in parallel; `say` gets a line for each. `base`: the folder of fleet.yml.

    Raises UserError if the fleet's own files are unusable. A repository's problem is a separate line.
    """
    base = base.resolve()  # the cycles start elsewhere
    home = _home(base)
    with _alone(home):
        now = datetime.now(UTC)
        if config.extends:
            files.write(files.own(home) / DEFAULTS, _default_settings(config, base))
        headers = read_folders(config, base, now)
        plan = plan_fleet(headers, _limits(config, headers), _load(home), now)
        _keep(home, plan.state)
        say(f"{len(plan.starts)} of {len(headers)} repositories are due")
        ran = _run(config, base, plan, headers, say)
        state = _end_bookings(plan.state, ran)
        _keep(home, state)
        now = datetime.now(UTC)
        headers = read_folders(config, base, now)
        after = plan_fleet(headers, _limits(config, headers), state, now)
        problems = [HeldRepository(name, run.problem) for name, run in ran.items() if run.problem]
        known = {one.name for one in problems}
        failing = (*problems, *(one for one in after.failing if one.name not in known))
        overview = look_over(headers, replace(after, failing=failing), now, config.limits.fleet.usd)
        _write_pages(home, overview)
        return overview


def look_at_folders(config: FleetConfig, base: Path, now: datetime) -> tuple[tuple[RepositoryHeader, ...], FleetPlan]:
    """Every repository of this machine with its due cycles; starts nothing. Raises UserError."""
    headers = read_folders(config, base, now)
    return headers, plan_fleet(headers, _limits(config, headers), _load(_home(base)), now)


def page_of(base: Path) -> Path:
    """The path of the HTML page."""
    return _home(base) / PAGES[0]


# --- what each repository says --------------------------------------------------------


def read_folders(config: FleetConfig, base: Path, now: datetime) -> tuple[RepositoryHeader, ...]:
    """Each repository once, by its folder as fleet.yml names it first; `*` matches any folder name."""
    found: dict[Path, str] = {}
    for name in (name for pattern in config.folders for name in _folders(base, pattern)):
        found.setdefault(_same(base, name), name)
    content = files.content(_defaults(base), 64 * 1024)
    defaults = _defaults(base) if config.extends and content == _default_settings(config, base) else None
    return tuple(_read_folder(base, name, now, defaults) for name in found.values() if not config.excludes(name))


def _folders(base: Path, pattern: str) -> Iterator[str]:
    if "*" not in Path(pattern).name:
        yield pattern
        return
    parent = Path(pattern).parent
    for folder in sorted(_place(base, str(parent)).glob(Path(pattern).name)):
        if (folder / ".git").exists():
            yield os.path.join("." if pattern.startswith("./") and str(parent) == "." else parent, folder.name)


def _place(base: Path, name: str) -> Path:
    return (base / Path(name).expanduser()).resolve()


def _same(base: Path, name: str) -> Path:
    """What two names of one repository have in common: it may have several work trees, and links lead to it."""
    place = _place(base, name)
    try:
        return Git.open(place).common_dir.resolve()
    except (UserError, GitError, OSError):
        return place


def _read_folder(base: Path, name: str, now: datetime, defaults: Path | None) -> RepositoryHeader:
    try:
        git = Git.open(_place(base, name))
    except UserError as error:
        return RepositoryHeader(name, f"{error.what.replace(str(_place(base, name)), 'it')}: correct fleet.yml")
    try:
        settings = read(git, read_shared, defaults if _has_none(git) else None)
        if settings.forge.kind == "github":
            return RepositoryHeader(name, f"{NAME} has its issues on GitHub: name it as OWNER/REPO in fleet.yml")
        forge = LocalForge(git)
        pull = next((one for one in forge.pulls("all") if one.head == CONFIGURE), None)
        header = RepositoryHeader(
            name,
            has_settings=not _has_none(git),
            onboarding=pull.state if pull else "",
            onboarding_pull=pull.number if pull else 0,
            threads=tuple(_threads(forge, settings)),
        )
        tip = git.resolve(f"refs/heads/{settings.memory.branch}")
        if not tip:
            return header
        moved = datetime.fromisoformat(git.text("show", "--no-patch", "--format=%cI", tip))
        at = f"{tip}:{settings.memory.path}"
        text = git.blobs([at]).get(at, b"").decode("utf-8", "replace")
        return with_memory(replace(header, moved_at=moved), text, now)
    except UserError as error:
        return RepositoryHeader(name, f"{error.what}. {error.next_step}")
    except (GitError, OSError, ValueError) as error:
        return RepositoryHeader(name, " ".join(str(error).split())[:200])


def _threads(forge: LocalForge, settings: Config) -> Iterator[FleetThread]:
    every: list[Issue | Pull] = [*forge.issues("all"), *forge.pulls("all")]
    for one in every:
        if one.author.is_bot:
            pull, waits_for = isinstance(one, Pull), getattr(one, "assignees", ()) or settings.owners
            is_open = one.state == "open"
            yield FleetThread(one.number, one.title, one.updated_at, one.created_at, pull, is_open, waits_for)
    for tick in forge.ticks():
        yield FleetThread(0, "", tick.at, tick.at)


# --- the processes --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FleetRun:
    """The result of a repository's process; `problem`: why it failed, or ""."""

    seconds: float
    problem: str = ""


def _run(
    config: FleetConfig, base: Path, plan: FleetPlan, headers: Sequence[RepositoryHeader], say: Say
) -> dict[str, FleetRun]:
    verdicts, ran = count_verdicts(headers), dict[str, FleetRun]()

    def tell_end(job: OwnProcess, code: int, output: bytes, seconds: float) -> None:
        ran[job.name] = FleetRun(seconds, _describe_problem(code, output, job.seconds))
        say(f"{job.name}: {ran[job.name].problem or _account(output)}")

    jobs = [
        OwnProcess(
            start.name,
            ("cycle", "--json", "--repo", str(_place(base, start.name)), *_given(config, base, start.name)),
            {FLEET_TERMS: render_terms(start, verdicts, _extended(config, base))},
            start.minutes * 60,
        )
        for start in plan.starts
    ]
    run_side_by_side(jobs, min(config.limits.parallel, os.cpu_count() or 1), tell_end)
    return ran


def _given(config: FleetConfig, base: Path, name: str) -> tuple[str, ...]:
    """The fleet's own settings for a repository that has none."""
    if not config.extends or not _has_none(Git.open(_place(base, name))):
        return ()
    return ("--config", str(_defaults(base)))


def _default_settings(config: FleetConfig, base: Path) -> bytes:
    return f"extends: {json.dumps(_extended(config, base))}\n".encode()


def _extended(config: FleetConfig, base: Path) -> str:
    """The fleet's own settings, in the form of another file."""
    return config.extends if "//" in config.extends or not config.extends else str(_place(base, config.extends))


def _defaults(base: Path) -> Path:
    return _home(base) / DEFAULTS


def _has_none(git: Git) -> bool:
    """Whether a repository has no settings of its own."""
    if git.work_tree:
        return not os.path.lexists(git.work_tree / NAME)
    return not git.blobs([f"HEAD:{NAME}"])


def _describe_problem(code: int, output: bytes, seconds: float) -> str:
    """Why it failed, in one line, or ""."""
    if code == -1:
        return f"its cycle took more than {seconds / 60:.0f} minutes, and was ended"
    if code == 0:
        return ""
    try:
        report = json.loads(output)
        if error := report.get("error"):
            return f"{error['what']}. {error['next']}"
        refused = [one["kind"].replace("_", " ") for one in report["effects"] if one["status"] == "failed"]
        return f"refused: {', '.join(dict.fromkeys(refused))}; ralph journal shows why"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"its cycle ended with exit code {code}"


def _account(output: bytes) -> str:
    try:
        report = json.loads(output)
        if report["staged"]:
            return "asked by a pull request whether to look after it"
        threads = [
            one for one in report["effects"] if one["kind"] in ("open_issue", "open_pull") and one["status"] == "done"
        ]
        found = count_noun(len(report["findings"]), "finding")
        return f"cycle {report['cycle']} {report['outcome']}, {found}, {count_noun(len(threads), 'thread')} opened"
    except (ValueError, KeyError, TypeError):
        return "done"


# --- what the fleet keeps -------------------------------------------------------------


def _home(base: Path) -> Path:
    return base / files.RALPH


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    try:
        files.own(home).mkdir(parents=True, exist_ok=True)
        if (home.parent / ".git").exists():
            keep_out_of_git(Git.open(home.parent))
        with files.hold_file(home / LOCK) as ours:
            if not ours:
                raise UserError(f"another ralph fleet run is at it in {home.parent}", "wait until it is done")
            yield
    except OSError as error:
        what = f"cannot write {error.filename or home}: {(error.strerror or type(error).__name__).lower()}"
        raise UserError(what, "make the folder of fleet.yml writable, then run again") from None


def _load(home: Path) -> FleetState:
    text = files.content(home / STATE, 64 * 1024 * 1024)
    return parse_state(text.decode("utf-8", "replace")) if text else FleetState()


def _keep(home: Path, state: FleetState) -> None:
    files.write(files.own(home) / STATE, render_state(state).encode())


def _end_bookings(state: FleetState, ran: Mapping[str, FleetRun]) -> FleetState:
    """All processes are over: count their cost, and mark none as running."""
    minutes, bookings = dict(state.minutes), dict(state.bookings)
    for name, run in ran.items():
        minutes[name] = minutes.get(name, 0) + max(1, math.ceil(run.seconds / 60))
        if run.problem:
            bookings[name] = replace(bookings[name], minutes=0, usd=0.0, pulls=0)
        else:
            del bookings[name]
    return replace(state, minutes=minutes, bookings=bookings)


def _limits(config: FleetConfig, headers: Sequence[RepositoryHeader]) -> FleetLimits:
    # The pool limits how many run in parallel: everything planned here runs to its end.
    return replace(config.limits, parallel=max(1, len(headers)))


def _write_pages(home: Path, overview: FleetOverview) -> None:
    from ralph_mission.adapters.report.fleet import fleet_page
    from ralph_mission.adapters.report.fleet_page import page

    for name, text in zip(PAGES, (page(overview), fleet_page(overview)), strict=True):
        files.write(files.own(home) / name, text.encode())
