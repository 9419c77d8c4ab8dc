"""Orders out of a chat on both forges: a yes that moves a mission, words that reach an agent's session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.networks.bot_api import OWNER, BotApi, known_bot_api
from tests.integration.coding import Yard, yard
from tests.integration.hub import hub
from tests.integration.test_life import BUG, BUGS
from tests.integration.world import statuses, world

CHAT = f"telegram: {{chats: [{OWNER}]}}\n"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[BotApi]:
    with known_bot_api(monkeypatch) as made:
        yield made


@pytest.fixture(params=["local", "github"])
def buggy(request: Any, tmp_path: Path, api: BotApi) -> Iterator[Any]:
    """A proposal that needs a yes."""
    if request.param == "local":
        made = world(tmp_path, BUGS, BUG + CHAT)
        made.cycle()
        yield made
    else:
        with hub(tmp_path, BUGS, BUG + CHAT) as made:
            made.cycle()
            yield made


def say(api: BotApi, now: Any, text: str) -> None:
    """An owner says it a minute before the next cycle."""
    api.message(text, at=int((now + timedelta(hours=6, minutes=59)).timestamp()))


def test_a_yes_is_given_in_two_steps_and_shown_on_the_issue(api: BotApi, buggy: Any) -> None:
    issue = buggy.issues[0].number
    say(api, buggy.now, f"/approve {issue}")
    assert statuses(buggy.cycle()[0]) == ["DISCOVERED"]
    say(api, buggy.now, api.said[-1].rpartition("To say yes to that text: ")[2])
    assert statuses(buggy.cycle()[0]) == ["PLANNED"]
    assert api.said[-1].startswith(f"Approved: #{issue} ")
    remarks = [remark.body for remark in buggy.house().forge.issue(issue).remarks]
    assert any(f"an owner in the Telegram chat {OWNER}" in body for body in remarks)


@pytest.fixture(params=["local", "github"])
def shop(request: Any, tmp_path: Path, api: BotApi) -> Iterator[Yard]:
    with yard(tmp_path, request.param, CHAT) as made:
        yield made


def test_guidance_reaches_the_agents_next_session_once(api: BotApi, shop: Yard) -> None:
    shop.wanted()
    shop.cycle()
    say(api, shop.place.now, "/guidance use the word TIDAL")
    shop.cycle()
    assert shop.prompts[0].count("use the word TIDAL") == 1
    shop.person().review(shop.pull().number, "changes_requested", "more")
    shop.says("write('src/table.py', 'MORE = 1\\n')")
    shop.cycle()
    shop.cycle()
    assert "use the word TIDAL" not in shop.prompts[1]
