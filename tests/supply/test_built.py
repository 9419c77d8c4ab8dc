"""What a release holds, and that it works where nothing else is: each archive in an empty environment of its own."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tests.action.runner import ROOT, bare_environment
from tests.helpers import Result, git, make_repo
from tests.test_old_version import LATER, LATER_STILL, restore

pytestmark = pytest.mark.real  # installs from a registry
NOT_OURS = re.compile(rb"files\.pythonhosted|pypi\.org/simple|" + re.escape(str(ROOT).encode()))
"""A registry's host, and the place where this was built."""
RUNS = {"py", "yml", "service", "timer", "cjs", "json", "env", "md", "typed", "sql"}
"""The kinds of file that the package reads when it runs."""
ENV = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))}  # where packages are


def _tell(what: str, *command: object, **more: str) -> str:
    """What a program prints; how long it took is shown."""
    began = time.monotonic()
    done = subprocess.run([*map(str, command)], env=bare_environment(Path(more.pop("HOME")), **ENV | more), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # fmt: skip  # one call
    assert done.returncode == 0, done.stdout
    print(f"  {what}: {time.monotonic() - began:.1f} s")
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What DIST names; else a release built here."""
    if os.environ.get("DIST"):
        return Path(os.environ["DIST"]).resolve()
    home = tmp_path_factory.mktemp("release")
    script = ROOT / "scripts" / "release.py"
    print()
    _tell("build", sys.executable, "-I", script, home / "dist", "", "mara/ralph_mission", HOME=str(home))
    return home / "dist"


def _files(archive: Path) -> dict[str, bytes]:
    """What an archive holds, below the folder of its version."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as source:
        members = [one for one in source.getmembers() if one.isfile()]
        read = {one.name.partition("/")[2]: source.extractfile(one) for one in members}
        return {name: file.read() for name, file in read.items() if file}


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def archive(request: pytest.FixtureRequest, dist: Path) -> Path:
    """Each of the two."""
    (found,) = dist.glob(request.param)
    return found


def test_an_archive_holds_the_package_and_nothing_else(archive: Path) -> None:
    held = _files(archive)
    print(f"\n{archive.name}: {archive.stat().st_size / 1e6:.2f} MB, {len(held)} files")
    listed = git(ROOT, "ls-files", "ralph_mission").splitlines()
    assert set(listed) <= held.keys()
    beside = {name for name in held.keys() - set(listed) if ".dist-info/" not in name}
    assert beside == (set() if archive.suffix == ".whl" else {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"})
    assert {name.rpartition(".")[2] for name in listed} <= RUNS
    assert [name for name, content in held.items() if NOT_OURS.search(content)] == []


def test_the_metadata_is_what_an_index_takes(archive: Path) -> None:
    (text,) = (content for name, content in _files(archive).items() if name.endswith(("/METADATA", "PKG-INFO")))
    told = Metadata.from_email(text, validate=True)  # raises for what an index refuses
    assert told.description_content_type == "text/markdown" and told.license_expression == "MIT"
    body = str(email.message_from_bytes(text).get_payload())
    assert re.findall(r'\]\((?!https?:|#)|src(?:set)?="(?!https:)', body) == []
    assert set(told.project_urls or {}) == {"Changelog", "Documentation", "Homepage", "Issues", "Source"}


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with ralph in it, and a home that nobody used."""

    folder: Path
    home: Path

    def ralph(self, *arguments: str, repo: Path) -> Result:
        """Run it in a repository; how long it took is shown."""
        place = os.pathsep.join((str(self.folder / "bin"), bare_environment(self.home)["PATH"]))
        program = self.folder / "bin" / "ralph"
        command = [str(program), *arguments]
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=repo, env={"HOME": str(self.home), "PATH": place}, text=True, capture_output=True, check=False
        )
        print(f"  ralph {' '.join(arguments)}: {time.monotonic() - began:.1f} s")
        assert done.returncode == 0, done.stdout + done.stderr
        return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def installed(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The locked packages by hash, then the archive itself."""
    home = tmp_path_factory.mktemp("empty")
    python, lock = home / "env" / "bin" / "python", ROOT / "requirements.lock"
    uv, where = Path(sys.executable).with_name("uv"), str(home)
    _tell("empty environment", sys.executable, "-I", "-m", "venv", "--without-pip", home / "env", HOME=where)
    install = (sys.executable, "-I", "-m", "pip", "-qq", "--python", python, "install", "--no-deps")
    _tell("locked packages", *install, "--require-hashes", "--only-binary=:all:", "-r", lock, HOME=where)
    _tell("the archive", *install, "--no-index", "--no-build-isolation", archive, HOME=where)
    _tell("what is missing", uv, "pip", "check", "--python", python, HOME=where)
    size = sum(path.lstat().st_size for path in (home / "env").rglob("*"))
    print(f"  environment: {size / 1e6:.0f} MB")
    yield Installed(home / "env", home)


def test_it_says_of_which_commit_it_was_built(installed: Installed, tmp_path: Path) -> None:
    assert re.fullmatch(
        r"ralph, version \d+\.\d+\.\d+ \([0-9a-f]{12}\)\n", installed.ralph("--version", repo=tmp_path).out
    )


def test_its_first_cycle_opens_a_pull_request(installed: Installed, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"README.md": "# Sample\n\nThis is teh text, and it recieves little care.\n"})
    assert "ralph.yml" in installed.ralph("init", repo=repo).out
    assert "Opened pull request #1" in installed.ralph("cycle", repo=repo).out


def test_the_memory_of_an_older_version_is_continued(installed: Installed, tmp_path: Path) -> None:
    repo = restore("missions", tmp_path)
    for now in (LATER, LATER_STILL):
        installed.ralph("cycle", "--force", "--now", now, repo=repo)
    assert "effects: 0 open" in installed.ralph("memory", "verify", repo=repo).out
    pulls = json.loads(installed.ralph("pr", "list", "--state", "all", "--json", repo=repo).out)["pulls"]
    assert {one["number"]: one["state"] for one in pulls} == {2: "merged", 5: "merged"}
