"""The shell between the runner and ralph: what a cancelled job and an odd value meet."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.action.runner import ROOT, bare_environment, wait_for

SCRIPTS = ROOT / "scripts" / "action"
PATIENT = """\
#!/bin/sh
trap 'echo asked to stop >"$HOME/stopped"; echo "{}"; exit 130' TERM
echo started >"$HOME/started"
while :; do sleep 0.05; done
"""


def step(home: Path) -> dict[str, str]:
    """The environment of the cycle's step."""
    (home / "scratch").mkdir()
    names = {
        "RALPH_SCRATCH": "scratch",
        "GITHUB_OUTPUT": "output",
        "GITHUB_STEP_SUMMARY": "page",
        "GITHUB_WORKSPACE": "",
        "RALPH_PYTHON": "python",
    }
    places = {name: str(home / place) for name, place in names.items()}
    return bare_environment(home, **places, RALPH_CONFIG="", RALPH_STAGED="", RALPH_FORCE="")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_job_lets_the_cycle_end_in_order(tmp_path: Path, sent: signal.Signals) -> None:
    (tmp_path / "python").write_text(PATIENT)
    (tmp_path / "python").chmod(0o755)
    job = subprocess.Popen(["bash", str(SCRIPTS / "cycle.sh")], env=step(tmp_path), stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "started")
    os.kill(job.pid, sent)
    _, said = job.communicate()
    assert job.returncode == 130
    assert (tmp_path / "stopped").exists()
    stop, *_, end = re.findall(r"^::(?:stop-commands::)?(ralph-[0-9a-f]{32})(?:::)?$", said, re.MULTILINE)
    assert stop == end, "the runner was left deaf"


@pytest.mark.parametrize("config", ["", "conf/ralph other.yml", "--now=x"])
def test_the_gate_is_asked_with_the_settings_that_were_given_and_some_patience(tmp_path: Path, config: str) -> None:
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$HOME/asked"\necho "{}"\n')
    (tmp_path / "python").chmod(0o755)
    given = step(tmp_path) | {"RALPH_CONFIG": config}
    subprocess.run(["bash", str(SCRIPTS / "gate.sh")], env=given, stderr=subprocess.PIPE, check=True)
    options = (tmp_path / "asked").read_text().splitlines()[3:]
    named = [f"--config={config}"] if config else []
    assert options == ["due", "--repo", str(tmp_path), "--wait=60", *named, "--json"]


def test_every_step_that_reads_settings_is_given_the_input() -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    given = [each.get("env", {}).get("RALPH_CONFIG") for each in steps if each.get("id") in ("gate", "cycle")]
    assert given == ["${{ inputs.config }}"] * 2


@pytest.mark.parametrize(
    "value", ["plain", "two\nlines", "x\nEOF\ncycle=99", "name<<y\nz\ny", "$(touch owned) `id` \\n"]
)
def test_no_value_forges_another_output(tmp_path: Path, value: str) -> None:
    command = 'source "$0" && output name "$1" && output name "$1"'
    subprocess.run(
        ["bash", "-c", command, str(SCRIPTS / "lib.sh"), value], env=step(tmp_path), cwd=tmp_path, check=True
    )
    first, second = re.findall(r"name<<(ralph-[0-9a-f]{32})\n", (tmp_path / "output").read_text())
    assert (tmp_path / "output").read_text() == "".join(f"name<<{mark}\n{value}\n{mark}\n" for mark in (first, second))
    assert first != second
    assert not (tmp_path / "owned").exists()


def test_the_clean_up_removes_its_own_folder_and_no_other(tmp_path: Path) -> None:
    for name in ("ralph-abcdEF12", "precious"):
        (tmp_path / name).mkdir()
        subprocess.run(
            ["bash", str(SCRIPTS / "cleanup.sh")],
            env={"PATH": os.environ["PATH"], "RALPH_SCRATCH": str(tmp_path / name)},
            check=True,
        )
    subprocess.run(
        ["bash", str(SCRIPTS / "cleanup.sh")], env={"PATH": os.environ["PATH"], "RALPH_SCRATCH": ""}, check=True
    )
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
