"""The checks of `ralph doctor` on GitHub: problems that would otherwise stay unnoticed, as nothing is tried or shown.

Whose token it is, whether a stranger could use the runner, what starts the workflow, and how late. Only reads. What
a token or a rule does not allow is shown when it is refused, with the setting behind it.

And those for the workflows in a clone: whether there are any, and what they lack here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import acts_on_github
from ralph_mission.adapters.wakers import PUBLISH, REVIEW, WORK, by_dispatch, listener, listening
from ralph_mission.cli.doctor import NOW, DoctorLine, DoctorLines, Get, Hub, hint_of, unseen, wrong
from ralph_mission.cli.doctor.sources import agent_kind
from ralph_mission.cli.setup.files import PLACES, action_of, github_name, name_action
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Mission, Status
from ralph_mission.words import count_noun, spell, stamp

if TYPE_CHECKING:
    from ralph_mission.adapters.forges.github.api import Api
    from ralph_mission.adapters.wakers import WakeFacts
    from ralph_mission.mission.model.ledger import Rhythm

KINDS = {
    "app": "an app's own, renewed by its key",
    "workflow": "the workflow's or an app's own",
    "app-user": "an app's in a person's name",
    "oauth": "OAuth",
}
WORKFLOW = "ralph-loop.yml"
IDLE = timedelta(days=60)  # without a push, GitHub disables the schedules of a public repository
WARN = timedelta(days=45)
SELF = "self-hosted"
LATE = timedelta(hours=1)  # a wake that is later is worth a note
NEVER = (
    "never use a self-hosted runner on a public repository: anyone's pull request could run code on it; "
    "set runs-on: ubuntu-latest, or make the repository private"
)
SWITCHED_OFF = {
    "disabled_inactivity": ("wrong", "GitHub switched it off after 60 days without activity"),
    "disabled_fork": ("wrong", "GitHub switches workflows off in a fork"),
    "disabled_manually": ("note", "a person switched it off"),
    "deleted": ("wrong", "it was deleted"),
}
"""A workflow's `state` on GitHub, other than `active`."""
Repository = Mapping[str, Any]
AGENT = "in ralph.yml: hands: {agent: {kind: claude}}; store its key under Settings, Secrets and variables, Actions"


def github(hub: Hub) -> tuple[DoctorLine, ...]:
    """Every check, in order; none but the first when the repository cannot be reached."""
    try:
        status, repository = hub.get("")
    except UserError as problem:
        return (wrong("GitHub", problem),)
    if status != 200 or not isinstance(repository, dict):
        return (no_entry(status),)
    return tuple(line for name, check in CHECKS.items() for line in _attempt(name, check(hub, repository)))


def _attempt(name: str, check: DoctorLines) -> DoctorLines:
    """The lines of a check; one that GitHub or the network prevents is reported, and is not a fault."""
    try:
        yield from check
    except UserError as problem:
        yield DoctorLine(name, "note", f"could not be checked: {problem.what}", hint_of(problem))


def asking(api: Api) -> Get:
    """The `get` of the checks over the forge's own requests, with its patience and its limits."""
    from ralph_mission.adapters.forges.github.limits import Absent, Forbidden

    def get(path: str) -> tuple[int, Any]:
        try:
            return 200, api.get(path)
        except Absent as absent:
            return absent.status, None
        except Forbidden:
            return 403, None

    return get


def no_entry(status: int) -> DoctorLine:
    """Why a repository cannot be looked at, by the status of asking for it."""
    if status == 401:
        return DoctorLine("token", "wrong", "GitHub does not accept it", "set GITHUB_TOKEN to a valid one")
    if status in (403, 404):
        return DoctorLine(
            "repository on GitHub",
            "wrong",
            f"the token may not see it ({status})",
            "check GITHUB_REPOSITORY, and that the token is for this repository",
        )
    return DoctorLine("GitHub", "wrong", f"it answers {status}", NOW["forge"])


def _token(hub: Hub, _: Repository) -> DoctorLines:
    kind = KINDS.get(hub.token, hub.token or "of an unknown kind")
    if hub.personal:
        yield DoctorLine(
            "token",
            "note",
            f"{kind}, as {hub.account}, whose own pull requests {hub.account} cannot approve",
            "use the workflow's own token, or an account made for the bot",
        )
        return
    yield DoctorLine("token", "ok", f"{kind}, as {hub.account}")


def _repository(hub: Hub, repository: Repository) -> DoctorLines:
    private = repository.get("private")
    found = f"{repository.get('full_name')}, {'private' if private else 'public'}"
    if repository.get("archived") or repository.get("disabled"):
        word = "archived" if repository.get("archived") else "disabled by GitHub"
        yield DoctorLine("repository on GitHub", "wrong", f"{found}, {word}", "Settings → General → Danger Zone")
        return
    yield DoctorLine("repository on GitHub", "ok", found)
    if not repository.get("has_issues"):
        yield DoctorLine("issues", "wrong", "they are switched off", "Settings → General → Features → Issues")


