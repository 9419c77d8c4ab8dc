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


def nothing(harbour: Hub) -> None:
    """The first cycle."""


def quiet(harbour: Hub) -> None:
    harbour.cycle()
    harbour.cycle()


def approved(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().review(harbour.pulls[0].number, "approved")


def pulls_forbidden(harbour: Hub) -> None:
    """GitHub's own default: a job's token may open no pull request."""
    harbour.fake.settings.actions_can_create_pulls = False


def approved_in_vain(harbour: Hub) -> None:
    """A ruleset lets nobody merge."""
    approved(harbour)
    harbour.fake.ruleset("main", forbidden=("update",))


def let_check_stand(harbour: Hub, state: str) -> None:
    """How a check of the only pull request stands, or that it `passed`."""
    (pull,) = harbour.pulls
    head = harbour.fake.branch(pull.pull.head)
    if state == MISSING:
        harbour.fake.ruleset("main", required_checks=("tests",))
    elif state == "is held" or 70 in harbour.fake.world.runs:
        run = partial(harbour.fake.workflow_run, 70, "completed", event="pull_request", path=".github/workflows/ci.yml")
        run(conclusion=RESULTS[state], head_sha=head, head_branch=pull.pull.head)
    else:
        harbour.fake.check(head, "tests", RESULTS[state])


def approved_while(state: str, harbour: Hub) -> None:
    """With a check that keeps it waiting."""
    approved(harbour)
    let_check_stand(harbour, state)


def approved_before_a_queue(harbour: Hub) -> None:
    """The default branch is merged into by a queue alone, which an app may use."""
    harbour.token = harbour.fake.token("ralph-app[bot]")
    approved(harbour)
    harbour.fake.ruleset("main", merge_queue=True)


def taken_back_in_a_queue(harbour: Hub) -> None:
    approved_before_a_queue(harbour)
    harbour.cycle()
    harbour.person().dismiss(harbour.pulls[0].number)


def ticked(harbour: Hub) -> None:
    """On the dashboard a person says yes to the fix."""
    harbour.cycle()
    (page,) = [thread for thread in harbour.fake.threads.values() if thread.title == "Ralph"]
    harbour.person().edit_issue(page.number, body=APPROVE.sub("- [x]", page.body))


def merged(harbour: Hub) -> None:
    approved(harbour)
    harbour.cycle()


def refused(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().review(harbour.pulls[0].number, "changes_requested", "leave the harbour's own spelling alone")


def closed(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().close_pull(harbour.pulls[0].number)


def fixed_by_hand(harbour: Hub) -> None:
    harbour.cycle()
    harbour.fake.push("main", MENDED)


def fixed_in_a_pull(harbour: Hub) -> None:
    """Before the first cycle, a person has proposed the same."""
    harbour.fake.push("mine", MENDED)
    harbour.person().open_pull("mine", "main", "Mend the spelling")


def agreed(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().label(harbour.issues[0].number, ("ralph:approved",))


def edited(harbour: Hub) -> None:
    harbour.cycle()
    mara, issue = harbour.person(), harbour.issues[0]
    mara.edit_issue(issue.number, body=f"Edited. {issue.body}")
    mara.label(issue.number, ("ralph:approved",))


def more_markers(harbour: Hub) -> None:
    harbour.cycle()
    harbour.fake.push("main", {"b.py": b"y = 2\n# FIXME: two\n"})


def three_missions(harbour: Hub) -> None:
    for _ in range(3):
        harbour.cycle()


def answered(harbour: Hub) -> None:
    """An agent's pull was reviewed, and it is about to answer."""
    agent_world = AgentWorld(harbour, aside(harbour.folder))
    agent_world.says("write('src/table.py', 'TABLE = 1\\n')")
    agent_world.wanted()
    harbour.cycle()
    harbour.cycle()
    harbour.person().review(harbour.pulls[0].number, "changes_requested", "call it TIDES")
    harbour.cycle()
    agent_world.says(WRITTEN)


def content_approved(harbour: Hub) -> None:
    harbour.cycle()
    harbour.person().label(harbour.issues[0].number, ("content:approved",))


def deleted(harbour: Hub) -> None:
    approved(harbour)
    git(harbour.fake.bare, "update-ref", "-d", MEMORY)


def corrupted(harbour: Hub) -> None:
    approved(harbour)
    harbour.fake.push("ralph-memory", {"memory/open.json": b"{ not any more\n"})


def rolled_back(harbour: Hub) -> None:
    approved(harbour)
    git(harbour.fake.bare, "update-ref", MEMORY, "ralph-memory~1")


def aside(folder: Path) -> Path:
    """Where an agent of the tests keeps its own."""
    place = folder / "aside"
    place.mkdir(parents=True, exist_ok=True)
    return place


def with_agent(folder: Path) -> str:
    return settings(aside(folder))


# --- in between -------------------------------------------------------------------------


def closes_pulls(harbour: Hub) -> None:
    """Whatever pull there is, somebody closes it as soon as she sees it."""
    for pull in harbour.pulls:
        if pull.state == "open":
            harbour.person().close_pull(pull.number)


def check_passes(harbour: Hub) -> None:
    """Once the dashboard names the check that keeps a merge waiting, and not before, it passes."""
    if any(WAITS.search(thread.body or "") for thread in harbour.fake.threads.values() if thread.title == "Ralph"):
        let_check_stand(harbour, "passed")


def queue_merges(harbour: Hub) -> None:
    """Whatever waits in the merge queue has passed it."""
    for pull in harbour.pulls:
        if pull.pull.queued:
            harbour.fake.leave_queue(pull.number)
