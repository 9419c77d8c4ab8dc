"""What one guard of a loop's files alone holds back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.stores.loop import files, owners
from ralph_mission.stores.loop.progress_log import ProgressLog


@pytest.mark.attack(46)
def test_a_link_in_place_of_a_folder_of_ours_leads_no_writing_elsewhere(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (elsewhere := tmp_path / "somebody's own").mkdir()
    (tmp_path / ".ralph" / "loop").symlink_to(elsewhere)
    files.write(tmp_path / ".ralph" / "loop" / "state.json", b"{}")
    files.append(tmp_path / ".ralph" / "loop" / "log.jsonl", b"{}")
    assert list(elsewhere.iterdir()) == []
    assert (tmp_path / ".ralph" / "loop" / "state.json").read_bytes() == b"{}"


@pytest.mark.attack(46)
def test_a_guide_that_is_a_link_out_of_the_work_tree_teaches_nothing(tmp_path: Path) -> None:
    (tree := tmp_path / "tree").mkdir()
    secret = tmp_path / "guide.md"
    secret.write_text("## Codebase Patterns\n- the key is under the mat\n")
    (tree / "AGENTS.md").symlink_to(secret)
    (tree / "CLAUDE.md").write_text("## Codebase Patterns\n- tests stand beside\n")
    assert ProgressLog(tree).read().patterns == ("tests stand beside",)


def test_a_machine_that_is_not_this_one_is_never_proven_dead() -> None:
    """Whatever its boot was: only a machine knows its own."""
    assert not owners.dead("elsewhere:another boot:1")
