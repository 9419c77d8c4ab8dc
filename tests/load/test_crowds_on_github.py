"""However much strangers write on GitHub: what a cycle asks, keeps and tells an agent of it is bounded.

Requests, characters and bytes are counted, never time. `python -m bench.load` holds time and memory to bounds as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from ralph_mission.adapters.forges.github import api
from ralph_mission.adapters.observers import forge
from ralph_mission.mission.coder.tasks import BODY, REMARK, REMARKS
from ralph_mission.mission.issues import tasks
from ralph_mission.mission.model.forge import ThreadComment
from tests.adapters.forges.github_world import github, kept_file
from tests.crash.dying import describe_request
from tests.fakes.github.actions import threads
from tests.figures import Table, shown
from tests.integration.hub import Hub, open_hub
from tests.integration.test_hub_requests import CROWDED, count_requests, crowd, one_more, single
from tests.integration.world import CALM
from tests.load.sizes import real

MOST_TOLD = 2 * BODY + 2 * REMARKS * REMARK  # characters: text, comments, Learnings
IDLE = 12  # requests of a cycle that begins a mission of an owner, whatever else there is


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    made = Table("load on GitHub")
    yield made
    shown(request.config, made)


def floods(hub: Hub, issues: int, body: str = "Mine first.") -> None:
    """A stranger opens issues."""
    eve = hub.fake.person("eve", "read").account
    for n in range(issues):
        threads.create(hub.fake.world, eve, f"Mine first {n}", body)


def of_an_owner(hub: Hub, body: str = "It is grey.") -> int:
    """An owner's wish."""
    number = int(hub.person().create_issue("Paint the quay", body))
    hub.person().label(number, ("ralph:mission",))
    return number


@pytest.mark.attack(16)
@pytest.mark.parametrize("issues", [250, real(10_000)])
def test_issues_of_strangers_cost_a_request_for_each_hundred_and_starve_no_owner(
    tmp_path, issues: int, table: Table
) -> None:
    with open_hub(tmp_path, {"a.txt": "fine\n"}, f"owners: [mara]\n{CALM}") as hub:
        hub.fake.validate = False  # its own tests see to that
        floods(hub, issues)
        number = of_an_owner(hub)
        hub.now = max(hub.now, hub.fake.clock.present())
        report = one_more(hub)
        assert number in [mission.issue for mission in report.missions]
        assert [mission.issue for mission in report.missions if mission.issue != number] == []
        pages = math.ceil((issues + 2) / 100)
        found = count_requests(hub, table, f"{issues:,} issues of strangers")
        opened = [request for request in hub.fake.journal if describe_request(request) == "POST /issues"]
        assert found["rest"] <= pages * (1 + len(opened)) + IDLE + 2 * forge.ISSUES
        assert len(hub.memory()) < 8_000


@pytest.mark.attack(15)
@pytest.mark.parametrize("characters", [65_536, real(10_000_000)])
def test_a_text_of_any_length_is_cut_before_it_is_kept_or_told(tmp_path, characters: int) -> None:
    with github(tmp_path) as world:
        number = world.human("mara").create_issue("Paint the quay", "x")
        world.fake.issue(number).body = "word " * (characters // 5)
        issue = world.connected().issue(number)
        remark = ThreadComment(1, issue.author, issue.body, issue.created_at, issue.created_at)
        told = tasks.issue_prompt(issue, (remark,) * max(3, 3_000_000 // characters), issue.body)
        assert len(told) < MOST_TOLD
        assert len(issue.body) >= characters - 5  # nothing was cut on the way: it is what is told that is bounded


@pytest.mark.parametrize("comments", [300, real(10_000)])
def test_comments_cost_a_request_for_each_hundred_and_the_last_one_is_heard(
    tmp_path, comments: int, table: Table
) -> None:
    with github(tmp_path) as world:
        world.fake.validate = False  # its own tests see to that
        mara, eve = world.human("mara"), world.human("eve")
        number = mara.create_issue("Paint the quay", "It is grey.")
        for n in range(comments):
            threads.comment(world.fake.world, eve.account, world.fake.threads[number], f"me too {n}")
        for _ in range(2):
            forge_now = world.connected()
            forge_now.issues(), forge_now.issue(number)
            forge_now.close()
            assert forge_now.requests.total <= comments // 100 + 10
        mara.comment(number, "/ralph reject")
        forge_now = world.connected()
        forge_now.issues()
        issue = forge_now.issue(number)
        forge_now.close()
        assert (len(issue.remarks), issue.remarks[-1].body) == (comments + 1, "/ralph reject")
        table.count(f"{comments:,} comments", requests=forge_now.requests.total)
        assert kept_file(world).stat().st_size <= 2 * api.MOST
        assert len(tasks.issue_prompt(issue, issue.remarks, "")) < MOST_TOLD


@pytest.mark.long  # takes ten seconds or more
def test_500_issues_and_200_pulls_cost_pages_and_not_a_request_each(tmp_path, table: Table) -> None:
    with open_hub(tmp_path) as hub:
        hub.fake.validate = False  # its own tests see to that
        crowd(hub, 500, 200)
        for row in ("500 issues and 200 pulls, first cycle", "next", "nothing to do"):
            one_more(hub)
            found = count_requests(hub, table, row)
            opened = [request for request in hub.fake.journal if describe_request(request) == "POST /issues"]
            assert found["rest"] - found["304"] < CROWDED  # what GitHub counts
            assert found["rest"] < CROWDED + len(opened) * (500 + 200) / 100  # the list is read anew before each issue
            assert len(single(hub)) <= 6, single(hub)
