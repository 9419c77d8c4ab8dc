"""The last step of the action, which runs whatever happened: no process, no credential."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.action.runner import ROOT, wait_for
from tests.hygiene.site import STEPS, Site, alive
from tests.integration.isolation_attacks import Place, place

TOKEN = "ghs_canary0123456789canary0123456789"
CREDENTIALS = f"AUTHORIZATION: basic {TOKEN}"
WAYS = {
    "in its group": "sleep 600 & echo $! >{0}; wait",
    "in a session of its own": "setsid sleep 600 & echo $! >{0}; wait",
    "forked twice": "(setsid sh -c 'echo $$ >{0}; exec sleep 600' &) ; sleep 600",
    "deaf to all that asks": "trap '' TERM INT HUP; echo $$ >{0}; while :; do sleep 1; done",
}
STRANGER = 65534
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells who runs where")
slow = pytest.mark.long(reason="a second for each")


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as made:
        yield made


@pytest.fixture
def site(here: Place) -> Site:
    """A runner in the middle of a job: the folder that is its agents' is that of the place."""
    made = Site(here.root)
    for folder in (made.workspace / ".ralph" / "work", made.home, made.temp, made.tools):
        folder.mkdir(parents=True, exist_ok=True)
    made.scratch.mkdir(mode=0o700)
    return made


def killed(here: Place, site: Site, script: str, level: str = "env") -> int:
    """A process that an agent left when the step was killed, that is ralph and whoever waits for it."""
    work = site.workspace / ".ralph" / "work" / "tree"
    work.mkdir(parents=True)
    told = work / "told"
    folders = {"cwd": str(work), "home": str(work / ".ralph/loop/home"), "writable": [str(work)]}
    with here.started(level, ["/bin/sh", "-c", script.format(f"'{told}'")], **folders) as process:
        wait_for(told)
        while not (left := told.read_text().strip()):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    return int(left)


def made_for_a_moment(site: Site) -> Path:
    """The folder for what ralph makes for a moment."""
    asked = f'source "{ROOT}/scripts/action/lib.sh"; temporary'
    given = site.environment(RALPH_SCRATCH=str(site.scratch))
    said = subprocess.run(["bash", "-euc", asked], env=given, text=True, capture_output=True, check=True).stdout
    return Path(said.strip())


@needs_proc
@pytest.mark.attack(41)
@pytest.mark.parametrize(
    ("step", "way"),
    [
        ("Clean up", "forked twice"),
        *(pytest.param("Clean up", way, marks=slow) for way in WAYS if way != "forked twice"),
        *(pytest.param("Sweep", way, marks=slow) for way in WAYS),
    ],
)
def test_what_a_killed_step_left_running_is_ended(here: Place, site: Site, step: str, way: str) -> None:
    left = killed(here, site, WAYS[way])
    assert alive(left)
    done = site.run(step)
    assert done.returncode == 0, done.stdout
    assert not alive(left)


