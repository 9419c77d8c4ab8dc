"""How much a cycle asks of GitHub; and what people do on the server while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from ralph_mission.adapters.forges.github.dashboard import KEY as STANDING
from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleReport
from tests.crash.dying import writes
from tests.crash.stages import NOW, staged
from tests.crash.witness import key_in
from tests.figures import Table, shown
from tests.helpers import git
from tests.integration.hub import Hub, open_hub
from tests.integration.world import TYPOS, statuses

pytestmark = pytest.mark.long  # takes ten seconds or more

IDLE = 3  # REST requests of a cycle that has nothing to do
WITH_MISSIONS = IDLE + 5  # what was said of missions that wait, who may decide about them, how their checks stand
CROWDED = 40  # and of any cycle in a repository with hundreds of open issues and pulls


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("requests")
    yield made
    shown(request.config, made)


def count_requests(hub: Hub, table: Table, row: str) -> Counter[str]:
    """What the last cycle asked, by transport, and how much of it had not changed."""
    told = Counter(request.transport for request in hub.fake.journal)
    told["304"] = hub.fake.count(transport="rest", status=304)
    table.count(row, **{name: told[name] for name in ("rest", "304", "graphql", "git")})
    return told


def one_more(hub: Hub, after: timedelta = timedelta(hours=7)) -> CycleReport:
    """A cycle whose requests alone are in the journal."""
    hub.fake.journal.clear()
    return hub.cycle(after)[0]


def single(hub: Hub) -> list[str]:
    """The requests of the last cycle that were about one issue, pull, person or commit."""
    rest = (request.below for request in hub.fake.journal if request.transport == "rest")
    return [path for path in rest if path.count("/") > 1 and not path.startswith("/repos")]


# --- quiet cycles ------------------------------------------------------------------------


def test_an_idle_cycle_without_a_mission_asks_little(tmp_path, table):
    with open_hub(tmp_path, {"a.txt": "fine\n"}) as hub:
        hub.cycle()
        hub.cycle()
        assert one_more(hub).effects == ()
        assert count_requests(hub, table, "idle, no mission")["rest"] <= IDLE


WAITING_CONFIG = """\
limits: {threads_per_week: 9}
observers:
  code: {markers: {}}
  commands:
    - {name: check, run: cat bugs.txt, kind: bug, parse: {regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}}
hands: {fixers: [typos]}
"""
WAITING_FILES = {**TYPOS, "bugs.txt": "src/a.py:1: division by zero\n", "src/a.py": "x = 1 / 0\n"}


def three_waiting(hub: Hub) -> None:
    """One escalated, one in review, one proposal."""
    hub.cycle()  # the bug first
    hub.cycle()
    hub.person().review(hub.pulls[0].number, "changes_requested", "not like this")
    hub.cycle()
    hub.fake.push("main", {"docs/more.md": b"We recieve boats.\n"})
    for _ in range(4):
        report, _ = hub.cycle()
    assert sorted(statuses(report)) == ["DISCOVERED", "ESCALATED", "IN_REVIEW"]


def test_an_idle_cycle_with_three_missions_that_wait_asks_as_little(tmp_path, table):
    with open_hub(tmp_path, WAITING_FILES, WAITING_CONFIG) as hub:
        three_waiting(hub)
        assert one_more(hub, timedelta(minutes=20)).effects == ()
        assert count_requests(hub, table, "idle, three missions wait")["rest"] <= WITH_MISSIONS


# --- a crowd -----------------------------------------------------------------------------


def crowd(hub: Hub, issues: int, pulls: int) -> None:
    """Several people's open issues and pulls, with comments."""
    people = [hub.person(f"neighbour-{n}", "read") for n in range(4)]
    for n in range(issues):
        number = people[n % 4].create_issue(f"Question {n}", "How?")
        people[(n + 1) % 4].comment(number, "Like this.")
    git(hub.fake.bare, "fast-import", "--quiet", stdin="".join(branch(n) for n in range(pulls)))
    for n in range(pulls):
        people[n % 4].comment(people[(n + 2) % 4].open_pull(f"work-{n}", "main", f"Work {n}"), "Good.")


def branch(n: int) -> str:
    """A branch with one commit on the default one, for `git fast-import`."""
    return (
        f"commit refs/heads/work-{n}\ncommitter w <w@example.org> 1777896000 +0000\ndata 4\nWork\n"
        f"from refs/heads/main\nM 100644 inline work/{n}.txt\ndata 4\nnew\n\n"
    )


# --- people on the server while a cycle runs ----------------------------------------------


