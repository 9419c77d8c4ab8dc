"""The player of other people's files, on small ones of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import played_files

HATS = """event_loop:
  starting_event: build.start
  completion_promise: LOOP_COMPLETE
  required_events: [review.passed]
hats:
  builder: {triggers: [build.start, review.rejected], publishes: [build.stopped, review.ready]}
  critic: {triggers: [review.ready], publishes: [review.passed, review.rejected]}
  closer: {triggers: [review.passed], publishes: [LOOP_COMPLETE]}
"""
STORY = {"id": "US-1", "title": "Add a cart", "acceptanceCriteria": ["it is there"], "priority": 1, "passes": False}


@pytest.mark.long  # six sessions
def test_files_of_each_kind_are_played_to_the_end_and_one_without_stories_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "a/ralph.yml": HATS,
        "a/other.yml": "name: nothing of a loop\n",
        "b/prd.json": json.dumps({"userStories": [STORY, {**STORY, "id": "US-2"}]}),
        "c/prd.json": json.dumps({"userStories": []}),
        "c/fix_plan.md": "- [ ] Add a cart\n- [x] Begin\n",
        "d/fix_plan.md": "- [ ] Add a cart\n- [x] Begin\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert played_files.main(tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "refused: c/prd.json: prd.json holds no stories",
        "settings: 1 complete, 0 endless, 0 ended, 0 refused",
        "prd.json: 1 complete, 0 endless, 0 ended, 1 refused",
        "check list: 1 complete, 0 endless, 0 ended, 0 refused",
    ]