@contextmanager
def running(environment: Mapping[str, str], user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process with nothing but this in its environment, until the end of the test."""
    with subprocess.Popen(["/bin/sleep", "600"], env=environment, user=user) as process:
        try:
            yield process
        finally:
            process.kill()


@needs_proc
@pytest.mark.attack(41)
def test_ralph_itself_is_ended_and_not_its_children_alone(site: Site) -> None:
    temporary = made_for_a_moment(site)
    with running({"TMPDIR": str(temporary)}) as itself, running({"HOME": f"{temporary}/home"}) as child:
        assert site.run("Clean up").returncode == 0
        assert not alive(itself.pid) and not alive(child.pid)


@needs_proc
@pytest.mark.attack(41)
@pytest.mark.parametrize("gone", [True, False], ids=["its folder is gone", "its folder is there"])
def test_what_a_killed_runner_left_is_ended_before_the_next_checkout(site: Site, gone: bool) -> None:
    temporary = site.scratch / "tmp"
    temporary.mkdir()
    ours = {"GITHUB_WORKSPACE": str(site.workspace), "RALPH_SCRATCH": str(site.scratch), "GITHUB_TOKEN": TOKEN}
    with (
        running(ours) as step,
        running({**ours, "TMPDIR": str(temporary)}) as itself,
        running({"HOME": f"{temporary}/x"}) as child,
    ):
        if gone:
            shutil.rmtree(site.scratch)
        done = site.run("Sweep")
        assert done.returncode == 0, done.stdout
        assert [alive(process.pid) for process in (step, itself, child)] == [False] * 3


@needs_proc
@pytest.mark.parametrize(
    "environment",
    [
        {"GITHUB_WORKSPACE": "{0}-2", "RALPH_SCRATCH": "{0}-2/ralph-abcdEF12"},
        {"GITHUB_WORKSPACE": "{0}"},
        {"GITHUB_WORKSPACE": "{0}", "BODY": "a text\nRALPH_SCRATCH=/x\n"},
        {"BODY": "a text\nGITHUB_WORKSPACE={0}\n", "RALPH_SCRATCH": "/x"},
        {"MARK": "{0}/ralph-abcdEF12/"},
    ],
    ids=["another runner's", "of this job", "it quotes a folder", "it quotes the workspace", "a folder quotes it"],
)
def test_what_is_of_no_earlier_run_goes_on(site: Site, environment: dict[str, str]) -> None:
    ours = {"GITHUB_WORKSPACE": str(site.workspace), "RALPH_SCRATCH": str(site.scratch)}
    odd = f"{site.workspace}\nMARK={site.workspace}/ralph-abcdEF12"
    theirs = {name: text.format(site.workspace) for name, text in environment.items()}
    with running({**ours, "TMPDIR": odd}) as left, running(theirs) as other:
        assert site.run("Sweep").returncode == 0
        assert not alive(left.pid) and alive(other.pid)


@needs_proc
def test_a_scratch_folder_that_the_workflow_itself_names_makes_nobody_an_earlier_run(site: Site) -> None:
    theirs = {"GITHUB_WORKSPACE": str(site.workspace), "RALPH_SCRATCH": "/x"}
    left = {**theirs, "RALPH_SCRATCH": str(site.scratch)}
    with running(theirs) as other, running(left) as earlier:
        assert site.run("Sweep", RALPH_SCRATCH="/x").returncode == 0
        assert alive(other.pid) and not alive(earlier.pid)


@needs_proc
def test_whoever_started_us_goes_on_whatever_its_environment(site: Site) -> None:
    started = f'env -u RALPH_SCRATCH bash "{ROOT}/scripts/action/sweep.sh"; echo went on'
    given = site.environment(RALPH_SCRATCH="/x")
    done = subprocess.run(["/bin/sh", "-c", started], env=given, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")


@needs_proc
def test_who_works_in_a_container_is_none_of_ours_though_its_workspace_is_called_as_ours(site: Site) -> None:
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        pytest.skip("nobody may make a namespace here")
    names = [f"GITHUB_WORKSPACE={site.workspace}", "RALPH_SCRATCH=/x"]
    inside = ["env", *names, "sh", "-c", f"echo >{site.root}/in; sleep 600"]
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *inside]) as container:
        wait_for(site.root / "in")
        assert site.run("Sweep").returncode == 0
        assert container.poll() is None
        container.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_another_user_cannot_say_who_is_to_be_ended(site: Site) -> None:
    place = f"{site.temp}/ralph-Neighb0r"
    theirs = {"GITHUB_WORKSPACE": str(site.workspace), "RALPH_SCRATCH": "x", "TMPDIR": place}
    with running({"HOME": f"{place}/home"}) as neighbour, running(theirs, STRANGER):
        assert site.run("Sweep").returncode == 0
        assert alive(neighbour.pid)


def test_who_works_for_another_runner_goes_on(site: Site, tmp_path: Path) -> None:
    other = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "other"), "TMPDIR": f"{site.workspace}-2/.ralph/x/"}
    with subprocess.Popen(["sleep", "600"], env=other) as neighbour:
        try:
            assert site.run("Clean up").returncode == 0
            assert neighbour.poll() is None
        finally:
            neighbour.kill()


@pytest.mark.attack(42)
@pytest.mark.parametrize("outcome", ["success", "failure", "cancelled"])
def test_what_a_checkout_left_of_the_token_is_gone_however_it_ended(site: Site, outcome: str) -> None:
    settings, kept = site.workspace / ".git" / "config", site.temp / "git-credentials-1.config"
    subprocess.run(["git", "init", "--quiet", str(site.workspace)], check=True)
    for file, key, value in (
        (settings, "http.https://example.org/.extraheader", CREDENTIALS),
        (settings, f"includeIf.gitdir:{settings.parent}.path", str(kept)),
        (settings, "remote.origin.url", "https://example.org/a/b"),
        (kept, "http.https://example.org/.extraheader", CREDENTIALS),
    ):
        subprocess.run(["git", "config", "--file", str(file), key, value], check=True)
    assert site.run("Clean up", {"steps.checkout.outcome": outcome}).returncode == 0
    assert TOKEN not in settings.read_text() and "includeIf" not in settings.read_text() and not kept.exists()
    assert "https://example.org/a/b" in settings.read_text()


def test_a_checkout_that_is_not_ours_keeps_its_settings(site: Site) -> None:
    settings = site.workspace / ".git" / "config"
    subprocess.run(["git", "init", "--quiet", str(site.workspace)], check=True)
    subprocess.run(["git", "config", "--file", str(settings), "http.extraheader", CREDENTIALS], check=True)
    assert site.run("Clean up", {"steps.checkout.outcome": "skipped"}).returncode == 0
    assert CREDENTIALS in settings.read_text()


def test_no_file_outside_of_the_runners_folder_is_removed_because_a_setting_names_it(site: Site) -> None:
    precious = site.root / "git-credentials-1.config"
    precious.write_text("mine")
    subprocess.run(["git", "init", "--quiet", str(site.workspace)], check=True)
    (site.temp / "git-credentials-x").mkdir()
    for path in (precious, f"{site.temp}/../{precious.name}", f"{site.temp}/git-credentials-x/../../{precious.name}"):
        settings = str(site.workspace / ".git" / "config")
        subprocess.run(["git", "config", "--file", settings, "--add", "includeIf.gitdir:x.path", str(path)], check=True)
    assert site.run("Clean up", {"steps.checkout.outcome": "success"}).returncode == 0
    assert precious.exists()


def test_the_folder_of_a_run_is_its_users_alone_and_gone_afterwards(site: Site) -> None:
    site.scratch.rmdir()
    step = STEPS["Prepare"]["run"].replace("bash ", "umask 000; exec bash ", 1)
    given = site.environment(**site.given("Prepare", {"inputs.mode": "cycle"}))
    subprocess.run(["bash", "-c", step], env=given, cwd=site.workspace, check=True, capture_output=True)
    (scratch,) = site.temp.glob("ralph-????????")
    assert scratch.stat().st_mode & 0o777 == 0o700
    without = {"steps.prepare.outputs.scratch": str(scratch), "steps.checkout.outcome": "skipped"}
    assert site.run("Clean up", without).returncode == 0
    assert not scratch.exists()


def test_after_a_checkout_its_folder_stays_for_what_the_checkout_does_last_and_is_empty(site: Site) -> None:
    (site.scratch / "report.json").write_text(CREDENTIALS)
    assert site.run("Clean up", {"steps.checkout.outcome": "success"}).returncode == 0
    assert (list(site.scratch.iterdir()), site.scratch.stat().st_mode & 0o777) == ([], 0o700)


def test_what_ralph_makes_for_a_moment_is_one_folder_for_all_steps_and_goes(site: Site) -> None:
    once, again = made_for_a_moment(site), made_for_a_moment(site)
    assert once == again and once.is_relative_to(site.temp)
    assert site.run("Clean up").returncode == 0
    assert list(site.scratch.iterdir()) == []


def test_a_link_that_leads_out_of_the_folder_of_a_run_takes_nothing_with_it(site: Site) -> None:
    (site.root / "mine").mkdir()
    (site.scratch / "tmp").symlink_to(site.root / "mine")
    assert site.run("Clean up").returncode == 0
    assert (site.root / "mine").is_dir() and list(site.scratch.iterdir()) == []


def test_the_last_step_runs_whatever_happened() -> None:
    assert list(STEPS)[-1] == "Clean up" and STEPS["Clean up"]["if"] == "always()"
