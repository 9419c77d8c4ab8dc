"""What one guard of orders out of a chat alone holds back."""

from __future__ import annotations

from typing import Any

import pytest

from ralph_mission.gateways.telegram_orders import LINES, TelegramInbox, _command

GROUP, MARA = -100, 7


class Bot:
    """Gives the same updates whatever is asked, as a server does that lost what was confirmed."""

    def ask(self, method: str, wait: int = 0, **fields: Any) -> Any:
        assert method == "getUpdates"
        return [{"update_id": number} for number in (1, 2, 3)]


INBOX = TelegramInbox(Bot(), frozenset({GROUP}), frozenset({MARA}))  # type: ignore[arg-type]  # as much as is asked


@pytest.mark.attack(12)
def test_an_order_is_heard_in_a_group_and_not_in_a_channel() -> None:
    message = {"chat": {"id": GROUP, "type": "supergroup"}, "from": {"id": MARA, "is_bot": False}}
    assert INBOX._place(message) == GROUP
    assert INBOX._place({**message, "chat": {"id": GROUP, "type": "channel"}}) == 0


@pytest.mark.attack(12)
def test_a_strangers_own_chat_with_the_bot_is_no_place_for_orders() -> None:
    def place(who: int) -> int:
        return INBOX._place({"chat": {"id": who, "type": "private"}, "from": {"id": who, "is_bot": False}})

    assert (place(MARA), place(9)) == (MARA, 0)


def test_what_was_confirmed_is_not_heard_again() -> None:
    assert [update["update_id"] for update in INBOX._updates(2, 0)] == [2, 3]


@pytest.mark.attack(15)
def test_the_words_of_an_order_are_bounded() -> None:
    found = _command(f"/guidance {'x' * 2 * LINES}")
    assert found is not None and len(found[2]) == LINES
