"""The web in whole cycles: what is new is found, what is dead is a line in the report, nothing else is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.adapters.web_server import reply, serving, site
from tests.helpers import cli_here, git, make_repo

SETTINGS = """hands: {{fixers: []}}
observers:
  web:
    - {{name: rivals, kind: feed, url: '{url}/feed'}}
    - {{name: dead, kind: page, url: '{url}/gone?key=hush-hush'}}
    - {{name: inside, kind: page, url: 'http://127.0.0.2/'}}
    - {{name: search, kind: search, query: words}}
    - {{name: more, kind: search, query: other words}}
"""


def feed(*titles: str) -> bytes:
    items = "".join(f"<item><guid>{title}</guid><title>{title}</title></item>" for title in titles)
    return reply(f"<rss version='2.0'><channel>{items}</channel></rss>".encode(), Content_Type="text/xml")


def test_news_of_the_web_become_findings_and_the_dead_are_lines(tmp_path: Path) -> None:
    pages: dict[str, Any] = {"/feed": feed("One")}
    with serving(site(pages)) as server:
        repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS.format(url=server.url)})
        env = {"RALPH_WEB_ALLOW": server.place}
        first = cli_here("cycle", "--json", "--now", "2026-05-04T12:00:00Z", repo=repo, env=env)
        pages["/feed"] = feed("Two @everyone fixes #1", "One")
        second = cli_here("cycle", "--json", "--force", "--now", "2026-05-04T18:00:00Z", repo=repo, env=env)
    assert (first.code, second.code) == (0, 0), first.err + second.err
    told = {line["name"]: line for line in second.json["observers"]}
    assert [told[f"web.{name}"]["status"] for name in ("rivals", "dead", "inside", "search", "more")] == [
        "ok",
        *["unavailable"] * 3,
        "skipped",
    ]
    assert [line["name"] for line in told.values() if "SEARCH_URL" in line["detail"]] == ["web.search"]
    assert [one["title"] for one in first.json["findings"] if one["kind"] == "news"] == []
    assert [one["kind"] for one in second.json["findings"] if one["title"].startswith("rivals: Two")] == ["news"]
    everything = first.out + first.err + second.out + second.err + git(repo, "log", "-p", "ralph-memory")
    assert "hush-hush" not in everything