def _ready_label(hub: Hub, _: Repository) -> DoctorLines:
    """Whether people can set the label that assigns an issue. All others are created on first use."""
    from ralph_mission.mission.issues.tasks import READY

    if hub.get(f"/labels/{READY}")[0] == 404:
        advice = f"gh label create {READY}, or Issues → Labels → New label"
        yield DoctorLine(f"label {READY}", "note", "the label does not exist yet, so no one can set it", advice)


# --- runner and workflows ------------------------------------------------------------


def _runner(hub: Hub, repository: Mapping[str, Any]) -> DoctorLines:
    """The machines: this one if it is a runner, and the one that the workflow requests."""
    kind = hub.environment.get("RUNNER_ENVIRONMENT", "")
    texts = (hub.workflow, *hub.agents.values())
    self_hosted = any(SELF in labels for text in texts for labels in _runs_on(text))
    if not repository.get("private") and (kind == SELF or self_hosted):
        found = SELF if kind == SELF else f"the workflow asks for a {SELF} one"
        yield DoctorLine("runner", "wrong", f"{found}, and the repository is public", NEVER)
    elif kind == "github-hosted":
        yield DoctorLine("runner", "ok", "GitHub's own, made for every job")
    elif kind:
        yield DoctorLine("runner", "ok", kind)


def _runs_on(text: str) -> Iterator[tuple[str, ...]]:
    """The labels that a workflow's jobs request, in lower case, as GitHub compares them."""
    import yaml

    try:
        jobs = [job for job in yaml.safe_load(text)["jobs"].values() if isinstance(job, dict)]
    except (yaml.YAMLError, TypeError, KeyError, AttributeError, RecursionError):
        return
    for runner in (job.get("runs-on") for job in jobs):
        labels = runner.get("labels") if isinstance(runner, dict) else runner
        yield tuple(str(label).lower() for label in (labels if isinstance(labels, list) else [labels]))


def present(work_tree: Path | None) -> Mapping[str, str]:
    """Their texts by the names of their files; those that are not there are left out."""
    found = (listener(work_tree, event) for event in (WORK, REVIEW, PUBLISH))
    return {name: text for name, text in found if name}


def _workflow(hub: Hub, _: Mapping[str, Any]) -> DoctorLines:
    """Whether the workflow, and each that runs agents here, is on the default branch and enabled."""
    status, answer = hub.get("/actions/workflows?per_page=100")
    if status != 200 or not isinstance(answer, dict):
        yield unseen("workflow", "the Actions tab, or give the job `permissions: {actions: read}`")
        return
    flows = answer.get("workflows", ())
    states = {str(flow.get("path", "")).rpartition("/")[2]: str(flow.get("state")) for flow in flows}
    yield describe_workflow(states, WORKFLOW, "ralph init, then commit and push it")
    for name in hub.agents:
        yield describe_workflow(states, name, "commit and push it")


def describe_workflow(states: Mapping[str, str], name: str, hint: str) -> DoctorLine:
    """Whether one that the default branch should have is there and enabled; `hint`: how to bring it."""
    state = states.get(name)
    if state is None:
        return DoctorLine("workflow", "wrong", f"the default branch has no {name}", hint)
    if state == "active":
        return DoctorLine("workflow", "ok", f"{name} is active")
    level, words = SWITCHED_OFF.get(state, ("note", f"its state is {state}"))
    return DoctorLine("workflow", level, f"{name}: {words}", f"Actions → {name} → Enable workflow")


def reviewing(account: str, work_tree: Path | None, *, never: bool = False) -> DoctorLines:
    """What starts the review of a pull that `account` opens."""
    if listening(work_tree, REVIEW):
        yield DoctorLine("review", "ok", by_dispatch(account, work_tree, never=never).reason)
    else:
        yield DoctorLine("review", "ok", "by people alone; ralph init --review has an agent look first")


# --- waking ---------------------------------------------------------------------------


def _schedule(hub: Hub, repository: Mapping[str, Any]) -> DoctorLines:
    """The time until GitHub disables the schedule."""
    if repository.get("private"):
        return
    try:
        idle = hub.now - datetime.fromisoformat(str(repository.get("pushed_at")))
    except (ValueError, TypeError):
        yield unseen("schedule", "the date of the last commit: after 60 days without one GitHub stops schedules")
        return
    days = max(0, idle.days)
    rule = f"GitHub stops the schedules of a public repository {IDLE.days} days after the last push"
    if idle >= WARN:
        yield DoctorLine("schedule", "note", f"the last push was {days} days ago; {rule}", "push a commit")
    else:
        yield DoctorLine("schedule", "ok", f"the last push was {days} days ago; {rule}")


