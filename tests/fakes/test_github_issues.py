"""The fake GitHub: issues, comments, labels, history, and how they are listed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub


def everything(api: Client, path: str, **query: object) -> list[dict[str, Any]]:
    """All pages, by following the links."""
    found, url = [], ""
    while True:
        answer = api("GET", url or path, **({} if url else query))
        assert answer.status == 200, answer.raw
        found += answer.json
        links = dict(reversed(part.split("; ")) for part in answer.headers.get("link", "").split(", ") if part)
        if 'rel="next"' not in links:
            return found
        url = links['rel="next"'].strip("<>").removeprefix(api.fake.api_url)


# --- issues


def test_issue_is_created_listed_and_read(fake: FakeGitHub, api: Client) -> None:
    number = api.issue(body="A typo.\r\n\tIn — line 3 🚢", labels=["bug", "new label"], assignees=["harbour"])
    issue = api("GET", f"./issues/{number}").json
    assert (issue["body"], issue["state"]) == ("A typo.\r\n\tIn — line 3 🚢", "open")
    assert [label["name"] for label in issue["labels"]] == ["bug", "new label"]
    assert (issue["user"]["id"], issue["user"]["type"]) == (41898282, "Bot")
    assert [one["number"] for one in api("GET", "./issues").json] == [number]
    assert set(fake.labels) == {"bug", "new label"}


def test_empty_body_is_kept_as_none(api: Client) -> None:
    assert api("GET", f"./issues/{api.issue(body='')}").json["body"] is None


def test_people_and_the_api_share_one_sequence_of_numbers(fake: FakeGitHub, api: Client) -> None:
    fake.push("topic", {"a": b"a\n"})
    mara = fake.person("mara")
    assert [mara.create_issue("One"), mara.open_pull("topic", "main", "Two"), api.issue("Three")] == [1, 2, 3]


def test_list_of_issues_holds_pulls_too(fake: FakeGitHub, api: Client) -> None:
    fake.push("topic", {"a": b"a\n"})
    fake.person("mara").open_pull("topic", "main", "A pull")
    api.issue()
    assert ["pull_request" in issue for issue in api("GET", "./issues").json] == [False, True]


def test_missing_issue_is_404_and_a_deleted_one_410(fake: FakeGitHub, api: Client) -> None:
    number = api.issue()
    fake.person("mara").delete_issue(number)
    assert api("GET", "./issues/99").said == (404, "Not Found")
    assert api("GET", f"./issues/{number}").said == (410, "This issue was deleted")
    assert api("GET", "./issues").json == []


def test_issues_are_filtered_and_sorted(fake: FakeGitHub, api: Client) -> None:
    mara = fake.person("mara")
    one, two, three = (mara.create_issue("x", labels=("A", "b")), mara.create_issue("x", labels=("a",)), api.issue())
    mara.close_issue(two, "not_planned")
    mara.comment(one, "up")

    def numbers(**query: object) -> list[int]:
        return [issue["number"] for issue in api("GET", "./issues", **query).json]

    assert numbers() == [three, one]
    assert numbers(state="all", direction="asc") == [one, two, three]
    assert numbers(state="all", labels="a,B") == [one]
    assert numbers(creator="github-actions[bot]") == [three]
    assert numbers(sort="updated") == [one, three]
    assert numbers(state="all", since="2026-05-04T12:00:03Z", direction="asc") == [one, two]
    assert numbers(assignee="none", state="closed") == [two]


def test_closing_tells_reason_and_who(fake: FakeGitHub, api: Client) -> None:
    number = api.issue()
    fake.person("mara").close_issue(number, "not_planned")
    issue = api("GET", f"./issues/{number}").json
    assert (issue["state"], issue["state_reason"], issue["closed_by"]["login"]) == ("closed", "not_planned", "mara")
    reopened = api("PATCH", f"./issues/{number}", {"state": "open"}).json
    assert (reopened["state"], reopened["state_reason"], reopened["closed_at"]) == ("open", "reopened", None)
    assert api("PATCH", f"./issues/{number}", {"state": "closed"}).json["state_reason"] == "completed"


def test_events_tell_what_happened_in_githubs_words(fake: FakeGitHub, api: Client) -> None:
    number, mara = api.issue(labels=["bug"]), fake.person("mara")
    mara.label(number, ("bug", "new"))
    mara.unlabel(number, ("bug",))
    mara.edit_issue(number, title="Better")
    mara.assign(number, ("mara",))
    mara.close_issue(number)
    mara.reopen(number)
    events = api("GET", f"./issues/{number}/events").json
    assert [event["event"] for event in events] == [
        "labeled",
        "labeled",
        "unlabeled",
        "renamed",
        "assigned",
        "closed",
        "reopened",
    ]
    assert [event["actor"]["login"] for event in events][:2] == ["github-actions[bot]", "mara"]
    assert events[1]["label"]["name"] == "new"
    assert events[3]["rename"] == {"from": "Typo", "to": "Better"}
    assert api("GET", "./issues/events").json[0]["event"] == "reopened"


def test_time_passes_between_mutations_and_is_whole_seconds(fake: FakeGitHub, api: Client) -> None:
    fake.clock.now = datetime(2030, 1, 1, 0, 0, 0, 900_000, tzinfo=UTC)
    stamps = [api("GET", f"./issues/{api.issue()}").json["created_at"] for _ in range(2)]
    assert stamps == ["2030-01-01T00:00:00Z", "2030-01-01T00:00:01Z"]
    answer = api("GET", ".")
    assert parsedate_to_datetime(answer.headers["date"]) == datetime(2030, 1, 1, 0, 0, 1, tzinfo=UTC)
    fake.clock.advance(3600)
    assert api("GET", f"./issues/{api.issue()}").json["created_at"] == "2030-01-01T01:00:00Z"
    fake.clock.now -= timedelta(days=2)
    assert api("GET", f"./issues/{api.issue()}").json["created_at"] == "2030-01-01T01:00:01Z"


def test_timeline_holds_comments_and_reviews(fake: FakeGitHub, api: Client) -> None:
    fake.push("topic", {"a": b"a\n"})
    mara = fake.person("mara")
    number = mara.open_pull("topic", "main", "Mine")
    mara.comment(number, "Look")
    fake.person("jonas").review(number, "approved")
    mara.label(number, ("x",))
    events = [event["event"] for event in api("GET", f"./issues/{number}/timeline").json]
    assert events == ["committed", "commented", "reviewed", "labeled"]


def test_who_is_mentioned_is_told_but_not_in_code(fake: FakeGitHub, api: Client) -> None:
    fake.person("mara")
    api.issue(body="`@mara` and a@mara.example and\n```\n@mara\n```\n@nobody")
    number = api.issue(body="Hello @Mara!")
    events = api("GET", "./issues/events").json
    assert [(event["event"], event["actor"]["login"]) for event in events] == [
        ("subscribed", "mara"),
        ("mentioned", "mara"),
    ]
    assert {event.number for event in fake.world.events} == {number}


# --- comments and labels


def test_comments_live_and_die(fake: FakeGitHub, api: Client) -> None:
    number = api.issue()
    made = api("POST", f"./issues/{number}/comments", {"body": "One\r\n"}).json
    theirs = fake.person("mara").comment(number, "Two")
    assert [one["body"] for one in api("GET", f"./issues/{number}/comments").json] == ["One\r\n", "Two"]
    assert [one["id"] for one in api("GET", "./issues/comments", sort="created", direction="desc").json] == [
        theirs,
        made["id"],
    ]
    changed = api("PATCH", f"./issues/comments/{made['id']}", {"body": "Uno"}).json
    assert changed["updated_at"] > changed["created_at"]
    assert api("DELETE", f"./issues/comments/{made['id']}").status == 204
    assert api("GET", f"./issues/comments/{made['id']}").status == 404
    assert api("GET", f"./issues/{number}").json["comments"] == 1
    fake.person("mara").edit_comment(theirs, "Due")
    assert api("GET", f"./issues/comments/{theirs}").json["body"] == "Due"


@pytest.mark.parametrize("path", ["./issues", "./issues/1", "./issues/1/comments"])
def test_body_that_is_too_long_is_refused(fake: FakeGitHub, api: Client, path: str) -> None:
    fake.person("mara").create_issue("One")
    method = "PATCH" if path.endswith("1") else "POST"
    fields = {"title": "t"} if path == "./issues" else {}
    assert api(method, path, fields | {"body": "x" * 65_537}).status == 422
    assert api(method, path, fields | {"body": "x" * 65_536}).status in (200, 201)


def test_labels_are_managed(fake: FakeGitHub, api: Client) -> None:
    number = api.issue(labels=["Old"])
    assert api("POST", "./labels", {"name": "ralph:x", "color": "00ff00", "description": "d"}).status == 201
    again = api("POST", "./labels", {"name": "RALPH:x", "color": "00ff00"})
    assert (again.status, again.json["errors"][0]["code"]) == (422, "already_exists")
    assert api("PATCH", "./labels/ralph:x", {"color": "112233"}).json["color"] == "112233"
    assert [one["name"] for one in api("POST", f"./issues/{number}/labels", {"labels": ["a b"]}).json] == ["Old", "a b"]
    assert [one["name"] for one in api("POST", f"./issues/{number}/labels", ["c"]).json] == ["Old", "a b", "c"]
    assert api("DELETE", f"./issues/{number}/labels/a%20b").status == 200
    assert api("DELETE", f"./issues/{number}/labels/a%20b").said == (404, "Label does not exist")
    assert [one["name"] for one in api("PUT", f"./issues/{number}/labels", {"labels": ["z"]}).json] == ["z"]
    assert len(api("GET", "./labels").json) == 5


def test_label_may_hold_a_slash(fake: FakeGitHub, api: Client) -> None:
    number = api.issue(labels=["area/ui", "kept"])
    assert api("GET", "./labels/area%2Fui").json["url"].endswith("/labels/area%2Fui")
    assert api("DELETE", f"./issues/{number}/labels/area%2Fui").status == 200
    assert fake.issue(number).labels == ["kept"]


def test_stranger_is_not_assigned(api: Client) -> None:
    number = api.issue()
    assert api("POST", "./issues", {"title": "x", "assignees": ["nobody"]}).status == 422
    assert api("POST", f"./issues/{number}/assignees", {"assignees": ["nobody", "harbour"]}).status == 201
    assert [one["login"] for one in api("GET", f"./issues/{number}").json["assignees"]] == ["harbour"]


# --- lists


def test_pages_are_linked(fake: FakeGitHub, api: Client) -> None:
    for number in range(1, 8):
        fake.person("mara").create_issue(f"Issue {number}")
    first = api("GET", "./issues", per_page=3)
    assert 'rel="next"' in first.headers["link"] and 'rel="last"' in first.headers["link"]
    assert [one["number"] for one in everything(api, "./issues", per_page=3)] == [7, 6, 5, 4, 3, 2, 1]
    assert "link" not in api("GET", "./issues").headers
    fake.page_size_cap = 2
    assert len(api("GET", "./issues", per_page=100).json) == 2


def test_new_things_are_missing_from_lists_for_a_while(fake: FakeGitHub, api: Client) -> None:
    fake.list_lag = 2
    number = api.issue()
    assert api("GET", f"./issues/{number}").status == 200
    assert [len(api("GET", "./issues").json) for _ in range(3)] == [0, 0, 1]
    made = api("POST", f"./issues/{number}/comments", {"body": "x"}).json
    assert api("GET", f"./issues/comments/{made['id']}").status == 200
    assert [len(api("GET", f"./issues/{number}/comments").json) for _ in range(3)] == [0, 0, 1]
    fake.person("mara").label(number, ("x",))
    assert [len(api("GET", f"./issues/{number}/events").json) for _ in range(3)] == [0, 0, 1]


def test_unchanged_reply_is_304_and_free(fake: FakeGitHub, api: Client) -> None:
    number = api.issue()
    first = api("GET", f"./issues/{number}")
    again = api("GET", f"./issues/{number}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.raw, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert again.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    assert (fake.journal[-1].status, fake.journal[-1].conditional) == (304, True)
    strong = first.headers["etag"].removeprefix("W/")
    assert api("GET", f"./issues/{number}", headers={"If-None-Match": strong}).status == 304
    fake.person("mara").comment(number, "news")
    assert api("GET", f"./issues/{number}", headers={"If-None-Match": first.headers["etag"]}).status == 200


def test_requests_are_counted_down(fake: FakeGitHub, api: Client) -> None:
    first, second = api("GET", "."), api("GET", ".")
    left = [int(answer.headers["x-ratelimit-remaining"]) for answer in (first, second)]
    assert left == [999, 998] and second.headers["x-github-request-id"] != first.headers["x-github-request-id"]
    fake.world.tokens[api.token].used = 1000
    spent = api("GET", ".")
    assert (spent.status, spent.headers["x-ratelimit-remaining"]) == (403, "0")
    assert api("GET", "/rate_limit").json["rate"]["remaining"] == 0
    fake.clock.advance(3600)
    assert api("GET", ".").headers["x-ratelimit-remaining"] == "999"


def test_requests_at_the_same_time_share_one_sequence(fake: FakeGitHub, api: Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(api.issue, map(str, range(16))))
    assert sorted(numbers) == list(range(1, 17))
    assert len({thread.created_at for thread in fake.threads.values()}) == 16
