"""Orders out of a chat, heard by whole cycles: what they change, when they are confirmed, and what they cannot do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.app.hosting import FixedClock
from ralph_mission.mission.model.ledger import ChatGuidance, ChatYes, MemoryBatch, OpenState
from ralph_mission.mission.model.mission import Status
from ralph_mission.mission.operations import control
from ralph_mission.mission.operations.inbox import apply_chat_commands
from ralph_mission.mission.operations.recover import recover_memory
from tests.fakes.networks.bot_api import OWNER, STRANGER, TOKEN, BotApi, bot_api, known_bot_api
from tests.integration.coding import AgentWorld, agent_world
from tests.integration.forging import forge_memory, place, state_of
from tests.integration.hub import open_hub
from tests.integration.test_life import BUG as BUG_orders_heard
from tests.integration.test_life import BUGS
from tests.integration.world import BUGS_CONFIG, World, begun_once, statuses, world

__all__ = ["place"]

CHAT = f"telegram: {{chats: [{OWNER}]}}\n"
BUG = {"bugs.txt": "src/a.py:1: boats sink at low tide\n", "src/a.py": "x = 1\n"}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[BotApi]:
    with known_bot_api(monkeypatch) as made:
        yield made


@pytest.fixture
def hub(tmp_path: Path, api: BotApi) -> World:
    """A proposal that waits for a yes, and one cycle of memory."""
    made = world(tmp_path / "harbour", BUG, BUGS_CONFIG + CHAT)
    begun_once(made, "a cycle", made.cycle)
    return made


def say(api: BotApi, where: World, text: str, sender: int = OWNER, **more: Any) -> None:
    """Somebody writes it a minute before the next cycle."""
    api.message(text, sender, at=int((where.now + timedelta(hours=6, minutes=59)).timestamp()), **more)


def state(where: World) -> OpenState:
    recalled = where.house().store.recall()
    assert recalled
    return recalled.state


def proposal(where: World) -> Any:
    return next(issue for issue in where.issues if "ralph:mission" in issue.labels)


def hash_of(where: World) -> str:
    found = re.search(r"proposal is now `([0-9a-f]{8})`", proposal(where).body)
    assert found
    return found[1]


def test_a_pause_keeps_the_cycle_from_starting_and_resume_lets_it_go_on(api: BotApi, hub: World) -> None:
    say(api, hub, "/pause")
    assert hub.cycle()[0].outcome == "paused"
    assert "paused: true" in hub.memory()
    assert hub.cycle()[0].outcome == "paused"
    say(api, hub, "/resume")
    assert hub.cycle()[0].outcome == "done"
    assert [text.split(":")[0] for text in api.said] == ["Paused", "Resumed"]


def test_what_strangers_say_is_data(api: BotApi, hub: World) -> None:
    say(api, hub, "/pause", STRANGER)
    assert hub.cycle()[0].outcome == "done"
    assert (api.said, "paused: false" in hub.memory()) == ([], True)


def test_a_cycle_that_is_not_due_asks_nobody(api: BotApi, hub: World) -> None:
    from ralph_mission.mission.cycle import CycleRequest, run_cycle

    asked = len(api.asked)
    house = hub.house()
    report, _ = run_cycle(house.ports, house.settings, CycleRequest(), house.secrets)
    assert (report.outcome, len(api.asked)) == ("not_due", asked)


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_a_staged_cycle_neither_reads_nor_confirms(api: BotApi, hub: World) -> None:
    say(api, hub, "/pause")
    hub.cycle(staged=True)
    assert len(api.updates) == 1


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_a_staged_cycle_counts_a_yes_that_memory_holds_under_its_seal(api: BotApi, hub: World) -> None:
    say(api, hub, f"/approve {proposal(hub).number} {hash_of(hub)}")
    house = hub.house()
    past = house.store.recall()
    assert past
    apply_chat_commands(
        replace(house.ports, clock=FixedClock(hub.now + timedelta(hours=6, minutes=59, seconds=30))),
        past,
        house.settings.limits,
    )
    assert len(state(hub).yes) == 1
    report, _ = hub.cycle(staged=True)
    assert statuses(report) == ["PLANNED"]
    assert state(hub).missions[0].status is Status.DISCOVERED


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_without_memory_orders_wait(tmp_path: Path, api: BotApi) -> None:
    fresh = world(tmp_path / "fresh", BUG, BUGS_CONFIG + CHAT)
    say(api, fresh, "/pause")
    assert fresh.cycle()[0].outcome == "done"
    assert fresh.cycle(timedelta())[0].outcome == "paused"


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_status_is_answered(api: BotApi, hub: World) -> None:
    say(api, hub, "/status")
    hub.cycle()
    assert api.said[0].startswith("Cycle 1, 0 of 3 missions under way, next cycle due")
    assert "boats sink" in api.said[0]


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_an_old_order_is_told_and_not_obeyed(api: BotApi, hub: World) -> None:
    api.message("/pause", at=int((hub.now - timedelta(hours=18)).timestamp()))
    assert hub.cycle()[0].outcome == "done"
    assert api.said == ["Not done: /pause of 2026-05-04 01:00 UTC is more than 24 hours old. Send it again."]


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_a_clock_that_is_ahead_of_ours_does_not_matter(api: BotApi, hub: World) -> None:
    api.message("/pause", at=int((hub.now + timedelta(days=2)).timestamp()))
    assert hub.cycle()[0].outcome == "paused"


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_a_number_alone_shows_what_a_yes_would_be_to(api: BotApi, hub: World) -> None:
    number, digest = proposal(hub).number, hash_of(hub)
    say(api, hub, f"/approve {number}")
    hub.cycle()
    assert api.said[0].endswith(f"To approve that text: /approve {number} {digest}")
    assert (state(hub).yes, state(hub).missions[0].status) == ((), Status.DISCOVERED)


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_a_yes_at_the_present_text_counts_and_the_issue_says_whose_it_was(api: BotApi, hub: World) -> None:
    number = proposal(hub).number
    say(api, hub, f"/approve {number} {hash_of(hub)}")
    hub.cycle()
    assert state(hub).missions[0].status is Status.PLANNED
    remarks = [remark.body for remark in hub.house().forge.issue(number).remarks]
    assert any(f"an owner in the Telegram chat {OWNER}" in body for body in remarks)


def test_a_yes_is_void_once_the_text_is_edited(api: BotApi, hub: World) -> None:
    found, digest = proposal(hub), hash_of(hub)
    file = next(path for path in (hub.repo / ".ralph").rglob(f"*{found.number}*.md") if "issues" in path.parts)
    file.write_text(file.read_text().replace("boats sink", "ships sink"))
    say(api, hub, f"/approve {found.number} {digest}")
    hub.cycle()
    assert state(hub).missions[0].status is Status.DISCOVERED
    assert api.said == [f"Not approved: #{found.number}: its text was edited; the next cycle asks again."]


@pytest.mark.long  # a variation; what an order means is tested without cycles
@pytest.mark.parametrize("words", ["/approve 999 deadbeef", "/approve", "/approve all", "/approve 999999999999"])
def test_what_is_no_proposal_cannot_be_approved(api: BotApi, hub: World, words: str) -> None:
    say(api, hub, words)
    hub.cycle()
    assert api.said[0].startswith("Not approved: ")
    assert state(hub).yes == ()


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_another_text_than_the_one_that_stands_there_is_asked_about_again(api: BotApi, hub: World) -> None:
    say(api, hub, f"/approve {proposal(hub).number} 00000000")
    hub.cycle()
    assert "That is not the text that stands there now." in api.said[0]
    assert state(hub).yes == ()


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_an_issue_of_a_persons_takes_no_yes(api: BotApi, hub: World) -> None:
    number = hub.person().create_issue("Let me in", "proposal is now `deadbeef`", ("ralph:mission",))
    say(api, hub, f"/approve {number} deadbeef")
    hub.cycle()
    assert api.said == [f"Not approved: #{number}: it asks for no approval."]


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_guidance_waits_in_memory_for_the_next_session_without_secrets(api: BotApi, hub: World) -> None:
    say(api, hub, f"/guidance wrap the code, the key is {TOKEN}")
    say(api, hub, "/guidance #999 nothing")
    hub.cycle()
    kept = state(hub).guidance
    assert (len(kept), kept[0].mission, TOKEN in json.dumps(kept[0].words)) == (1, 0, False)
    assert kept[0].words.startswith("wrap the code")
    assert "no mission has the number #999" in api.said[0]


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_restart_names_who_hears_it(api: BotApi, hub: World) -> None:
    say(api, hub, "/restart")
    assert hub.cycle()[0].outcome == "done"
    assert "ralph agent telegram" in api.said[0]


@pytest.mark.long  # a variation; what an order means is tested without cycles
@pytest.mark.parametrize("status", [409, 401, 429, 500])
def test_a_chat_that_cannot_be_read_keeps_no_cycle_from_running(api: BotApi, hub: World, status: int) -> None:
    said = {"ok": False, "error_code": status, "description": "no"}
    api.faults = [("getUpdates", status, said)]
    assert hub.cycle()[0].outcome == "done"


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_an_answer_that_gets_lost_is_not_said_again(api: BotApi, hub: World) -> None:
    api.faults = [("sendMessage", 500, {"ok": False, "error_code": 500, "description": "no"})]
    say(api, hub, "/pause")
    assert hub.cycle()[0].outcome == "paused"
    hub.cycle()
    assert api.said == []


class Killed(BaseException):
    """The runner dies."""


@pytest.mark.long  # a variation; what an order means is tested without cycles
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_around_the_commit_leaves_each_order_obeyed_once(
    api: BotApi, hub: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    say(api, hub, "/pause")
    say(api, hub, "/guidance once")
    with monkeypatch.context() as patch:
        patch.setattr(BranchStore, "commit", _dying(BranchStore.commit, moment))
        with pytest.raises(Killed):
            hub.cycle()
    assert len(api.updates) == 2  # nothing was confirmed
    assert hub.cycle()[0].outcome == "paused"
    assert [one.words for one in state(hub).guidance] == ["once"]
    control.resume(hub.house().store)
    assert hub.cycle()[0].outcome == "done"
    assert (len(state(hub).guidance), "paused: false" in hub.memory()) == (1, True)


def _dying(commit: Callable[..., Any], moment: str) -> Callable[..., Any]:
    def dies(self: BranchStore, batch: MemoryBatch, after: Any) -> None:
        if moment == "after":
            commit(self, batch, after)
        raise Killed

    return dies


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_memory_that_fell_behind_the_forge_obeys_nobody(api: BotApi, hub: World) -> None:
    from ralph_mission.errors import UserError
    from ralph_mission.mission.gather import anchor_of

    house = hub.house()
    past = house.store.recall()
    assert past
    house.forge.show_dashboard("", replace(anchor_of(past), serial=99, oid="f" * 40))
    say(api, hub, "/pause")
    before = hub.git("rev-parse", "ralph-memory")
    with pytest.raises(UserError):
        hub.cycle()
    assert (hub.git("rev-parse", "ralph-memory"), api.said) == (before, [])


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_the_forge_is_told_how_far_orders_brought_memory_without_any_cycle(api: BotApi, hub: World) -> None:
    from ralph_mission.mission.gather import anchor_of

    say(api, hub, "/pause")
    assert hub.cycle()[0].outcome == "paused"
    house = hub.house()
    past = house.store.recall()
    assert past and house.forge.anchor() == anchor_of(past)


def test_the_token_stands_nowhere(api: BotApi, hub: World) -> None:
    say(api, hub, f"/guidance {TOKEN}")
    api.faults = [("sendMessage", 400, {"ok": False, "error_code": 400, "description": f"bad {TOKEN}"})]
    hub.cycle()
    assert TOKEN.split(":")[1] not in hub.git("log", "-p", "ralph-memory")


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_what_was_obeyed_stays_obeyed_when_memory_is_recovered(api: BotApi, hub: World) -> None:
    say(api, hub, "/guidance once")
    hub.cycle()
    house = hub.house()
    recover_memory(house.store, house.forge, hub.now)
    assert len(api.updates) == 1  # Telegram would give it again
    hub.cycle()
    assert len(api.said) == 1
    assert len(state(hub).guidance) <= 1


# --- Orders out of a chat on both forges: a yes that moves a mission, words that reach an agent's session. ---


@pytest.fixture(params=["local", "github"])
def buggy(request: Any, tmp_path: Path, api: BotApi) -> Iterator[Any]:
    """A proposal that needs a yes."""
    if request.param == "local":
        made = world(tmp_path, BUGS, BUG_orders_heard + CHAT)
        made.cycle()
        yield made
    else:
        with open_hub(tmp_path, BUGS, BUG_orders_heard + CHAT) as made:
            made.cycle()
            yield made


def say_orders_heard(api: BotApi, now: Any, text: str) -> None:
    """An owner says it a minute before the next cycle."""
    api.message(text, at=int((now + timedelta(hours=6, minutes=59)).timestamp()))


def test_a_yes_is_given_in_two_steps_and_shown_on_the_issue(api: BotApi, buggy: Any) -> None:
    issue = buggy.issues[0].number
    say_orders_heard(api, buggy.now, f"/approve {issue}")
    assert statuses(buggy.cycle()[0]) == ["DISCOVERED"]
    say_orders_heard(api, buggy.now, api.said[-1].rpartition("To approve that text: ")[2])
    assert statuses(buggy.cycle()[0]) == ["PLANNED"]
    assert api.said[-1].startswith(f"Approved: #{issue} ")
    remarks = [remark.body for remark in buggy.house().forge.issue(issue).remarks]
    assert any(f"an owner in the Telegram chat {OWNER}" in body for body in remarks)


@pytest.fixture(params=["local", "github"])
def shop(request: Any, tmp_path: Path, api: BotApi) -> Iterator[AgentWorld]:
    with agent_world(tmp_path, request.param, CHAT) as made:
        yield made


@pytest.mark.long  # a variation; what an order means is tested without cycles
def test_guidance_reaches_the_agents_next_session_once(api: BotApi, shop: AgentWorld) -> None:
    shop.wanted()
    shop.cycle()
    say_orders_heard(api, shop.place.now, "/guidance use the word TIDAL")
    shop.cycle()
    assert shop.prompts[0].count("use the word TIDAL") == 1
    shop.person().review(shop.pull().number, "changes_requested", "more")
    shop.says("write('src/table.py', 'MORE = 1\\n')")
    shop.cycle()
    shop.cycle()
    assert "use the word TIDAL" not in shop.prompts[1]


# --- Memory that says an owner said yes in a chat: who can write the branch has not the key of the chat. ---


@pytest.mark.parametrize("listening", [False, True])
def test_a_yes_that_memory_alone_knows_of_moves_nothing(
    place: Any, monkeypatch: pytest.MonkeyPatch, listening: bool
) -> None:
    with bot_api() as api:
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN if listening else "")
        monkeypatch.setenv("TELEGRAM_API_URL", api.url)
        hub = place(BUGS, BUG_orders_heard + (CHAT if listening else ""))
        hub.cycle()
        (mission,) = state_of(hub).missions
        yes = ChatYes(mission.issue, mission.question.proposal_hash, OWNER, hub.now + timedelta(hours=5))
        words = ChatGuidance(1, yes.at, "open the lock")
        forge_memory(hub, lambda state: (replace(state, yes=(yes,), guidance=(words,)), ()))
        assert statuses(hub.cycle()[0]) == ["DISCOVERED"]
