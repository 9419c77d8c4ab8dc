"""The action, run for real by a local runner against a GitHub of loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.action.conftest import FILES, serving
from tests.action.runner import ROOT, Job, Runner, assert_nothing_began
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git

pytestmark = pytest.mark.long  # takes ten seconds or more

HOSTILE = (
    "$(touch owned) `touch owned` ]]; touch owned; ${IFS} \"'\n::set-output name=cycle::99\n::add-mask::slackwater"
)
NAMES = (
    "$(touch owned).md",
    "`touch owned`.md",
    "'; touch owned; '.md",
    '"; touch owned; ".md',
    "]] && touch x.md",
    "::set-output name=cycle::99.md",
    "--exec=touch owned.md",
    "a\n::add-mask::slackwater\n.md",
)
NOISE = "::set-output name=cycle::99\n::add-mask::slackwater\n##[add-mask]slackwater\n::stop-commands::owned\n"


@dataclass(frozen=True, slots=True)
class Life:
    """A warm runner's jobs in order: a schedule twice, then by hand and by a dispatch, both without asking the gate."""

    cron: Job
    again: Job
    manual: Job
    dispatch: Job
    github: FakeGitHub
    before: datetime

    def journal(self) -> list[dict[str, object]]:
        """The reports of all cycles, as memory keeps them, oldest first."""
        names = git(self.github.bare, "ls-tree", "-r", "--name-only", "ralph-memory", "memory/journal/").splitlines()
        texts = [git(self.github.bare, "show", f"ralph-memory:{name}") for name in sorted(names)]
        return [json.loads(text)["report"] for text in texts]


@pytest.fixture(scope="module")
def life(action: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """Four jobs of one runner."""
    folder = tmp_path_factory.mktemp("life")
    (folder / "runner").mkdir()
    runner = Runner(folder / "runner", action)
    runner.seed()
    with serving(folder, FILES) as github:
        token, before = github.token(), datetime.now(UTC)
        given = {"twitter-api-key": "key-of-the-input", "telegram-bot-token": ""}
        ours = {"TELEGRAM_BOT_TOKEN": "token-of-the-job", "DISCORD_BOT_TOKEN": ""}
        yield Life(
            cron=runner.run(token, github.url, "schedule", given, ours),
            again=runner.run(token, github.url, "schedule"),
            manual=runner.run(token, github.url, "workflow_dispatch", {"force": "true"}),
            dispatch=runner.run(
                token,
                github.url,
                "repository_dispatch",
                {"force": "true"},
                payload={
                    "action": "ralph-loop-trigger",
                    "client_payload": {"generation": HOSTILE, "not_before": HOSTILE},
                },
            ),
            github=github,
            before=before,
        )


def test_every_trigger_runs_a_cycle_and_is_told(life: Life) -> None:
    assert [life.cron.code, life.manual.code, life.dispatch.code] == [0, 0, 0], life.cron.log
    assert [report["trigger"] for report in life.journal()] == ["cron", "manual", "dispatch"]


def test_a_cycle_sets_every_output(life: Life) -> None:
    told = {name: value for name, value in life.cron.outputs.items() if value}
    assert told.pop("summary-path")
    assert datetime.fromisoformat(told.pop("next-due-at")) > life.before
    assert told == {"cycle": "1", "urgency": "low", "missions-active": "1", "actions-taken": "1"}


def test_the_page_of_the_job_shows_what_was_done_with_links(life: Life) -> None:
    assert life.cron.summary.startswith("## Ralph, cycle 1: done")
    assert f"({life.github.url}/harbour/slackwater/pull/1)" in life.cron.summary
    assert re.search(r"; \d+ requests to the forge", life.cron.summary)
    assert f"Summary - {life.cron.summary.splitlines()[0]}" in life.cron.log


def test_a_wake_that_comes_too_early_ends_before_anything_is_checked_out(life: Life) -> None:
    assert life.again.code == 0
    assert (life.cron.checkouts, life.again.checkouts) == (["0 false"], [])
    assert life.again.starts == [], "nothing that is installed is started"
    told = {name: value for name, value in life.again.outputs.items() if value}
    assert told == {"next-due-at": life.cron.outputs["next-due-at"], "actions-taken": "0"}
    assert f"the next cycle is due at {told['next-due-at']}" in life.again.log


def test_force_does_not_even_ask(life: Life) -> None:
    assert [command for command, _ in life.manual.starts] == ["cycle"]


@pytest.mark.attack(42)
def test_secrets_reach_the_cycle_and_no_other_step(life: Life) -> None:
    ((_, cycle),) = life.cron.starts
    assert cycle["TWITTER_API_KEY"] == "key-of-the-input"
    assert cycle["TELEGRAM_BOT_TOKEN"] == "token-of-the-job"
    assert not {name for name in cycle if name.startswith("RALPH_INPUT_")}
    assert not {"ANTHROPIC_API_KEY", "DATABASE_URL", "TWITTER_API_SECRET"} & cycle.keys()


@pytest.mark.attack(42)
@pytest.mark.attack(42)
def test_no_credential_and_no_report_is_left_behind(life: Life) -> None:
    for job in (life.cron, life.again, life.manual, life.dispatch):
        assert job.leaks == []
        assert [name for name in job.temporary if not name.startswith("ralph-summary-")] == []


def test_a_staged_cycle_changes_nothing(runner: Runner, github: FakeGitHub) -> None:
    before = git(github.bare, "for-each-ref")
    job = runner.run(github.token(), github.url, "workflow_dispatch", {"staged": "true"})
    assert job.code == 0, job.log
    assert job.summary.startswith("## Ralph, cycle 1: done (staged: nothing was changed)")
    assert job.outputs["actions-taken"] == "0"
    assert git(github.bare, "for-each-ref") == before
    assert {request.method for request in github.journal if request.transport == "rest"} <= {"GET"}


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ({"staged": "yes"}, "write staged: true"),
        ({"force": HOSTILE}, "write staged: true"),
        ({"mode": "dry"}, "write mode: cycle"),
    ],
)
def test_an_input_that_means_nothing_stops_before_anything(
    runner: Runner, github: FakeGitHub, inputs: dict[str, str], line: str
) -> None:
    job = runner.run(github.token(), github.url, "workflow_dispatch", inputs)
    assert_nothing_began(job, github, line)


