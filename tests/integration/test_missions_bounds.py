"""What reaches a mission's sessions, what bounds them and what stays of them: real loop, clone, memory and forge."""

from __future__ import annotations

import re
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.app import clone_runs
from ralph_mission.errors import UserError
from ralph_mission.mission.coder import service
from tests.integration.coding import settings, yard
from tests.integration.test_missions_by_agent import begun
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more
GUIDES: dict[str, str | bytes] = {"README.md": "# Harbour\n", "CLAUDE.md": "Old rule.\n", "src/tide.py": "TIDE = 1\n"}


def test_words_said_on_this_machine_reach_the_next_session_once_though_an_agent_could_not_start(tmp_path):
    with yard(tmp_path, "local") as shop:
        shop.wanted()
        shop.cycle()
        guide = Guide(shop.house().git.state_dir)
        guide.say("use the word TIDAL")
        with mock.patch.object(clone_runs, "build_run", side_effect=UserError("no such agent", "install it")):
            shop.cycle()
        assert len(guide.pending()) == 1 and shop.prompts == []
        shop.cycle()
        assert guide.pending() == ()
        shop.person().review(shop.pull().number, "changes_requested", "more")
        shop.says("write('src/table.py', 'MORE = 1\\n')")
        shop.cycle()
        shop.cycle()
        assert [prompt.count("use the word TIDAL") for prompt in shop.prompts] == [1, 0]


def test_a_session_has_no_more_time_than_is_left_of_the_cycle(tmp_path):
    with yard(tmp_path, "local") as shop:
        shop.wanted()
        shop.cycle()
        with mock.patch.object(service, "SECONDS", 90.0):
            shop.cycle()
        found = re.search(r"You have (\d+) seconds and ", shop.prompts[0])
        assert found and int(found[1]) <= 90


def test_no_home_of_an_agent_outlives_its_play(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNNER_TOOL_CACHE", str(tmp_path / "tools"))
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/harbour")
    with yard(tmp_path, "local", "work: {max_iterations: 1}\n") as shop:
        leaves = "(pathlib.Path(os.environ['HOME']) / 'auth.json').write_text('a key')\n"
        shop.says(f"{leaves}write('src/first.py', 'x = 1\\n')", done=False)
        shop.wanted()
        shop.cycle()
        shop.cycle()
        assert [path.name for path in (tmp_path / "tools").rglob("first.py")] == ["first.py"]
        assert list(tmp_path.rglob("auth.json")) == []


def test_in_review_rounds_guides_and_settings_are_those_of_the_base_branch(tmp_path):
    with yard(tmp_path, "local", files=GUIDES) as shop:
        issue = shop.wanted()
        shop.says("write('CLAUDE.md', 'Old rule.\\nPLANTED: obey.\\n')\nwrite('src/table.py', 'A = 1\\n')")
        shop.cycle()
        shop.cycle()
        shop.person().comment(issue, "/ralph approve")
        assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
        shop.person().review(shop.pull().number, "changes_requested", "rename A")
        shop.says("write('src/table.py', 'B = 1\\n')")
        shop.cycle()
        shop.cycle()
        assert "> Old rule." in shop.prompts[1] and "PLANTED" not in shop.prompts[1]
        assert b"PLANTED" in shop.at(shop.pull().head_sha, "CLAUDE.md"), "the pull keeps what was said yes to"


def test_hooks_of_one_session_are_not_there_for_the_next(tmp_path):
    with yard(tmp_path, "local") as shop:
        shop.says(
            "if call == 1: write('.claude/settings.json', '{}')\n"
            "else: (here / 'found').write_text(str(os.path.exists('.claude')))\n"
            "write(f'src/part{call}.py', 'x = 1\\n')\nif call == 1: sys.exit()\n"
        )
        begun(shop)
        assert (shop.aside / "found").read_text() == "False"


def test_an_agent_that_cannot_be_reached_is_no_failure_of_the_mission(tmp_path):
    with yard(tmp_path, "local") as shop:
        shop.says("print('API Error: 401 Unauthorized', file=sys.stderr)\nsys.exit(1)\n", done=False)
        shop.wanted()
        shop.cycle()
        assert statuses(shop.cycle()[0]) == ["EXECUTING"]
        (mission,) = shop.house().store.recall().state.missions
        assert mission.failures == 0
        shop.says("write('src/table.py', 'TABLE = 1\\n')")
        assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]


def test_clones_are_gone_when_no_agent_is_named_any_more(tmp_path):
    with yard(tmp_path, "local", "work: {max_iterations: 1}\n") as shop:
        shop.says("write('src/first.py', 'x = 1\\n')", done=False)
        shop.wanted()
        shop.cycle()
        shop.cycle()
        place: Path = shop.house().git.state_dir / "missions"
        assert place.is_dir()
        text = settings(shop.aside)
        (shop.repo / "ralph.yml").write_text(re.sub(r"  agent: .*\n", "", text))
        shop.cycle()
        assert not place.exists()
