"""What must have come of each stage when nothing disturbs it, by what people see on the server."""

from __future__ import annotations

from tests.crash.snapshots import networks_of
from tests.crash.witness import heads, open_state
from tests.helpers import git
from tests.integration.hub import Hub


def statuses(harbour: Hub) -> list[str]:
    """Where the missions stand that are not over."""
    return [str(mission.status) for mission in open_state(harbour).missions]


def one_pull(harbour: Hub) -> None:
    assert [pull.state for pull in harbour.pulls] == ["open"] and statuses(harbour) == ["IN_REVIEW"]


def one_closed(harbour: Hub) -> None:
    (pull,) = harbour.pulls
    assert (pull.state, harbour.merged(pull.number), harbour.fake.branch(pull.pull.head)) == ("closed", False, "")
    assert (statuses(harbour), len(harbour.said(pull.number))) == ([], 1)


def merged(harbour: Hub) -> None:
    (pull,) = harbour.pulls
    assert harbour.merged(pull.number) and harbour.issues == []
    assert (statuses(harbour), harbour.said(pull.number)) == ([], [])


def left_the_queue(harbour: Hub) -> None:
    (thread,) = harbour.pulls
    assert thread.state == "open" and not thread.pull.queued


def escalated(harbour: Hub) -> None:
    (pull,) = harbour.pulls
    assert statuses(harbour) == ["ESCALATED"] and "ralph:escalated" in pull.labels
    assert [person.login for person in pull.assignees] == ["mara"]


def asked_for_a_setting(harbour: Hub) -> None:
    """Once, with nothing left behind that nobody can use."""
    (issue,) = harbour.issues
    assert (harbour.pulls, statuses(harbour), harbour.said(issue.number)) == ([], ["ESCALATED"], [])
    assert "ralph:escalated" in issue.labels and issue.body.startswith("**Needs a person.** Settings → Actions")
    assert git(harbour.fake.bare, "branch", "--list", "ralph/*") == ""


def rejected(harbour: Hub) -> None:
    assert [pull.state for pull in harbour.pulls] == ["closed"] and not harbour.merged(harbour.pulls[0].number)
    assert statuses(harbour) == [] and "ralph:rejected" in harbour.pulls[0].labels


def one_question(harbour: Hub) -> None:
    assert (len(harbour.issues), harbour.pulls, statuses(harbour)) == (1, [], ["DISCOVERED"])


def planned(harbour: Hub) -> None:
    assert (len(harbour.issues), harbour.pulls) == (1, []) and statuses(harbour) in (["PLANNED"], ["ESCALATED"])


def asked_anew(harbour: Hub) -> None:
    one_question(harbour)
    assert "proposal is now `" in harbour.said(harbour.issues[0].number)[-1]


def two_issues(harbour: Hub) -> None:
    assert sorted(statuses(harbour)) == ["DISCOVERED", "IN_REVIEW"]
    assert len(harbour.issues) == 1 and "TODO" in dashboard(harbour)


def dashboard(harbour: Hub) -> str:
    """What it says."""
    (page,) = [thread.body or "" for thread in harbour.threads if thread.title == "Ralph"]
    return page


def list_of_two(harbour: Hub) -> None:
    assert harbour.issues == [] and "TODO" in dashboard(harbour) and "FIXME" in dashboard(harbour)


def left_to_her(harbour: Hub) -> None:
    assert [pull.title for pull in harbour.pulls] == ["Mend the spelling"] and harbour.issues == []


def answered(harbour: Hub) -> None:
    (pull,) = harbour.pulls
    assert (pull.state, statuses(harbour)) == ("open", ["IN_REVIEW"])
    assert git(harbour.fake.bare, "show", f"{pull.pull.head}:src/table.py") == "TIDES = 1"


def announced(harbour: Hub) -> None:
    merged(harbour)
    assert [len(network.texts) for network in networks_of(harbour).values()] == [1, 1, 1]


def published(harbour: Hub) -> None:
    (issue,) = harbour.issues
    said = {name: len(network.texts) for name, network in networks_of(harbour).items()}
    assert said == {"twitter": 1, "telegram": 0, "discord": 1}
    assert issue.state == "closed" and "content:published" in issue.labels
    assert "chat not found" in harbour.said(issue.number)[0]


def published_on_two(harbour: Hub) -> None:
    (issue,) = harbour.issues
    said = {name: len(network.texts) for name, network in networks_of(harbour).items()}
    assert said == {"twitter": 1, "telegram": 0, "discord": 1}
    assert issue.state == "closed" and "content:published" in issue.labels


def untouched(harbour: Hub) -> None:
    (pull,) = harbour.pulls
    assert pull.state == "open" and not harbour.merged(pull.number)
    assert harbour.said(pull.number) == []


def no_memory(harbour: Hub) -> None:
    untouched(harbour)
    assert "refs/heads/ralph-memory" not in heads(harbour)


def three_missions(harbour: Hub) -> None:
    assert len(statuses(harbour)) == 3 and len(harbour.issues) == 3
