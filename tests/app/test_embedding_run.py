"""A run inside another program: its events as they happen, its result, held from there."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import ralph_mission
from ralph_mission.errors import UserError
from tests.cli.loop_world import World, until, world

DOCUMENT = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture
def shop(tmp_path: Path) -> World:
    return world(tmp_path)


def command(shop: World, script: str) -> str:
    return shop.agent(script)[1]


def test_the_example_in_the_documentation_runs(shop: World) -> None:
    example, *_ = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], cwd=shop.repo, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert said[0] == "1 text I write it." and "complete ['greet.py']" in said


def test_events_come_while_it_runs_and_it_is_held_from_the_program(shop: World) -> None:
    waits = "print('hello', flush=True)\nwhile not (here / f'go-{call}').exists(): time.sleep(0.01)\nchange()"
    run = ralph_mission.run("Write it", repo=shop.repo, command=command(shop, waits), max_iterations=9)
    assert next(event for event in run if event.kind == "text").text == "hello"
    run.pause()
    (shop.aside / "go-1").touch()
    assert next(event for event in run if event.kind == "held").text == "paused"
    run.resume()
    until(lambda: len(shop.calls) == 2)
    run.stop()
    (shop.aside / "go-2").touch()
    assert (run.result().ending.reason, len(run.result().outputs)) == ("stop", 2)
    assert [event.kind for event in run if event.kind in ("began", "ended")] == ["began", "ended"]  # all, to anybody


def test_it_is_awaited(shop: World) -> None:
    async def played() -> tuple[list[str], str]:
        run = ralph_mission.run("Write it", repo=shop.repo, command=command(shop, "change()"), max_iterations=1)
        kinds = [event.kind async for event in run]
        return kinds, (await run).ending.reason

    kinds, reason = asyncio.run(played())
    assert "output" in kinds and reason == "iterations"


async def follow(run: ralph_mission.RunHandle) -> None:
    async for _ in run:
        pass


async def wait(run: ralph_mission.RunHandle) -> None:
    await run


@pytest.mark.parametrize("waits", [follow, wait])
def test_a_cancelled_wait_stops_it_and_asyncio_does_not_wait_for_the_session(
    shop: World, waits: Callable[[ralph_mission.RunHandle], Coroutine[None, None, None]]
) -> None:
    script = "while not (here / 'go').exists(): time.sleep(0.01)\nchange()"
    run = ralph_mission.run("Write it", repo=shop.repo, command=command(shop, script), max_iterations=3)

    async def cancelled() -> None:
        task = asyncio.create_task(waits(run))
        while not shop.calls:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    opener = threading.Timer(20, (shop.aside / "go").touch)  # or a wait for the session would never end
    opener.start()
    asyncio.run(cancelled())
    assert not (shop.aside / "go").exists()
    opener.cancel()
    (shop.aside / "go").touch()
    assert (run.result().ending.reason, len(run.result().outputs)) == ("stop", 1)


def test_every_event_but_usage_has_the_totals_of_the_run_so_far(shop: World) -> None:
    result = {
        "type": "result",
        "is_error": False,
        "result": "more",
        "usage": {"output_tokens": 5},
        "total_cost_usd": 0.25,
    }
    script = f"print('hello', flush=True)\nchange()\nprint(json.dumps({result}))"
    events = list(ralph_mission.run("x", repo=shop.repo, command=command(shop, script), max_iterations=2))
    texts = [(event.session, event.sessions, event.usd) for event in events if event.text == "hello"]
    assert texts == [(1, 0, None), (2, 1, 0.25)]
    assert [(event.tokens, event.usd) for event in events if event.kind == "usage"] == [(5, 0.25)] * 2
    assert (events[-1].sessions, events[-1].tokens, events[-1].usd) == (2, 10, 0.5)
    assert all(event.sessions is not None for event in events if event.kind != "usage")


def test_nothing_outside_of_its_scope_stays_whatever_a_hat_may(tmp_path: Path) -> None:
    settings = "hats: {builder: {triggers: [loop.start], write_allowed: ['*.txt']}}"
    shop = world(tmp_path, {"ralph.yml": settings})
    both = "pathlib.Path('a.txt').write_text('a')\npathlib.Path('b.txt').write_text('b')"
    run = ralph_mission.run("x", repo=shop.repo, command=command(shop, both), scope=["a.txt"], max_iterations=1)
    (output,) = run.result().outputs
    assert [change.path for change in output.reverted] == ["b.txt"]
    assert (shop.repo / "a.txt").exists() and not (shop.repo / "b.txt").exists()


def test_a_text_instead_of_a_list_is_a_list_of_one(shop: World) -> None:
    both = "pathlib.Path('a.txt').write_text('a')\npathlib.Path('b.txt').write_text('b')\nprint('LOOP_COMPLETE')"
    run = ralph_mission.run(
        "x", repo=shop.repo, command=command(shop, both), checks="test -s a.txt", scope="a.*", max_iterations=1
    )
    (output,) = run.result().outputs
    assert [change.path for change in output.reverted] == ["b.txt"]
    assert output.verification.green and run.result().ending.reason == "complete"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("checks", value) for value in ("", " ", ["make test", ""], [None], [["make", "test"]], 3, None, b"make")),
        *(("scope", value) for value in ("", ["src/*", " "], [Path("src")], 3)),
        *(("max_iterations", value) for value in (0, -1, 1.0, "3", True)),
        *(("max_runtime", value) for value in (0, -1.5, "15m", float("nan"), float("inf"), True)),
        *(("max_cost", value) for value in (0, -1, "5", float("nan"), float("inf"))),
    ],
)
def test_an_argument_that_means_nothing_is_refused_by_its_name(shop: World, argument: str, value: object) -> None:
    arguments: dict[str, Any] = {"checks": ["true"], argument: value}
    with pytest.raises(UserError, match=f"^{argument} is ") as caught:
        ralph_mission.run("x", repo=shop.repo, command=command(shop, "change()"), **arguments)
    assert caught.value.exit_code == 2 and shop.calls == []


def test_what_cannot_be_run_is_told_to_whoever_asks_for_the_result(shop: World) -> None:
    run = ralph_mission.run("x", repo=shop.repo, agent="nobody")
    assert list(run) == []
    with pytest.raises(UserError, match="nobody is not one of"):
        run.result()
