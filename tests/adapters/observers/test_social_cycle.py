"""The social observer in whole cycles: what a network tells of our posts is remembered with them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.ledger import MemoryBatch
from tests.adapters.observers.test_social import CHANNEL, reaction
from tests.fakes.networks.bot_api import OWNER, TOKEN, BotApi, bot_api
from tests.helpers import NOON
from tests.integration.world import CALM, World, world


def posted(where: World) -> None:
    """A post of ours went out."""
    store = where.house().store
    past = store.recall()
    assert past
    state = replace(past.state, posted=(Posted("k2", "telegram", "anomaly", NOON, "61"),))
    store.commit(MemoryBatch(past.memory, state, (), "a post"), past)


@pytest.mark.parametrize("orders", ["", f"telegram: {{chats: [{OWNER}]}}\n"], ids=["observed", "overheard"])
def test_what_became_of_a_post_is_remembered_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, orders: str
) -> None:
    with bot_api() as api:
        for name, value in _environment(api).items():
            monkeypatch.setenv(name, value)
        where = world(tmp_path / "harbour", config=CALM + "  social: {}\n" + orders)
        where.cycle()
        posted(where)
        api.update(message_reaction_count=reaction(61, 4, 1))
        where.now += timedelta(days=1)
        where.cycle()
        past = where.house().store.recall()
    assert past
    assert [(one.reactions, one.measured_at is not None) for one in past.state.posted] == [(5, True)]


def _environment(api: BotApi) -> dict[str, str]:
    return {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_API_URL": api.url, "TELEGRAM_CHANNEL_ID": CHANNEL}
