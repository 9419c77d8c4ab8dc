"""Which of what is said to a bot is an order, and when Telegram is told that it was heard."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ralph_mission.adapters.chat import LINES, Bot, TelegramInbox, TelegramRefused, parse_command
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import ChatCommand
from tests.fakes.networks.bot_api import GROUP, NAME, NOW, OWNER, STRANGER, TOKEN, BotApi, bot_api

MEMBER = 12
MOMENT = datetime.fromtimestamp(NOW, UTC)


@pytest.fixture
def api() -> Iterator[BotApi]:
    with bot_api() as made:
        yield made


def inbox(api: BotApi, later: timedelta = timedelta()) -> TelegramInbox:
    bot = Bot(TOKEN, api.url, seconds=300)
    return TelegramInbox(bot, frozenset({OWNER, GROUP}), frozenset({MEMBER}), now=lambda: MOMENT + later)


def verbs(api: BotApi) -> list[str]:
    return [order.verb for order in inbox(api).read("")[0]]


def test_a_listed_person_gives_orders_in_private(api: BotApi) -> None:
    api.message("/guidance keep the tables small")
    number = api.message("/approve 12 DEADBEEF")
    assert inbox(api).read("")[0] == (
        ChatCommand(number - 1, MOMENT, OWNER, "guidance", "keep the tables small"),
        ChatCommand(number, MOMENT, OWNER, "approve", "deadbeef", 12),
    )


def test_in_a_group_only_listed_people_do(api: BotApi) -> None:
    api.message("/pause", STRANGER, GROUP)
    api.message("/pause", OWNER, GROUP)  # their chat is listed, they are not
    api.message("/resume", MEMBER, GROUP)
    assert verbs(api) == ["resume"]


def test_a_listed_person_is_not_heard_in_any_group(api: BotApi) -> None:
    api.message("/pause", MEMBER, -100_99)
    assert verbs(api) == []


@pytest.mark.parametrize(
    "more",
    [
        {"forward_origin": {"type": "user"}},
        {"forward_date": NOW},
        {"via_bot": {"id": 5}},
        {"sender_chat": {"id": OWNER}},
        {"edit_date": NOW},
        {"from": {"id": OWNER, "is_bot": True}},
        {"from": {"id": OWNER}},
        {"from": None},
        {"date": "today"},
        {"date": 10**30},
        {"text": None},
        {"chat": {"id": OWNER, "type": "channel"}},
    ],
)
def test_what_others_wrote_or_nobody_says_who_is_no_order(api: BotApi, more: dict[str, Any]) -> None:
    api.message("/pause")
    api.updates[0]["message"] |= more
    assert verbs(api) == []


@pytest.mark.parametrize("kind", ["edited_message", "channel_post", "edited_channel_post", "callback_query"])
def test_only_new_messages_are_orders(api: BotApi, kind: str) -> None:
    api.message("/pause")
    api.updates[0][kind] = api.updates[0].pop("message")
    assert verbs(api) == []


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("/pause", ["pause"]),
        (f"/pause@{NAME}", ["pause"]),
        ("/pause@another_bot", []),
        ("please /pause", []),
        (" /pause", []),
        ("/pausenow", []),
        ("/PAUSE", []),
        ("//pause", []),
        ("/shutdown", []),
        ("pause", []),
    ],
)
def test_a_command_stands_alone_at_the_beginning(api: BotApi, text: str, heard: list[str]) -> None:
    api.message(text)
    assert verbs(api) == heard


def test_words_are_without_what_nobody_sees(api: BotApi) -> None:
    api.message("/guidance use\u202e the\u200b parser\x1b[31m\nand *no* <b>regex</b> " + "x" * 3_000)
    words = inbox(api).read("")[0][0].words
    assert words.startswith("use the parser\nand *no* <b>regex</b> xxx") and "\x1b" not in words


def test_an_order_is_confirmed_by_the_next_cursor_only(api: BotApi) -> None:
    api.message("/status")
    first = inbox(api).read("")
    assert inbox(api).read("") == first
    assert inbox(api).read(first[1]) == ((), first[1])
    assert api.updates == []


def test_strangers_cannot_fill_the_way(api: BotApi) -> None:
    for _ in range(250):
        api.message("buy now", STRANGER)
    api.message("/pause")
    assert verbs(api) == ["pause"]


def test_after_a_quiet_week_the_numbers_begin_anew(api: BotApi) -> None:
    api.message("/status")
    cursor = inbox(api).read("")[1]
    again = [{**api.updates[0], "update_id": 3}]
    api.updates = list(again)
    assert inbox(api, timedelta(days=1)).read(cursor)[0] == ()
    api.updates = again
    assert [order.id for order in inbox(api, timedelta(days=8)).read(cursor)[0]] == [3]


def test_a_cursor_that_nobody_can_read_is_none(api: BotApi) -> None:
    api.message("/status")
    assert verbs(api) == ["status"]
    for cursor in ("9" * 40, "3@2026-19-39T29:59Z"):
        assert inbox(api).read(cursor)[0]


def test_a_bot_without_a_name_is_called_by_none(api: BotApi) -> None:
    api.message("/pause@another_bot")
    api.faults = [("getMe", 200, {"ok": True, "result": ["odd"]})]
    assert verbs(api) == []


def test_another_reader_is_named(api: BotApi) -> None:
    said = {"ok": False, "error_code": 409, "description": "Conflict: terminated by other getUpdates request"}
    api.faults = [("getUpdates", 409, said)]
    with pytest.raises(TelegramRefused) as caught:
        inbox(api).read("")
    assert (caught.value.code, "one reader" in caught.value.next_step) == (409, True)


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b"\xff", b"[" * 100_000, {"ok": True, "result": {"update_id": 1}}],
    ids=["page", "list", "bytes", "deep", "no list"],
)
def test_an_answer_that_is_none_is_trouble(api: BotApi, body: Any) -> None:
    api.faults = [("getUpdates", 200, body)]
    with pytest.raises(UserError):
        inbox(api).read("")


def test_the_token_is_in_no_error(api: BotApi) -> None:
    said = {"ok": False, "error_code": 400, "description": f"Bad Request: {TOKEN}"}
    api.faults = [("getUpdates", 400, said)]
    with pytest.raises(TelegramRefused) as refused:
        inbox(api).read("")
    with pytest.raises(UserError) as unanswered:
        Bot(TOKEN, "http://127.0.0.1:1", seconds=300).ask("getMe")
    told = f"{refused.value} {unanswered.value} {unanswered.value.next_step} {Bot(TOKEN)!r}"
    assert TOKEN not in told and TOKEN.split(":")[1] not in told
    assert unanswered.value.__cause__ is None


def test_no_redirect_takes_the_token_elsewhere(api: BotApi) -> None:
    api.faults = [("getMe", 302, b"")]
    with pytest.raises(UserError):
        Bot(TOKEN, api.url).ask("getMe")
    assert len(api.asked) == 1


def test_answers_are_plain_text(api: BotApi) -> None:
    inbox(api).say(OWNER, "<b>*_ as it is")
    assert api.sent == [{"chat_id": OWNER, "text": "<b>*_ as it is", "link_preview_options": {"is_disabled": True}}]


CHAT, MARA = -100, 7


class RepeatingBot:
    """Gives the same updates whatever is asked, as a server does that lost what was confirmed."""

    def ask(self, method: str, wait: int = 0, **fields: Any) -> Any:
        assert method == "getUpdates"
        return [{"update_id": number} for number in (1, 2, 3)]


INBOX = TelegramInbox(RepeatingBot(), frozenset({CHAT}), frozenset({MARA}))  # type: ignore[arg-type]  # as much as is asked


@pytest.mark.attack(12)
def test_an_order_is_heard_in_a_group_and_not_in_a_channel() -> None:
    message = {"chat": {"id": CHAT, "type": "supergroup"}, "from": {"id": MARA, "is_bot": False}}
    assert INBOX.find_place(message) == CHAT
    assert INBOX.find_place({**message, "chat": {"id": CHAT, "type": "channel"}}) == 0


@pytest.mark.attack(12)
def test_a_strangers_own_chat_with_the_bot_is_no_place_for_orders() -> None:
    def place(who: int) -> int:
        return INBOX.find_place({"chat": {"id": who, "type": "private"}, "from": {"id": who, "is_bot": False}})

    assert (place(MARA), place(9)) == (MARA, 0)


def test_what_was_confirmed_is_not_heard_again() -> None:
    assert [update["update_id"] for update in INBOX.fetch_updates(2, 0)] == [2, 3]


@pytest.mark.attack(15)
def test_the_words_of_an_order_are_bounded() -> None:
    found = parse_command(f"/guidance {'x' * 2 * LINES}")
    assert found is not None and len(found[2]) == LINES
