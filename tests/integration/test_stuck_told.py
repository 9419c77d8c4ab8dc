"""A mission that gets stuck is told of in the owner's chat: once, whatever dies, and in harmless words."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.chat import TelegramInbox
from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.errors import UserError
from ralph_mission.mission import execute
from ralph_mission.mission.execute import ExecutedDecision
from ralph_mission.mission.operations.inbox import notice
from tests.fakes.networks.bot_api import OWNER, BotApi, known_bot_api
from tests.integration.dying import dying
from tests.integration.hub import open_hub
from tests.integration.world import CALM, World, statuses, world
from tests.mission.build import mission

pytestmark = pytest.mark.long  # real repositories, many cycles

SETTINGS = CALM + f"telegram: {{chats: [{OWNER}, -10022]}}\npublishers: {{quiet_hours: '00:00-23:59'}}\n"
SOON = timedelta(minutes=15)
CALLS = ((BranchStore, "commit"), (LocalForge, "perform"), (TelegramInbox, "say"), (LocalForge, "show_dashboard"))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[BotApi]:
    with known_bot_api(monkeypatch) as made:
        yield made


def about_to_escalate(place: Any) -> Any:
    """A pull is open, and somebody wants changes, and no agent is configured."""
    place.cycle()
    place.person().review(place.pulls[0].number, "changes_requested", "leave the harbour's own spelling alone")
    return place


@pytest.fixture(params=["local", "github"])
def hub(request: Any, tmp_path: Path, api: BotApi) -> Iterator[Any]:
    if request.param == "local":
        yield about_to_escalate(world(tmp_path / "repo", config=SETTINGS))
        return
    with open_hub(tmp_path, config=SETTINGS) as made:
        yield about_to_escalate(made)


def test_the_first_listed_chat_is_told_once_which_mission_why_and_where(api: BotApi, hub: Any) -> None:
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    (told,) = api.sent
    first, words, where = told["text"].splitlines()
    assert (told["chat_id"], first) == (OWNER, "Mission 1 is stuck and needs a person.")
    assert "escalated: mara requested changes, and no agent is configured to make them" in words
    assert where == hub.house().forge.how("show_pull", hub.pulls[0].number)
    for _ in range(2):
        hub.cycle()
    assert len(api.sent) == 1


def test_a_chat_out_of_reach_costs_a_line_and_nothing_else(api: BotApi, hub: Any) -> None:
    api.faults.append(("sendMessage", 502, {"ok": False, "error_code": 502, "description": "Bad Gateway"}))
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    assert api.sent == []


def test_a_forge_out_of_reach_after_the_commit_keeps_nothing_unsaid(
    api: BotApi, hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise UserError("cannot reach the forge", "try again", who="network")

    with monkeypatch.context() as patched:
        patched.setattr(type(hub.house().forge), "show_dashboard", lost)
        with pytest.raises(UserError, match="cannot reach"):
            hub.cycle()
    assert len(api.sent) == 1
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    assert len(api.sent) == 1


def test_a_death_at_any_point_tells_at_most_once_and_before_the_commit_once(tmp_path: Path, api: BotApi) -> None:
    start = about_to_escalate(world(tmp_path / "start", config=SETTINGS))
    calm = copied(start, tmp_path / "calm")
    with dying(calls=CALLS) as undisturbed:
        calm.cycle(after=SOON)
    said = next(at for at, moment in enumerate(undisturbed.moments, 1) if moment.startswith("before TelegramInbox.say"))
    for at, moment in enumerate(undisturbed.moments, 1):
        api.sent.clear()
        hub = copied(start, tmp_path / str(at))
        with dying(at, CALLS) as death:
            hub.cycle(after=SOON)
        assert death.moments[-1] == moment
        for _ in range(2):
            report, _ = hub.cycle(after=SOON)
        assert statuses(report) == ["ESCALATED"]
        landed = at in (said - 1, said)  # memory says so, and the process died before it could
        assert len(api.sent) == (0 if landed else 1), moment
        shutil.rmtree(hub.repo)


def copied(hub: World, path: Path) -> World:
    shutil.copytree(hub.repo, path, symlinks=True)
    return replace(hub, repo=path)


def test_the_kill_switch_keeps_it_unsaid(api: BotApi, hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def thrown(acted: Callable[..., tuple[ExecutedDecision, ...]]) -> Callable[..., tuple[ExecutedDecision, ...]]:
        def act(*arguments: Any) -> tuple[ExecutedDecision, ...]:
            done = acted(*arguments)
            monkeypatch.setenv("RALPH_PAUSED", "1")
            return done

        return act

    monkeypatch.setattr(execute, "execute_decisions", thrown(execute.execute_decisions))
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    assert api.sent == []


# --- words ------------------------------------------------------------------------------


def test_what_a_stranger_wrote_is_one_harmless_line() -> None:
    title = "Tides\n/resume @everyone https://evil.test/x \u202eclean fixes #3 " + "long " * 200
    told = notice(replace(mission(), title=title, last_action="escalated: failed\n3 times"), "{} {}".format)
    first, words, where = told.splitlines()
    assert (first, where) == (f"Mission {mission().id} is stuck and needs a person.", f"show_issue {mission().issue}")
    assert len(words) <= 300
    assert not any(sign in words for sign in ("@everyone", "https://evil", "\u202e", "fixes #3"))
