"""The workflows of agents as `ralph init` writes them, run by a local runner: whose events start a job, and whose none.

Nothing works here: what ralph would be started with is noted down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ralph_mission.cli.setup.files import render_workflow
from tests.action.runner import INSTALLED, REPOSITORY, Job, Runner
from tests.action.test_action import HOSTILE
from tests.fakes.github.server import FakeGitHub

pytestmark = pytest.mark.long  # takes ten seconds or more
ODD = "ralph/$(touch${IFS}owned)`touch${IFS}owned`"


@pytest.fixture
def idle(cold: Runner) -> Runner:
    """A warm runner with a ralph that does nothing."""
    cold.seed(python="/bin/true")
    return cold


def start(runner: Runner, github: FakeGitHub, mode: str, event: str, payload: Mapping[str, Any]) -> Job:
    """One event at a repository with the workflow of a mode."""
    told = {"repository": {"default_branch": "main"}, **payload}
    text = render_workflow(mode, INSTALLED, ("self-hosted",))
    job = runner.run(github.token(), github.url, event, payload=told, workflow=text)
    assert job.code == 0, job.log
    return job


def read_command_line(job: Job) -> list[str]:
    """The first command line of ralph, without where it works and that it answers in JSON."""
    words = job.starts[0][1]["ARGUMENTS"].split()
    assert (words[:3], words[-3], words[-1]) == (["-I", "-m", "ralph_mission"], "--repo", "--json")
    return words[3:-3]


def issue(label: str = "ralph-ready", association: str = "OWNER", **more: Any) -> dict[str, Any]:
    """An issue that somebody labels."""
    written = {"number": 7, "title": HOSTILE, "body": HOSTILE, "author_association": association, **more}
    return {"action": "labeled", "label": {"name": label}, "issue": written}


def pull(head: str = "ralph/issue-7", repository: str = REPOSITORY, **more: Any) -> dict[str, Any]:
    """A pull request from a branch of a repository."""
    there = {"ref": head, "repo": {"full_name": repository}}
    return {"action": "opened", "pull_request": {"number": 8, "title": HOSTILE, "head": there}, **more}


@pytest.mark.parametrize(
    ("event", "payload", "options"),
    [
        ("issues", issue(), ["--issue=7"]),
        ("issues", issue("agent:claude", "COLLABORATOR"), ["--issue=7"]),
        ("workflow_dispatch", {"inputs": {"issue": "9"}}, ["--issue=9"]),
        ("workflow_dispatch", {"inputs": {}}, []),
        ("repository_dispatch", {"action": "ralph-work-trigger", "client_payload": {"issue": 5}}, ["--issue=5"]),
        ("schedule", {}, []),
    ],
)
def test_who_belongs_to_the_repository_starts_work_on_an_issue(
    idle: Runner, github: FakeGitHub, event: str, payload: dict[str, Any], options: list[str]
) -> None:
    job = start(idle, github, "work", event, payload)
    assert [command for command, _ in job.starts] == ["work"], "nobody here is to be woken"
    assert read_command_line(job) == ["work", "--once", *options], job.log
    assert job.checkouts == ["0 false"]


@pytest.mark.parametrize(
    "payload",
    [
        issue(association="NONE"),
        issue(association="CONTRIBUTOR"),
        issue("bug"),
        issue("my-agent:claude"),
        issue(HOSTILE),
    ],
)
def test_a_strangers_issue_or_another_label_starts_nothing(
    idle: Runner, github: FakeGitHub, payload: dict[str, Any]
) -> None:
    job = start(idle, github, "work", "issues", payload)
    assert (job.starts, job.checkouts, job.owned, github.journal) == ([], [], [], [])


MARA, SAM = {"id": 3, "type": "User"}, {"id": 4, "type": "User"}
RALPH = {"id": 5, "type": "Bot"}


def mission(sender: Mapping[str, Any], author: Mapping[str, Any] = RALPH, association: str = "NONE") -> dict[str, Any]:
    """Somebody edits a mission's issue that an account of such an association wrote."""
    labels = [{"name": "ralph:mission"}]
    written = {"number": 7, "labels": labels, "user": author, "author_association": association}
    return {"action": "edited", "issue": written, "sender": sender}


def dashboard(sender: Mapping[str, Any], author: Mapping[str, Any] = RALPH) -> dict[str, Any]:
    """Somebody edits the dashboard, or an issue of theirs that looks like it."""
    body = "- [x] Look now\n\n<!-- ralph:anchor lineage=a serial=1 oid=b -->"
    written = {"number": 9, "labels": [], "body": body, "user": author, "author_association": "NONE"}
    return {"action": "edited", "issue": written, "sender": sender}


def labelled(name: str, **more: Any) -> dict[str, Any]:
    """The same with a label that is set."""
    return {**mission(MARA), "action": "labeled", "label": {"name": name}, **more}


def remark(body: str, association: str, **more: Any) -> dict[str, Any]:
    """A comment on somebody's issue or pull request."""
    return {"action": "created", "comment": {"body": body, "author_association": association}, **more}


def change(
    sender: Mapping[str, Any], head: str = "ralph/issue-7", repository: str = REPOSITORY, **more: Any
) -> dict[str, Any]:
    """Somebody closes a pull request of Ralph's, or does something else to it."""
    made = pull(head, repository)
    made["pull_request"]["user"] = RALPH
    return {**made, "action": "closed", "sender": sender, **more}


