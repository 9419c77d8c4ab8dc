"""The local forge's dashboard is a file, and whoever may change it ticks."""

from __future__ import annotations

from tests.adapters.forges.conftest import LocalWorld
from tests.contract.dashboard import DashboardContract, ticked


class TestLocalDashboard(DashboardContract):
    @staticmethod
    def page(world: LocalWorld) -> str:  # type: ignore[override]  # its own kind of world
        return (world.forge.store.root / "dashboard.md").read_text(encoding="utf-8")

    @staticmethod
    def tick(world: LocalWorld, order: str, login: str = "") -> None:  # type: ignore[override]
        path = world.forge.store.root / "dashboard.md"
        path.write_text(ticked(path.read_text(encoding="utf-8"), order), encoding="utf-8")
