"""`ralph doctor`: the database is ready, not configured or broken with the mend; what asks, the role and the schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.unpack import unpack
from ralph_mission.adapters.observers import OBSERVERS
from ralph_mission.extras import install_command
from tests import packages_world as packages
from tests.adapters.database import world
from tests.adapters.database.conftest import postgres as postgres
from tests.adapters.web_server import reply, site
from tests.adapters.web_server import serving as serving_web
from tests.cli.doctor_place import ask_sources
from tests.fakes.networks.bot_api import GROUP, OWNER, TOKEN, BotApi, bot_api
from tests.fakes.registry import Registry, serving
from tests.fakes.registry import serving as registry_of
from tests.helpers import Result, cli_here, make_repo
from tests.postgres_server import Server

SETTINGS = """observers:
  database:
    prisma_schema: prisma
    watches:
      - {name: top, model: Chain, top: {order_by: supply}}
      - {name: typo, model: Chian, top: {order_by: supply}}
"""


def lines(told: Result) -> dict[str, tuple[str, str]]:
    checks = [check for check in told.json["checks"] if check["name"].startswith("database")]
    assert all(check["hint"] for check in checks if check["status"] != "ok")
    return {check["name"]: (check["status"], check["found"]) for check in checks}


def test_without_an_address_it_is_not_configured(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS, **world.FILES})
    told = ask_sources(repo)
    assert lines(told) == {"database": ("note", "not configured: no DATABASE_URL")}
    assert "set DATABASE_URL in the environment" in told.out


@pytest.mark.parametrize(("user", "role"), [("reader", "ok"), ("app", "wrong")])
def test_ready_with_role_and_schema(tmp_path: Path, postgres: Server, user: str, role: str) -> None:
    drifted = {**world.FILES, "prisma/more.prisma": 'model More {\n id Int @id\n @@schema("gov")\n}\n'}
    repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS, **drifted})
    told = ask_sources(repo, env={"DATABASE_URL": postgres.url(user=user)})
    found = lines(told)
    status, engine = found.pop("database")
    assert status == "ok" and engine.startswith("ready: SQLAlchemy 2.") and "PostgreSQL 1" in engine
    writes = "it may write: INSERT on public.chains, UPDATE on public.chains, DELETE on public.chains and 2 more"
    refused = "it may not write: what was tried was refused"
    difference = found.pop("database schema")
    assert difference[0] == "note"
    assert difference[1].startswith("prisma: model More is table gov.More, which the database lacks")
    assert found == {
        "database role": (role, refused if role == "ok" else writes),
        "database typo": ("wrong", "broken: watch typo: prisma has no model or table Chian"),
    }
    assert "a-Pass-W0rd" not in told.out + told.err


def test_broken_without_its_address_in_any_text(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS, **world.FILES})
    url = "postgresql://somebody:hunter2hunter2@127.0.0.1:1/of-another"
    told = ask_sources(repo, env={"DATABASE_URL": url})
    assert lines(told) == {"database": ("wrong", "broken: nothing listens where the database should be")}
    assert not any(word in told.out + told.err for word in ("somebody", "hunter2", "127.0.0.1:1", "of-another"))


# --- `ralph doctor`: dependencies are looked after, not configured, or broken with the mend. ---

CONFIG = "observers: {dependencies: {}}\n"


def lines_doctor_dependencies(tmp_path: Path, files: dict[str, str], registry: Registry) -> list[tuple[str, str, str]]:
    told = {"OSV_API_URL": registry.url, "PIP_INDEX_URL": registry.index, "npm_config_registry": registry.node}
    found = ask_sources(make_repo(tmp_path / "repo", files), env=told).json["checks"]
    return [(c["status"], c["found"], c["hint"]) for c in found if c["name"] == "dependencies"]


def test_ready(tmp_path: Path) -> None:
    with serving(packages.young()) as registry:
        found = lines_doctor_dependencies(
            tmp_path, {"requirements.txt": "buoy==1.4.2\n", "ralph.yml": CONFIG}, registry
        )
    assert found == [("ok", "ready: 1 package in 1 file", "")]
    assert [path for _, path, _ in registry.journal] == ["/simple/buoy/", "/v1/querybatch"]


def test_a_package_manager_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph_mission.adapters.fixers.bumps.find_program", lambda manager: "")
    with serving(packages.young()) as registry:
        files = {
            "package.json": packages.PACKAGE_JSON,
            "yarn.lock": packages.yarn_lock(registry),
            "ralph.yml": CONFIG,
        }
        _, (status, found, mend) = lines_doctor_dependencies(tmp_path, files, registry)
    assert (status, mend) == ("note", "install yarn")
    assert found == "yarn is not installed: updates of yarn.lock are reported, not made"


@pytest.mark.parametrize(
    ("files", "broken", "why"),
    [
        ({"requirements.txt": "buoy==1.4.2\n"}, "/simple/", "the registry answers 500 for buoy"),
        ({"requirements.txt": "buoy==1.4.2\n"}, "/v1/", "OSV does not answer as it should (status 500)"),
        ({"uv.lock": "[["}, "", "uv.lock cannot be read"),
    ],
)
def test_broken_with_the_mend(tmp_path: Path, files: dict[str, str], broken: str, why: str) -> None:
    with serving(packages.young()) as registry:
        registry.broken |= {broken} - {""}
        ((status, found, mend),) = lines_doctor_dependencies(tmp_path, {**files, "ralph.yml": CONFIG}, registry)
    assert (status, found) == ("wrong", f"broken: {why}") and mend


# --- `ralph doctor`: orders and each social network are ready, not configured, or broken with the mend. ---

LISTED = f"telegram: {{chats: [{OWNER}]}}\n"
ORDERS = "Telegram commands"


@pytest.fixture
def api() -> Iterator[BotApi]:
    with bot_api() as made:
        yield made


def check_networks(tmp_path: Path, api: BotApi, config: str, token: str = TOKEN) -> dict[str, tuple[str, str, str]]:
    """What is said of orders and networks, by name."""
    environment = {"TELEGRAM_BOT_TOKEN": token, "TELEGRAM_API_URL": api.url, "TELEGRAM_CHANNEL_ID": "-100777"}
    done = ask_sources(make_repo(tmp_path / "repo", {"ralph.yml": config}), env=environment)
    assert TOKEN not in done.out + done.err
    named = (ORDERS, "social", "social Telegram")
    lines = (check for check in done.json["checks"] if check["name"] in named)
    return {line["name"]: (line["status"], line["found"], line["hint"]) for line in lines}


def test_what_is_set_up_is_ready(tmp_path: Path, api: BotApi) -> None:
    found = check_networks(tmp_path, api, LISTED + "observers: {social: {}}\n")
    assert found[ORDERS][:2] == ("ok", "ready: @harbour_bot, 1 chats, 0 people")
    assert found["social Telegram"][:2] == ("ok", "ready: 0 posts measured, 0 questions")


def test_what_is_not_set_up_is_no_fault(tmp_path: Path, api: BotApi) -> None:
    found = check_networks(tmp_path, api, "", token="")
    assert {name: line[:2] for name, line in found.items()} == {
        ORDERS: ("note", "not configured"),
        "social": ("note", "not configured"),
    }
    assert api.asked == []


@pytest.mark.parametrize(
    ("config", "token", "hook", "said"),
    [
        (LISTED, "", "", "there is no bot"),
        (LISTED, "7:wrong-token-of-another", "", "Telegram answers 401"),
        (LISTED, TOKEN, "https://example.org", "a webhook"),
        (f"telegram: {{chats: [{GROUP}]}}\n", TOKEN, "", "none of their members"),
    ],
)
def test_what_is_broken_says_the_mend(
    tmp_path: Path, api: BotApi, config: str, token: str, hook: str, said: str
) -> None:
    api.hook = hook
    status, found, mend = check_networks(tmp_path, api, config, token)[ORDERS]
    assert (status, said in found, bool(mend)) == ("wrong", True, True)


@pytest.mark.parametrize("result", [[1], "x", 5, None])
def test_an_answer_that_is_none_is_broken(tmp_path: Path, api: BotApi, result: object) -> None:
    api.faults = [("getMe", 200, {"ok": True, "result": result})]
    assert check_networks(tmp_path, api, LISTED)[ORDERS][0] == "wrong"


def test_a_robot_that_is_switched_off_hears_nobody(tmp_path: Path, api: BotApi) -> None:
    found = check_networks(tmp_path, api, LISTED + "RObot: {enabled: false}\n")
    assert found[ORDERS][:2] == ("note", "not configured")


# --- `ralph doctor` lists every source of signals: ready, not configured, or broken with the mend. ---

FEED = reply(b"<rss version='2.0'><channel><item><title>One</title></item></channel></rss>", Content_Type="text/xml")
ALL = """hands: {{fixers: []}}
observers:
  code: {{markers: {{todo: TODO}}}}
  commands: [{{name: check, run: '{program} .', kind: bug, parse: {{regex: '(?P<message>.+)'}}}}]
  dependencies: {{}}
  ci: {{}}
  docs: {{}}
  explore: {{}}
  releases: {{}}
  database:
    prisma_schema: prisma
    watches: [{{name: top, model: {model}, top: {{order_by: supply}}}}]
  social: {{}}
  web: [{{name: rivals, kind: feed, url: '{url}{path}'}}]
