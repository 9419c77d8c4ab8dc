"""The shell between the runner and ralph: what a cancelled job and an odd value meet."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import markupsafe
import pytest
import yaml

from ralph_mission.adapters.git.git import Git
from ralph_mission.app.hosting import clones
from ralph_mission.mission.fleet.model import FleetStart, count_verdicts, render_terms
from ralph_mission.mission.memory.text import render_memory
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Urgency
from tests.action.runner import ROOT, bare_environment, wait_for
from tests.fakes.fleet import FakeFleet

SCRIPTS = ROOT / "scripts" / "action"
ASKED = '#!/bin/sh\nprintf "%s\\n" "$@" >"$HOME/asked"\necho "{}"\n'
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


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, ["work", "--once"]),
        ({"RALPH_ISSUE": "7", "RALPH_AGENT": "codex"}, ["work", "--once", "--issue=7", "--agent=codex"]),
        ({"RALPH_CONFIG": "a b.yml"}, ["work", "--once", "--config=a b.yml"]),
        ({"RALPH_MODE": "review", "RALPH_PULL_REQUEST": "8"}, ["review", "--pr=8"]),
        (
            {"RALPH_MODE": "review", "RALPH_PULL_REQUEST": "8", "RALPH_FORCE": "true", "RALPH_AGENT": "claude"},
            ["review", "--pr=8", "--agent=claude", "--force"],
        ),
    ],
)
def test_an_agent_is_asked_for_what_the_inputs_say(tmp_path: Path, given: dict[str, str], line: list[str]) -> None:
    (tmp_path / "python").write_text(ASKED)
    (tmp_path / "python").chmod(0o755)
    none = dict.fromkeys(("RALPH_ISSUE", "RALPH_PULL_REQUEST", "RALPH_AGENT"), "")
    environment = step(tmp_path) | none | {"RALPH_MODE": "work", "RALPH_INPUT_ANTHROPIC_API_KEY": "k"} | given
    subprocess.run(["bash", str(SCRIPTS / "agent.sh")], env=environment, stderr=subprocess.PIPE, check=True)
    assert (tmp_path / "asked").read_text().splitlines()[3:] == [*line, "--repo", str(tmp_path), "--json"]


@pytest.mark.parametrize("script", ["agent.sh", "cycle.sh"])
def test_a_secret_that_is_not_there_is_no_key(tmp_path: Path, script: str) -> None:
    (tmp_path / "python").write_text('#!/bin/sh\nenv >"$HOME/seen"\necho "{}"\n')
    (tmp_path / "python").chmod(0o755)
    none = dict.fromkeys(("RALPH_ISSUE", "RALPH_PULL_REQUEST", "RALPH_AGENT"), "")
    keys = {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "k", "RALPH_INPUT_ANTHROPIC_API_KEY": "", "GITHUB_TOKEN": "t"}
    environment = step(tmp_path) | none | keys | {"RALPH_MODE": "work"}
    subprocess.run(["bash", str(SCRIPTS / script)], env=environment, stderr=subprocess.PIPE, check=True)
    seen = [line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()]
    assert {"OPENAI_API_KEY", "GITHUB_TOKEN"} <= set(seen) and "ANTHROPIC_API_KEY" not in seen


@pytest.mark.parametrize(("code", "said"), [(1, "failed (exit code 1)"), (2, "ended at a limit"), (64, "exit code 64")])
def test_how_an_agent_ended_is_how_the_step_ends(tmp_path: Path, code: int, said: str) -> None:
    (tmp_path / "python").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "python").chmod(0o755)
    none = dict.fromkeys(("RALPH_ISSUE", "RALPH_PULL_REQUEST", "RALPH_AGENT"), "")
    environment = step(tmp_path) | none | {"RALPH_MODE": "work"}
    done = subprocess.run(["bash", str(SCRIPTS / "agent.sh")], env=environment, stderr=subprocess.PIPE, check=False)
    assert done.returncode == code and said in done.stderr.decode()


GOOD = {"RALPH_MODE": "cycle", "RALPH_ISSUE": "", "RALPH_PULL_REQUEST": "", "RALPH_AGENT": ""}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"RALPH_MODE": "review"}, "write pull-request: NUMBER"),
        ({"RALPH_MODE": "review", "RALPH_PULL_REQUEST": "0"}, "write it like 7"),
        ({"RALPH_MODE": "review", "RALPH_PULL_REQUEST": "8\n9"}, "write it like 7"),
        ({"RALPH_MODE": "review", "RALPH_PULL_REQUEST": "8", "RALPH_ISSUE": "7"}, "issue means nothing"),
        ({"RALPH_MODE": "review", "RALPH_PULL_REQUEST": "8", "RALPH_STAGED": "true"}, "staged means nothing"),
        ({"RALPH_MODE": "work", "RALPH_ISSUE": "-7"}, "write it like 7"),
        ({"RALPH_MODE": "work", "RALPH_ISSUE": "12345678901"}, "write it like 7"),
        ({"RALPH_MODE": "work", "RALPH_ISSUE": "$(touch owned)"}, "write it like 7"),
        ({"RALPH_MODE": "work", "RALPH_PULL_REQUEST": "7"}, "pull-request means nothing"),
        ({"RALPH_MODE": "work", "RALPH_STAGED": "true"}, "staged means nothing"),
        ({"RALPH_MODE": "work", "RALPH_FORCE": "true"}, "force means nothing"),
        ({"RALPH_MODE": "work", "RALPH_AGENT": "Claude --command id"}, "write agent: claude"),
        ({"RALPH_AGENT": "claude"}, "agent means nothing"),
        ({"RALPH_EXTRAS": "llm dev"}, "extras: llm web"),
        ({"RALPH_EXTRAS": "../llm"}, "extras: llm web"),
        ({"RALPH_EXTRAS": "llm\n--index-url"}, "extras: llm web"),
        ({"RALPH_MODE": "wake"}, "write mode: cycle"),
        ({"RALPH_REPOSITORY": "acme/.."}, "write repository: owner/name"),
        ({"RALPH_REPOSITORY": "acme/api/../web"}, "write repository: owner/name"),
        ({"RALPH_MODE": "work", "RALPH_REPOSITORY": "acme/api"}, "repository means nothing"),
        ({"RALPH_MODE": "work; id"}, "write mode: cycle"),
    ],
)
def test_inputs_that_cannot_be_meant_are_refused(tmp_path: Path, given: dict[str, str], line: str) -> None:
    done = subprocess.run(
        ["bash", str(SCRIPTS / "prepare.sh")], env=step(tmp_path) | GOOD | given, cwd=tmp_path, stderr=subprocess.PIPE,
        check=False,
    )  # fmt: skip  # one call
    assert (done.returncode, line in done.stderr.decode()) == (2, True), done.stderr
    assert not (tmp_path / "owned").exists()


def test_without_a_python_that_fits_the_installation_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    for name in ("bash", "od", "tr", "dirname"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    given = step(tmp_path) | {"PATH": str(tmp_path)}
    subprocess.run(["bash", str(SCRIPTS / "gate.sh")], env=given, stderr=subprocess.PIPE, check=True)
    assert (tmp_path / "output").read_text().splitlines()[1] == "true"


@pytest.mark.parametrize("config", ["", "conf/ralph other.yml", "--now=x"])
def test_the_gate_is_asked_with_the_settings_that_were_given_and_some_patience(tmp_path: Path, config: str) -> None:
    (tmp_path / "python3").write_text(ASKED)
    (tmp_path / "python3").chmod(0o755)
    given = step(tmp_path) | {"RALPH_CONFIG": config}
    given["PATH"] = f"{tmp_path}{os.pathsep}{given['PATH']}"
    subprocess.run(["bash", str(SCRIPTS / "gate.sh")], env=given, stderr=subprocess.PIPE, check=True)
    *how, script = (tmp_path / "asked").read_text().splitlines()[:4]
    assert (how, script) == (["-I", "-S", "-B"], str(SCRIPTS / "ralph.py")), "by what is installed"
    options = (tmp_path / "asked").read_text().splitlines()[4:]
    named = [f"--config={config}"] if config else []
    assert options == ["due", "--repo", str(tmp_path), "--wait=60", *named, "--json"]


@pytest.mark.parametrize(("paused", "due"), [("", "true"), ("1", "false")])
def test_a_persons_word_starts_a_cycle_unless_the_kill_switch_is_set(tmp_path: Path, paused: str, due: str) -> None:
    given = step(tmp_path) | {"GITHUB_EVENT_NAME": "issues", "GITHUB_ACTIONS": "true", "RALPH_PAUSED": paused}
    given |= {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "harbour/slackwater"}
    subprocess.run(["bash", str(SCRIPTS / "gate.sh")], env=given, stderr=subprocess.PIPE, check=True)
    assert (tmp_path / "output").read_text().splitlines()[1] == due


def test_a_repository_of_a_fleet_in_which_somebody_spoke_is_due(tmp_path: Path) -> None:
    start = FleetStart("acme/api", 0, Urgency.LOW, spoke=True)
    given = step(tmp_path) | {"RALPH_FLEET": render_terms(start, count_verdicts([])), "PATH": "/usr/bin:/bin"}
    subprocess.run(["bash", str(SCRIPTS / "gate.sh")], env=given, check=True)
    assert (tmp_path / "output").read_text().splitlines()[1] == "true"


def test_another_repository_stands_for_the_workflows_own_but_for_whose_run_it_is(tmp_path: Path) -> None:
    told = 'printf "%s\\n" "$GITHUB_REPOSITORY" "$RALPH_CONTROL_REPOSITORY" "${RALPH_REPOSITORY-}"'
    given = step(tmp_path) | {"GITHUB_REPOSITORY": "acme/control", "RALPH_REPOSITORY": "acme/api"}
    line = ["bash", "-c", f'source "{SCRIPTS}/lib.sh"; {told}']
    assert subprocess.check_output(line, env=given, text=True).splitlines() == ["acme/api", "acme/control", ""]


@pytest.mark.parametrize("packages", [(yaml,), (yaml, markupsafe)])
def test_the_gate_of_a_fleet_needs_pyyaml_alone_and_writes_the_matrices(
    tmp_path: Path, packages: tuple[ModuleType, ...]
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for package in packages:
        (site / package.__name__).symlink_to(Path(str(package.__file__)).parent)
    # As a Python with few packages: without -I, which comes first, it looks there and nowhere else.
    (tmp_path / "python3").write_text(f'#!/bin/sh\nshift\nPYTHONPATH={site} exec "{sys.executable}" -S "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    (tmp_path / "fleet.yml").write_text("repositories: [acme/api, acme/gone, acme/hand, acme/torn]\nrunner: [a, b]\n")
    with FakeFleet() as fake:
        fake.add("acme/api")
        fake.add("acme/hand", memory=render_memory(Memory()).replace("paused: false", "paused: yes"))  # a person's hand
        fake.add("acme/torn", memory="---\npaused: [\n")
        given = step(tmp_path) | fake.environ | {"RUNNER_TEMP": str(tmp_path)}
        given["PATH"] = f"{tmp_path}{os.pathsep}{given['PATH']}"
        subprocess.run(["bash", str(SCRIPTS / "fleet.sh")], env=given, cwd=tmp_path, check=True, stderr=subprocess.PIPE)
    lines = (tmp_path / "output").read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines[:4])
    (shard,) = json.loads(outputs["shards"])
    assert [job["repository"] for job in json.loads(shard)] == ["acme/api"]
    pages = [Path(line) for line in lines[4:] if line.endswith(".html")]
    assert len(pages) == len(packages) - 1  # in HTML, where its one package is there
    assert all("acme/gone" in page.read_text() for page in pages)
    assert (outputs["started"], outputs["runner"]) == ("1", '["a", "b"]')
    page = (tmp_path / "page").read_text()
    assert all(part in page for part in ("acme/gone: it does not exist", "acme/torn: its memory cannot be read"))
    assert "acme/hand" not in page  # it is paused


def test_every_step_that_reads_settings_is_given_the_input() -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    named = ("gate", "install", "cycle", "agent", "publish")
    given = [each.get("env", {}).get("RALPH_CONFIG") for each in steps if each.get("id") in named]
    assert given == ["${{ inputs.config }}"] * 5


SUDO = """\
#!/bin/sh
[ "$2" != tee ] || cat >"$HOME/profile"
echo "$*" >>"$HOME/asked"
case "$*" in
  *" $FAILS"*) exit 1 ;;
  *install*) cp "$HOME/bwrap.new" "$HOME/bwrap" ;;
  *parser*) touch "$HOME/loaded" ;;
