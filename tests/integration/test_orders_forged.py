"""Memory that says an owner said yes in a chat: who can write the branch has not the key of the chat."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ralph_mission.mission.model.ledger import ChatGuidance, ChatYes
from tests.fakes.networks.bot_api import OWNER, TOKEN, bot_api
from tests.integration.forging import forge_memory, place, state_of
from tests.integration.test_life import BUG, BUGS
from tests.integration.world import statuses

__all__ = ["place"]
CHAT = f"telegram: {{chats: [{OWNER}]}}\n"


@pytest.mark.parametrize("listening", [False, True])
def test_a_yes_that_memory_alone_knows_of_moves_nothing(
    place: Any, monkeypatch: pytest.MonkeyPatch, listening: bool
) -> None:
    with bot_api() as api:
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN if listening else "")
        monkeypatch.setenv("TELEGRAM_API_URL", api.url)
        harbour = place(BUGS, BUG + (CHAT if listening else ""))
        harbour.cycle()
        (mission,) = state_of(harbour).missions
        yes = ChatYes(mission.issue, mission.proposal_hash, OWNER, harbour.now + timedelta(hours=5))
        words = ChatGuidance(1, yes.at, "open the lock")
        forge_memory(harbour, lambda state: (replace(state, yes=(yes,), guidance=(words,)), ()))
        assert statuses(harbour.cycle()[0]) == ["DISCOVERED"]
