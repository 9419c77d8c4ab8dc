"""The local forge's dashboard is a file, and whoever may change it ticks."""

from __future__ import annotations

from typing import Any

from tests.contract.dashboard import DashboardContract, ticked


class TestLocalDashboard(DashboardContract):
    @staticmethod
    def page(world: Any) -> str:
        return (world.forge.store.root / "dashboard.md").read_text(encoding="utf-8")

    @staticmethod
    def tick(world: Any, order: str, login: str = "") -> None:
        path = world.forge.store.root / "dashboard.md"
        path.write_text(ticked(path.read_text(encoding="utf-8"), order), encoding="utf-8")
