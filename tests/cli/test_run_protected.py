"""What says what a run may do: no session writes it, and a restart obeys nothing that changed meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.loop_world import World, world
from tests.cli.test_run_ralplan import TWO_SECTIONS
from tests.cli.test_run_teams import SAYS

pytestmark = pytest.mark.long  # takes ten seconds or more

HATS = """
loop: {hats: 'hats/*.toml'}
"""
BUILDER = """
[hat]
name = "builder"
triggers = ["loop.start"]
publishes = ["build.complete"]
[files]
write_denied = ["docs.md"]
"""
WIDER = BUILDER.replace("docs.md", "none.md")
RESTARTS = """
if call == 1:
    widen()
    (run_dir / "signal").write_text("restart")
else:
    pathlib.Path("docs.md").write_text("x")
    print("LOOP_COMPLETE")
"""
ENV = {"RALPH_RESTART": "exit"}


def lines(*statements: str) -> str:
    """A function `widen` of the session."""
    return "\ndef widen():\n" + "".join(f"    {statement}\n" for statement in statements) + RESTARTS


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """A repository whose settings let everybody write everywhere, but for what is under test."""
    return world(tmp_path, {"ralph.yml": "completion: {open_tasks: trust}\n", "PROMPT.md": "build it\n"})


@pytest.fixture
def hats(tmp_path: Path) -> World:
    """A repository with a hat file."""
    return world(tmp_path, {"ralph.yml": HATS, "hats/builder.toml": BUILDER})


@pytest.mark.parametrize(
    "how",
    [
        ["pathlib.Path('ralph.yml').write_text('hands: {verify: [true]}')"],
        ["pathlib.Path('ralph.yml').write_text('hands: {verify: [true]}')", "commit()"],
        ["pathlib.Path('ralph.yml').unlink()"],
        ["pathlib.Path('ralph.yml').unlink()", "pathlib.Path('ralph.yml').symlink_to('other.yml')"],
        ["pathlib.Path('.gitignore').write_text('ralph.yml\\n')", "pathlib.Path('ralph.yml').write_text('{}')"],
    ],
    ids=["changed", "committed", "deleted", "linked", "ignored"],
)
def test_settings_are_put_back_in_every_run(shop: World, how: list[str]) -> None:
    before = (shop.repo / "ralph.yml").read_bytes()
    done = shop.run("build it", *shop.agent(lines(*how)), env=ENV)
    assert (done.code, done.json["ending"]) == (3, "restart"), done.err
    assert "ralph.yml" in [row["path"] for row in done.json["reverted"]]
    assert (shop.repo / "ralph.yml").read_bytes() == before and not (shop.repo / "ralph.yml").is_symlink()
    assert "You may not write `/ralph.yml`" in shop.prompt(1)


def test_settings_that_were_not_there_are_not_there_after_a_session(tmp_path: Path) -> None:
    shop = world(tmp_path)
    done = shop.run("build it", *shop.agent(lines("pathlib.Path('ralph.yml').write_text('{}')")), env=ENV)
    assert done.code == 3 and not (shop.repo / "ralph.yml").exists(), done.err


@pytest.mark.parametrize(
    "how",
    [
        [f"pathlib.Path('hats/builder.toml').write_text({WIDER!r})"],
        [f"pathlib.Path('hats/zz.toml').write_text({WIDER!r})", "commit()"],
        ["import shutil", "shutil.move('hats', 'src')", "pathlib.Path('hats').symlink_to('src')",
         f"pathlib.Path('hats/builder.toml').write_text({WIDER!r})"],
    ],
    ids=["changed", "added", "folder linked"],
)  # fmt: skip  # one way after another
def test_a_session_cannot_widen_its_hat_by_a_restart(hats: World, how: list[str]) -> None:
    hats.repo.joinpath("hats/builder.toml").write_text(BUILDER)
    done = hats.run("build it", "--max-iterations", "2", *hats.agent(lines(*how)))
    assert done.code in (1, 2), done.err
    assert (hats.repo / "hats/builder.toml").read_text() == BUILDER
    assert [path.name for path in (hats.repo / "hats").iterdir()] == ["builder.toml"]
    assert not (hats.repo / "hats").is_symlink() and not (hats.repo / "docs.md").exists()


def test_a_file_with_the_objective_is_as_immutable_as_the_objective(shop: World) -> None:
    done = shop.run(*shop.agent(lines("pathlib.Path('PROMPT.md').write_text('something else')")), env=ENV)
    assert (done.code, (shop.repo / "PROMPT.md").read_text()) == (3, "build it\n"), done.err


def test_settings_that_git_ignores_say_nothing_from_within_a_clone(tmp_path: Path) -> None:
    shop = world(tmp_path, {".gitignore": "ralph.yml\n"})
    agent = shop.agent(lines("pathlib.Path('ralph.yml').write_text('hands: {verify: [true]}')"))
    done = shop.run_apart("build it", *agent)
    assert (done.code, len(shop.calls), (shop.repo / "ralph.yml").exists()) == (0, 2, False), done.err


@pytest.mark.parametrize("env", [{}, ENV], ids=["by itself", "by a supervisor"])
def test_nothing_restarts_by_settings_that_changed_in_the_checkout(tmp_path: Path, env: dict[str, str]) -> None:
    shop = world(tmp_path, {".gitignore": "ralph.yml\n"})
    agent = shop.agent(lines(f"pathlib.Path({str(shop.repo)!r}, 'ralph.yml').write_text('hands: {{verify: [true]}}')"))
    done = shop.run("build it", *agent, env=env)
    assert (done.code, len(shop.calls)) == (1, 1), done.err
    assert "ralph.yml" in done.err and "changed while the run was going" in done.err


def test_a_planner_cannot_widen_what_the_builders_may_do(tmp_path: Path) -> None:
    shop = world(tmp_path, {".gitignore": "ralph.yml\n"})
    writes = """
