"""The checks of a project have a home that no session, and nothing a session wrote, has been in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.loop_world import World, world

pytestmark = pytest.mark.long  # takes ten seconds or more

LIMIT = ("--max-iterations", "2")
GREEN = 'test -e "$HOME/green"'
CLAIMS = "change()\nflip(todo()[0])\n"
EVERYWHERE = """
for folder in (pathlib.Path(os.environ["HOME"]), *run_dir.rglob("*"), run_dir / "checks", run_dir / "checks/home"):
    if folder.is_dir() or not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "green").touch()
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """One story."""
    here = world(tmp_path)
    here.stories(1)
    return here


def stays_red(here: World, script: str, *checks: str) -> None:
    asked = [word for check in checks for word in ("--verify", check)]
    done = here.run("--prd", *LIMIT, *asked, *here.agent(script))
    assert (done.code, done.json["ending"]) == (2, "iterations"), done.err
    assert done.err.count("checks red") == 2
    assert here.passing() == []


def test_the_home_of_a_session_is_not_that_of_the_checks(shop: World) -> None:
    stays_red(shop, "(pathlib.Path(os.environ['HOME']) / 'green').touch()\n" + CLAIMS, GREEN)


def test_what_a_session_lays_into_any_folder_of_the_run_turns_no_check_green(shop: World) -> None:
    stays_red(shop, EVERYWHERE + CLAIMS, GREEN)


def test_what_its_code_leaves_when_it_is_checked_turns_no_later_check_green(shop: World) -> None:
    stays_red(shop, CLAIMS, f'{GREEN} || {{ touch "$HOME/green"; exit 1; }}')


def test_one_check_leaves_nothing_at_home_for_the_next(shop: World) -> None:
    stays_red(shop, CLAIMS, 'touch "$HOME/green"', GREEN)
