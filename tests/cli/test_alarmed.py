"""Three failures in a row open one issue on GitHub, whoever fails: the cycle or the gate before it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import Result, cli_here
from tests.integration.hub import Hub, hub, unpaced
from tests.integration.world import CALM

DAMAGED = b"{}"
BLIND = {"contents": "none", "issues": "write"}
OPEN = CALM.replace("[codespell]", "[codespell], agent: {sandbox: env}")  # a job without a cage is told that first


class Terminal(io.StringIO):
    """Output that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Hub]:
    """A repository with nothing to do, and a runner that keeps its tools from job to job."""
    with hub(tmp_path, {"a.txt": "fine\n"}, OPEN, private=True) as made:
        made.actions = {"GITHUB_ACTIONS": "true", "RUNNER_TOOL_CACHE": str(tmp_path / "tools"), "GITHUB_RUN_ID": "7"}
        made.fake.workflow_run(7, "in_progress")
        yield made


def ralph(harbour: Hub, *arguments: str, token: str = "", **more: str) -> Result:
    """A command in a job."""
    given = {"GITHUB_TOKEN": token} if token else {}
    with unpaced():
        return cli_here(*arguments, "--json", repo=harbour.clone, env={**harbour.environ, **given, **more})


def cycle(harbour: Hub) -> int:
    return ralph(harbour, "cycle", "--force").code


def due(harbour: Hub, token: str = "", **more: str) -> int:
    """The gate, asked in a workspace with nothing in it."""
    workspace = harbour.folder / "workspace"
    workspace.mkdir(exist_ok=True)
    given = {"GITHUB_TOKEN": token} if token else {}
    return cli_here("due", "--json", repo=workspace, env={**harbour.environ, **given, **more}).code


def alarms(harbour: Hub) -> list[tuple[str, str]]:
    """Title and state of each."""
    return [(issue.title, issue.state) for issue in harbour.issues if issue.title.startswith("Ralph cannot work")]


def test_the_third_cycle_that_fails_opens_an_issue_and_the_one_that_succeeds_closes_it(harbour: Hub) -> None:
    assert cycle(harbour) == 0
    memory = harbour.fake.branch("ralph-memory")
    harbour.fake.push("ralph-memory", {"memory/open.json": DAMAGED})
    assert [cycle(harbour), cycle(harbour), alarms(harbour)] == [1, 1, []]
    assert [cycle(harbour), cycle(harbour)] == [1, 1]
    ((title, state),) = alarms(harbour)
    assert (state, harbour.fake.branch("ralph-memory") != memory) == ("open", True)
    assert "/harbour/slackwater/actions/runs/7" in str(harbour.issues[-1].body)
    assert ralph(harbour, "memory", "recover", "--take-over").code == 0
    assert cycle(harbour) == 0
    assert alarms(harbour) == [(title, "closed")]


def test_the_third_gate_that_fails_opens_an_issue_and_the_next_cycle_closes_it(harbour: Hub) -> None:
    blind = harbour.fake.token(permissions=BLIND)
    assert [due(harbour, blind), due(harbour, blind), alarms(harbour)] == [1, 1, []]
    assert [due(harbour, blind), due(harbour, blind)] == [1, 1]
    ((title, state),) = alarms(harbour)
    assert state == "open"
    assert due(harbour) == 0
    assert alarms(harbour) == [(title, "open")], "an answer of the gate is no cycle yet"
    assert cycle(harbour) == 0
    assert alarms(harbour) == [(title, "closed")]


def test_a_gate_that_answers_in_between_begins_the_count_anew(harbour: Hub) -> None:
    blind = harbour.fake.token(permissions=BLIND)
    for _ in range(3):
        assert [due(harbour, blind), due(harbour, blind), due(harbour)] == [1, 1, 0]
    assert alarms(harbour) == []


def test_a_gate_that_answers_forgets_no_failure_of_a_cycle(harbour: Hub) -> None:
    assert cycle(harbour) == 0
    harbour.fake.push("ralph-memory", {"memory/open.json": DAMAGED})
    assert [(cycle(harbour), due(harbour)) for _ in range(3)] == [(1, 10)] * 3
    assert [state for _, state in alarms(harbour)] == ["open"]


@pytest.mark.parametrize("command", [("work", "--once"), ("review", "--pr=7")], ids=lambda words: words[0])
def test_an_agent_that_cannot_even_begin_three_times_opens_an_issue(harbour: Hub, command: tuple[str, ...]) -> None:
    codes = [ralph(harbour, *command, "--agent=nobody").code for _ in range(4)]
    assert codes == [64] * 4
    ((title, state),) = alarms(harbour)
    assert (state, "nobody" in title) == ("open", True)


def test_work_that_comes_to_an_end_in_between_begins_the_count_anew(harbour: Hub) -> None:
    for _ in range(3):
        assert [ralph(harbour, "work", "--once", "--agent=nobody").code for _ in range(2)] == [64, 64]
        idle = ralph(harbour, "work", "--once", "--command=true")
        assert (idle.code, idle.json["outcome"]) == (0, "idle"), idle.err
    assert alarms(harbour) == []


@pytest.mark.parametrize(("job", "count"), [("true", 1), ("", 0)])
def test_a_terminal_means_that_somebody_looks_unless_it_is_a_jobs(
    harbour: Hub, monkeypatch: pytest.MonkeyPatch, job: str, count: int
) -> None:
    monkeypatch.setattr("tests.helpers.io.StringIO", Terminal)
    assert ralph(harbour, "cycle", "--forge", "github", token="ghs_nobody", GITHUB_ACTIONS=job).code == 1
    assert len(list(harbour.folder.rglob("*failures.json"))) == count


@pytest.mark.parametrize("more", [{"RALPH_STAGED": "true"}, {"GITHUB_ACTIONS": ""}], ids=["staged", "at a desk"])
def test_a_gate_that_may_change_nothing_or_stands_in_no_workflow_counts_nothing(
    harbour: Hub, more: dict[str, str]
) -> None:
    blind = harbour.fake.token(permissions=BLIND)
    assert 0 not in [due(harbour, blind, **more) for _ in range(4)]
    assert alarms(harbour) == []
    assert not list(harbour.folder.rglob("*failures.json"))


def test_an_alarm_that_cannot_be_sent_hides_no_failure_of_the_gate(harbour: Hub) -> None:
    for _ in range(4):
        told = cli_here("due", "--json", repo=harbour.folder, env={**harbour.environ, "GITHUB_TOKEN": "ghs_nobody"})
        assert (told.code, told.json["error"]["who"]) == (1, "forge")
    assert "the alarm could not be sent" in told.err and "ghs_nobody" not in told.err
    (counter,) = harbour.folder.rglob("*failures.json")
    assert json.loads(counter.read_text())["count"] == 4
