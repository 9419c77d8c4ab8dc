"""What robots.txt says is obeyed, on every hop, and where nobody can tell nothing is read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.adapters.http.guard import GuardedWeb
from ralph_mission.adapters.observers.web import Robots
from ralph_mission.errors import UserError
from tests.adapters.http.test_guard import lead_to
from tests.adapters.web_server import reply, saying, serving, site


def polite(web: GuardedWeb) -> GuardedWeb:
    """The same web, which obeys robots.txt on every hop."""
    return replace(web, permit=Robots(web).permit)


@pytest.mark.parametrize(
    ("rules", "path", "may"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow: /private/", "/a", True),
        ("User-agent: *\nDisallow: /private/", "/private/a", False),
        ("User-agent: *\nDisallow: /\nAllow: /feed", "/feed.xml", True),
        ("User-agent: *\nDisallow: /*.xml$", "/feed.xml", False),
        ("User-agent: *\nDisallow: /*.xml$", "/feed.xml?x=1", True),
        ("User-agent: ralph-mission\nDisallow: /\n\nUser-agent: *\nDisallow:", "/a", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Ralph-Mission\nAllow: /", "/a", True),
        ("User-agent: someone-else\nDisallow: /", "/a", True),
        ("<html>not found</html>", "/a", True),
        ("\x00\x01Disallow", "/a", True),
        ("User-agent: *\nDisallow: /" + "*a" * 5_000 + "*b", "/" + "a" * 1_000, True),
    ],
)
def test_rules_are_obeyed(rules: str, path: str, may: bool) -> None:
    page = reply(b"here")
    with serving(site({"/robots.txt": reply(rules.encode()), path.partition("?")[0]: page})) as server:
        web = polite(GuardedWeb((server.place,)))
        if may:
            assert web.get(server.url + path).content == b"here"
        else:
            with pytest.raises(UserError, match=r"robots\.txt"):
                web.get(server.url + path)
            assert server.paths == ["/robots.txt"]


@pytest.mark.parametrize(("status", "may"), [("404 Not Found", True), ("403 Forbidden", True), ("503 Busy", False)])
def test_a_host_without_rules_may_be_read_and_one_that_cannot_tell_may_not(status: str, may: bool) -> None:
    with serving(site({"/robots.txt": reply(b"", status), "/a": reply(b"here")})) as server:
        web = polite(GuardedWeb((server.place,)))
        if may:
            assert web.get(f"{server.url}/a").content == b"here"
        else:
            with pytest.raises(UserError, match="status 503"):
                web.get(f"{server.url}/a")


def test_a_redirect_is_asked_for_at_its_own_host() -> None:
    shut = {"/robots.txt": reply(b"User-agent: *\nDisallow: /"), "/x": reply(b"here")}
    with (
        serving(site(shut)) as other,
        serving(site({"/a": lead_to(other)})) as first,
        pytest.raises(UserError, match=r"robots\.txt"),
    ):
        polite(GuardedWeb((first.place, other.place))).get(f"{first.url}/a")
    assert other.paths == ["/robots.txt"]


def test_a_host_is_asked_for_its_rules_once() -> None:
    with serving(saying(reply(b"here"))) as server:
        robots = Robots(GuardedWeb((server.place,)))
        web = replace(robots.web, permit=robots.permit)
        for path in ("/a", "/b"):
            web.get(server.url + path)
    assert server.paths == ["/robots.txt", "/a", "/b"]


def test_robots_txt_is_asked_for_no_more_than_any_address() -> None:
    with serving(saying(reply(b"", "302 Found", Location="http://127.0.0.2:1/"))) as server:
        with pytest.raises(UserError, match=r"leads on|not a public place"):
            polite(GuardedWeb((server.place,))).get(f"{server.url}/a")
        assert server.paths == ["/robots.txt"]
