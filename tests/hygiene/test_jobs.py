"""Whole jobs of a local runner: what an agent finds there, whom the token is told to, and two jobs at the same time."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.action.conftest import FILES, serving
from tests.action.runner import Job, Runner, workflow_of
from tests.action.test_agents import KEY, SETTINGS, ready
from tests.integration.isolation_attacks import Place, place

pytestmark = pytest.mark.long  # takes ten seconds or more
LOOKING = """\
import glob, json, os, pathlib, subprocess, sys, time
def read(path):
    try: return pathlib.Path(path).read_bytes().decode("utf-8", "replace")
    except OSError: return ""
sys.stdin.read()
here = pathlib.Path.cwd()
found = {"cwd": str(here), "environment": dict(os.environ)}
told = [read(path) for name in ("environ", "cmdline") for path in glob.glob("/proc/[0-9]*/" + name)]
found["processes"] = [text for text in told if not text.split("\\0")[0].endswith("/act")]  # it stands for GitHub
found["settings"] = [read(parent / ".git" / "config") for parent in (here, *here.parents)]
found["runner"] = [read(path) for path in glob.glob("TEMP/**", recursive=True) if "/job-" not in path]
try: found["gh"] = subprocess.run(["gh", "auth", "token"], capture_output=True, text=True).stdout
except OSError: found["gh"] = ""
drop = pathlib.Path(DROP)
(drop / f"{here.stat().st_ino}.part").write_text(json.dumps(found))
os.rename(drop / f"{here.stat().st_ino}.part", drop / f"{here.stat().st_ino}.json")
until = time.monotonic() + 300
while len(list(drop.glob("*.json"))) < TOGETHER and time.monotonic() < until: time.sleep(0.02)
pathlib.Path("tide.py").write_text("print('tide')\\n")
subprocess.run(["git", "add", "-A"], check=True)
subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "step"], check=True)
print("LOOP_COMPLETE")
"""
GIT = """\
#!/bin/sh
# Git, and a note of how it was called.
printf '%s\\0' "$(echo "$@"; env)" >>{notes}
exec {git} "$@"
"""
LEFT = """\
      - run: |
          git init --quiet . && git remote add origin "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY.git"
          mkdir -p .git/hooks && printf '#!/bin/sh\\ntouch "%s/owned"\\n' "$RUNNER_TEMP" >.git/hooks/post-checkout
          chmod +x .git/hooks/post-checkout
          git config --file "$HOME/.gitconfig" core.hooksPath "$PWD/.git/hooks"
          git config core.fsmonitor "touch $RUNNER_TEMP/owned"
          git config url.http://127.0.0.1:9/.insteadOf "$GITHUB_SERVER_URL/"
