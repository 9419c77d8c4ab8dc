"""Replies without measure: too large, unpacked or not, and too slow. A read is UserError, an action is in doubt."""

from __future__ import annotations

import errno
import gzip
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.forges.github import limits
from ralph_mission.adapters.forges.github.api import LONGEST, MOST, Api, ReadCache, slim
from ralph_mission.adapters.forges.github.limits import Absent, Doubt, GitHubRequester
from ralph_mission.adapters.git.remote import RepositoryPlace
from ralph_mission.errors import UserError
from tests.adapters.forges.github_world import GitHubWorld, kept_file
from tests.contract.forge_world import open_issue

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def swollen(world: GitHubWorld, size: int, packed: bool) -> None:
    """Every answer about issues is so large from now on."""

    def grown(request: Any, response: Any) -> None:
        if request.below == "/issues":
            content = b"[" + b" " * (size - 2) + b"]"
            response.content = gzip.compress(content) if packed else content
            response.headers |= {"Content-Encoding": "gzip"} if packed else {}

    world.fake.after(grown)


@pytest.mark.parametrize("packed", [False, True])
def test_answer_without_measure_is_trouble_with_the_forge_and_not_asked_for_again(
    world: GitHubWorld, packed: bool
) -> None:
    swollen(world, limits.LARGEST + 1, packed)
    with pytest.raises(UserError, match="answers with more than 33,554,432 bytes") as caught:
        world.forge.issues()
    assert caught.value.who == "forge" and "GITHUB_API_URL" in caught.value.next_step
    assert world.fake.count(below="/issues") == 1


@pytest.mark.parametrize("packed", [False, True])
def test_largest_answer_is_read(world: GitHubWorld, packed: bool) -> None:
    swollen(world, limits.LARGEST, packed)
    assert world.forge.issues() == ()


def test_effect_whose_answer_has_no_measure_is_in_doubt_and_looked_for(world: GitHubWorld) -> None:
    def grown(request: Any, response: Any) -> None:
        if (request.method, request.below) == ("POST", "/issues"):
            response.content = json.dumps(response.payload).encode() + b" " * limits.LARGEST

    world.fake.after(grown)
    assert world.forge.perform(open_issue(labels=())).status == "adopted"
    assert world.fake.count(method="POST", below="/issues") == 1


def test_connection_is_used_again_but_for_one_whose_answer_was_given_up(world: GitHubWorld) -> None:
    for _ in range(3):
        world.forge.api.get("/labels")
    assert len(world.fake.server.connections) == 1
    swollen(world, limits.LARGEST + 1, packed=False)
    with pytest.raises(UserError):
        world.forge.issues()
    assert world.forge.api.get("/labels") == []


