"""A home is made anew before each session; links that an earlier one left there lead us nowhere."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.agents.client import furnish
from ralph_mission.adapters.agents.registry import CLIENTS


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_what_a_link_in_the_home_leads_to_is_not_removed(tmp_path, name):
    client = CLIENTS[name]
    home, theirs = tmp_path / "home", tmp_path / "theirs"
    home.mkdir()
    for way in filter(None, (*client.fresh, client.leaves)):
        first, _, rest = way.partition("/")
        (theirs / first / rest).mkdir(parents=True, exist_ok=True)
        (theirs / first / rest / "kept").write_text("a person's own")
        if not (home / first).is_symlink():
            (home / first).symlink_to(theirs / first)
    before = sorted(theirs.rglob("*"))
    furnish(home, client, {})
    assert sorted(theirs.rglob("*")) == before