def verdict(association: str, head: str = "ralph/issue-7", repository: str = REPOSITORY) -> dict[str, Any]:
    """A review of a pull request."""
    return {
        **pull(head, repository),
        "action": "submitted",
        "review": {"author_association": association, "user": MARA},
    }


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("issue_comment", remark("/ralph approve", "OWNER")),
        ("pull_request_review", verdict("MEMBER")),
        ("issues", mission(MARA)),
        ("issues", mission(MARA, MARA, "OWNER")),
        ("issues", mission(MARA, SAM)),
        ("issues", labelled("ralph:mission")),
        ("issues", labelled("content:approved")),
        ("issues", labelled("agent:claude")),
        ("issues", dashboard(MARA)),
        ("pull_request", change(MARA)),
        ("pull_request", change(MARA, action="labeled", label={"name": "ralph:mission"})),
        ("pull_request", change(MARA, action="labeled", label={"name": "agent:claude"})),
    ],
)
def test_the_word_of_who_may_decide_starts_a_cycle(
    idle: Runner, github: FakeGitHub, event: str, payload: dict[str, Any]
) -> None:
    assert "cycle" in [command for command, _ in start(idle, github, "cycle", event, payload).starts]


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("issue_comment", remark("/ralph approve", "CONTRIBUTOR")),
        ("issue_comment", remark("Thank you", "OWNER")),
        ("pull_request_review", verdict("NONE")),
        ("pull_request_review", verdict("OWNER", "feature")),
        ("pull_request_review", verdict("OWNER", repository="stranger/slackwater")),
        ("issues", mission(RALPH)),
        ("issues", dashboard(RALPH)),
        ("issues", {**dashboard(SAM, SAM), "issue": {**dashboard(SAM, SAM)["issue"], "author_association": "OWNER"}}),
        ("pull_request", change(RALPH)),
        ("pull_request", change({**RALPH, "type": "User"})),
        ("pull_request", change(MARA, "feature")),
        ("pull_request", change(MARA, repository="stranger/slackwater")),
        ("pull_request", change(MARA, action="labeled", label={"name": "bug"})),
        ("issues", dashboard(SAM, SAM)),
        ("issues", mission(SAM, SAM, "CONTRIBUTOR")),
        ("issues", labelled("ralph:mission", sender=RALPH)),
        ("issues", labelled("bug")),
        ("issues", {**labelled("agent:claude"), "issue": {"labels": [], "user": RALPH}}),
        ("issues", labelled("content:approved", sender=RALPH)),
        ("issues", {"action": "edited", "issue": {"labels": [], "user": MARA}, "sender": MARA}),
    ],
)
def test_a_strangers_word_or_one_about_something_else_starts_no_cycle(
    idle: Runner, github: FakeGitHub, event: str, payload: dict[str, Any]
) -> None:
    job = start(idle, github, "cycle", event, payload)
    assert (job.starts, job.checkouts, job.owned, github.journal) == ([], [], [], [])


@pytest.mark.parametrize(
    ("event", "payload", "options"),
    [
        ("pull_request", pull(), ["--pr=8"]),
        ("pull_request", pull(ODD), ["--pr=8"]),
        ("pull_request", pull(action="synchronize"), ["--pr=8"]),
        ("pull_request", pull(action="labeled", label={"name": "ralph:review"}), ["--pr=8", "--force"]),
        ("workflow_dispatch", {"inputs": {"pull-request": "8", "force": "true"}}, ["--pr=8", "--force"]),
        ("repository_dispatch", {"action": "ralph-review-trigger", "client_payload": {"pull_request": 8}}, ["--pr=8"]),
    ],
)
def test_a_pull_of_ours_starts_a_review_of_it(
    idle: Runner, github: FakeGitHub, event: str, payload: dict[str, Any], options: list[str]
) -> None:
    job = start(idle, github, "review", event, payload)
    assert [command for command, _ in job.starts] == ["review"], "a review wakes no review"
    assert read_command_line(job) == ["review", *options], job.log
    assert job.owned == []


@pytest.mark.parametrize(
    "payload",
    [
        pull(repository="stranger/slackwater"),
        pull("feature"),
        pull("x/ralph/y"),
        pull("feature", "stranger/slackwater"),
        pull(action="labeled", label={"name": "bug"}),
    ],
)
def test_a_fork_another_branch_or_another_label_starts_no_review(
    idle: Runner, github: FakeGitHub, payload: dict[str, Any]
) -> None:
    job = start(idle, github, "review", "pull_request", payload)
    assert (job.starts, job.checkouts, job.owned, github.journal) == ([], [], [], [])


@pytest.mark.parametrize(
    ("mode", "client_payload"), [("review", {"pull_request": HOSTILE}), ("work", {"issue": "$(touch owned)"})]
)
def test_a_forged_payload_is_refused_before_anything(
    idle: Runner, github: FakeGitHub, mode: str, client_payload: dict[str, Any]
) -> None:
    told = {"repository": {"default_branch": "main"}, "client_payload": client_payload}
    text = render_workflow(mode, INSTALLED, ("self-hosted",))
    job = idle.run(github.token(), github.url, "repository_dispatch", payload=told, workflow=text)
    assert job.code != 0 and "write it like 7" in job.log
    assert (job.starts, job.checkouts, job.owned, github.journal) == ([], [], [], [])