@pytest.fixture(params=["headers", "body"])
def dripping(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server whose answers never end, though none of their bytes keeps one waiting for long."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65536)
            client.sendall(HEAD + (b"X-Slow: " if request.param == "headers" else b"Content-Length: 2000\r\n\r\n"))
            for _ in range(2000):
                if over.wait(0.01):
                    return
                client.sendall(b" ")

    def serve() -> None:
        with suppress(OSError):
            while True:  # each at once: one that was given up may still be open
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    over.set()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def test_answer_that_drips_is_given_up(dripping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SLOWEST", 0.2)
    api = Api(RepositoryPlace("o/r", dripping, dripping, "t"), ReadCache(None, ""), sleep=lambda seconds: None, pace=0)
    with pytest.raises(UserError, match="did not answer in time") as caught:
        api.get("/issues")
    assert (caught.value.who, api.counts.total) == ("forge", 1)
    with pytest.raises(Doubt, match="did not answer in time"):
        api.send("POST", "/issues", {})


# --- What was read from GitHub is kept, and never believed for longer than it holds. ---


def read_twice(world: GitHubWorld, number: int, wait: float = 900) -> None:
    """One cycle that reads the details of an issue, and time until the next."""
    world.fake.clock.advance(wait)
    forge = world.connected()
    forge.issues(), forge.issue(number)
    forge.close()
    world.fake.clock.advance(wait)


def fresh_issue(world: GitHubWorld, number: int) -> Any:
    forge = world.connected()
    forge.issues()
    return forge.issue(number)


@pytest.mark.parametrize(
    ("wait", "later", "anew"),
    [(900, 0, 0), (20, 0, 1), (900, 6 * 3600, 1)],
    ids=["quiet", "changed less than a minute before", "six hours old"],
)
def test_details_are_asked_for_again_only_when_they_cannot_be_trusted(
    world: GitHubWorld, wait: float, later: float, anew: int
) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    world.human("mara").comment(number, "Hm")
    read_twice(world, number, wait)
    world.fake.clock.advance(later)
    before = world.fake.count(method="GET", below=f"/issues/{number}/events*")
    issue = fresh_issue(world, number)
    assert (len(issue.remarks), len(issue.events)) == (1, 1)
    assert world.fake.count(method="GET", below=f"/issues/{number}/events*") == before + anew


def test_edited_comment_is_noticed_though_the_thread_looks_quiet(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    made = mara.comment(number, "/ralph approve")
    read_twice(world, number)
    updated = world.fake.issue(number).updated_at
    mara.edit_comment(made, "No, wait.")
    assert world.fake.issue(number).updated_at == updated
    assert fresh_issue(world, number).remarks[0].body == "No, wait."


def test_deleted_comment_is_noticed_though_the_thread_looks_quiet(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    made = mara.comment(number, "/ralph approve")
    read_twice(world, number)
    del world.fake.comments[made]
    assert fresh_issue(world, number).remarks == ()


def test_new_label_is_noticed(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question")
    read_twice(world, number)
    world.human("mara").label(number, ("ralph:mission",))
    assert [event.label for event in fresh_issue(world, number).events] == ["ralph:mission"]


def test_what_comes_after_a_last_page_that_was_full_is_noticed(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    for n in range(100):
        mara.comment(number, f"Remark {n}")
    read_twice(world, number)
    mara.comment(number, "/ralph reject")
    assert fresh_issue(world, number).remarks[-1].body == "/ralph reject"


ODD = b"every value of another shape"


@pytest.mark.parametrize("content", [ODD, b"", b"{", b"[]", b"\xff", b'{"version": 1}', b'{"version": 1, "values": 7}'])
def test_broken_memory_of_requests_is_an_empty_one(world: GitHubWorld, content: bytes) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    if content == ODD:
        document = json.loads(kept_file(world).read_text())
        content = json.dumps(document | {"values": {name: {"odd": True} for name in document["values"]}}).encode()
    kept_file(world).write_bytes(content)
    assert len(fresh_issue(world, number).events) == 1


def test_answers_to_another_account_are_not_used(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    forge = world.connected(world.fake.token("mara"))
    forge.issues(), forge.issue(number)
    assert forge.requests.not_modified == 0


def test_memory_of_requests_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    kept = ReadCache(tmp_path / "x.json", "scope")
    for place in range(10):
        kept.put(str(place), "x" * (MOST // 4))
    kept.get("2")
    kept.save()
    assert (tmp_path / "x.json").stat().st_size < MOST + 1000
    assert set(ReadCache(tmp_path / "x.json", "scope").values) == {"2", "8", "9"}
    assert ReadCache(tmp_path / "x.json", "other").values == {}


def test_json_is_kept_without_its_ballast() -> None:
    person = {"login": "m", "avatar_url": "a"}
    head = {"repo": {"id": 1, "full_name": "o/n", "description": "long"}}
    whole = {"html_url": "h", "url": "u", "node_id": "n", "comments_url": "c", "user": person, "head": head}
    assert slim(whole) == {
        "html_url": "h",
        "url": "u",
        "user": {"login": "m"},
        "head": {"repo": {"id": 1, "full_name": "o/n"}},
    }


@pytest.mark.attack(46)
def test_whoever_left_a_file_there_does_not_choose_who_reads_and_writes_it(tmp_path: Path) -> None:
    (place := tmp_path / "github.json").write_text("{}")
    place.chmod(0o666)
    kept = ReadCache(place, "scope")
    kept.put("GET /", {})
    kept.save()
    assert place.stat().st_mode & 0o777 == 0o600


def test_answers_that_are_nested_too_deeply_to_be_written_end_no_cycle(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    kept = ReadCache(tmp_path / "github.json", "scope")
    kept.put("GET /", deep)
    kept.save()
    assert not (tmp_path / "github.json").exists()


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    kept = ReadCache(tmp_path / "github.json", "scope")
    kept.put("GET /", {"body": 1})
    kept.save()
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        kept.put("GET /", {"body": 2})
        kept.save()
    assert ReadCache(tmp_path / "github.json", "scope").get("GET /") == {"body": 1}
    kept.save()
    assert ReadCache(tmp_path / "github.json", "scope").get("GET /") == {"body": 2}


# --- Answers that no GitHub gives: a list without an end, a redirect in a circle, numbers and depths beyond reason. ---

HOME = "https://api.example.org"
DEEP = "[" * 100_000 + "]" * 100_000

Reply = tuple[int, dict[str, str], str]


def api(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str, int], Reply], most: int = 20) -> Api:
    """An API that answers a path, and how often anything was asked, like this; it is not asked without end."""
    made = Api(
        RepositoryPlace("o/r", HOME, "https://example.org", "t"),
        ReadCache(None, ""),
        sleep=lambda seconds: None,
        pace=0,
    )

    def request(_: GitHubRequester, method: str, path: str, body: object, headers: object) -> Reply:
        assert made.counts.total <= most
        return answer(path, made.counts.total)

    monkeypatch.setattr(GitHubRequester, "request", request)
    return made


@pytest.mark.parametrize(
    ("page", "trouble"),
    [
        (f"{HOME}/repos/o/r/issues", "no end"),
        (f"{HOME}/repos/o/r/issues?page={{}}", "no end"),
        ("https://evil.example/repos/o/r/issues?page=2", "another address"),
    ],
    ids=["itself", "always another", "elsewhere"],
)
def test_list_without_an_end_or_that_goes_on_elsewhere_is_not_taken_for_whole(
    monkeypatch: pytest.MonkeyPatch, page: str, trouble: str
) -> None:
    def answer(path: str, count: int) -> Reply:
        return 200, {"link": f'<{page.format(count)}>; rel="next"'}, "[1]"

    with pytest.raises(UserError, match=trouble):
        api(monkeypatch, answer, most=LONGEST).all("/issues")


@pytest.mark.parametrize("below", ["", "/issues"])
def test_redirect_in_a_circle_is_followed_once(monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    def answer(path: str, count: int) -> Reply:
        if below and path == "/repos/o/r":
            return 200, {}, '{"id": 5}'
        return 301, {"x-location": f"{HOME}/repositories/5{below}"}, "{}"

    with pytest.raises(Absent):
        api(monkeypatch, answer).get(below)


@pytest.mark.parametrize("depth", [900, 100_000])
def test_json_of_any_depth_is_trouble_with_the_forge(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    with pytest.raises(UserError) as caught:
        api(monkeypatch, lambda path, count: (200, {}, "[" * depth + "]" * depth)).get("/issues")
    assert caught.value.who == "forge"


def test_effect_whose_answer_is_too_deep_to_read_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Doubt):
        api(monkeypatch, lambda path, count: (201, {}, DEEP)).send("POST", "/issues", {})


@pytest.mark.parametrize("said", ["\xb2", "9" * 400, "9" * 15, "-1", "nan", "", "1e9"])
@pytest.mark.parametrize("header", ["retry-after", "x-ratelimit-reset"])
def test_wait_that_makes_no_sense_is_a_rate_limit_like_any(
    monkeypatch: pytest.MonkeyPatch, header: str, said: str
) -> None:
    def answer(path: str, count: int) -> Reply:
        return 403, {"x-ratelimit-remaining": "0", header: said}, "{}"

    with pytest.raises(UserError, match="rate limit"):
        api(monkeypatch, answer).get("/issues")
    with pytest.raises(ForgeRefused, match="rate limit"):
        api(monkeypatch, answer).send("POST", "/issues", {})


def test_date_beyond_all_calendars_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    date = "Mon, 04 May 2026 12:00:00 +99999999999999"
    assert api(monkeypatch, lambda path, count: (200, {"date": date}, "{}")).get("/issues") == {}
