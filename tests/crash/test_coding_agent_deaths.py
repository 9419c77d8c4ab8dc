"""A cycle with an agent dies at every moment, and what comes of the mission is what would have come of it anyway."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ralph_mission.adapters.fixers.coder import AgentCoder
from tests.integration.coding import AgentWorld, agent_world
from tests.integration.dying import PORTS, dying
from tests.integration.test_after_a_death import NOW
from tests.integration.test_missions_bounds import scripted, spent
from tests.integration.world import statuses

MOMENTS = (*PORTS, (AgentCoder, "work"))
WORKED = "after AgentCoder.work(AgentJob)"
LARGE = "write('src/table.py', ''.join(f'ROW_{n} = {n}\\n' for n in range(80)))"


def ask_for_work(shop: AgentWorld) -> None:
    shop.wanted()
    shop.cycle()


def reviewed(shop: AgentWorld) -> None:
    ask_for_work(shop)
    shop.cycle()
    shop.person().review(shop.pull().number, "changes_requested", "call it TIDES")
    shop.cycle()
    shop.says("write('src/table.py', 'TIDES = 1\\n')")


def large(shop: AgentWorld) -> None:
    shop.says(LARGE)
    ask_for_work(shop)


def released(shop: AgentWorld) -> None:
    large(shop)
    shop.cycle()
    shop.person().comment(1, "/ralph approve")


def largely_answered(shop: AgentWorld) -> None:
    reviewed(shop)
    shop.says(LARGE)


def answer_released(shop: AgentWorld) -> None:
    largely_answered(shop)
    shop.cycle()
    shop.person().comment(1, "/ralph approve")


STAGES = {"a change is made": ask_for_work, "a review is answered": reviewed, "a change is shown": large,
          "a shown change is released": released, "an answer is shown": largely_answered,
          "a shown answer is released": answer_released}  # fmt: skip  # a table


def end(shop: AgentWorld) -> object:
    """All that people see at last, and how often an agent was asked."""
    pulls = [(pull.state, pull.head, pull.title) for pull in shop.pulls()]
    content = [shop.at(pull.head_sha, "src/table.py") for pull in shop.pulls()]
    said = [said for said in shop.said(1) if "An agent made" in said]
    standing = [said for said in shop.said(1) if "An agent made" not in said]
    return pulls, content, len(said), len(standing), statuses(shop.cycle(after=NOW)[0])


def deaths(moments: list[str]) -> list[int]:
    """Before each action, and after the last: between two of them nothing changes but what this process remembers."""
    return [at for at, name in enumerate(moments, 1) if name.startswith("before ") or at == len(moments)]


def lived(folder, before: Callable[[AgentWorld], None], at: int) -> tuple[object, list[str], int]:
    """The end of a stage that dies at moment `at`; the moments that there were, and how often an agent was asked."""
    with agent_world(folder, "local") as shop:
        before(shop)
        early = len(shop.prompts)
        with dying(at, MOMENTS) as death:
            shop.cycle()
        for _ in range(4):
            shop.cycle(after=NOW)
        return end(shop), death.moments, len(shop.prompts) - early


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("stage", STAGES)
def test_a_death_at_any_moment_changes_nothing_of_the_end(tmp_path, stage):
    wanted, moments, _ = lived(tmp_path / "undisturbed", STAGES[stage], 0)
    assert len(moments) > 6
    for at in deaths(moments):
        found, _, again = lived(tmp_path / f"at-{at}", STAGES[stage], at)
        assert (found, again <= 2) == (wanted, True), f"died at moment {at}: {moments[at - 1]}"


def paid(folder, at: int) -> tuple[float, float, list[str]]:
    """What is known to be spent after a death at moment `at`, and after the next cycle; the moments that passed."""
    with agent_world(folder, "local", config=scripted) as shop:
        shop.wanted()
        shop.cycle()
        with dying(at, MOMENTS) as death:
            shop.cycle(after=NOW)
        dead = spent(shop)
        shop.cycle(after=NOW)
        return dead, spent(shop), death.moments


@pytest.mark.long  # deaths one after another, tens of seconds
def test_what_an_agent_cost_is_known_to_who_dies_before_anything_is_sent(tmp_path):
    _, _, moments = paid(tmp_path / "undisturbed", 0)
    worked = moments.index(WORKED)
    sending = next(at for at, name in enumerate(moments, 1) if at > worked and name.startswith("before LocalForge.p"))
    assert paid(tmp_path / "dead", sending)[:2] == (0.25, 0.25)


@pytest.mark.crash  # takes minutes
def test_what_an_agent_cost_is_known_at_every_moment_of_dying(tmp_path):
    _, _, moments = paid(tmp_path / "undisturbed", 0)
    for at in [at for at in deaths(moments) if at > moments.index(WORKED)]:
        dead, later, _ = paid(tmp_path / f"at-{at}", at)
        assert 0.25 <= dead <= later, f"died at moment {at}: {moments[at - 1]}"
