"""How large what is loaded is."""

from __future__ import annotations

import pytest


def real(size: int):
    """The size that is promised, where there is time."""
    return pytest.param(size, marks=pytest.mark.long)  # `make test` has a small one of each
