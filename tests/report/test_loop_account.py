from __future__ import annotations

import pytest

from ralph_mission.report.loop_account import redact_values

SECRET = "hush-hush-hush-hush-5f3c"


@pytest.mark.attack(33)
def test_an_account_holds_no_secret_however_deep_it_stands() -> None:
    told = redact_values({"refused": [{"session": 1, "why": f"no {SECRET}"}], "detail": SECRET, "code": 2}, (SECRET,))
    assert SECRET not in repr(told) and isinstance(told, dict) and told["code"] == 2
