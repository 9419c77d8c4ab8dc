"""What keeps a repository on GitHub awake: its runner, its workflow, its schedule, and the way it is woken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any

from ralph_mission.cli.checks_line import Check, Hub, Made, unseen
from ralph_mission.mission.model import Mission, Status
from ralph_mission.report.lines import counted, spell, stamp

if TYPE_CHECKING:
    from ralph_mission.mission.schedule import Rhythm
    from ralph_mission.wakers.facts import Facts

WORKFLOW = "ralph-loop.yml"
IDLE = timedelta(days=60)  # without a push, GitHub switches off the schedules of a public repository
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


def runner(hub: Hub, repository: Mapping[str, Any]) -> Made:
    """Whose machine works: this one when it is a runner, and the one that the workflow asks for."""
    kind = hub.environment.get("RUNNER_ENVIRONMENT", "")
    texts = (hub.workflow, *hub.agents.values())
    asked = any(SELF in labels for text in texts for labels in runs_on(text))
    if not repository.get("private") and (kind == SELF or asked):
        found = SELF if kind == SELF else f"the workflow asks for a {SELF} one"
        yield Check("runner", "wrong", f"{found}, and the repository is public", NEVER)
    elif kind == "github-hosted":
        yield Check("runner", "ok", "GitHub's own, made anew for every job")
    elif kind:
        yield Check("runner", "ok", kind)


def runs_on(text: str) -> Iterator[tuple[str, ...]]:
    """The labels that each job of a workflow asks for, lower case as GitHub compares them."""
    import yaml

    try:
        jobs = [job for job in yaml.safe_load(text)["jobs"].values() if isinstance(job, dict)]
    except (yaml.YAMLError, TypeError, KeyError, AttributeError, RecursionError):
        return
    for wanted in (job.get("runs-on") for job in jobs):
        labels = wanted.get("labels") if isinstance(wanted, dict) else wanted
        yield tuple(str(label).lower() for label in (labels if isinstance(labels, list) else [labels]))


def workflow(hub: Hub, _: Mapping[str, Any]) -> Made:
    """Whether the workflow, and each in which agents act here, is on the default branch, and on."""
    status, told = hub.get("/actions/workflows?per_page=100")
    if status != 200 or not isinstance(told, dict):
        yield unseen("workflow", "the Actions tab, or give the job `permissions: {actions: read}`")
        return
    flows = told.get("workflows", ())
    states = {str(flow.get("path", "")).rpartition("/")[2]: str(flow.get("state")) for flow in flows}
    yield _there(states, WORKFLOW, "ralph init, then commit and push it")
    for name in hub.agents:
        yield _there(states, name, "commit and push it")


def _there(states: Mapping[str, str], name: str, mend: str) -> Check:
    state = states.get(name)
    if state is None:
        return Check("workflow", "wrong", f"the default branch has no {name}", mend)
    if state == "active":
        return Check("workflow", "ok", f"{name} is active")
    level, words = SWITCHED_OFF.get(state, ("note", f"its state is {state}"))
    return Check("workflow", level, f"{name}: {words}", f"Actions → {name} → Enable workflow")


def schedule(hub: Hub, repository: Mapping[str, Any]) -> Made:
    """How far GitHub is from switching the schedule off."""
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
        yield Check("schedule", "note", f"the last push was {days} days ago; {rule}", "push a commit")
    else:
        yield Check("schedule", "ok", f"the last push was {days} days ago; {rule}")


def wakes(drifts: Sequence[tuple[datetime, int]]) -> Iterable[Check]:
    """How late the last wakes were; any forge has them."""
    if not drifts:
        return
    late = [seconds for _, seconds in drifts]
    usual, worst = (spell(timedelta(seconds=int(value))) for value in (median(late), max(late)))
    found = f"late by {usual} at the median, {worst} at most, over the last {counted(len(late), 'wake')}"
    if timedelta(seconds=median(late)) > LATE:
        yield Check("wakes", "note", found, "GitHub's cron is late under load: set up a timer, ralph init --wake timer")
    else:
        yield Check("wakes", "ok", found)


def far_off(next_due_at: datetime | None, now: datetime, rhythm: Rhythm) -> Iterable[Check]:
    """Whether the promise of memory lies further ahead than any cycle of today could have made it."""
    from ralph_mission.mission.schedule import is_misdated

    longest = rhythm.longest
    if next_due_at is None or not is_misdated(next_due_at, now, longest):
        return
    found = (
        f"{stamp(next_due_at)}, in {spell(next_due_at - now)}, and the longest pause is {spell(longest)}: "
        "a clock that was ahead wrote it, or the pauses were longer then. A cycle is due now"
    )
    yield Check("next cycle", "note", found, "start one: ralph cycle (on GitHub the next wake does)")


def parked_ahead(missions: Iterable[Mission], now: datetime) -> Iterable[Check]:
    """Missions that a clock which was ahead has parked: nobody had the time to answer them."""
    for mission in missions:
        if mission.status is Status.PARKED and mission.changed_at > now:
            found = f"mission #{mission.id} was parked on {stamp(mission.changed_at)}, which is yet to come"
            mend = f"a clock was ahead; to bring it back set the label ralph:mission on issue #{mission.issue}"
            yield Check("parked", "note", found, mend)


def waking(wanted: str, facts: Facts) -> Iterable[Check]:
    """Which way of being woken is in force; `wanted` is `schedule.wake`."""
    from ralph_mission.wakers import WAKERS, best

    way = best(facts) if wanted == "auto" else WAKERS.get(wanted)
    if way is None:
        reasons = "; ".join(f"{name}: {each.set_up(facts).reason}" for name, each in WAKERS.items())
        yield Check("waking", "wrong", f"nothing wakes it ({reasons})", "ralph init --wake auto")
        return
    standing = way.set_up(facts)
    if standing.ok:
        yield Check("waking", "ok", f"{way.name}: {standing.reason}")
    else:
        yield Check(
            "waking", "wrong", f"{way.name}: {standing.reason}", f"it needs {way.needs}: ralph init --wake {wanted}"
        )
