"""What every forge must do, whatever it is made of: the same test bodies for each of them.

A binding subclasses `ForgeContract` and provides the fixture `world`, a `World`.
"""

from __future__ import annotations

import pytest

from ralph_mission.mission.model.forge import AlertKind
from ralph_mission.mission.model.ledger import Anchor
from tests.contract.branches import BranchContract
from tests.contract.forge_world import World
from tests.contract.issues import IssueContract
from tests.contract.labels import LabelContract
from tests.contract.merging import MergeContract
from tests.contract.pulls import PullContract
from tests.contract.reviews import ReviewContract


class ForgeContract(IssueContract, LabelContract, BranchContract, PullContract, ReviewContract, MergeContract):
    """The bodies. Bindings add a fixture `world` and what only they can promise."""

    def test_anchor_is_remembered(self, world: World) -> None:
        assert world.forge.anchor() is None
        for serial in (1, 2):
            world.forge.show_dashboard(f"Page {serial}", Anchor("lineage", serial, "c" * 40))
        assert world.forge.anchor() == Anchor("lineage", 2, "c" * 40)

    @pytest.mark.parametrize("kind", ["dependency", "code", "secret"])
    def test_where_nobody_looks_for_them_there_are_no_alerts(self, world: World, kind: AlertKind) -> None:
        assert world.forge.security_alerts(kind) is None

    def test_where_nothing_ran_no_run_failed(self, world: World) -> None:
        assert world.forge.workflow_runs() == world.forge.workflow_runs(ended="failure", event="push") == ()
