"""Who watches whether each effect was intended sees what was not, what was forced, and what was too much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ralph_mission.adapters.publishers.networks import BUILDS
from ralph_mission.mission.publishing.texts import measure_post
from tests.crash.publishing_hub import publishing_hub
from tests.crash.stages import NOW, staged
from tests.crash.witness import MEMORY, Witness, active, duplicates, watched
from tests.fakes.github.nouns import Request
from tests.fakes.networks.serving import Fault
from tests.helpers import git
from tests.integration.hub import Hub, open_hub

BOT = "github-actions[bot]"
PUSH = Request("POST", "/x.git/git-receive-pack", {}, BOT, transport="git", below="/git-receive-pack")


@pytest.fixture
def hub(tmp_path) -> Iterator[Hub]:
    with open_hub(tmp_path) as made:
        yield made


def sent(below: str, body: dict | None = None) -> Request:
    return Request("POST", f"/repos/harbour/slackwater{below}", {}, BOT, body=body or {}, below=below)


def moved(hub: Hub, witness: Witness, *command: str) -> None:
    """A push of ours, which does that."""
    witness.coming(PUSH)
    git(hub.fake.bare, *command)
    witness.answered(PUSH, None)


def test_an_issue_that_nobody_intended_is_seen(hub):
    witness = Witness(hub)
    witness.coming(sent("/issues", {"title": "x", "body": "y"}))
    assert witness.wrong == ["not intended: POST /issues"]


def test_a_merge_while_a_check_is_not_green_is_seen(hub):
    proposed(hub, "mine")
    (pull,), witness = hub.pulls, Witness(hub)
    sha = hub.fake.branch("mine")
    for result in ("failure", None, "success"):
        hub.fake.check(sha, "tests", result)
        witness.coming(replace(asked_to_merge(pull.number), body={"sha": sha}))
    assert [wrong.partition(": ")[0] for wrong in witness.wrong if wrong.startswith("merged")] == [
        "merged while tests is failure",
        "merged while tests is running",
    ]


@pytest.mark.parametrize("url", ["https://api.telegram.org/bot1:x/sendMessage", "https://api.x.com/2/tweets"])
def test_a_post_that_nobody_intended_is_seen(hub, url):
    witness = Witness(hub)
    witness.posting(url)
    assert [wrong.partition(": ")[0] for wrong in witness.wrong] == ["not intended"]


def test_a_branch_that_nobody_intended_and_memory_that_is_taken_back_are_seen(hub):
    witness = Witness(hub)
    moved(hub, witness, "update-ref", "refs/heads/ralph/x", "main")
    assert witness.wrong == ["not intended: a push to refs/heads/ralph/x"]
    hub.fake.push("ralph-memory", {"a.txt": b"a\n"})
    moved(hub, witness, "update-ref", "-d", MEMORY)
    assert f"forced: {MEMORY}" in witness.wrong


@pytest.mark.parametrize(("method", "status"), [("PUT", 409), ("PUT", 200), ("GET", 404)])
def test_a_push_to_main_is_seen_whatever_is_answered_about_a_merge_before_it_ends(hub, method, status):
    proposed(hub, "mine")
    (pull,), witness = hub.pulls, Witness(hub)
    witness.coming(PUSH)
    if status == 200:
        hub.fake.bot(BOT).merge(pull.number)
    hub.fake.push("main", {"b.txt": b"b\n"})
    witness.answered(asked_to_merge(pull.number, method), SimpleNamespace(status=status))
    witness.answered(PUSH, None)
    assert witness.wrong == ["not intended: a push to refs/heads/main"]


def test_a_branch_goes_at_the_last_commit_of_our_pull_once_that_is_over(hub):
    hub.cycle()
    (ours,), witness = hub.pulls, Witness(hub)
    ref, sha = f"refs/heads/{ours.pull.head}", ours.pull.head_sha
    moved(hub, witness, "update-ref", "-d", ref)
    assert witness.wrong.pop(0) == f"forced: {ref}", "its pull was open"
    git(hub.fake.bare, "update-ref", ref, sha)
    hub.person("mara", "write").close_pull(ours.number)
    witness.wrong.clear()
    moved(hub, witness, "update-ref", "-d", ref)
    assert witness.wrong == []
    git(hub.fake.bare, "update-ref", ref, f"{sha}^")
    moved(hub, witness, "update-ref", "-d", ref)
    assert witness.wrong[0] == f"forced: {ref}", "it held another commit"


def proposed(hub: Hub, branch: str) -> None:
    """A pull of a person, of two commits."""
    hub.fake.push(branch, {f"{branch}.txt": b"1\n"})
    hub.fake.push(branch, {f"{branch}.txt": b"2\n"})
    hub.person().open_pull(branch, "main", branch)


def asked_to_merge(number: int, method: str = "PUT") -> Request:
    below = f"/pulls/{number}/merge"
    return Request(method, below, {}, BOT, below=below)


def test_missions_and_copies_of_markers_are_our_doing_only_where_no_person_made_them(hub):
    hub.cycle()
    mara = hub.person("mara", "write")
    text = "<!-- ralph:v1 key=0123456789abcdef mission=1 -->"
    copies = [mara.create_issue("x", text, ("ralph:mission",)) for _ in range(2)]
    assert (active(hub), duplicates(hub)) == (1, [])
    ours = hub.pulls[0]
    mara.close_pull(ours.number)
    mara.reopen(ours.number)
    assert active(hub) == 0
    for number in copies:
        hub.fake.threads[number].author = ours.author
    assert duplicates(hub) == ["False 0123456789abcdef"]


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_a_post_that_is_sent_twice_is_seen_whether_the_network_takes_it_or_not(hub, build):
    with publishing_hub(hub, news=False, refusing=False) as place:
        channel = build(lambda _: b"", place.actions)
        post = measure_post(channel.network, ("Tides are out.",))
        server = place.networks[channel.network]
        server.fail(Fault(403))
        assert channel.publish("key", post).status == "failed"
        assert channel.publish("key", post).status == "done"
        assert duplicates(place) == [], "what was refused came once"
        assert channel.publish("key", post).status in ("done", "adopted")
        assert duplicates(place) == [f"post on {channel.network} Tides are out."]


@pytest.mark.long  # takes five seconds
def test_posts_of_an_ordinary_life_are_looked_at_and_were_intended(tmp_path):
    with staged(tmp_path, "a merge is announced") as hub, watched(hub) as witness:
        hub.cycle(NOW)
        before = witness.actions
        hub.cycle(NOW)
        assert [len(network.texts) for network in hub.networks.values()] == [1, 1, 1]
    assert (witness.actions - before > 3, witness.wrong) == (True, [])
