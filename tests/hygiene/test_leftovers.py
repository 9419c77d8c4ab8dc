"""What an earlier job left on the runner is not honoured: in git's own folder, in the home, in the environment."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers import git
from tests.hygiene.leftovers import IN_THE_CLONE, IN_THE_HOME, Leave
from tests.hygiene.site import Site, built, moved, tampered

slow = pytest.mark.long(reason="a tenth of a second for each; the others stand for them")
QUICK = ("hooks", "a filter", "another server", "a change that is skipped", "an object in the place of another")
EVERY = [
    *(
        pytest.param(leave, id=f"clone: {name}", marks=slow if name not in QUICK else ())
        for name, leave in IN_THE_CLONE.items()
    ),
    *(
        pytest.param(leave, id=f"home: {name}", marks=slow if name not in QUICK else ())
        for name, leave in IN_THE_HOME.items()
    ),
]


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return built(tmp_path_factory.mktemp("pattern") / "runner of ours")


@pytest.fixture
def site(pattern: Site, tmp_path: Path) -> Site:
    return moved(pattern, tmp_path / "runner of ours")


def harmed(site: Site) -> bool:
    return site.owned.exists() or bool(tampered(site))


@pytest.mark.attack(41)
@pytest.mark.parametrize("leave", EVERY)
def test_what_an_earlier_job_left_has_no_say_in_the_checkout(site: Site, leave: Leave) -> None:
    leave(site)
    site.owned.unlink(missing_ok=True)
    swept = site.run("Sweep")
    site.check_out(**site.given("Check out"))
    assert swept.returncode == 0, swept.stdout
    assert not harmed(site), (site.owned.read_text() if site.owned.exists() else "", tampered(site))


@pytest.mark.long  # proves the attacks, not us
@pytest.mark.parametrize("leave", EVERY)
def test_without_our_care_it_would_have_one(site: Site, leave: Leave) -> None:
    leave(site)
    site.owned.unlink(missing_ok=True)
    site.check_out()
    assert harmed(site)


def test_a_clone_that_nobody_touched_is_not_made_anew(site: Site) -> None:
    kept = site.workspace / ".git" / "ralph"
    kept.mkdir()
    assert site.run("Sweep").returncode == 0
    site.check_out(**site.given("Check out"))
    assert kept.is_dir() and tampered(site) == {}


@pytest.mark.parametrize("lacking", ["--filter=blob:none", "--reference={0}"], ids=["partial", "borrowing"])
def test_a_clone_that_an_earlier_job_made_without_every_object_has_them_all_afterwards(
    site: Site, lacking: str
) -> None:
    git(site.source, "config", "uploadpack.allowFilter", "true")
    shutil.rmtree(site.workspace)
    server, option = f"file://{site.source}", lacking.format(site.source)
    git(site.root, "clone", "--quiet", "--no-checkout", option, server, str(site.workspace))
    git(site.workspace, "remote", "set-url", "origin", str(site.source))
    assert site.run("Sweep").returncode == 0
    site.check_out(**site.given("Check out"))
    git(site.workspace, "fsck", "--connectivity-only")
    assert tampered(site) == {}


def test_a_runner_without_a_checkout_has_nothing_to_sweep(site: Site, tmp_path: Path) -> None:
    bare = Site(tmp_path / "new")
    bare.workspace.mkdir(parents=True)
    assert bare.run("Sweep").returncode == 0
    assert list(bare.workspace.iterdir()) == []


@pytest.mark.attack(41)
@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR",
        "GIT_SSH_COMMAND",
        *(
            pytest.param(name, marks=slow)
            for name in """GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_NAMESPACE GIT_EXEC_PATH
            GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_SSL_NO_VERIFY GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF GIT_SSH""".split()
        ),
    ],
)
def test_a_variable_that_leads_git_elsewhere_stops_before_anything(site: Site, name: str) -> None:
    done = site.run("Prepare", {"inputs.mode": "cycle"}, **{name: "/elsewhere"})
    assert done.returncode == 2 and f"{name} leads git elsewhere" in done.stdout
    assert not (site.temp / "output").exists()