@pytest.mark.parametrize("inputs", [{}, {"force": "true"}], ids=["at the gate", "in the cycle"])
def test_a_failure_says_who_must_act(runner: Runner, github: FakeGitHub, inputs: dict[str, str]) -> None:
    token = github.token()
    if inputs:
        github.fail("403", ("GET", "/issues"), times=1000)
    else:
        github.revoke(token)
    job = runner.run(token, github.url, "schedule", inputs)
    assert job.code != 0
    assert "Summary - ## Ralph could not finish" in job.log
    assert "must act" in job.log and "Next: " in job.log
    assert "Traceback" not in job.log
    assert job.leaks == [] and job.temporary == []


@pytest.mark.attack(37, 38)
def test_nothing_that_strangers_wrote_is_executed(
    cold: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold.seed(NOISE)
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")  # for the test's own commit of such names
    files = dict.fromkeys(NAMES, "This is teh documentation, and it recieves little care.\n")
    with serving(tmp_path, files) as github:
        mara = github.person("mara")
        mara.push("ralph/$(touch${IFS}owned)`touch${IFS}owned`", {"x.txt": HOSTILE.encode()})
        mara.create_issue(HOSTILE, HOSTILE, ("ralph:mission",))
        job = cold.run(github.token(), github.url)
    assert job.code == 0, job.log
    assert job.outputs["cycle"] == "1"
    assert job.owned == []
    assert "afterwards: harbour/slackwater" in job.log, "a mask was obeyed"
    assert not [line for line in job.summary.splitlines() if line.lstrip().startswith(("::", "##["))]


def test_the_workflow_of_this_repository_runs_the_action_that_stands_in_it(runner: Runner, tmp_path: Path) -> None:
    files = {path.relative_to(runner.action).as_posix(): path.read_text() for path in sorted(_ours(runner.action))}
    workflow = (ROOT / ".github" / "workflows" / "ralph-loop.yml").read_text()
    with serving(tmp_path, files) as github:
        asked = {"inputs": {"staged": "true", "force": "true"}, "repository": {"default_branch": "main"}}
        job = runner.run(github.token(), github.url, "workflow_dispatch", payload=asked, workflow=workflow)
    assert job.code == 0, job.log
    assert job.checkouts == ["1 false", "0 false"]
    assert [command for command, _ in job.starts] == ["cycle"]
    assert "(staged: nothing was changed)" in job.log


def _ours(action: Path) -> list[Path]:
    return [path for path in action.rglob("*") if path.is_file() and path.suffix not in (".pyc", ".pyo")]
