"""The local forge keeps the contract of every forge."""

from __future__ import annotations

from tests.contract.forge_contract import ForgeContract


class TestLocalForge(ForgeContract):
    """The fixture `world` of this folder is all that is needed."""
