"""Ctrl-C in each phase of a real process, and a disk that is full: nothing half done, the next cycle carries on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import cli_here
from tests.integration.world import CALM, world

SLOWLY = """
import sys, time
from ralph_mission.cli.main import main
from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.mission import execute, gather, observe, rank
from ralph_mission.adapters.storage.memory.branch import BranchStore

phase, arguments = sys.argv[1], sys.argv[2:]
places = {
    "check": (gather, "read_situation"),
    "observe": (observe, "redact_observation"),
    "think": (rank, "rank_findings"),
    "act": (LocalForge, "perform"),
    "reflect": (BranchStore, "commit"),
}
home, name = places[phase]
real, calls = getattr(home, name), []

def slow(*given, **named):
    calls.append(name)
    if len(calls) == (2 if phase in ("act", "reflect") else 1):
        print("READY", file=sys.stderr, flush=True)
        while True:
            time.sleep(0.02)  # in short pauses: a signal may come before one of them begins
    return real(*given, **named)

setattr(home, name, slow)
sys.argv = ["ralph", *arguments]
sys.exit(main())
"""


def interrupted(repo: Path, phase: str) -> tuple[int, str]:
    """A cycle that gets Ctrl-C within a phase: its exit code and last line."""
    command = [sys.executable, "-c", SLOWLY, phase, "cycle", "--force", "--repo", str(repo)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            if line == "READY\n":
                process.send_signal(signal.SIGINT)
            else:
                lines.append(line)
    return process.returncode, lines[-1]


@pytest.mark.long  # five moments of dying, each a process
@pytest.mark.parametrize("phase", ["check", "observe", "think", "act", "reflect"])
def test_an_interrupt_ends_the_cycle_with_130_and_the_next_one_carries_on(tmp_path, phase):
    hub, calm = world(tmp_path / "a"), world(tmp_path / "b")
    code, last = interrupted(hub.repo, phase)
    assert code == 130
    assert "interrupted" in last
    assert hub.git("status", "--short") == ""
    hub.now = calm.now = hub.now.now(hub.now.tzinfo)
    hub.cycle()
    calm.cycle()
    assert [issue.title for issue in hub.issues] == [issue.title for issue in calm.issues]
    assert [pull.title for pull in hub.pulls] == [pull.title for pull in calm.pulls]


def test_a_full_disk_while_memory_is_written_is_one_line_and_changes_nothing(tmp_path):
    hub = world(tmp_path / "repo", config=CALM)
    hub.cycle()
    head, issues = hub.git("rev-parse", "ralph-memory"), len(hub.issues)
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(
        "#!/bin/sh\n"
        'case " $* " in *" fast-import "*) echo "fatal: write error: No space left on device" >&2; exit 128;; esac\n'
        f'exec "{shutil.which("git")}" "$@"\n'
    )
    shim.chmod(0o755)
    full = {"PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}"}
    done = cli_here("cycle", "--force", repo=hub.repo, env=full)
    assert done.code == 1
    assert done.err.splitlines()[-1].startswith("error: ")
    assert "no space left on device" in done.err.splitlines()[-1].lower()
    assert "Traceback" not in done.err
    assert (hub.git("rev-parse", "ralph-memory"), len(hub.issues)) == (head, issues)
    assert cli_here("cycle", "--force", repo=hub.repo).code == 0
