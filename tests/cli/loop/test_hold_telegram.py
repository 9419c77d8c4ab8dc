"""`ralph agent telegram`: orders while a loop runs, its agents' questions, and words on how it fares."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

from ralph_mission.adapters.storage.loop import inbox, lock, state
from ralph_mission.adapters.storage.loop.inbox import Guide, Questions
from ralph_mission.app.cycle import open_poller
from ralph_mission.loop.model.state import RunState
from ralph_mission.mission.operations import control
from ralph_mission.mission.operations.inbox import InboxPoller
from tests.cli.loop_world import until
from tests.fakes.networks.bot_api import GROUP, OWNER, STRANGER, TOKEN, BotApi, known_bot_api
from tests.helpers import cli_here, make_repo
from tests.integration.world import World, world

CONFIG = f"telegram: {{chats: [{OWNER}]}}\nRObot: {{enabled: true, timeout_seconds: 1}}\n"
Attends = Callable[[Path], AbstractContextManager[InboxPoller]]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[BotApi]:
    with known_bot_api(monkeypatch) as made:
        yield made


@pytest.fixture
def repo(tmp_path: Path, api: BotApi) -> Path:
    return make_repo(tmp_path / "harbour", {"README.md": "# Harbour\n", "ralph.yml": CONFIG})


@pytest.fixture
def lines() -> list[str]:
    """What is said to whoever started it."""
    return []


@pytest.fixture
def attends(lines: list[str]) -> Attends:
    return lambda repo: open_poller(repo, None, 0, lines.append)


@pytest.fixture
def loop(repo: Path) -> Iterator[Path]:
    """A loop that runs there."""
    now = datetime.now(UTC)
    state.save(repo, RunState("run-1", "Paint the lighthouse", now, iteration=7, item="US-2"))
    with lock.exclusive(repo / ".git", repo, "fresh", now):
        yield repo


def say(api: BotApi, text: str, sender: int = OWNER, ago: timedelta = timedelta()) -> int:
    return api.message(text, sender, at=int((datetime.now(UTC) - ago).timestamp()))


def test_guidance_reaches_the_running_loop_once(api: BotApi, loop: Path, attends: Attends) -> None:
    number = say(api, "/guidance wrap it, do not replace it")
    say(api, "/guidance let me in", STRANGER)
    with attends(loop) as made:
        made.look()
        made.look()
    assert [(one.id, one.text) for one in Guide(loop / ".ralph").pending()] == [
        (f"telegram-{number}", "wrap it, do not replace it")
    ]
    assert api.said == ["The loop's next session gets it, once."]
    assert api.updates == []


class NoteOfNothing:
    """Nothing can be kept in it."""

    def read(self) -> str:
        return ""

    def keep(self, cursor: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_crash_before_the_cursor_is_kept_does_not_say_it_twice(api: BotApi, loop: Path, attends: Attends) -> None:
    say(api, "/guidance once")
    with attends(loop) as made:
        made.note = NoteOfNothing()
        assert not made.look()  # and then it died
    with attends(loop) as made:
        made.look()
    with attends(loop) as made:
        made.look()
    assert [one.text for one in Guide(loop / ".ralph").pending()] == ["once"]


def test_status_and_restart_are_the_loops(api: BotApi, loop: Path, attends: Attends) -> None:
    say(api, "/status")
    say(api, "/restart")
    with attends(loop) as made:
        made.look()
    assert inbox.read(loop / ".ralph") == "restart"
    assert "Paint the lighthouse\nSession 7. It is on US-2." in api.said[0]
    assert api.said[0].endswith("The loop restarts when its session is over.")


def test_without_a_loop_or_memory_nothing_is_obeyed(api: BotApi, repo: Path, attends: Attends) -> None:
    for order in ("/pause", "/restart", "/approve 1", "/guidance x", "/answer y"):
        say(api, order)
    with attends(repo) as made:
        made.look()
    assert api.said == ["\n\n".join(["Not done: there is no memory here yet. Run a cycle first."] * 5)]
    assert (inbox.read(repo / ".ralph"), api.updates[5:]) == ("", [])


@pytest.mark.long  # a variation of an order that is obeyed
def test_what_was_not_obeyed_for_want_of_memory_is_not_obeyed_once_there_is_some(tmp_path: Path, api: BotApi) -> None:
    made = world(tmp_path / "bay", config=CONFIG)
    made.now = datetime.now(UTC) - timedelta(hours=8)
    say(api, "/pause")
    assert cli_here("agent", "telegram", "--once", repo=made.repo).code == 0
    assert api.said == ["Not done: there is no memory here yet. Run a cycle first."]
    assert [made.cycle()[0].outcome, made.cycle()[0].outcome] == ["done", "done"]


def test_an_old_order_is_told_and_not_obeyed(api: BotApi, loop: Path, attends: Attends) -> None:
    say(api, "/restart", ago=timedelta(hours=30))
    with attends(loop) as made:
        made.look()
    assert (inbox.read(loop / ".ralph"), "more than 24 hours old" in api.said[0]) == ("", True)


def test_an_agents_question_goes_to_the_person_and_the_answer_back(api: BotApi, loop: Path, attends: Attends) -> None:
    questions = Questions(loop / ".ralph", lambda: datetime.now(UTC) + timedelta(minutes=5))
    asked = questions.ask("Red or white? <b>@all</b>")
    with attends(loop) as made:
        made.look()
        made.look()
        say(api, "/answer 1 red")
        made.look()
    assert api.said == ["An agent asks:\nRed or white? <b>@all</b>\n\nSay: /answer 1 WORDS",
                        "Answered: Red or white? <b>@all</b>"]  # fmt: skip  # one list
    assert {one.id: one.answer for one in questions.all()} == {asked.id: "red"}


def test_an_answer_that_is_heard_again_answers_no_other_question(api: BotApi, loop: Path, attends: Attends) -> None:
    questions = Questions(loop / ".ralph", lambda: datetime.now(UTC) + timedelta(minutes=5))
    first, second = questions.ask("Red or white?"), questions.ask("Delete the lighthouse?")
    say(api, "/answer 1 red")
    with attends(loop) as made:
        made.note = NoteOfNothing()
        assert not made.look()
    with attends(loop) as made:
        made.look()
    assert {one.id: one.answer for one in questions.all()} == {first.id: "red", second.id: None}
    assert api.said[0] == "Answered: Red or white?"


@pytest.mark.parametrize(
    ("asked", "order", "answers", "said"),
    [
        (["Red or white?"], "/answer red", ["red"], "Answered: Red or white?"),
        (["Red or white?"], "/answer", [None], "an answer needs words: /answer 1 WORDS."),
        (["Red or white?"], "/answer 2 red", [None], "the question 2 is not open."),
        (["Red?", "Delete it?"], "/answer yes", [None, None], "mean: /answer 1 WORDS or /answer 2 WORDS."),
        (["Red?", "Delete it?"], "/answer #2 no", [None, "no"], "Answered: Delete it?"),
    ],
)  # fmt: skip  # one table
def test_an_answer_goes_to_the_question_that_it_names(
    api: BotApi, loop: Path, attends: Attends, monkeypatch: pytest.MonkeyPatch,
    asked: list[str], order: str, answers: list[str | None], said: str,
) -> None:  # fmt: skip  # one list
    questions = patient(loop, monkeypatch)
    for words in asked:
        questions.ask(words)
    say(api, order)
    with attends(loop) as made:
        made.look()
    assert [one.answer for one in questions.all()] == answers
    assert said in api.said[0]


def test_an_answer_without_a_number_is_not_to_a_question_asked_since(
    api: BotApi, loop: Path, attends: Attends, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = patient(loop, monkeypatch)
    say(api, "/answer yes", ago=timedelta(seconds=5))
    questions.ask("Delete the lighthouse?")
    with attends(loop) as made:
        made.look()
    assert (questions.all()[0].answer, "/answer 1 WORDS" in api.said[0]) == (None, True)


def test_an_answer_without_a_number_is_not_to_the_question_after_the_one_that_is_over(
    api: BotApi, loop: Path, attends: Attends, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = patient(loop, monkeypatch)
    Questions(loop / ".ralph", lambda: datetime.now(UTC) - timedelta(hours=1)).ask("Red or white?")
    questions.ask("Delete the lighthouse?")
    say(api, "/answer red")
    with attends(loop) as made:
        made.look()
    assert ([one.answer for one in questions.all()], "/answer 2 WORDS" in api.said[0]) == ([None, None], True)


def patient(loop: Path, monkeypatch: pytest.MonkeyPatch) -> Questions:
    """The questions of a checkout where somebody waits ten minutes for an answer."""
    monkeypatch.setattr("ralph_mission.app.ports.patience", lambda settings: (600, 300))
    return Questions(loop / ".ralph")


def test_nobody_waits_where_nobody_listens(loop: Path) -> None:
    done = cli_here("agent", "telegram", "--ask", "Red or white?", repo=loop)
    assert (done.code, done.out.startswith("No one is listening")) == (0, True)
    assert Questions(loop / ".ralph").all() == ()


def test_a_question_that_nobody_answers_is_over_in_time(loop: Path) -> None:
    with Questions(loop / ".ralph").attended():
        done = cli_here("agent", "telegram", "--ask", "Red or white?", repo=loop)
    assert (done.code, done.out.startswith("No answer within 1 s.")) == (0, True)


def test_the_answer_is_what_ask_prints(loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = patient(loop, monkeypatch)

    def answer_it() -> None:
        until(questions.open)
        (question,) = questions.open()
        questions.answer(question.id, "red")

    with questions.attended():
        person = Thread(target=answer_it)
        person.start()
        done = cli_here("agent", "telegram", "--ask", "Red or white?", repo=loop)
        person.join()
    assert (done.code, done.out) == (0, "red\n")


def test_a_loop_is_told_about_at_its_intervals_and_at_its_end(
    api: BotApi, repo: Path, attends: Attends, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    with attends(repo) as made:
        made.ports = _at(made, now)
        with lock.exclusive(repo / ".git", repo, "fresh", now):
            made.look()
            made.ports = _at(made, now + timedelta(seconds=299))
            made.look()
            assert api.said == []
            made.ports = _at(made, now + timedelta(seconds=300))
            made.look()
            made.look()
        made.look()
        made.look()
    assert [text.splitlines()[-1] for text in api.said] == ["It has not begun a session yet.", "The loop has ended."]


def _at(made: InboxPoller, moment: datetime):
    from dataclasses import replace

    from ralph_mission.app.hosting import FixedClock

    return replace(made.ports, clock=FixedClock(moment))


# --- with memory ------------------------------------------------------------------------


@pytest.fixture
def remembering(tmp_path: Path, api: BotApi) -> World:
    made = world(tmp_path / "bay", config=CONFIG)
    made.now = datetime.now(UTC) - timedelta(hours=8)
    made.cycle()
    return made


def test_orders_are_written_to_memory(api: BotApi, remembering: World, attends: Attends) -> None:
    say(api, "/pause")
    with attends(remembering.repo) as made:
        made.look()
        made.look()
    assert "paused: true" in remembering.memory()
    assert (api.said, api.updates) == (["Paused: nothing is done until /resume."], [])


@pytest.mark.long  # a variation of an order that is obeyed
def test_what_a_cycle_obeyed_is_not_obeyed_again(api: BotApi, remembering: World, attends: Attends) -> None:
    say(api, "/guidance once")
    remembering.cycle()
    with attends(remembering.repo) as made:
        made.look()
    recalled = remembering.house().store.recall()
    assert recalled and [one.words for one in recalled.state.guidance] == ["once"]
    assert len(api.said) == 1


@pytest.mark.long  # a variation of an order that is obeyed
def test_while_a_cycle_runs_a_pause_is_obeyed_and_all_else_waits(
    api: BotApi, remembering: World, attends: Attends
) -> None:
    say(api, "/guidance later")
    say(api, "/pause")
    store = remembering.house().store
    with attends(remembering.repo) as made, store.exclusive():
        made.look()
        made.look()
        assert "paused: true" in remembering.memory()
        assert (api.said, len(api.updates)) == ([], 2)
    with attends(remembering.repo) as made:
        made.look()
    recalled = store.recall()
    assert recalled and [one.words for one in recalled.state.guidance] == ["later"]


@pytest.mark.long  # a variation of an order that is obeyed
def test_a_resume_by_hand_is_not_undone_by_a_pause_that_was_obeyed_before(
    api: BotApi, remembering: World, attends: Attends
) -> None:
    say(api, "/pause")
    store = remembering.house().store
    with attends(remembering.repo) as made:
        with store.exclusive():
            made.look()
            control.resume(store)
        made.look()
        assert "paused: false" in remembering.memory()
        assert api.said == ["Paused a running cycle; resumed by hand since."]
        say(api, "/pause")
        made.look()
    assert "paused: true" in remembering.memory()


@pytest.mark.long  # a variation of an order that is obeyed
def test_the_last_word_on_a_pause_counts_that_was_obeyed_before(
    api: BotApi, remembering: World, attends: Attends
) -> None:
    say(api, "/resume")
    say(api, "/pause")
    with attends(remembering.repo) as made:
        with remembering.house().store.exclusive():
            made.look()
        made.look()
    assert "paused: true" in remembering.memory()


# --- as a process -----------------------------------------------------------------------


def test_it_listens_until_it_is_interrupted(api: BotApi, loop: Path) -> None:
    say(api, "/restart")
    command = [sys.executable, "-m", "ralph_mission", "agent", "telegram", "--repo", str(loop)]
    with subprocess.Popen(command, cwd=loop.parent, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr and "listening" in process.stderr.readline()
        while not api.sent:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert (process.wait(), TOKEN in said, "Traceback" in said) == (130, False, False)
    assert inbox.read(loop / ".ralph") == "restart"


# --- at its edges -----------------------------------------------------------------------


def test_only_one_listens(api: BotApi, repo: Path, attends: Attends) -> None:
    with attends(repo):
        done = cli_here("agent", "telegram", "--once", repo=repo)
    assert (done.code, "runs here already" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("config", "token"),
    [(CONFIG, ""), ("", TOKEN), (CONFIG.replace("true", "false"), TOKEN), ("telegram: {}\n", TOKEN)],
)
def test_where_nothing_is_set_up_it_says_what_to_do(
    tmp_path: Path, api: BotApi, monkeypatch: pytest.MonkeyPatch, config: str, token: str
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", token)
    done = cli_here("agent", "telegram", repo=make_repo(tmp_path / "bay", {"a": "b\n", "ralph.yml": config}))
    assert (done.code, "docs/publishing.md#telegram" in done.err) == (2, True)


def test_a_group_needs_people(tmp_path: Path, api: BotApi) -> None:
    made = make_repo(tmp_path / "bay", {"a": "b\n", "ralph.yml": f"telegram: {{chats: [{GROUP}], users: [{OWNER}]}}\n"})
    api.message("/status", OWNER, GROUP, at=int(datetime.now(UTC).timestamp()))
    api.message("/status", STRANGER, GROUP, at=int(datetime.now(UTC).timestamp()))
    assert cli_here("agent", "telegram", "--once", repo=made).code == 0
    assert [one["chat_id"] for one in api.sent] == [GROUP]


def test_trouble_is_said_once_and_looking_goes_on(api: BotApi, repo: Path, attends: Attends, lines: list[str]) -> None:
    said = {"ok": False, "error_code": 409, "description": "Conflict"}
    api.faults = [("getUpdates", 409, said), ("getUpdates", 409, said)]
    with attends(repo) as made:
        assert [made.look(), made.look(), made.look()] == [False, False, True]
    assert len(lines) == 1 and "one reader" in lines[0]
    assert TOKEN not in "".join(lines) and os.environ["TELEGRAM_API_URL"] not in "".join(lines)
