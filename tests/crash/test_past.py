"""What was once so is so again, also for what the server remembers of its repository."""

from __future__ import annotations

from tests.crash.snapshots import Snapshot
from tests.integration.hub import hub


def test_a_pull_can_be_merged_again_once_that_is_undone(tmp_path):
    with hub(tmp_path) as harbour:
        harbour.cycle()
        number, start = harbour.pulls[0].number, Snapshot.of(harbour, "start")
        for _ in range(2):
            start.restore(harbour)
            harbour.fake.push("main", {"more.md": b"# More\n"})  # or nothing has to be merged
            harbour.person().merge(number)
            assert harbour.merged(number)
