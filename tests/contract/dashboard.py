"""The dashboard and its boxes, on every forge: what people tick is told, and never lost by our own writing."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.mission.lifecycle.checkboxes import box, find_ticked, tick
from ralph_mission.mission.model.ledger import Anchor
from tests.contract.forge_world import World, merge_pull, outcome, pulled

ANCHOR = Anchor("lineage", 1, "c" * 40)
RUN, PAUSE = "run 0", "pause 0"
PAGE = "\n".join((box("Look now", RUN), box("Pause", PAUSE)))


class DashboardContract:
    """The bodies; a binding says in `tick` how a person ticks, and in `page` what stands there."""

    @staticmethod
    def tick(world: World, order: str, login: str = "mara") -> None: ...

    @staticmethod
    def page(world: World) -> str: ...

    def test_what_nobody_ticked_is_no_tick(self, world: World) -> None:
        assert world.forge.ticks() == ()
        world.forge.show_dashboard(PAGE, ANCHOR)
        assert world.forge.ticks() == () and world.forge.issues("all") == ()

    def test_a_tick_is_told_until_its_box_is_gone(self, world: World) -> None:
        world.forge.show_dashboard(PAGE, ANCHOR)
        self.tick(world, PAUSE)
        (told,) = world.forge.ticks()
        assert told.box == PAUSE and told.actor and world.forge.may_approve(told.actor)
        world.forge.show_dashboard(f"{PAGE}\n\nMore.", replace(ANCHOR, serial=2))
        assert [one.box for one in world.forge.ticks()] == [PAUSE]
        world.forge.show_dashboard(box("Pause", "pause 1"), replace(ANCHOR, serial=3))
        assert world.forge.ticks() == () and not find_ticked(self.page(world))

    def test_a_merge_rests_on_a_tick_at_the_commit_that_was_shown(self, world: World) -> None:
        opened = pulled(world)
        world.forge.show_dashboard(box("Merge it", f"approve {opened.number} {opened.sha}"), ANCHOR)
        self.tick(world, f"approve {opened.number} {opened.sha}")
        (told,) = world.forge.ticks()
        assert told.actor
        merge = replace(merge_pull(opened), approver=told.actor.id, base="main")
        assert world.forge.perform(merge).status == "done"

    def test_a_tick_at_another_commit_merges_nothing(self, world: World) -> None:
        opened = pulled(world)
        order = f"approve {opened.number} {'a' * 40}"
        world.forge.show_dashboard(box("Merge it", order), ANCHOR)
        self.tick(world, order)
        (told,) = world.forge.ticks()
        assert told.actor
        merge = replace(merge_pull(opened), approver=told.actor.id, base="main")
        assert outcome(world.forge.perform(merge)) == ("failed", "approval-head")

    def test_a_no_and_a_park_are_heard_in_their_thread(self, world: World) -> None:
        opened = pulled(world)
        world.forge.show_dashboard(box("No", f"reject {opened.number}"), ANCHOR)
        self.tick(world, f"reject {opened.number}")
        assert [one.body for one in world.forge.pull(opened.number).remarks] == ["/ralph reject"]


def ticked(page: str, order: str) -> str:
    return tick(page, {*find_ticked(page), order})
