"""The fake GitHub: issues, comments, labels, history, and how they are listed."""

from __future__ import annotations

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub

# --- issues


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


# --- lists


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
