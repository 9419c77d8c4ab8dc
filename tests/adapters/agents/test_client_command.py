"""Any program is an agent: real processes, in a folder and a home of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Identity
from ralph_mission.loop.model.spec import RunEvent
from ralph_mission.loop.model.state import Hat, Session
from tests.helpers import time_out_at

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(place: Path) -> int:
    for _ in range(15_000):
        if place.exists() and place.read_text().strip():
            return int(place.read_text())
        time.sleep(0.02)
    raise AssertionError(f"{place.name} was never written")


def test_the_prompt_is_its_input_and_its_output_is_the_message(play, tree):
    given = play("cat; echo; pwd", prompt="do this\n$(id) `id`")
    assert given.text.splitlines() == ["do this", "$(id) `id`", str(tree)]
    assert given.failure == "" and given.usage.sessions == 1 and given.usage.seconds > 0


def test_it_knows_its_hat_its_number_its_model_and_where_the_runs_files_are(play, tmp_path):
    given = play("echo $RALPH_HAT,$RALPH_ITERATION,$RALPH_RUN_DIR,$RALPH_MODEL,$RALPH_MAX_TURNS")
    assert given.text == f"builder,7,{tmp_path / 'run'},some-model,11"


def test_a_wrapper_is_told_what_its_hat_may_not_do(play, tree):
    wrapper = tree / "wrapper"
    wrapper.write_text(
        "#!/bin/sh\n"
        "printf '%s\\n' \"$RALPH_DENIED_TOOLS\" | sed 's/^/--deny /'\n"
        'echo "commands: $RALPH_DENIED_COMMANDS"\n'
        'echo "allowed: ${RALPH_WRITE_ALLOWED-unset}, denied: ${RALPH_WRITE_DENIED-unset}"\n'
    )
    denied = Hat("reviewer", tools_denied=("Edit", "mcp__shop buy"), commands_denied=("npm publish",),
                 write_allowed=(), write_denied=("docs/**", "a b.md"))  # fmt: skip  # one value
    assert play("sh wrapper", hat=denied).text.splitlines() == [
        "--deny Edit", "--deny mcp__shop buy", "commands: npm publish", "allowed: , denied: docs/**", "a b.md",
    ]  # fmt: skip  # as it is printed
    assert play("sh wrapper", hat=Hat("x")).text.splitlines()[-1] == "allowed: **, denied:"


def test_a_hat_that_no_environment_can_hold_is_played_all_the_same(play):
    assert play("echo $RALPH_DENIED_TOOLS", hat=Hat("x", tools_denied=("a\0b",))).text == "ab"


def test_it_sees_nothing_of_ours_but_what_is_allowed(play, monkeypatch):
    for name in ("GITHUB_TOKEN", "ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "secret-value")
    seen = dict(line.split("=", 1) for line in play("env", allow=("ANTHROPIC_API_KEY",)).text.splitlines())
    assert [name for name, value in seen.items() if value == "secret-value"] == ["ANTHROPIC_API_KEY"]
    assert seen["HOME"].endswith("/home")


def test_nobody_can_give_it_another_hat_from_outside(play):
    assert play("echo $RALPH_HAT", extra_env={"RALPH_HAT": "reviewer", "MORE": "yes"}).text == "builder"


def test_an_exit_code_is_a_failed_turn_with_its_last_lines(play):
    given = play("echo working; for n in 1 2 3 4 5 6 7 8; do echo line $n >&2; done; exit 3")
    assert given.failure == "exit" and given.text == "working"
    assert given.detail == "line 4 (exit code 3)\nline 5\nline 6\nline 7\nline 8"


@pytest.mark.parametrize("command", ["no-such-agent --yes", ("no-such-agent",), ("./not-here",)])
def test_a_program_that_does_not_exist_is_missing(play, command):
    given = play(command)
    assert given.failure == "missing" and "not" in given.detail


def test_a_limit_of_the_provider_is_told_with_when_it_ends(play):
    given = play("echo 'API Error: 429 rate_limit_error, retry-after: 42' >&2; exit 1")
    assert (given.failure, given.retry_after) == ("rate_limit", 42)


def test_an_agents_text_about_rate_limits_is_no_limit(play):
    assert play("echo 'I handled HTTP 429 Too Many Requests: rate limit reached'").failure == ""


@needs_proc
def test_a_session_that_takes_too_long_is_ended_as_a_timeout(play, tree, monkeypatch):
    late = time_out_at(tree / "begun", monkeypatch)
    given = play("echo 'API Error: 429' >&2; sleep 60 & echo $! > pid; touch begun; wait", seconds=late)
    assert given.failure == "timeout" and given.retry_after == 0
    assert not alive(int((tree / "pid").read_text()))


@needs_proc
def test_it_ends_with_its_whole_group_when_it_is_asked_to_stop(play, tree):
    started = tree / "pid"
    given = play(
        "trap '' TERM; (trap '' TERM; echo $BASHPID > x; sleep 60) & echo $! > pid; sleep 60",
        stopped=lambda: started.exists() and bool(started.read_text().strip()),
        seconds=60,
    )
    assert given.failure == "exit" and "on request" in given.detail
    assert not alive(int(started.read_text()))


@needs_proc
def test_an_interrupt_ends_an_agent_that_ignores_it(tmp_path):
    script = (
        "import sys; from pathlib import Path\n"
        "from ralph_mission.adapters.agents.client import CommandAgent\n"
        "from ralph_mission.loop.model.state import Hat, Session\n"
        "here = Path(sys.argv[1])\n"
        "agent = CommandAgent(\"trap '' INT TERM; echo $$ > pid; while :; do sleep 60; done\", here, here / 'home')\n"
        "try: agent.play(Session(Hat('x'), 1, '', '', seconds=600), lambda: False)\n"
        "except KeyboardInterrupt: sys.exit(130)"
    )
    ours = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    pid = wait_for(tmp_path / "pid")
    ours.send_signal(signal.SIGINT)
    assert ours.wait(timeout=300) == 130 and not alive(pid)


@needs_proc
def test_a_second_interrupt_leaves_nobody_behind(tmp_path):
    script = (
        "import sys; from pathlib import Path; from ralph_mission.adapters.sandbox.process import run_foreign\n"
        "here = Path(sys.argv[1])\n"
        "try: run_foreign(\"trap 'echo 1 > asked' TERM; echo $$ > pid; while :; do sleep 0.1; done\", cwd=here, "
        "home=here / 'home', timeout=600, grace=600)\n"
        "except KeyboardInterrupt: sys.exit(130)"
    )
    ours = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    pid = wait_for(tmp_path / "pid")
    ours.send_signal(signal.SIGINT)
    wait_for(tmp_path / "asked")
    ours.send_signal(signal.SIGINT)
    assert ours.wait(timeout=300) == 130 and not alive(pid)


def test_too_much_output_is_a_failed_turn(play):
    given = play("yes", output_cap=10_000)
    assert (given.failure, given.detail) == ("exit", "ended: too much output")


def test_what_it_prints_is_shown_as_it_comes(play, tree):
    seen: list[str] = []

    def tell(_: Session, event: RunEvent) -> None:
        seen.append(event.text)
        (tree / "go").touch()  # it waits for this, so the first words came while it ran

    given = play("echo first; while [ ! -e go ]; do sleep 0.02; done; echo log >&2; printf last", tell=tell)
    assert given.failure == "" and seen == ["first", "last"]


def test_git_knows_whom_to_name_where_nobody_else_says(play, tree):
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    commit = "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>'"
    assert play(commit, identity=Identity('A "B" \\C', "a@b")).text == 'A "B" \\C <a@b>'
    subprocess.run(["git", "-C", str(tree), "config", "user.name", "Mara"], check=True)
    assert play(commit, identity=Identity("R", "a@b")).text == "Mara <a@b>"


def test_what_a_session_leaves_in_gits_settings_is_gone_at_the_next(play, tmp_path, tree):
    elsewhere = tmp_path / "elsewhere"
    play(f"git config --global core.hooksPath /evil; touch {elsewhere}")
    assert play("git config --global core.hooksPath || echo none").text == "none"
    play(f"rm $HOME/.gitconfig; ln -s {elsewhere} $HOME/.gitconfig")
    play("true")
    assert elsewhere.read_text() == ""


def test_ralph_is_found_by_its_name(play, monkeypatch):
    if not shutil.which("ralph", path=os.path.dirname(sys.executable)):
        pytest.skip("ralph is not installed beside this Python")  # it cannot be called there
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "ralph" in play("command -v ralph").text


def test_sessions_share_nothing_but_files(play):
    play("export LEFT=1; cd /; LEFT=2")
    assert play("echo [$LEFT]").text == "[]"


def test_agents_of_one_run_can_play_side_by_side(play):
    given: list[str] = []
    threads = [threading.Thread(target=lambda: given.append(play("sleep 0.2; echo ok").text)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given == ["ok"] * 3


@needs_proc
def test_an_interrupt_while_it_starts_leaves_nobody_behind(play, monkeypatch):
    real, started = subprocess.Popen, []

    def interrupted(*arguments, **options):
        started.append(real(*arguments, **options))
        signal.raise_signal(signal.SIGINT)  # before anybody holds the process
        return started[-1]

    monkeypatch.setattr("ralph_mission.adapters.sandbox.process.subprocess.Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        play("sleep 60")
    assert not alive(started[0].pid)


def test_what_was_refused_in_a_session_is_told_once_and_of_that_session_only(play, tmp_path):
    (tmp_path / "run").mkdir()
    given = play("git push --force; git push --force; true", denied=("git push --force",))
    assert len(given.refused) == 1 and "git push --force" in given.refused[0]
    assert play("true", denied=("git push --force",)).refused == ()


@pytest.mark.parametrize("shell", ["bash -lc", "sh -lc", "sh -c"])
def test_a_login_shell_is_guarded_too(play, shell, tmp_path):
    (tmp_path / "run").mkdir()
    given = play(f"{shell} 'git push --force; true'", denied=("git push --force",))
    assert len(given.refused) == 1