esac
"""


@pytest.mark.parametrize(
    ("given", "asked", "said"),
    [
        ({}, ["-n apt-get install", "-n tee", "-n apparmor_parser"], ""),
        ({"NAMED": "1"}, [], ""),
        ({"RUNNER_ENVIRONMENT": "self-hosted"}, [], ""),
        ({"FAILS": "apt-get"}, ["-n apt-get install", "-n apt-get update"], "the package bubblewrap could not be"),
        ({"FAILS": "apparmor"}, ["-n apt-get install", "-n tee", "-n apparmor_parser"], "an AppArmor profile for"),
    ],
    ids=["an agent", "no agent", "another runner", "no package", "no profile"],
)
def test_githubs_ubuntu_is_given_what_keeps_agents_apart(
    tmp_path: Path, given: dict[str, str], asked: list[str], said: str
) -> None:
    texts = {"sudo": SUDO, "bwrap.new": '#!/bin/sh\n[ -e "$HOME/loaded" ]\n', "python": "#!/bin/sh\nexit ${NAMED:-0}\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name in ("bash", "cat", "cp", "touch", "dirname", "tee"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    there = {"RUNNER_ENVIRONMENT": "github-hosted", "RUNNER_OS": "Linux", "FAILS": "nothing", "PATH": str(tmp_path)}
    environment = step(tmp_path) | there | given
    done = subprocess.run(
        ["bash", str(SCRIPTS / "bubblewrap.sh")], env=environment, capture_output=True, text=True, check=True
    )
    lines = (tmp_path / "asked").read_text().splitlines() if (tmp_path / "asked").exists() else []
    assert [line for line, begins in zip(lines, asked, strict=True) if not line.startswith(begins)] == []
    assert ("::warning" in done.stderr, said in done.stderr) == (bool(said), True)


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        *(
            pytest.param(value, marks=pytest.mark.attack(39))
            for value in ("two\nlines", "x\nEOF\ncycle=99", "name<<y\nz\ny", "$(touch owned) `id` \\n")
        ),
    ],
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


@pytest.mark.parametrize("linked", [False, True])
def test_the_clean_up_removes_what_agents_left_and_follows_no_link(tmp_path: Path, linked: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    workspace = tmp_path / "workspace"
    for place in (elsewhere, workspace):
        (place / ".ralph" / "work" / "clone").mkdir(parents=True)
        (place / ".ralph/forge").mkdir()
    if linked:
        shutil.rmtree(workspace / ".ralph")
        (workspace / ".ralph").symlink_to(elsewhere / ".ralph")
    environment = {"PATH": os.environ["PATH"], "RALPH_SCRATCH": "", "GITHUB_WORKSPACE": str(workspace)}
    subprocess.run(["bash", str(SCRIPTS / "cleanup.sh")], env=environment, check=True)
    assert sorted(path.name for path in (elsewhere / ".ralph").iterdir()) == ["forge", "work"]
    assert sorted(path.name for path in (workspace / ".ralph").iterdir()) == ["forge", *["work"] * linked]


@pytest.mark.parametrize("cached", [False, True])
def test_the_clean_up_leaves_clones_of_missions_without_the_homes_of_agents(tmp_path: Path, cached: bool) -> None:
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    (workspace / ".git").mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "RALPH_SCRATCH": "", "GITHUB_WORKSPACE": str(workspace)}
    environment["GITHUB_REPOSITORY"] = "Octo/Harbour"
    if cached:
        environment["RUNNER_TOOL_CACHE"] = str(tmp_path / "cache")
    place = clones(Git(workspace / ".git", workspace / ".git", workspace), environment)
    for home in ("1-0/tree/.ralph/loop/home", "2-0/tree/.ralph/loop/apart/a"):
        (place / home).mkdir(parents=True)
        (place / home / "auth.json").write_text("a key")
    (place / "1-0/tree/file").touch()
    (elsewhere / "loop/home").mkdir(parents=True)
    (place / "3-0/tree").mkdir(parents=True)
    (place / "3-0/tree/.ralph").symlink_to(elsewhere)
    subprocess.run(["bash", str(SCRIPTS / "cleanup.sh")], env=environment, check=True)
    assert list(place.rglob("auth.json")) == []
    assert (place / "1-0/tree/file").exists() and (elsewhere / "loop/home").exists()


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
