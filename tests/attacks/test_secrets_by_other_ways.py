"""What the environment holds leaves by no other way either: networks, a chat, a provider, a reviewer, a timer.

The same search as for cycles and loops (`test_secrets_everywhere`), over every byte that was sent and every file kept.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

from tests.adapters.storage.memory.making import batch, on_server, server_store
from tests.adapters.web_server import serving, site
from tests.attacks.canaries import (
    CANARY,
    ENVIRONMENT,
    TRANSFORMS,
    echoes,
    every_object,
    left_in,
    listening,
    without_authorization,
)
from tests.attacks.test_secrets_everywhere import kept
from tests.fakes.model.server import KEY, ScriptedModel
from tests.fakes.networks.bot_api import OWNER, known_bot_api
from tests.fakes.networks.discord import DiscordServer
from tests.fakes.networks.telegram import TelegramServer
from tests.fakes.networks.x import XServer
from tests.helpers import NOON, cli_here, git, make_repo
from tests.integration import at_review, test_publishing, test_thinker
from tests.integration.at_work import FORGES
from tests.integration.world import BUGS_CONFIG, world

pytestmark = pytest.mark.long  # whole cycles against servers, searched in many ways


LATER = NOON + timedelta(hours=6)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a runner."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def nowhere(sent: list[bytes], repo: Path) -> None:
    """Nothing is left of a canary: not in what was sent, not in an object of git, not in a file."""
    assert sent, "something was sent"
    assert left_in(without_authorization(sent)) == []
    assert left_in(every_object(repo)) == []
    assert {path: found for path, data in kept(repo) if (found := left_in(data))} == {}


def writings() -> list[str]:
    """Every writing of every value, in one line."""
    return [echo.replace("\n", " ") for value in ENVIRONMENT.values() for echo in echoes(value).values()]


# --- networks ---------------------------------------------------------------------------


def watched(path: Path, groups: list[str]) -> Path:
    """A database that knows each of these."""
    with sqlite3.connect(path) as database:
        database.execute("create table locked (id integer primary key, chain text, value real, at timestamp)")
    database.close()
    return add_rows(path, groups, test_publishing.BEFORE)


def add_rows(path: Path, groups: list[str], row: tuple[str, float, str]) -> Path:
    """This row for each of them; after those before and those after, each went up by half."""
    with sqlite3.connect(path) as database:
        rows = [(group, *row[1:]) for group in groups]
        database.executemany("insert into locked (chain, value, at) values (?, ?, ?)", rows)
    database.close()
    return path


@pytest.mark.attack(33)
@pytest.mark.parametrize("way", ["networks", "outbox"])
def test_what_rows_and_feeds_say_of_it_is_posted_nowhere(tmp_path: Path, way: str) -> None:
    pages = {f"/{name}": test_publishing.feed("Mintscan opens") for name in ("rivals", "chains")}
    with ExitStack() as stack:
        networks = [stack.enter_context(one()) for one in (XServer, TelegramServer, DiscordServer)]
        feeds = stack.enter_context(serving(site(pages)))
        groups = ["Osmosis", *dict.fromkeys(writings())]
        # All that went up together is one finding, whose words for a post name each of them.
        every = ", ".join(f'{{{{ row["{number}"].chain }}}}' for number in range(1, len(groups) + 1))
        settings = test_publishing.SETTINGS.format(url=feeds.url).replace("{{ group }}", every)
        repo = make_repo(tmp_path / "repo", {"ralph.yml": settings})
        place = watched(tmp_path / "a.db", groups)
        env = {"DATABASE_URL": f"sqlite:///{place}", "RALPH_WEB_ALLOW": feeds.place}
        for network in networks if way == "networks" else ():
            env |= network.environment
        with listening() as sent:
            for hour in (12, 13, 20):
                told = cli_here("cycle", "--json", "--force", "--now", f"2026-05-04T{hour}:00:00Z", repo=repo, env=env)
                assert told.code == 0, told.err
                assert left_in(f"{told.out}{told.err}".encode()) == []
                if hour == 12:  # a first look tells no news
                    add_rows(place, groups, test_publishing.AFTER)
                    pages |= {path: test_publishing.feed("Mintscan opens", *writings()) for path in pages}
        kept_here = [path.read_text() for path in (repo / ".ralph" / "outbox").glob("*.md")]
        posted = [text for network in networks for text in network.texts]
        said = posted if way == "networks" else kept_here
        assert said and all("Osmosis" in text and "redacted" in text for text in said)
        assert bool(posted) == (way == "networks")
        nowhere(sent, repo)


# --- a chat -----------------------------------------------------------------------------


@pytest.mark.attack(33)
def test_what_an_owner_says_of_it_in_a_chat_is_neither_answered_nor_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = ("/guidance use {}", "/approve {}", "/reject 1 because {}", "/answer {}", "/{}", "what is {}?")
    with known_bot_api(monkeypatch) as api, listening() as sent:
        bug = {"bugs.txt": "src/a.py:1: boats sink\n", "src/a.py": "x = 1\n"}
        hub = world(tmp_path / "harbour", bug, f"{BUGS_CONFIG}telegram: {{chats: [{OWNER}]}}\n")
        hub.cycle()
        said = [order.format(echo) for echo in islice(writings(), 0, None, 5) for order in orders]
        for words in (said[at : at + 40] for at in range(0, len(said), 40)):
            at = hub.now + timedelta(hours=6, minutes=59)
            for text in words:
                api.message(text, OWNER, at=int(at.timestamp()))
            hub.cycle()
        assert api.said, "the bot answered"
        nowhere(sent, hub.repo)


# --- a provider of models ---------------------------------------------------------------


@pytest.mark.attack(33)
def test_what_findings_and_the_model_say_of_it_is_neither_asked_nor_written(tmp_path: Path) -> None:
    every = writings()
    said_at_once = (" and ".join(every[at : at + 6]) for at in range(0, len(every), 6))
    lines = "".join(f"{name}.py:1: it says {echoes}\n" for name, echoes in zip("abc" * 9, said_at_once, strict=False))
    said = tmp_path / "said.txt"
    said.write_text(f"c.py:1: cows moo\n{lines}")
    config = test_thinker.CONFIG.replace("cat bugs.txt", f"cat {shlex.quote(str(said))}")
    repo = make_repo(tmp_path / "repo", {**test_thinker.FILES, "ralph.yml": config})
    sections = [{"heading": "Risks", "text": f"It holds {CANARY} and {TRANSFORMS['base64'](CANARY)}."}]
    answer = test_thinker.ranking("cows", why=f"it says {CANARY}", sections=sections)
    with ScriptedModel([answer]) as model, listening() as sent:
        done = test_thinker.cycle(repo, model, "--json")
        assert done.code == 0 and len(model.turns) == 1 and model.journal
        assert "cows moo" in model.journal[0].text and KEY.encode() in b"".join(sent)
        assert left_in(f"{done.out}{done.err}".encode()) == []
        nowhere(sent, repo)


# --- a reviewer -------------------------------------------------------------------------


@pytest.mark.attack(33, 34)
@pytest.mark.parametrize("kind", ["race", "race {}"])
def test_what_a_reviewer_says_of_it_is_in_no_review(tmp_path: Path, kind: str) -> None:
    # A kind is cut short: what is left of a value then is known by where it was cut.
    found = [
        at_review.RACE
        | {"message": f"Look: {echo}", "suggestion": echo, "kind": kind.format(echo), "file": f"a/{echo}"}
        for echo in islice(writings(), 0, None, 4)
    ]
    with FORGES["github"](tmp_path) as place, listening() as sent:
        assert place.hub is not None
        number = at_review.proposed(place)
        reader = at_review.ScriptedReviewer(place, (json.dumps({"issues": [at_review.RACE, *found]}),))
        assert at_review.read(place, number, reader).outcome == "posted"
        assert ["Two readers meet." in one.body for one in at_review.ours(place, number)] == [True]
        assert left_in("\n".join(place.said).encode()) == []
        nowhere(sent, place.hub.clone)
        assert left_in(every_object(place.hub.fake.bare)) == []


# --- a timer ----------------------------------------------------------------------------


@pytest.mark.attack(33)
def test_what_people_wrote_of_it_into_memory_wakes_nobody_with_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with on_server(repo, tmp_path / "server.git") as fake:
        for name in ("clone", "runner"):
            git(repo, "clone", "--quiet", ".", str(tmp_path / name))
        made = batch(None)
        learnt = replace(made.memory, learnings="\n" + "\n".join(f"- {echo}" for echo in writings()) + "\n")
        due = replace(learnt.header, next_due_at=LATER, generation=1)
        token = fake.token()
        server_store(tmp_path / "runner", fake, token).commit(replace(made, memory=replace(learnt, header=due)), None)
        env = {"GITHUB_TOKEN": token, "GITHUB_REPOSITORY": fake.repository, "GITHUB_API_URL": fake.api_url,
               "GITHUB_SERVER_URL": fake.url, "XDG_CACHE_HOME": str(tmp_path / "cache")}  # fmt: skip  # one value
        with listening() as sent:
            told = cli_here("wake", "--now", LATER.isoformat(), repo=tmp_path / "clone", env=env)
        assert told.code == 0 and len(fake.dispatches) == 1
        assert left_in(f"{told.out}{told.err}".encode()) == []
        assert sent and left_in(without_authorization(sent)) == []
