from __future__ import annotations

import pytest

from ralph_mission.adapters.publishers import telegram
from tests.adapters.publishers.test_networks import CHART, PNG, post
from tests.fakes.networks.telegram import TelegramServer


@pytest.mark.attack(36)
def test_a_caption_is_escaped_like_any_text() -> None:
    with TelegramServer() as server:
        channel = telegram.build(lambda _: PNG, server.environment)
        channel.publish("aa11bb22", post("telegram", "a <b>bold</b> & more", chart=CHART))
        assert [(one.text, one.photo) for one in server.delivered] == [("a <b>bold</b> & more", PNG)]
