"""What `ralph run` makes of ralph.yml, hat files and people's verdicts before the first session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.app.run_options import ResolvedRun, RunOptions, resolve_run
from ralph_mission.config.reading import read
from ralph_mission.errors import UserError
from ralph_mission.loop import hats
from tests.cli.loop_world import World, world

PERSISTENT = "event_loop: {persistent: true}\nhats: {builder: {triggers: [loop.start, task.resume]}}"


def ordered(shop: World, **asked: str) -> ResolvedRun:
    """The order of a task in words."""
    return resolve_run(
        RunOptions(shop.repo, task="build it", **asked), read(Git.open(shop.repo), None), shop.repo, None
    )


def test_a_key_of_a_hat_file_that_means_nothing_is_told_with_the_nearest(tmp_path: Path) -> None:
    hat = "[hat]\nname = 'scribe'\ntriggers = ['loop.start']\n[files]\nwrite_alowed = ['docs/**']\n"
    shop = world(tmp_path, {"ralph.yml": "loop: {hats: 'hats/*.toml'}", "hats/scribe.toml": hat})
    told = "hats/scribe.toml: files.write_alowed means nothing here, did you mean files.write_allowed?"
    assert told in ordered(shop).doubts
    assert f"note: {told}" in shop.run("build it", *shop.agent("print('LOOP_COMPLETE')")).err


def test_a_key_of_a_hat_in_ralph_yml_that_means_nothing_is_told(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": "hats: {builder: {triggers: [loop.start], instrctions: x}}"})
    assert "instrctions" in shop.run("build it", *shop.agent("print('LOOP_COMPLETE')")).err


def test_what_is_doubtful_about_a_set_of_hats_is_told_and_not_refused(tmp_path: Path) -> None:
    settings = "hats: {builder: {triggers: [loop.start], publishes: [build.done]}, idler: {triggers: [never.said]}}"
    doubts = "\n".join(ordered(world(tmp_path, {"ralph.yml": settings})).doubts)
    assert "builder publishes build.done, which nobody hears" in doubts
    assert "nothing calls idler" in doubts


def test_a_disallowed_tool_that_is_a_command_is_a_denied_command(tmp_path: Path) -> None:
    settings = "hats: {builder: {triggers: [loop.start], disallowed_tools: ['Bash(git push:*)', WebFetch]}}"
    (hat,) = ordered(world(tmp_path, {"ralph.yml": settings})).order.hats
    assert (hat.commands_denied, hat.tools_denied) == (("git push",), ("WebFetch",))


def test_a_persistent_loop_without_limits_of_its_own_has_a_day_ten_thousand_sessions_and_fifty_dollars(
    tmp_path: Path,
) -> None:
    limits = ordered(world(tmp_path, {"ralph.yml": PERSISTENT})).order.limits
    assert (limits.iterations, limits.runtime, limits.usd) == (10_000, 86_400.0, 50.0)
    assert limits.failures == hats.PERSISTENT.failures


def test_limits_of_its_own_hold_in_a_persistent_loop(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": PERSISTENT.replace("true", "true, max_iterations: 7")})
    assert ordered(shop).order.limits.iterations == 7


@pytest.mark.parametrize(("asked", "ending"), [((), "iterations"), (("--max-cost", "50"), "cost")])
def test_a_cost_that_nobody_tells_ends_only_a_run_whose_cost_somebody_limited(
    tmp_path: Path, asked: tuple[str, ...], ending: str
) -> None:
    shop = world(tmp_path, {"ralph.yml": PERSISTENT})
    done = shop.run("build it", "--max-iterations", "2", *asked, *shop.agent("change()\nprint('LOOP_COMPLETE')"))
    assert (done.code, done.json["ending"]) == (2, ending), done.err


def test_persistent_and_stories_are_refused_as_a_pair(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": PERSISTENT})
    shop.stories(2)
    done = shop.run("--prd", *shop.agent("pass"))
    assert (done.code, shop.calls) == (64, [])
    assert "event_loop.persistent" in done.err and "stories" in done.err


def test_a_persistent_loop_that_nobody_takes_up_again_is_refused(tmp_path: Path) -> None:
    settings = "event_loop: {persistent: true}\nhats: {builder: {triggers: [loop.start]}}"
    with pytest.raises(UserError, match=r"task\.resume"):
        ordered(world(tmp_path, {"ralph.yml": settings}))


@pytest.mark.parametrize(
    ("settings", "verdicts", "threshold"),
    [
        ("", 0, 0),
        ("", 3, 2),
        ("loop: {thresholds: learn}", 3, 2),
        ("loop: {thresholds: {debug: learn}}", 3, 2),
        ("loop: {thresholds: {debug: 1}}", 3, 1),
    ],
)
def test_how_many_issues_may_be_left_is_fixed_or_what_people_accepted(
    tmp_path: Path, settings: str, verdicts: int, threshold: int
) -> None:
    shop = world(tmp_path, {"ralph.yml": settings or "{}"})
    (shop.repo / ".ralph/loop").mkdir(parents=True)
    line = json.dumps({"kind": "debug", "left": 2, "accepted": True}) + "\n"
    (shop.repo / ".ralph/loop/verdicts.jsonl").write_text("torn {\n" + line * verdicts)
    assert ordered(shop, pattern="debug").order.threshold == threshold
