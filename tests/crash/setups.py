"""What has been until now, for stages: people and earlier cycles on a (fake) GitHub. And what people do in between."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from pathlib import Path

from tests.crash.witness import MEMORY
from tests.helpers import git
from tests.integration.coding import AgentWorld, settings
from tests.integration.hub import Hub
from tests.integration.test_life import MISSPELT, SENTENCE

SOON = timedelta(minutes=10)
TODO = {"a.py": "# TODO: one\nx = 1\n"}
LONG = {"docs/long.md": "".join(f"{SENTENCE} {SENTENCE} We read {word} in that log.\n\n" for word in MISSPELT)}
MENDED = {
    "README.md": b"# Harbour\n\nTides are separate from waves. We receive the tables by mail.\n",
    "docs/guide.md": b"# Guide\n\nThis is definitely the way to read a table.\n",
}
FIVE = {f"src/{n}.py": "x = 1\n" for n in "abcde"} | {
    "bugs.txt": "".join(f"src/{n}.py:1: {n} is wrong in its own way\n" for n in "abcde")
}
MISSING = "is required and missing"
RESULTS = {
    "failed": "failure",
    "still runs": None,
    "is held": "action_required",
    "was cancelled": "cancelled",
    "passed": "success",
}
WAITS = re.compile(r"not green: tests |blocked: the required check tests |its checks wait for a click")
APPROVE = re.compile(r"- \[ \](?= .*<!-- ralph:box approve )")
WRITTEN = "write('src/table.py', 'TIDES = 1\\n')"


def nothing(hub: Hub) -> None:
    """The first cycle."""


def quiet(hub: Hub) -> None:
    hub.cycle()
    hub.cycle()


def approved(hub: Hub) -> None:
    hub.cycle()
    hub.person().review(hub.pulls[0].number, "approved")


def pulls_forbidden(hub: Hub) -> None:
    """GitHub's own default: a job's token may open no pull request."""
    hub.fake.settings.actions_can_create_pulls = False


def approved_in_vain(hub: Hub) -> None:
    """A ruleset lets nobody merge."""
    approved(hub)
    hub.fake.ruleset("main", forbidden=("update",))


def let_check_stand(hub: Hub, state: str) -> None:
    """How a check of the only pull request stands, or that it `passed`."""
    (pull,) = hub.pulls
    head = hub.fake.branch(pull.pull.head)
    if state == MISSING:
        hub.fake.ruleset("main", required_checks=("tests",))
    elif state == "is held" or 70 in hub.fake.world.runs:
        run = partial(hub.fake.workflow_run, 70, "completed", event="pull_request", path=".github/workflows/ci.yml")
        run(conclusion=RESULTS[state], head_sha=head, head_branch=pull.pull.head)
    else:
        hub.fake.check(head, "tests", RESULTS[state])


def approved_while(state: str, hub: Hub) -> None:
    """With a check that keeps it waiting."""
    approved(hub)
    let_check_stand(hub, state)


def approved_before_a_queue(hub: Hub) -> None:
    """The default branch is merged into by a queue alone, which an app may use."""
    hub.token = hub.fake.token("ralph-app[bot]")
    approved(hub)
    hub.fake.ruleset("main", merge_queue=True)


def taken_back_in_a_queue(hub: Hub) -> None:
    approved_before_a_queue(hub)
    hub.cycle()
    hub.person().dismiss(hub.pulls[0].number)


def ticked(hub: Hub) -> None:
    """On the dashboard a person says yes to the fix."""
    hub.cycle()
    (page,) = [thread for thread in hub.fake.threads.values() if thread.title == "Ralph"]
    hub.person().edit_issue(page.number, body=APPROVE.sub("- [x]", page.body))


def merged(hub: Hub) -> None:
    approved(hub)
    hub.cycle()


def refused(hub: Hub) -> None:
    hub.cycle()
    hub.person().review(hub.pulls[0].number, "changes_requested", "leave the harbour's own spelling alone")


def closed(hub: Hub) -> None:
    hub.cycle()
    hub.person().close_pull(hub.pulls[0].number)


def fixed_by_hand(hub: Hub) -> None:
    hub.cycle()
    hub.fake.push("main", MENDED)


def fixed_in_a_pull(hub: Hub) -> None:
    """Before the first cycle, a person has proposed the same."""
    hub.fake.push("mine", MENDED)
    hub.person().open_pull("mine", "main", "Mend the spelling")


def agreed(hub: Hub) -> None:
    hub.cycle()
    hub.person().label(hub.issues[0].number, ("ralph:approved",))


def edited(hub: Hub) -> None:
    hub.cycle()
    mara, issue = hub.person(), hub.issues[0]
    mara.edit_issue(issue.number, body=f"Edited. {issue.body}")
    mara.label(issue.number, ("ralph:approved",))


def more_markers(hub: Hub) -> None:
    hub.cycle()
    hub.fake.push("main", {"b.py": b"y = 2\n# FIXME: two\n"})


def three_missions(hub: Hub) -> None:
    for _ in range(3):
        hub.cycle()


def answered(hub: Hub) -> None:
    """An agent's pull was reviewed, and it is about to answer."""
    agent_world = AgentWorld(hub, aside(hub.folder))
    agent_world.says("write('src/table.py', 'TABLE = 1\\n')")
    agent_world.wanted()
    hub.cycle()
    hub.cycle()
    hub.person().review(hub.pulls[0].number, "changes_requested", "call it TIDES")
    hub.cycle()
    agent_world.says(WRITTEN)


def content_approved(hub: Hub) -> None:
    hub.cycle()
    hub.person().label(hub.issues[0].number, ("content:approved",))


def deleted(hub: Hub) -> None:
    approved(hub)
    git(hub.fake.bare, "update-ref", "-d", MEMORY)


def corrupted(hub: Hub) -> None:
    approved(hub)
    hub.fake.push("ralph-memory", {"memory/open.json": b"{ not any more\n"})


def rolled_back(hub: Hub) -> None:
    approved(hub)
    git(hub.fake.bare, "update-ref", MEMORY, "ralph-memory~1")


def aside(folder: Path) -> Path:
    """Where an agent of the tests keeps its own."""
    place = folder / "aside"
    place.mkdir(parents=True, exist_ok=True)
    return place


def with_agent(folder: Path) -> str:
    return settings(aside(folder))


# --- in between -------------------------------------------------------------------------


def closes_pulls(hub: Hub) -> None:
    """Whatever pull there is, somebody closes it as soon as she sees it."""
    for pull in hub.pulls:
        if pull.state == "open":
            hub.person().close_pull(pull.number)


def check_passes(hub: Hub) -> None:
    """Once the dashboard names the check that keeps a merge waiting, and not before, it passes."""
    if any(WAITS.search(thread.body or "") for thread in hub.fake.threads.values() if thread.title == "Ralph"):
        let_check_stand(hub, "passed")


def queue_merges(hub: Hub) -> None:
    """Whatever waits in the merge queue has passed it."""
    for pull in hub.pulls:
        if pull.pull.queued:
            hub.fake.leave_queue(pull.number)
