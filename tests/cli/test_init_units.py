"""`ralph init`: systemd units and the credentials beside them."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from ralph_mission.adapters.wakers.ways import instance
from tests.cli.init_place import LOOP, states
from tests.helpers import cli_here, git, make_repo

pytestmark = pytest.mark.usefixtures("known_commit")


def sections(text: str) -> dict[str, dict[str, str]]:
    """A unit file, read as strictly as it can be: no key twice, nothing outside a section."""
    parser = configparser.RawConfigParser(strict=True, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # keys are case-sensitive there
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--wake", "timer"), ["ralph-wake@.service", "ralph-wake@.timer"]),
        (("--service",), ["ralph-watch@.service"]),
    ],
)
def test_units_are_what_systemd_accepts(tmp_path: Path, options: tuple[str, ...], names: list[str]) -> None:
    repo, folder = make_repo(tmp_path / "repo"), tmp_path / "some units 100%"
    cli_here("init", *options, "--units", str(folder), repo=repo)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    for name in names:
        unit = sections((folder / name).read_text())
        assert unit.get("Service", {}).get("ExecStart", "repo %f").endswith("repo %f")
    if shutil.which("systemd-analyze"):
        verify = ["systemd-analyze", "verify", "--man=no", *(str(folder / name) for name in names)]
        done = subprocess.run(verify, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_credentials_stand_in_a_file_for_their_owner_and_in_no_unit(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli_here("init", "--wake", "timer", "--json", repo=repo, env={"GITHUB_TOKEN": "ghs_secret_of_somebody"})
    folder = repo / ".ralph"
    assert (folder / "ralph.env").stat().st_mode & 0o777 == 0o600
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any("ghs_secret" in text for text in texts)
    unit = sections((folder / "units" / "ralph-wake@.service").read_text())
    assert unit["Service"]["EnvironmentFile"] == "%f/.ralph/ralph.env"
    assert git(repo, "status", "--porcelain", "--untracked-files=all").splitlines() == [f"?? {LOOP}", "?? ralph.yml"]
    commands = [step for step in told.json["steps"] if step.startswith("systemctl ")]
    assert len(commands) == 2
    assert commands[1].startswith("systemctl --user enable --now ")
    assert instance(repo) in commands[1]


def test_two_repositories_of_a_host_share_their_units_and_not_their_credentials(tmp_path: Path) -> None:
    folder = tmp_path / "units"
    one, two = (make_repo(tmp_path / name) for name in ("one", "two"))
    cli_here("init", "--wake", "timer", "--units", str(folder), repo=one)
    told = cli_here("init", "--wake", "timer", "--units", str(folder), "--json", repo=two)
    assert states(told)["ralph-wake@.service"] == states(told)["ralph-wake@.timer"] == "unchanged"
    assert states(told)["ralph.env"] == "new"


def test_credentials_that_a_person_filled_in_are_never_overwritten(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    cli_here("init", "--wake", "timer", repo=repo)
    place = repo / ".ralph" / "ralph.env"
    place.write_text("GITHUB_TOKEN=x\n")
    told = cli_here("init", "--wake", "timer", "--force", "--json", repo=repo)
    assert states(told)["ralph.env"] == "kept"
    assert place.read_text() == "GITHUB_TOKEN=x\n"