"""
READY = {"program": "ls", "model": "Chain", "path": "/feed"}
BROKEN = {"program": "no-such-tool-here", "model": "Chian", "path": "/gone"}


def lines_doctor_sources(told: Result) -> dict[str, tuple[str, str]]:
    """The worst line of each source: `web rivals` is a line of `web`, `command check` one of `commands`."""
    found: dict[str, tuple[str, str]] = {}
    for check in told.json["checks"]:
        source = check["name"].partition(" ")[0].replace("command", "commands").replace("commandss", "commands")
        if source in OBSERVERS and (source not in found or check["status"] == "wrong"):
            assert check["hint"] or check["status"] == "ok", check
            found[source] = (check["status"], check["found"].partition(":")[0])
    return found


def test_a_scanner_that_is_missing_is_a_note_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ralph_mission.adapters.observers import scanners

    monkeypatch.setattr(scanners, "is_installed", lambda name: False)
    repo = make_repo(tmp_path / "repo", {".github/workflows/ci.yml": "on: push\njobs: {}\n"})
    told = cli_here("doctor", "--json", repo=repo)
    lines = [line for line in told.json["checks"] if line["name"] == "scanners"]
    assert [line["status"] for line in lines] == ["ok", "note", "note"]
    assert [line["found"].split()[0] for line in lines[1:]] == ["zizmor", "actionlint"]
    assert lines[1]["hint"] == install_command("workflows") and "actionlint" in lines[2]["hint"]


def test_a_scanner_that_the_project_does_not_use_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ralph_mission.adapters.observers import scanners

    monkeypatch.setattr(scanners, "is_installed", lambda name: False)
    for text, missing in (("[project]\n", 0), ("[tool.deptry]\n", 1)):
        repo = make_repo(tmp_path / str(missing), {"pyproject.toml": text})
        told = cli_here("doctor", "--json", repo=repo).json["checks"]
        assert sum(line["found"].startswith("deptry is not installed") for line in told) == missing


def test_with_nothing_configured_every_source_says_so_and_nothing_is_wrong(tmp_path: Path) -> None:
    told = cli_here("doctor", "--json", repo=make_repo(tmp_path / "repo"))
    ready = {
        "briefs": ("ok", "ready"),
        "ci": ("ok", "ready"),
        "code": ("ok", "ready"),
        "dependencies": ("ok", "ready"),
        "scanners": ("ok", "ready"),
        "docs": ("ok", "ready"),
        "forge": ("ok", "local, as ralph[bot]; merges into main"),
        "releases": ("ok", "ready"),
    }
    assert lines_doctor_sources(told) == dict.fromkeys(OBSERVERS, ("note", "not configured")) | ready
    assert told.code == 0


@pytest.mark.long  # a cycle on the sample, as its own tests have it
def test_a_cycle_on_the_sample_is_whole_with_nothing_configured(tmp_path: Path) -> None:
    unpack(repo := tmp_path / "sample")
    before = cli_here("doctor", "--json", repo=repo)
    told = cli_here("cycle", "--json", "--force", repo=repo)
    assert (before.code, told.code) == (0, 0), told.err
    assert {lines_doctor_sources(before)[name][1] for name in ("database", "social", "web")} == {"not configured"}
    names = {line["name"]: line["status"] for line in told.json["observers"]}
    assert "unavailable" not in names.values()
    assert not {name.partition(".")[0] for name in names} & {"database", "social", "web"}


@pytest.mark.parametrize("state", ["ready", "broken"])
def test_every_source_is_ready_or_broken_with_the_mend(tmp_path: Path, postgres: Server, state: str) -> None:
    chosen = READY if state == "ready" else BROKEN
    with (
        serving_web(site({"/feed": FEED})) as server,
        registry_of(packages.young()) as registry,
        bot_api() as bot,
    ):
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
    found = lines_doctor_sources(told)
    assert set(found) == set(OBSERVERS)
    if state == "ready":
        assert {status for status, _ in found.values()} == {"ok"} and told.code == 0
    else:
        wrong = {name: said for name, (status, said) in found.items() if status == "wrong"}
        missing = "no-such-tool-here is not installed"
        broken = dict.fromkeys(("database", "dependencies", "social", "web"), "broken")
        assert (wrong, told.code) == ({**broken, "commands": missing}, 1)
    assert "a-Pass-W0rd" not in told.out + told.err


# --- `ralph doctor`: each source of the web is ready, not configured, or broken with the mend. ---

SETTINGS_DOCTOR_WEB = """observers:
  web:
    - {{name: ready, kind: feed, url: '{url}/feed'}}
    - {{name: gone, kind: page, url: '{url}/gone?key=hush-hush'}}
    - {{name: inside, kind: page, url: 'http://127.0.0.2/'}}
    - {{name: search, kind: search, query: words}}
"""


def test_each_source_is_told_with_its_mend(tmp_path: Path) -> None:
    with serving_web(site({"/feed": FEED})) as server:
        repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS_DOCTOR_WEB.format(url=server.url)})
        told = ask_sources(repo, env={"RALPH_WEB_ALLOW": server.place})
        asked = sorted(server.paths)
    lines = {check["name"]: check for check in told.json["checks"] if check["name"].startswith("web ")}
    found = {name: (line["status"], line["found"]) for name, line in lines.items()}
    assert found == {
        "web ready": ("ok", "ready: feed, 1 item"),
        "web gone": ("wrong", f"broken: {server.place} answers with status 404"),
        "web inside": ("wrong", "broken: 127.0.0.2 is not a public place, and was not asked"),
        "web search": ("note", "not configured: no SEARCH_URL"),
    }
    assert all(line["hint"] for name, line in lines.items() if name != "web ready")
    assert "hush" not in told.out + told.err
    assert asked == ["/feed", "/gone?key=hush-hush", "/robots.txt", "/robots.txt"]