def waking(setting: str, facts: WakeFacts) -> Iterable[DoctorLine]:
    """Which way of being woken is in force; `setting` is `schedule.wake`."""
    from ralph_mission.adapters.wakers import WAKERS, best

    way = best(facts) if setting == "auto" else WAKERS.get(setting)
    if way is None:
        reasons = "; ".join(f"{name}: {each.set_up(facts).reason}" for name, each in WAKERS.items())
        yield DoctorLine("waking", "wrong", f"nothing wakes it ({reasons})", "ralph init --wake auto")
        return
    status = way.set_up(facts)
    if status.ok:
        yield DoctorLine("waking", "ok", f"{way.name}: {status.reason}")
    else:
        yield DoctorLine(
            "waking", "wrong", f"{way.name}: {status.reason}", f"it needs {way.needs}: ralph init --wake {setting}"
        )


def wakes(drifts: Sequence[tuple[datetime, int]]) -> Iterable[DoctorLine]:
    """How late the last wakes were; any forge has them."""
    if not drifts:
        return
    late = [seconds for _, seconds in drifts]
    usual, worst = (spell(timedelta(seconds=int(value))) for value in (median(late), max(late)))
    found = f"late by {usual} at the median, {worst} at most, over the last {count_noun(len(late), 'wake')}"
    if timedelta(seconds=median(late)) > LATE:
        yield DoctorLine(
            "wakes", "note", found, "GitHub's cron is late under load: set up a timer, ralph init --wake timer"
        )
    else:
        yield DoctorLine("wakes", "ok", found)


def far_off(next_due_at: datetime | None, now: datetime, rhythm: Rhythm) -> Iterable[DoctorLine]:
    """Whether the promise of memory lies further ahead than any cycle of today could have made it."""
    from ralph_mission.mission.memory.schedule import is_misdated

    longest = rhythm.longest
    if next_due_at is None or not is_misdated(next_due_at, now, longest):
        return
    found = (
        f"{stamp(next_due_at)}, in {spell(next_due_at - now)}, and the longest pause is {spell(longest)}: "
        "a clock that was ahead wrote it, or the pauses were longer then. A cycle is due now"
    )
    yield DoctorLine("next cycle", "note", found, "start one: ralph cycle (on GitHub the next wake does)")


def parked_ahead(missions: Iterable[Mission], now: datetime) -> Iterable[DoctorLine]:
    """Missions that a clock which was ahead has parked: nobody had the time to answer them."""
    for mission in missions:
        if mission.status is Status.PARKED and mission.changed_at > now:
            found = f"mission #{mission.id} was parked on {stamp(mission.changed_at)}, which is yet to come"
            hint = f"a clock was ahead; to bring it back set the label ralph:mission on issue #{mission.issue}"
            yield DoctorLine("parked", "note", found, hint)


CHECKS: dict[str, Callable[[Hub, Repository], DoctorLines]] = {
    "token": _token,
    "repository on GitHub": _repository,
    "label ralph-ready": _ready_label,
    "runner": _runner,
    "workflow": _workflow,
    "schedule": _schedule,
}
"""Each by the name of its line when it cannot be made."""


def workflows(git: Git, settings: Config) -> Iterator[DoctorLine]:
    """No workflow in a clone of a repository on GitHub, or some that need an agent where none is named."""
    here = _present(git)
    if not here and github_name(git) and git.work_tree:
        command = "ralph init, then commit and push what it writes" if action_of(None) else name_action()
        yield DoctorLine("workflow", "note", "there is none of Ralph's here, so GitHub starts no cycle", command)
    names = [PLACES[mode].rpartition("/")[2] for mode in ("work", "review") if mode in here]
    if names and not agent_kind(settings):
        needs = "need" if len(names) > 1 else "needs"
        yield DoctorLine("agent", "note", f"{' and '.join(names)} {needs} one, and ralph.yml names none", AGENT)


def elsewhere(git: Git, found: Iterable[DoctorLine], environ: Mapping[str, str]) -> Iterator[DoctorLine]:
    """The agents' lines: one that only a workflow uses need not be installed here."""
    apart = bool(_present(git)) and not acts_on_github(environ)
    for one in found:
        if apart and one.status == "wrong" and one.found.startswith("not installed"):
            installs = "the action installs it" if one.name == "agent claude" else "its runner needs it"
            one = replace(one, status="note", found=f"not installed on this machine; in the workflows, {installs}")
        yield one


def unseen_github(git: Git, environ: Mapping[str, str]) -> Iterator[DoctorLine]:
    """A note if there are workflows, but what GitHub needs to be asked is not in the environment."""
    name = github_name(git)
    if not name or not _present(git):
        return
    given = {
        "GITHUB_TOKEN": environ.get("GITHUB_TOKEN") or environ.get("GITHUB_APP_ID"),
        "GITHUB_REPOSITORY": environ.get("GITHUB_REPOSITORY"),
    }
    missing = [variable for variable, value in given.items() if not value]
    what = f"GitHub was not checked: {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not set"
    command = f"GITHUB_REPOSITORY={name} GITHUB_TOKEN=$(gh auth token) ralph doctor"
    yield DoctorLine("GitHub", "note", what, command)


def _present(git: Git) -> tuple[str, ...]:
    """The modes whose workflow is in this checkout."""
    top = git.work_tree
    return tuple(mode for mode, name in PLACES.items() if top is not None and (top / name).is_file())
