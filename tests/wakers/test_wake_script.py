"""What the job behind an environment's wait timer does: `scripts/action/wake.sh`, in a real shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fakes.github import FakeGitHub
from tests.helpers import git, make_repo

SCRIPT = Path(__file__).parents[2] / "scripts" / "action" / "wake.sh"
TODAY = f"{datetime.now(UTC):%Y-%m-%d}"  # the shell's own clock
CUT_OFF = """\
#!/bin/sh
case "$*" in
  */dispatches*) echo sent >>"$HOME/sent"; printf 204 ;;
  *) printf -- '---\\nwake: false\\ntoday: "%s"\\n---\\n# Mem' "$(date -u +%Y-%m-%d)"; exit 18 ;;
esac
"""
"""A `curl` whose connection breaks after a header that grants nothing."""
PAST, FUTURE = "2020-05-04T19:00:00+00:00", "2999-05-04T19:00:00+00:00"


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    start = make_repo(tmp_path / "start", {"a.txt": "a\n"})
    git(start, "clone", "--quiet", "--bare", ".", str(tmp_path / "server.git"))
    with FakeGitHub(tmp_path / "server.git", "harbour/slackwater") as fake:
        yield fake


def wake(github: FakeGitHub, folder: Path, more: str = "", **header: object) -> tuple[int, str]:
    """How many dispatches it sends, and what it says, when memory has this header, and `more` at its end."""
    if header:
        lines = "".join(f"{name}: {value}\n" for name, value in header.items())
        log = f"---\nschema: 1\ngeneration: 7\n{lines}---\n# Memory\nwake: false\n{more}"
        github.push("ralph-memory", {"memory/ralph-log.md": log.encode()})
    page = folder / "page"
    env = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "GITHUB_TOKEN": github.token(),
        "GITHUB_API_URL": github.api_url,
        "GITHUB_REPOSITORY": "harbour/slackwater",
        "GITHUB_STEP_SUMMARY": str(page),
    }
    done = subprocess.run(["bash", str(SCRIPT)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return len(github.dispatches), page.read_text()


def test_a_due_cycle_is_woken(github, tmp_path):
    granted = {"next_due_at": PAST, "today": f'"{TODAY}"', "dispatches": 4, "wake": "true"}
    assert wake(github, tmp_path, **granted) == (1, "Ralph: the loop was woken.\n\n")


def test_without_memory_or_with_that_of_an_earlier_version_the_loop_is_woken(github, tmp_path):
    assert wake(github, tmp_path)[0] == 1
    assert wake(github, tmp_path, next_due_at=PAST, today=f'"{TODAY}"', dispatches=48)[0] == 2


def test_one_that_memory_grants_no_wake_today_is_not(github, tmp_path):
    used = {"next_due_at": PAST, "dispatches": 36, "wake": "false"}
    sent, said = wake(github, tmp_path, today=f'"{TODAY}"', **used)
    assert (sent, "used up" in said) == (0, True)
    assert wake(github, tmp_path, today='"2020-05-04"', **used)[0] == 1  # a new day owes one


@pytest.mark.parametrize("size", [60_000, 900_000])
def test_a_long_memory_grants_no_more_than_a_short_one(github, tmp_path, size):
    used = {"next_due_at": PAST, "today": f'"{TODAY}"', "dispatches": 36, "wake": "false"}
    assert wake(github, tmp_path, more="x" * size, **used)[0] == 0


def test_what_came_before_the_connection_broke_counts(github, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "curl").write_text(CUT_OFF)
    (tmp_path / "bin" / "curl").chmod(0o755)
    assert "used up" in wake(github, tmp_path)[1]
    assert not (tmp_path / "sent").exists()


def test_a_day_that_another_clock_began_is_not_over(github, tmp_path):
    used = {"next_due_at": PAST, "dispatches": 36, "wake": "false"}
    ahead = datetime.now(UTC) + timedelta(days=2)
    assert wake(github, tmp_path, today=f'"{ahead:%Y-%m-%d}"', **used)[0] == 0


def test_a_cap_of_none_wakes_on_no_day(github, tmp_path):
    assert wake(github, tmp_path, next_due_at=PAST, today='"2020-05-04"', dispatches=0, wake="false")[0] == 0


def test_one_that_is_not_due_any_more_is_left_to_the_next_wake(github, tmp_path):
    sent, said = wake(github, tmp_path, next_due_at=FUTURE, today=f'"{TODAY}"', dispatches=4, wake="true")
    assert (sent, "no cycle is due" in said) == (0, True)
