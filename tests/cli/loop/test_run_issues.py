"""`ralph run --issues`: the issues that are ready, as the one list of a run on this branch."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.git.git import Git
from ralph_mission.mission import execute
from ralph_mission.mission.model.effects import Comment, Effect, Receipt
from tests.adapters.storage.memory.making import on_server
from tests.cli.loop_world import World, until, world
from tests.integration.hub import UNPACED, unpaced

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


def test_a_second_run_leaves_the_issues_of_the_first_alone(shop: World, mara: Person) -> None:
    number = ready(mara, "Add a cart")
    running = shop.start("--issues", *shop.agent("while not (here / 'on').exists(): time.sleep(0.01)\n" + BUILDS))
    until(lambda: len(shop.calls) == 1)
    for more in ((), ("--continue",)):
        second = shop.run("--issues", *more, *shop.agent(BUILDS))
        assert second.code == 1 and "a run on issues works in this repository" in second.out
        assert labels(shop, number) == {"ralph-ready", "ralph-working"}
    mara.close_issue(number)
    (shop.aside / "on").touch()
    assert running.wait() == 0
    assert shop.messages()[0] == f"feat: #{number} - Add a cart" and remarks(shop, number) == []


def test_what_could_not_be_told_at_the_end_is_told_by_continue(
    shop: World, mara: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, first, second = ready(mara, "Paint it"), ready(mara, "Add a cart"), ready(mara, "Sum up")
    script = f"""
if call == 3:
    pathlib.Path({str(shop.repo)!r}, ".ralph/forge/issues/{gone:04d}.md").unlink()
    (here / "paused").touch()
"""
    monkeypatch.setattr(execute, "is_stopped", lambda _: (shop.aside / "paused").exists())
    paused = shop.run("--issues", *shop.agent(BUILDS + script))
    assert (paused.code, paused.json["stories"]) == (0, {"passing": 3, "total": 3}), paused.err
    assert f"#{gone} got no comment: " in paused.err and f"#{second} still lacks the comment" in paused.err
    assert labels(shop, first) == {"ralph-ready", "ralph-working"}
    fresh = shop.run("--issues", *shop.agent(BUILDS))
    assert fresh.code == 1 and "--continue" in fresh.out
    (shop.aside / "paused").unlink()
    perform = LocalForge.perform

    def die_after_a_comment(forge: LocalForge, effect: Effect) -> Receipt:
        done = perform(forge, effect)
        if isinstance(effect, Comment):
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as patched:
        patched.setattr(LocalForge, "perform", die_after_a_comment)
        assert shop.run("--issues", "--continue", *shop.agent(BUILDS)).code == 130
    assert len(remarks(shop, first)) == 1
    resumed = shop.run("--issues", "--continue", *shop.agent(BUILDS))
    assert (resumed.code, len(shop.calls)) == (0, 3), resumed.err
    assert labels(shop, first) == labels(shop, second) == set()
    assert len(remarks(shop, first)) == len(remarks(shop, second)) == 1


@pytest.mark.long  # two processes and a server
def test_on_github_a_run_killed_at_work_and_one_killed_while_telling_leave_nothing_twice(tmp_path: Path) -> None:
    settings = "forge: {kind: github}\nhands: {fixers: []}\nevent_loop: {cooldown_delay_seconds: 0}\n"
    shop = world(tmp_path, {"ralph.yml": settings})
    with on_server(shop.repo, tmp_path / "server.git") as fake, unpaced():
        fake.clock.now = datetime.now(UTC)
        env = {"GITHUB_TOKEN": fake.token(), "GITHUB_REPOSITORY": fake.repository, "GITHUB_API_URL": fake.api_url,
               "GITHUB_SERVER_URL": fake.url, "XDG_CACHE_HOME": str(tmp_path / "cache")}  # fmt: skip  # one table

        def start(*options: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", UNPACED, "run", "--issues", *options]
            return subprocess.Popen(command, text=True, cwd=shop.repo, env=os.environ | env,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip  # one call

        def read_issue(number: int) -> tuple[set[str], int]:
            return {*fake.issue(number).labels}, sum(one.number == number for one in fake.comments.values())

        mara, stranger = fake.person("mara"), fake.person("tom", "triage")
        sum_up, cart = mara.create_issue("Sum up", "Needs #2."), mara.create_issue("Add a cart", "With a lid.")
        paint = stranger.create_issue("Paint it")
        for person, number in ((mara, sum_up), (mara, cart), (stranger, paint)):
            person.label(number, ("ralph-ready",))
        killed = start(*shop.agent(BUILDS + "while call == 2: time.sleep(0.01)\n"))
        until(lambda: len(shop.calls) == 2)
        shop.end(killed)
        assert read_issue(cart) == read_issue(sum_up) == ({"ralph-ready", "ralph-working"}, 0)
        killed = start("--continue", *shop.agent(BUILDS))
        forget = fake.after(lambda request, _: killed.kill() if fake.comments else None)
        killed.communicate()
        forget()
        assert sorted((read_issue(cart)[1], read_issue(sum_up)[1])) == [0, 1]
        ended = shop.run("--issues", "--continue", *shop.agent(BUILDS), env=env)
        assert (ended.code, ended.json["stories"]) == (0, {"passing": 2, "total": 2}), ended.err
        assert read_issue(cart) == read_issue(sum_up) == (set(), 1) and read_issue(paint) == ({"ralph-ready"}, 0)
        assert shop.messages()[:2] == [f"feat: #{sum_up} - Sum up", f"feat: #{cart} - Add a cart"]
        assert len(shop.calls) == 3 and "With a lid." in shop.prompt(1)
        nothing = shop.run("--issues", *shop.agent(BUILDS), env=env)
        assert nothing.code == 1 and f"#{paint} is not taken" in nothing.err


def test_another_list_beside_the_issues_is_wrong_usage(shop: World) -> None:
    assert shop.run("Add a cart", "--issues", "--command", "true").code == 64
