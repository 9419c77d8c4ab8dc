"""`ralph doctor`: each source of the web is ready, not configured, or broken with the mend."""

from __future__ import annotations

from pathlib import Path

from tests.adapters.web_server import reply, serving, site
from tests.helpers import cli_here, make_repo

FEED = reply(b"<rss version='2.0'><channel><item><title>One</title></item></channel></rss>", Content_Type="text/xml")
SETTINGS = """observers:
  web:
    - {{name: ready, kind: feed, url: '{url}/feed'}}
    - {{name: gone, kind: page, url: '{url}/gone?key=hush-hush'}}
    - {{name: inside, kind: page, url: 'http://127.0.0.2/'}}
    - {{name: search, kind: search, query: words}}
"""


def test_each_source_is_told_with_its_mend(tmp_path: Path) -> None:
    with serving(site({"/feed": FEED})) as server:
        repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS.format(url=server.url)})
        told = cli_here("doctor", "--json", repo=repo, env={"RALPH_WEB_ALLOW": server.place})
        asked = sorted(server.paths)
    lines = {check["name"]: check for check in told.json["checks"] if check["name"].startswith("web ")}
    found = {name: (line["status"], line["found"]) for name, line in lines.items()}
    assert found == {
        "web ready": ("ok", "ready: feed, 1 item"),
        "web gone": ("wrong", f"broken: {server.place} answers with status 404"),
        "web inside": ("wrong", "broken: 127.0.0.2 is not a public place, and was not asked"),
        "web search": ("note", "not configured: nobody says where to search"),
    }
    assert all(line["mend"] for name, line in lines.items() if name != "web ready")
    assert "hush" not in told.out + told.err
    assert asked == ["/feed", "/gone?key=hush-hush", "/robots.txt", "/robots.txt"]


def test_without_sources_it_is_not_configured(tmp_path: Path) -> None:
    told = cli_here("doctor", "--json", repo=make_repo(tmp_path / "repo")).json["checks"]
    (line,) = (check for check in told if check["name"].startswith("web"))
    assert (line["name"], line["status"], line["found"]) == ("web", "note", "not configured")