def at_write(hub: Hub, path: str, action: Callable[[], object]) -> None:
    """Somebody does something in the moment after a write to a path was done."""

    def done(request, response) -> None:
        if writes(request) and request.below == path:
            undo()
            action()

    undo = hub.fake.after(done)


def edit(hub: Hub, old: str, new: str, path: str = "memory/ralph-log.md") -> None:
    """A person's commit on the memory branch."""
    text = git(hub.fake.bare, "show", f"ralph-memory:{path}") + "\n"
    assert old in text
    hub.fake.person("mara").push("ralph-memory", {path: text.replace(old, new, 1).encode()})


def actions(hub: Hub) -> list[str]:
    """What was written over HTTP, memory and the standing issue left out."""
    written = (r for r in hub.fake.journal if writes(r) and r.transport == "rest")
    return [f"{r.method} {r.below}" for r in written if key_in((r.body or {}).get("body")) != STANDING]


@pytest.fixture
def approved(tmp_path) -> Iterator[Hub]:
    """A pull about to be merged."""
    with staged(tmp_path, "an approved pull is merged") as hub:
        yield hub


@pytest.fixture
def refused(tmp_path) -> Iterator[Hub]:
    """A pull about to be escalated: by a comment, then by labels."""
    with staged(tmp_path, "a pull to be changed is escalated") as hub:
        yield hub


def test_paused_pushed_between_two_effects_stops_the_next(refused):
    pull = refused.pulls[0].number
    at_write(refused, f"/issues/{pull}/comments", lambda: edit(refused, "paused: false", "paused: true"))
    report, _ = refused.cycle(NOW)
    assert report.outcome == "paused"
    assert actions(refused) == [f"POST /issues/{pull}/comments"]
    assert refused.cycle(NOW)[0].outcome == "paused"
    edit(refused, "paused: true", "paused: false")
    assert statuses(refused.cycle(NOW)[0]) == ["ESCALATED"]
    assert len(refused.said(pull)) == 1 and "ralph:escalated" in refused.pulls[0].labels


def test_the_kill_switch_thrown_between_two_effects_stops_the_next(refused, monkeypatch):
    pull = refused.pulls[0].number
    at_write(refused, f"/issues/{pull}/comments", lambda: monkeypatch.setenv("RALPH_PAUSED", "1"))
    refused.cycle(NOW)
    assert actions(refused) == [f"POST /issues/{pull}/comments"]
    monkeypatch.delenv("RALPH_PAUSED")
    assert statuses(refused.cycle(NOW)[0]) == ["ESCALATED"]
    assert len(refused.said(pull)) == 1 and "ralph:escalated" in refused.pulls[0].labels


def test_a_branch_that_could_not_be_deleted_stays_while_ralph_is_paused(approved, monkeypatch):
    branch = approved.pulls[0].pull.head

    def pause() -> None:
        monkeypatch.setenv("RALPH_PAUSED", "1")
        approved.fake.fail("rate_secondary_429", ("POST", "/git-receive-pack"))

    at_write(approved, "/pulls/1/merge", pause)
    assert statuses(approved.cycle(NOW)[0]) == ["COMPLETED"]
    assert approved.fake.branch(branch)
    monkeypatch.delenv("RALPH_PAUSED")
    approved.cycle(NOW)
    assert not approved.fake.branch(branch)


NOTE = "## Learnings\n\n- the pilots call it *the narrows*  \n"


@pytest.mark.parametrize("path", ["/git-receive-pack", "/pulls/1/merge"])
def test_learnings_pushed_in_the_middle_of_a_cycle_survive_it(approved, path):
    at_write(approved, path, lambda: edit(approved, "## Learnings\n", NOTE))
    report, _ = approved.cycle(NOW)
    assert (report.outcome, statuses(report)) == ("done", ["COMPLETED"])
    assert NOTE in approved.memory() and "- Outcome: merged" in approved.memory()
    assert approved.cycle(NOW)[0].effects == () and NOTE in approved.memory()


@pytest.mark.parametrize("path", ["/git-receive-pack", "/pulls/1/merge"])
def test_a_foreign_commit_on_memory_in_the_middle_of_a_cycle_stops_it(approved, path):
    at_write(approved, path, lambda: edit(approved, '"claim"', '"Claim"', "memory/open.json"))
    try:
        outcome = approved.cycle(NOW)[0].outcome
    except UserError as problem:
        outcome = problem.next_step
    assert outcome in ("paused", "lost") or "recover" in outcome
    assert actions(approved) == ([] if path == "/git-receive-pack" else ["PUT /pulls/1/merge"])
    with pytest.raises(UserError, match="someone else changed"):
        approved.cycle(NOW)
    assert actions(approved) == ([] if path == "/git-receive-pack" else ["PUT /pulls/1/merge"])