(run_dir.parents[1] / "ralph.yml").write_text("hands: {verify: [true]}")
story = {"id": "US-001", "title": "Count the shelf", "description": "As a keeper I see what is left.",
         "acceptanceCriteria": ["an empty shelf counts 0", "Typecheck passes"], "priority": 1, "passes": False}
prd = {"project": "Shop", "branchName": "ralph/shop", "description": "A shop", "userStories": [story]}
pathlib.Path("prd.json").write_text(json.dumps(prd))
"""
    done = shop.run("a shop", "--prd", *shop.agent(writes))
    assert (done.code, shop.calls) == (1, ["planner"]), done.err


def test_a_restart_of_untouched_settings_goes_on_as_before(shop: World) -> None:
    done = shop.run_apart("build it", *shop.agent(lines("pass")))
    assert (done.code, done.json["ending"], len(shop.calls)) == (0, "complete", 2), done.err


def test_a_restart_with_continue_on_the_line_continues(shop: World) -> None:
    assert shop.run("build it", "--max-iterations", "1", *shop.agent("")).code == 2
    (shop.aside / "calls").unlink()
    done = shop.run_apart("build it", "--continue", *shop.agent(lines("pass")))
    assert (done.code, done.json["sessions"]) == (0, 3), done.err


def test_who_plays_apart_cannot_write_them_either(tmp_path: Path) -> None:
    shop = world(tmp_path)
    writes = '    write("ralph.yml", "{}")\n    name ='
    agent = shop.agent(SAYS + TWO_SECTIONS.replace("    name =", writes))
    done = shop.run("a shop", "--pattern", "ralplan", "--build", *agent)
    assert done.code == 0, done.err
    assert [row["path"] for row in done.json["reverted"]] == ["ralph.yml"] * 2
    assert not (shop.repo / "ralph.yml").exists() and (shop.repo / "store.txt").exists()
