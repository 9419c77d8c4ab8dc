"""`ralph doctor`: orders and each social network are ready, not configured, or broken with the mend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.networks.bot_api import GROUP, OWNER, TOKEN, BotApi, bot_api
from tests.helpers import cli_here, make_repo

LISTED = f"telegram: {{chats: [{OWNER}]}}\n"
ORDERS = "orders by Telegram"


@pytest.fixture
def api() -> Iterator[BotApi]:
    with bot_api() as made:
        yield made


def told(tmp_path: Path, api: BotApi, config: str, token: str = TOKEN) -> dict[str, tuple[str, str, str]]:
    """What is said of orders and networks, by name."""
    environment = {"TELEGRAM_BOT_TOKEN": token, "TELEGRAM_API_URL": api.url, "TELEGRAM_CHANNEL_ID": "-100777"}
    done = cli_here("doctor", "--json", repo=make_repo(tmp_path / "repo", {"ralph.yml": config}), env=environment)
    assert TOKEN not in done.out + done.err
    named = (ORDERS, "social", "social Telegram")
    lines = (check for check in done.json["checks"] if check["name"] in named)
    return {line["name"]: (line["status"], line["found"], line["mend"]) for line in lines}


def test_what_is_set_up_is_ready(tmp_path: Path, api: BotApi) -> None:
    found = told(tmp_path, api, LISTED + "observers: {social: {}}\n")
    assert found[ORDERS][:2] == ("ok", "ready: @harbour_bot, 1 chats, 0 people")
    assert found["social Telegram"][:2] == ("ok", "ready: 0 posts measured, 0 questions")


def test_what_is_not_set_up_is_no_fault(tmp_path: Path, api: BotApi) -> None:
    found = told(tmp_path, api, "", token="")
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
        (f"telegram: {{chats: [{GROUP}]}}\n", TOKEN, "", "nobody in them"),
    ],
)
def test_what_is_broken_says_the_mend(
    tmp_path: Path, api: BotApi, config: str, token: str, hook: str, said: str
) -> None:
    api.hook = hook
    status, found, mend = told(tmp_path, api, config, token)[ORDERS]
    assert (status, said in found, bool(mend)) == ("wrong", True, True)


@pytest.mark.parametrize("result", [[1], "x", 5, None])
def test_an_answer_that_is_none_is_broken(tmp_path: Path, api: BotApi, result: object) -> None:
    api.faults = [("getMe", 200, {"ok": True, "result": result})]
    assert told(tmp_path, api, LISTED)[ORDERS][0] == "wrong"


def test_a_robot_that_is_switched_off_hears_nobody(tmp_path: Path, api: BotApi) -> None:
    found = told(tmp_path, api, LISTED + "RObot: {enabled: false}\n")
    assert found[ORDERS][:2] == ("note", "switched off by RObot.enabled")


def test_a_network_that_refuses_is_broken(tmp_path: Path, api: BotApi) -> None:
    api.faults = [("getChatMemberCount", 403, {"ok": False, "error_code": 403, "description": "kicked"})]
    found = told(tmp_path, api, "observers: {social: {}}\n")
    assert found["social Telegram"][0] == "wrong"
