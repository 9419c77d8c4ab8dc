"""`ralph doctor` lists every source of signals: ready, not configured, or broken with the mend."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.unpack import unpack
from ralph_mission.adapters.observers import OBSERVERS
from tests import packages_world as packages
from tests.adapters.database import world
from tests.adapters.database.conftest import postgres as postgres
from tests.adapters.web_server import reply, serving, site
from tests.fakes.networks.bot_api import TOKEN, bot_api
from tests.fakes.registry import serving as registry_of
from tests.helpers import Result, cli_here, make_repo
from tests.postgres_server import Server

FEED = reply(b"<rss version='2.0'><channel><item><title>One</title></item></channel></rss>", Content_Type="text/xml")
ALL = """hands: {{fixers: []}}
observers:
  code: {{markers: {{todo: TODO}}}}
  commands: [{{name: check, run: '{program} .', kind: bug, parse: {{regex: '(?P<message>.+)'}}}}]
  dependencies: {{}}
  database:
    prisma_schema: prisma
    watches: [{{name: top, model: {model}, top: {{order_by: supply}}}}]
  social: {{}}
  web: [{{name: rivals, kind: feed, url: '{url}{path}'}}]
"""
READY = {"program": "ls", "model": "Chain", "path": "/feed"}
BROKEN = {"program": "no-such-tool-here", "model": "Chian", "path": "/gone"}


def lines(told: Result) -> dict[str, tuple[str, str]]:
    """The worst line of each source: `web rivals` is a line of `web`, `command check` one of `commands`."""
    found: dict[str, tuple[str, str]] = {}
    for check in told.json["checks"]:
        source = check["name"].partition(" ")[0].replace("command", "commands").replace("commandss", "commands")
        if source in OBSERVERS and (source not in found or check["status"] == "wrong"):
            assert check["mend"] or check["status"] == "ok", check
            found[source] = (check["status"], check["found"].partition(":")[0])
    return found


def test_with_nothing_configured_every_source_says_so_and_nothing_is_wrong(tmp_path: Path) -> None:
    told = cli_here("doctor", "--json", repo=make_repo(tmp_path / "repo"))
    ready = {"code": ("ok", "ready"), "forge": ("ok", "local, as ralph[bot]; merges into main")}
    assert lines(told) == dict.fromkeys(OBSERVERS, ("note", "not configured")) | ready
    assert told.code == 0


def test_a_cycle_on_the_sample_is_whole_with_nothing_configured(tmp_path: Path) -> None:
    unpack(repo := tmp_path / "sample")
    before = cli_here("doctor", "--json", repo=repo)
    told = cli_here("cycle", "--json", "--force", repo=repo)
    assert (before.code, told.code) == (0, 0), told.err
    assert {lines(before)[name][1] for name in ("database", "dependencies", "web")} == {"not configured"}
    names = {line["name"]: line["status"] for line in told.json["observers"]}
    assert "unavailable" not in names.values()
    assert not {name.partition(".")[0] for name in names} & {"database", "dependencies", "web"}


@pytest.mark.parametrize("state", ["ready", "broken"])
def test_every_source_is_ready_or_broken_with_the_mend(tmp_path: Path, postgres: Server, state: str) -> None:
    chosen = READY if state == "ready" else BROKEN
    with serving(site({"/feed": FEED})) as server, registry_of(packages.young()) as registry, bot_api() as bot:
        registry.broken |= set() if state == "ready" else {"/simple/"}
        bot.faults += [] if state == "ready" else [("getChatMemberCount", 403, {"ok": False, "error_code": 403})]
        config = ALL.format(url=server.url, **chosen)
        files = {"ralph.yml": config, "requirements.txt": "buoy==1.4.2\n", **world.FILES}
        told = cli_here(
            "doctor",
            "--json",
            repo=make_repo(tmp_path / "repo", files),
            env={
                "DATABASE_URL": postgres.url(user="reader"),
                "RALPH_WEB_ALLOW": server.place,
                "PIP_INDEX_URL": registry.index,
                "OSV_API_URL": registry.url,
                "TELEGRAM_BOT_TOKEN": TOKEN,
                "TELEGRAM_API_URL": bot.url,
                "TELEGRAM_CHANNEL_ID": "-100777",
            },
        )
    found = lines(told)
    assert set(found) == set(OBSERVERS)
    if state == "ready":
        assert {status for status, _ in found.values()} == {"ok"} and told.code == 0
    else:
        wrong = {name: said for name, (status, said) in found.items() if status == "wrong"}
        missing = "no-such-tool-here is not installed"
        broken = dict.fromkeys(("database", "dependencies", "social", "web"), "broken")
        assert (wrong, told.code) == ({**broken, "commands": missing}, 1)
    assert "a-Pass-W0rd" not in told.out + told.err
