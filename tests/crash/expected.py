"""What must have come of each stage when nothing disturbs it, by what people see on the server."""

from __future__ import annotations

from tests.crash.snapshots import networks_of
from tests.crash.witness import heads, open_state
from tests.helpers import git
from tests.integration.hub import Hub


def statuses(hub: Hub) -> list[str]:
    """Where the missions stand that are not over."""
    return [str(mission.status) for mission in open_state(hub).missions]


def one_pull(hub: Hub) -> None:
    assert [pull.state for pull in hub.pulls] == ["open"] and statuses(hub) == ["IN_REVIEW"]


def one_closed(hub: Hub) -> None:
    (pull,) = hub.pulls
    assert (pull.state, hub.merged(pull.number), hub.fake.branch(pull.pull.head)) == ("closed", False, "")
    assert (statuses(hub), len(hub.said(pull.number))) == ([], 1)


def merged(hub: Hub) -> None:
    (pull,) = hub.pulls
    assert hub.merged(pull.number) and hub.issues == []
    assert (statuses(hub), hub.said(pull.number)) == ([], [])


def left_the_queue(hub: Hub) -> None:
    (thread,) = hub.pulls
    assert thread.state == "open" and not thread.pull.queued


def escalated(hub: Hub) -> None:
    (pull,) = hub.pulls
    assert statuses(hub) == ["ESCALATED"] and "ralph:escalated" in pull.labels
    assert [person.login for person in pull.assignees] == ["mara"]


def asked_for_a_setting(hub: Hub) -> None:
    """Once, with nothing left behind that nobody can use."""
    (issue,) = hub.issues
    assert (hub.pulls, statuses(hub), hub.said(issue.number)) == ([], ["ESCALATED"], [])
    assert "ralph:escalated" in issue.labels and issue.body.startswith("**Needs a person.** Settings → Actions")
    assert git(hub.fake.bare, "branch", "--list", "ralph/*") == ""


def rejected(hub: Hub) -> None:
    assert [pull.state for pull in hub.pulls] == ["closed"] and not hub.merged(hub.pulls[0].number)
    assert statuses(hub) == [] and "ralph:rejected" in hub.pulls[0].labels


def one_question(hub: Hub) -> None:
    assert (len(hub.issues), hub.pulls, statuses(hub)) == (1, [], ["DISCOVERED"])


def planned(hub: Hub) -> None:
    assert (len(hub.issues), hub.pulls) == (1, []) and statuses(hub) in (["PLANNED"], ["ESCALATED"])


def asked_anew(hub: Hub) -> None:
    one_question(hub)
    assert "proposal is now `" in hub.said(hub.issues[0].number)[-1]


def two_issues(hub: Hub) -> None:
    assert sorted(statuses(hub)) == ["DISCOVERED", "IN_REVIEW"]
    assert len(hub.issues) == 1 and "TODO" in dashboard(hub)


def dashboard(hub: Hub) -> str:
    """What it says."""
    (page,) = [thread.body or "" for thread in hub.threads if thread.title == "Ralph"]
    return page


def list_of_two(hub: Hub) -> None:
    assert hub.issues == [] and "TODO" in dashboard(hub) and "FIXME" in dashboard(hub)


def left_to_her(hub: Hub) -> None:
    assert [pull.title for pull in hub.pulls] == ["Mend the spelling"] and hub.issues == []


def answered(hub: Hub) -> None:
    (pull,) = hub.pulls
    assert (pull.state, statuses(hub)) == ("open", ["IN_REVIEW"])
    assert git(hub.fake.bare, "show", f"{pull.pull.head}:src/table.py") == "TIDES = 1"


def announced(hub: Hub) -> None:
    merged(hub)
    assert [len(network.texts) for network in networks_of(hub).values()] == [1, 1, 1]


def published(hub: Hub) -> None:
    published_on_two(hub)
    (issue,) = hub.issues
    assert "chat not found" in hub.said(issue.number)[0]


def published_on_two(hub: Hub) -> None:
    (issue,) = hub.issues
    said = {name: len(network.texts) for name, network in networks_of(hub).items()}
    assert said == {"twitter": 1, "telegram": 0, "discord": 1}
    assert issue.state == "closed" and "content:published" in issue.labels


def untouched(hub: Hub) -> None:
    (pull,) = hub.pulls
    assert pull.state == "open" and not hub.merged(pull.number)
    assert hub.said(pull.number) == []


def no_memory(hub: Hub) -> None:
    untouched(hub)
    assert "refs/heads/ralph-memory" not in heads(hub)


def three_missions(hub: Hub) -> None:
    assert len(statuses(hub)) == 3 and len(hub.issues) == 3
