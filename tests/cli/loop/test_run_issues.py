"""`ralph run --issues`: the issues that are ready, as the one list of a run on this branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local.forge import LocalForge, Person
from ralph_mission.adapters.git.git import Git
from ralph_mission.mission import execute
from tests.cli.loop_world import World, until, world

BUILDS = """
place = pathlib.Path(".ralph/issues/prd.json")
prd = json.loads(place.read_text())
passed = {story["id"] for story in prd["userStories"] if story["passes"]}
one = next(one for one in prd["userStories"] if not one["passes"] and {*one.get("needs", [])} <= passed)
one["passes"] = True
place.write_text(json.dumps(prd))
change()
commit()
print("did it")
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    return world(tmp_path, {"ralph.yml": "hands: {fixers: []}\nevent_loop: {cooldown_delay_seconds: 0}\n"})


@pytest.fixture
def mara(shop: World) -> Person:
    return Person(LocalForge(Git.open(shop.repo)), "mara")


def ready(mara: Person, title: str, body: str = "") -> int:
    number = mara.create_issue(title, body)
    mara.label(number, ("ralph-ready",))
    return number


def labels(shop: World, number: int) -> set[str]:
    return set(LocalForge(Git.open(shop.repo)).issue(number).labels)


def remarks(shop: World, number: int) -> list[str]:
    return [remark.body for remark in LocalForge(Git.open(shop.repo)).issue(number).remarks]


def test_ready_issues_are_built_in_the_order_of_their_needs_and_told_so(shop: World, mara: Person) -> None:
    sum_up, cart = ready(mara, "Sum up", "Needs #2.\n\n- [ ] in euros"), ready(mara, "Add a cart", "With a lid.")
    other, later = mara.create_issue("Paint it", ""), ready(mara, "Varnish it", "Depends on #3")
    done = shop.run("--issues", "--verify", "true", *shop.agent(BUILDS))
    assert (done.code, done.json["stories"]) == (0, {"passing": 2, "total": 2}), done.err
    assert shop.messages()[:2] == [f"feat: #{sum_up} - Sum up", f"feat: #{cart} - Add a cart"]
    assert "With a lid." in shop.prompt(1) and "in euros" in shop.prompt(2)
    assert labels(shop, sum_up) == labels(shop, cart) == set() and "branch `main`" in remarks(shop, cart)[-1]
    assert f"#{later} is not taken: it needs #{other}, which is still open" in done.err
    assert labels(shop, later) == {"ralph-ready"}
    work = shop.ralph("work", "--once", "--json", *shop.agent(BUILDS)).json
    assert work["skipped"] == [{"issue": later, "why": f"it needs #{other}, which is still open"}]


def test_what_is_not_done_is_given_back_and_taken_again(shop: World, mara: Person) -> None:
    first, second = ready(mara, "Add a cart"), ready(mara, "Sum up")
    (shop.repo / "mine.txt").write_text("half done")
    refused = shop.run("--issues", *shop.agent(BUILDS))
    assert refused.code == 1 and "mine.txt" in refused.out
    assert labels(shop, first) == labels(shop, second) == {"ralph-ready"}
    (shop.repo / "mine.txt").unlink()
    assert shop.run("--issues", "--max-iterations", "1", *shop.agent(BUILDS)).code == 2
    assert (labels(shop, first), labels(shop, second)) == (set(), {"ralph-ready"})
    assert shop.run("--issues", *shop.agent(BUILDS)).code == 0
    assert labels(shop, second) == set() and len(remarks(shop, second)) == len(remarks(shop, first)) == 1
    nothing = shop.run("--issues", *shop.agent(BUILDS))
    assert nothing.code == 1 and "label one ralph-ready" in nothing.out


def test_a_killed_run_is_resumed_with_its_issues(shop: World, mara: Person) -> None:
    first, second = ready(mara, "Add a cart"), ready(mara, "Sum up")
    waits = BUILDS + "while call == 2: time.sleep(0.01)\n"
    killed = shop.start("--issues", *shop.agent(waits))
    until(lambda: len(shop.calls) == 2)
    shop.end(killed)
    assert labels(shop, second) == {"ralph-ready", "ralph-working"}
    work = shop.ralph("work", "--once", "--json", *shop.agent(BUILDS)).json
    assert {one["issue"] for one in work["skipped"]} == {first, second}  # they are that run's
    resumed = shop.run("--issues", "--continue", *shop.agent(BUILDS))
    assert (resumed.code, resumed.json["sessions"]) == (0, 2), resumed.err
    assert labels(shop, first) == labels(shop, second) == set() and len(remarks(shop, first)) == 1


def test_what_could_not_be_told_at_the_end_is_told_by_continue(shop: World, mara: Person, monkeypatch) -> None:
    gone, first, second = ready(mara, "Paint it"), ready(mara, "Add a cart"), ready(mara, "Sum up")
    script = f"""
if call == 3:
    pathlib.Path({str(shop.repo)!r}, ".ralph/forge/issues/{gone:04d}.md").unlink()
    (here / "paused").touch()
"""
    monkeypatch.setattr(execute, "is_stopped", lambda _: (shop.aside / "paused").exists())
    paused = shop.run("--issues", *shop.agent(BUILDS + script))
    assert (paused.code, paused.json["stories"]) == (0, {"passing": 3, "total": 3}), paused.err
    assert f"#{gone} is not told: " in paused.err and f"#{second} is not told yet" in paused.err
    assert labels(shop, first) == {"ralph-ready", "ralph-working"}
    fresh = shop.run("--issues", *shop.agent(BUILDS))
    assert fresh.code == 1 and "--continue" in fresh.out
    (shop.aside / "paused").unlink()
    resumed = shop.run("--issues", "--continue", *shop.agent(BUILDS))
    assert (resumed.code, len(shop.calls)) == (0, 3), resumed.err
    assert labels(shop, first) == labels(shop, second) == set()
    assert len(remarks(shop, first)) == len(remarks(shop, second)) == 1


def test_another_list_beside_the_issues_is_wrong_usage(shop: World) -> None:
    assert shop.run("Add a cart", "--issues", "--command", "true").code == 64
