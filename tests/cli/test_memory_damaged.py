"""Whatever is damaged in memory, git or the local forge: the words that are printed, followed alone, lead back.

Nothing is done twice on the way, and nothing is taken for whole that is not.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adapters.storage.memory.making import Intruder
from tests.helpers import cli_here, git, make_repo

REF = ".git/refs/heads/ralph-memory"
LOCK = f"{REF}.lock"
FORGE = ".ralph/forge"
ANCHORS = (f"{FORGE}/anchor.json", ".git/ralph/anchor.json")
LONG_AGO = 3600.0  # seconds


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose first cycle opened an issue and a pull, and whose second added to memory."""
    repo = make_repo(
        tmp_path_factory.mktemp("damaged") / "repo", {"README.md": "# Sample\n\nPlease recieve teh parcel.\n"}
    )
    for _ in range(2):
        assert cli_here("cycle", "--force", repo=repo).code == 0
    return repo


@pytest.fixture
def lived(sample: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample, tmp_path / "repo", symlinks=True))


def threads(repo: Path) -> list[tuple[str, str]]:
    """The titles of all issues and pulls: nothing of ours may be there twice."""
    listed = {kind: cli_here(kind, "list", "--json", repo=repo).json for kind in ("issue", "pr")}
    return sorted((kind, thread["title"]) for kind in listed for thread in next(iter(listed[kind].values())))


def loose(repo: Path, revision: str) -> Path:
    """The file of an object."""
    oid = git(repo, "rev-parse", revision)
    return repo / ".git/objects" / oid[:2] / oid[2:]


def lose(revision: str) -> Callable[[Path], None]:
    return lambda repo: loose(repo, revision).unlink()


def empty(revision: str) -> Callable[[Path], None]:
    def make_empty(repo: Path) -> None:
        place = loose(repo, revision)
        place.chmod(0o644)
        place.write_bytes(b"")

    return make_empty


def write(names: tuple[str, ...], content: bytes) -> Callable[[Path], None]:
    def damage(repo: Path) -> None:
        for name in names:
            (repo / name).write_bytes(content)

    return damage


def leave_lock(repo: Path) -> None:
    (repo / LOCK).write_bytes(b"")
    os.utime(repo / LOCK, (time.time() - LONG_AGO,) * 2)


def raise_schema(repo: Path) -> None:
    Intruder(repo).change(lambda text: re.sub(r"^schema: \d+", "schema: 99", text, flags=re.M))


def break_thread(repo: Path) -> None:
    place = repo / FORGE / "issues/0001.md"
    place.write_bytes(place.read_bytes()[:40])


DAMAGES: dict[str, Callable[[Path], object]] = {
    **{f"forge anchor {name}": write(ANCHORS[:1], text) for name, text in (("damaged", b"{"), ("empty", b""))},
    **{f"both anchors {name}": write(ANCHORS, text) for name, text in (("damaged", b"{"), ("empty", b""))},
    **{
        f"lost {what}": lose(f"ralph-memory{what}") for what in ("", "~1", "^{tree}", ":memory", ":memory/ralph-log.md")
    },
    **{f"lost open {what}": lose(f"ralph-memory:memory/{what}") for what in ("open.json", "ledger", "journal")},
    **{
        f"empty {what}": empty(f"ralph-memory{what}")
        for what in ("", "~1", "^{tree}", ":memory/open.json", ":memory/ledger")
    },
    "ref empty": write((REF,), b""),
    "ref of zeros": write((REF,), bytes(41)),
    "ref of another": lambda repo: git(repo, "symbolic-ref", "refs/heads/ralph-memory", "refs/heads/main"),
    "ref lock": leave_lock,
    "newer schema": raise_schema,
    "broken thread": break_thread,
    "no forge": lambda repo: shutil.rmtree(repo / FORGE),
}


def printed(text: str, repo: Path) -> str:
    """The commands that a text names, tried in their order: the first one that can be run as it stands."""
    commands = re.findall(r"(ralph memory recover|mv \S+ \S+)", text)
    return commands[-1] if commands else ""


def follow(repo: Path, told: str) -> None:
    command = printed(told, repo)
    assert command, f"nothing to do is named: {told}"
    if command.startswith("mv "):
        subprocess.run(shlex.split(command), cwd=repo, check=True)
        return
    done = cli_here("memory", "recover", repo=repo)
    assert done.code == 0, done.err
    assert "healthy" not in done.out


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_printed_leads_back(lived: Path, damage: Callable[[Path], object]) -> None:
    before = threads(lived)
    damage(lived)
    verified = cli_here("memory", "verify", repo=lived)
    assert "bug" not in verified.err
    checked = cli_here("doctor", repo=lived)
    assert "bug" not in checked.err
    told = cli_here("cycle", "--force", repo=lived)
    assert "bug" not in told.err
    noticed = told.code != 0
    if noticed:
        assert verified.code == 1, "verify does not see what stops a cycle"
        assert checked.code == 1, "doctor does not see what stops a cycle"
        follow(lived, told.err)
    elif verified.code == 1:
        follow(lived, "ralph memory recover")
    after = cli_here("cycle", "--force", repo=lived)
    assert after.code == 0, after.err
    again = cli_here("memory", "verify", repo=lived)
    assert again.code == 0, again.out
    left = threads(lived)
    assert len(left) == len(set(left)), "something is there twice"
    assert set(left) <= set(before)


def test_a_lock_that_may_be_held_is_left_alone(lived: Path) -> None:
    (lived / LOCK).write_bytes(b"")
    told = cli_here("cycle", "--force", repo=lived)
    assert told.code == 1
    assert LOCK in told.err
    recovered = cli_here("memory", "recover", repo=lived)
    assert recovered.code == 1
    assert LOCK in recovered.err
    assert (lived / LOCK).exists()