"""


@pytest.fixture
def here() -> Iterator[Place]:
    """With a folder in which agents leave what they found."""
    with place() as made:
        (made.root / "drop").mkdir()
        (made.root / "drop").chmod(0o777)
        yield made


def files(here: Place, together: int = 1) -> dict[str, str]:
    """A repository whose agent looks around, and waits until so many others look around, too."""
    words = {"DROP": repr(f"{here.root}/drop"), "TEMP": str(here.root), "TOGETHER": str(together)}
    script = LOOKING
    for word, value in words.items():
        script = script.replace(f"{{{word}}}", value).replace(word, value)
    return {**FILES, "ralph.yml": SETTINGS, "agent.py": script}


def looked(here: Place) -> list[dict[str, Any]]:
    """What the agents found."""
    return [json.loads(path.read_text()) for path in sorted((here.root / "drop").glob("*.json"))]


def made(action: Path, home: Path, python: str = sys.executable) -> Runner:
    home.mkdir()
    runner = Runner(home, action)
    runner.seed(python=python, files={"ralph.yml": SETTINGS})
    return runner


def forms(token: str) -> tuple[str, str]:
    """The token as it is, and as git sends it."""
    return token, base64.b64encode(f"x-access-token:{token}".encode()).decode()


def worked(runner: Runner, folder: Path, tree: dict[str, str], repository: str = "") -> tuple[Job, str]:
    """A job in which an issue is worked on, and its token."""
    folder.mkdir()
    with serving(folder, tree, *([repository] if repository else [])) as github:
        token, issue = github.token(), ready(github)
        asked = {"mode": "work", "issue": str(issue)}
        job = runner.run(token, github.url, "issues", asked, {"ANTHROPIC_API_KEY": KEY})
        assert job.code == 0, job.log
        return job, token


@pytest.mark.attack(42, 43)
def test_the_token_stands_in_no_argument_and_is_told_to_nobody_but_git(action: Path, here: Place) -> None:
    runner, notes = made(action, here.root / "runner"), here.root / "notes"
    recorder = here.root / "recorder"
    recorder.mkdir()
    text = GIT.format(notes=shlex.quote(str(notes)), git=shutil.which("git"))
    (recorder / "git").write_text(text)
    (recorder / "git").chmod(0o755)
    starts = list(runner.tools.glob("**/bin/python"))
    assert starts, "one environment for each sort of checkout"
    for start in starts:
        start.write_text(start.read_text().replace("#!/bin/sh\n", f'#!/bin/sh\nPATH="{recorder}:$PATH"; export PATH\n'))
    job, token = worked(runner, here.root / "server", files(here))
    plain, basic = forms(token)
    calls = [call.partition("\n") for call in notes.read_text().split("\0") if call]
    assert len(calls) > 20
    assert not [words for words, _, _ in calls if plain in words or basic in words]
    assert not [words for words, _, told in calls if plain in told]
    talks = {words for words, _, told in calls if basic in told}
    assert talks and all(" fetch " in words or " push " in words or " ls-remote " in words for words in talks)
    assert job.starts and not [start for _, start in job.starts if plain in start["ARGUMENTS"]]
    assert (job.leaks, [name for name in job.temporary if not name.startswith("ralph-summary-")]) == ([], [])
    (found,) = looked(here)
    assert not [form for form in (plain, basic) if form in json.dumps(found["environment"])]


@pytest.mark.attack(41)
def test_a_job_on_a_runner_with_leftovers_ends_as_on_a_clean_one(action: Path, here: Place) -> None:
    runner = made(action, here.root / "runner")
    workflow = workflow_of({"force": "true"}, None).replace("    steps:\n", f"    steps:\n{LEFT}", 1)
    (here.root / "server").mkdir()
    with serving(here.root / "server", FILES) as github:
        job = runner.run(github.token(), github.url, "workflow_dispatch", workflow=workflow)
    assert (job.code, job.outputs["cycle"], job.owned) == (0, "1", []), job.log
    assert job.checkouts == ["0 false"]


@dataclass(frozen=True)
class Two:
    """Two jobs that were under way at the same moment: what came of each, its token, what its agent found."""

    jobs: list[tuple[Job, str]]
    found: list[dict[str, Any]]
    runners: list[Runner]


@pytest.fixture
def two(action: Path, here: Place) -> Two:
    """On one machine, with one tool cache, for two repositories."""
    first = made(action, here.root / "first")
    second = Runner(here.root / "second", action, repository="harbour/lighthouse")
    second.tools.parent.mkdir(parents=True)
    second.tools.symlink_to(first.tools)
    done: dict[str, tuple[Job, str]] = {}

    def work(runner: Runner) -> None:
        server = here.root / f"{runner.home.name}-server"
        done[runner.home.name] = worked(runner, server, files(here, together=2), runner.repository)

    threads = [threading.Thread(target=work, args=(runner,)) for runner in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(done) == {"first", "second"}, done
    return Two([done["first"], done["second"]], looked(here), [first, second])


@pytest.mark.attack(41, 42)
def test_two_jobs_of_different_repositories_share_nothing(two: Two) -> None:
    one, other = two.found
    places = [{found["cwd"], *(found["environment"][name] for name in ("HOME", "TMPDIR"))} for found in (one, other)]
    assert not [a for a in places[0] for b in places[1] if os.path.commonpath((a, b)) in (a, b)]
    for (_, token), runner in zip(two.jobs, reversed(two.runners), strict=True):
        kept = [path for path in runner.home.rglob("*") if path.is_file() and not path.is_symlink()]
        assert not [path for path in kept for form in forms(token) if form.encode() in path.read_bytes()]
    for job, _ in two.jobs:
        assert (job.code, job.leaks, job.owned, job.outputs["outcome"]) == (0, [], [], "done")


def test_what_outlives_a_job_is_kept_by_repository(two: Two) -> None:
    tools = two.runners[0].tools
    assert {path.name for path in tools.iterdir()} <= {"ralph", "ralph-due", "ralph-mission"}
    kept = {path.name for path in tools.glob("ralph/*")}
    assert kept <= {"harbour+slackwater", "harbour+lighthouse"}
