"""What only some settings need: which extras those are, and the one line that is said where one is missing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.database import open_database
from ralph_mission.adapters.database.address import Address
from ralph_mission.adapters.database.prisma_schema import parse
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.social import XReader
from ralph_mission.adapters.observers.web import build
from ralph_mission.adapters.publishers.networks import X_KEYS, build_twitter
from ralph_mission.app import extras
from ralph_mission.app.hosting import SystemClock
from ralph_mission.app.ports import build_publishers
from ralph_mission.cli.loop.tasks import mcp
from ralph_mission.config.observers import SocialSettings as Social
from ralph_mission.config.observers import WebSettings as Web
from ralph_mission.config.reading import load
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.extras import EXTRAS, install_command, install_hint, missing_module, require_extra
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.publishing import texts
from tests.helpers import make_repo

NOW = datetime(2026, 11, 20, tzinfo=UTC)
KEYS = dict.fromkeys(X_KEYS, "x")
DATABASE = "observers: {database: {watches: [{name: a, table: t, new_since: id, kind: content}]}}\n"
PRISMA = DATABASE.replace("{watches", "{backend: prisma, prisma_schema: schema.prisma, watches")
PAGE = "observers: {web: [{name: a, kind: page, url: 'https://example.org', path: 'main'}]}\n"
SEARCH = "observers: {web: [{name: a, kind: search, query: moon}]}\n"


def _open(backend: str) -> None:
    schema = parse({"schema.prisma": "model A {\n  id Int @id\n}\n"}, "schema.prisma")
    with open_database(
        "prisma" if backend == "prisma" else "sqlalchemy", Address("sqlite", path=Path("a.db")), schema, {}
    ):
        pass


NEEDS: tuple[tuple[str, str, Callable[[], object]], ...] = (
    ("database", "sqlalchemy", lambda: _open("sqlalchemy")),
    ("prisma", "prisma", lambda: _open("prisma")),
    ("x", "tweepy", lambda: build_twitter(lambda chart: b"", KEYS)),
    ("x", "twitter_text", lambda: texts.measure_post("twitter", ("a",))),
    ("x", "tweepy", lambda: XReader("token", "http://127.0.0.1:9", Social()).look((), NOW)),
    ("mcp", "mcp", lambda: mcp.callback(None) if mcp.callback else None),
)


@pytest.mark.parametrize(("extra", "module", "use"), NEEDS)
def test_a_missing_extra_is_one_line_that_names_the_command(
    monkeypatch: pytest.MonkeyPatch, extra: str, module: str, use: Callable[[], object]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError) as caught:
        use()
    assert caught.value.who == "you" and f"{module}, which is not installed" in caught.value.what
    assert caught.value.next_step == install_command(extra)
    assert caught.value.next_step.startswith(f"make install EXTRAS={extra}, in")  # as these tests run in a checkout


@pytest.mark.parametrize(
    ("sign", "direct_url", "hint"),
    [
        ("uv-receipt.toml", '{"url": "file:///src/ralph", "dir_info": {}}',
         "uv tool install --force 'ralph-mission[ui] @ file:///src/ralph'"),
        ("pipx_metadata.json", '{"url": "file:///src/ralph", "dir_info": {}}',
         "pipx install --force 'ralph-mission[ui] @ file:///src/ralph'"),
        ("", '{"url": "https://example.org/ralph.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}}',
         "{}/bin/python -m pip install 'ralph-mission[ui] @ git+https://example.org/ralph.git@0a1b'"),
        ("", """{"url": "file:///mara's/ralph"}""",
         """{}/bin/python -m pip install 'ralph-mission[ui] @ file:///mara'"'"'s/ralph'"""),
        *(("", unreadable, "{}/bin/python -m pip install 'ralph-mission[ui]'") for unreadable in (
            "{}", "[]", "moon", '{"url": "https://example.org/ralph.git", "vcs_info": {"vcs": "git"}}')),
    ],
)  # fmt: skip  # a table
def test_an_installed_ralph_names_the_command_that_installed_it(
    tmp_path: Path, sign: str, direct_url: str, hint: str
) -> None:
    if sign:
        (tmp_path / sign).touch()
    command, _, action = install_hint("ui", tmp_path / "site-packages", tmp_path, direct_url).partition("; ")
    assert command == hint.replace("{}/", f"{tmp_path}/", 1)
    assert action == "in the action, extras: ui"


def test_a_command_for_an_environment_in_any_folder_can_be_pasted(tmp_path: Path) -> None:
    hint = install_hint("ui", tmp_path, Path("/home/mara/my tools"), "{}")
    assert hint.startswith("'/home/mara/my tools/bin/python' -m pip install ")


def test_a_source_of_the_web_is_unavailable_without_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "feedparser", None)
    source = build(Web(name="news", kind="feed", url="http://127.0.0.1:9/feed"), environment={})
    seen = source.observe(ObservationContext(Branch("main", "c" * 40), NOW, None, "", str(tmp_path)))
    assert seen.status == "unavailable"
    assert seen.detail == f"sources of the web need feedparser, which is not installed; {install_command('web')}"


def test_posts_go_without_charts_where_they_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    git, said = Git.open(make_repo(tmp_path / "repo")), list[str]()
    build_publishers(load(DATABASE), git, SystemClock(), said.append, {})
    build_publishers(load("publishers: {outbox: {}}"), git, SystemClock(), said.append, {})
    assert said == []
    build_publishers(load(f"{DATABASE}publishers: {{outbox: {{}}}}"), git, SystemClock(), said.append, {})
    assert said == [f"publishers: posts go without charts, which need matplotlib; {install_command('charts')}"]


def test_settings_can_be_read_without_the_extras_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (name for names in EXTRAS.values() for name in names):
        monkeypatch.setitem(sys.modules, module, None)
    assert load(PAGE).observers.web[0].path == "main"


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("", ()),
        ("observers: {dependencies: {}}\npublishers: {templates: {anomaly: a}}\n", ()),
        (DATABASE, ("database",)),
        (PRISMA, ("prisma",)),
        (f"{DATABASE}publishers: {{telegram: {{}}}}", ("charts", "database")),
        (f"{DATABASE}publishers: {{telegram: {{}}, charts: false}}", ("database",)),
        ("publishers: {telegram: {}, discord: {}}", ()),
        ("publishers: {twitter: {}}", ("x",)),
        ("observers: {social: {}}", ("x",)),
        (PAGE, ("web",)),
        (SEARCH, ()),
        ("thinker: {kind: llm, model: 'anthropic:a'}", ("llm",)),
        ("hands: {agent: {kind: claude}}", ("claude",)),
        ("hands: {agent: {kind: codex, fallback: [claude]}}", ("claude",)),
        ("hands: {agent: {kind: codex}}", ()),
        ("cli: {backend: claude}", ("claude",)),
    ],
)
def test_what_a_configuration_needs(text: str, needed: tuple[str, ...]) -> None:
    assert extras.needed_extras(load(text) if text else Config()) == needed


def test_a_repository_with_workflows_needs_what_scans_them(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {".github/workflows/ci.yml": "on: push\n"})
    assert extras.needed_extras(Config(), repo) == ("workflows",)


def test_only_what_is_missing_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = make_repo(tmp_path / "repo", {"ralph.yml": PAGE, "other.yml": DATABASE})
    extras.main([str(repo)])
    assert capsys.readouterr().out.strip() == ""
    monkeypatch.setitem(sys.modules, "protego", None)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    extras.main([str(repo)])
    extras.main([str(repo), "other.yml"])
    assert capsys.readouterr().out.split() == ["web", "database"]


@pytest.mark.parametrize("text", ["thinker: {kind: moon}", "a: [", "\x00"])
def test_settings_that_cannot_be_read_need_nothing(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    extras.main([str(make_repo(tmp_path / "repo", {"ralph.yml": text}))])
    extras.main([str(tmp_path / "nowhere")])
    assert capsys.readouterr() == ("", "")


def test_an_extra_that_is_there_asks_nothing() -> None:
    require_extra("web", "nothing needs")
    assert missing_module("x") == ""
