"""`ralph memory` as a person uses it: show, verify, and recover after something went wrong."""

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

from ralph_mission.cli.doctor import checks
from tests.adapters.storage.memory.making import Intruder, batch, branch_store, claim
from tests.helpers import cli_here, git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"README.md": "# Sample\n\nPlease recieve teh parcel.\n"})


@pytest.fixture(scope="module")
def _after_a_cycle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = make_repo(
        tmp_path_factory.mktemp("lived") / "repo", {"README.md": "# Sample\n\nPlease recieve teh parcel.\n"}
    )
    assert cli_here("cycle", repo=place).code == 0
    return place


@pytest.fixture
def lived(_after_a_cycle: Path, tmp_path: Path) -> Path:
    """A repository after its first cycle."""
    return Path(shutil.copytree(_after_a_cycle, tmp_path / "repo", symlinks=True))


def test_without_memory_show_says_so(repo: Path) -> None:
    result = cli_here("memory", "show", repo=repo)
    assert (result.code, result.out) == (1, "")
    assert "no memory" in result.err


def test_show_prints_the_file_as_it_is(lived: Path) -> None:
    shown = cli_here("memory", "show", repo=lived)
    assert shown.out.rstrip("\n") == git(lived, "cat-file", "blob", "ralph-memory:memory/ralph-log.md")


def test_show_still_prints_a_file_that_cannot_be_read(lived: Path) -> None:
    Intruder(lived).change(lambda text: "<<<<<<< HEAD\n\x1b[2J" + text)
    shown = cli_here("memory", "show", repo=lived).out
    assert shown.startswith("<<<<<<< HEAD\n<U+001B>[2J---\n")


def test_show_as_json_has_front_matter_and_missions(lived: Path) -> None:
    document = cli_here("memory", "show", "--json", repo=lived).json
    assert document["front_matter"]["cycle"] == 1
    assert [mission["pull"] for mission in document["missions"]] == [1]


def test_verify_is_content_with_a_sound_memory(lived: Path) -> None:
    result = cli_here("memory", "verify", repo=lived)
    assert result.code == 0
    assert all(line.startswith("ok ") for line in result.out.splitlines())


def test_verify_is_content_without_memory(repo: Path) -> None:
    assert cli_here("memory", "verify", repo=repo).code == 0


def test_verify_names_what_is_wrong(lived: Path) -> None:
    Intruder(lived).write("memory/journal/000001-x.json", "{")
    result = cli_here("memory", "verify", "--json", repo=lived)
    bad = {check["name"] for check in result.json if not check["ok"]}
    assert (result.code, bad) == (1, {"provenance", "journal"})


def test_verify_reports_a_line_that_cannot_be_obeyed(lived: Path) -> None:
    Intruder(lived).change(lambda text: text + "\n- never again\n")
    result = cli_here("memory", "verify", repo=lived)
    assert result.code == 1
    assert "never again" in result.out


def test_after_damage_recover_brings_the_next_cycle_back(lived: Path) -> None:
    Intruder(lived).write("memory/open.json", "{}\n")
    assert cli_here("cycle", "--force", repo=lived).code == 1
    recovered = cli_here("memory", "recover", repo=lived)
    assert recovered.code == 0
    assert cli_here("memory", "verify", repo=lived).code == 0
    assert cli_here("cycle", "--force", repo=lived).code == 0
    listed = cli_here("pr", "list", "--json", repo=lived).json
    assert len(next(iter(listed.values()))) == 1


def test_recover_leaves_healthy_memory_alone(lived: Path) -> None:
    Intruder(lived).change(lambda text: text + "\n- never again\n")  # a line it cannot obey is no damage
    before = git(lived, "rev-parse", "ralph-memory")
    told = cli_here("memory", "recover", repo=lived)
    assert (told.code, told.out) == (0, "memory is healthy (serial 2): nothing was done\n")
    document = cli_here("memory", "recover", "--json", repo=lived).json
    assert (document["commit"], document["kept"], document["lost"]) == (before, [], [])
    assert git(lived, "rev-parse", "ralph-memory") == before


def test_recover_lifts_a_claim_from_healthy_memory_when_told_to(lived: Path) -> None:
    store = branch_store(lived)
    past = store.recall()
    store.commit(batch(past, claim=claim("https://example.org/runs/7")), past)
    assert "--take-over" in cli_here("memory", "recover", repo=lived).out
    assert "is lifted" in cli_here("memory", "recover", "--take-over", repo=lived).out


def test_without_memory_and_without_work_of_ours_there_is_nothing_to_recover(repo: Path) -> None:
    told = cli_here("memory", "recover", repo=repo)
    assert (told.code, told.out.startswith("there is no memory yet")) == (0, True)
    assert git(repo, "branch", "--list", "ralph-memory") == ""


def test_after_deletion_recover_opens_nothing_twice(lived: Path) -> None:
    Intruder(lived).delete()
    for name in ("anchor.json", "due.json"):
        (lived / ".git" / "ralph" / name).unlink(missing_ok=True)
    assert cli_here("cycle", "--force", repo=lived).code == 1
    document = cli_here("memory", "recover", "--json", repo=lived).json
    assert document["serial"] > 1
    assert document["kept"]
    assert cli_here("cycle", "--force", repo=lived).code == 0
    assert cli_here("issue", "list", "--json", repo=lived).json["issues"] == []
    (pull,) = next(iter(cli_here("pr", "list", "--json", repo=lived).json.values()))
    cli_here("pr", "approve", str(pull["number"]), repo=lived)
    assert cli_here("cycle", "--force", "--json", repo=lived).json["missions"][0]["status"] == "COMPLETED"


# --- Whatever is damaged in memory, git or the local forge: the words that are printed, followed alone, lead back. ---

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
def lived_memory_damaged(sample: Path, tmp_path: Path) -> Path:
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
    place = repo / FORGE / "pulls/0001.md"
    place.write_bytes(place.read_bytes()[:40])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "forge anchor damaged": write(ANCHORS[:1], b"{"),
    "both anchors empty": write(ANCHORS, b""),
    **{f"lost {what}": lose(f"ralph-memory{what}") for what in ("", "~1", ":memory/ralph-log.md", ":memory/ledger")},
    **{f"empty {what}": empty(f"ralph-memory{what}") for what in ("", "^{tree}", ":memory/open.json")},
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


@pytest.mark.long  # sixteen damages; the store has its own tests of each
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_printed_leads_back(
    lived_memory_damaged: Path, damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "agents", lambda *_: ())  # no program of theirs is started for it
    before = threads(lived_memory_damaged)
    damage(lived_memory_damaged)
    verified = cli_here("memory", "verify", repo=lived_memory_damaged)
    assert "bug" not in verified.err
    checked = cli_here("doctor", repo=lived_memory_damaged)
    assert "bug" not in checked.err
    told = cli_here("cycle", "--force", repo=lived_memory_damaged)
    assert "bug" not in told.err
    noticed = told.code != 0
    if noticed:
        assert verified.code == 1, "verify does not see what stops a cycle"
        assert checked.code == 1, "doctor does not see what stops a cycle"
        follow(lived_memory_damaged, told.err)
    elif verified.code == 1:
        follow(lived_memory_damaged, "ralph memory recover")
    after = cli_here("cycle", "--force", repo=lived_memory_damaged)
    if after.code:  # one step may lead to the next: the thread was all that the forge held
        follow(lived_memory_damaged, after.err)
        after = cli_here("cycle", "--force", repo=lived_memory_damaged)
    assert after.code == 0, after.err
    again = cli_here("memory", "verify", repo=lived_memory_damaged)
    assert again.code == 0, again.out
    left = threads(lived_memory_damaged)
    assert len(left) == len(set(left)), "something is there twice"
    assert set(left) <= set(before)


def test_a_lock_that_may_be_held_is_left_alone(lived_memory_damaged: Path) -> None:
    (lived_memory_damaged / LOCK).write_bytes(b"")
    told = cli_here("cycle", "--force", repo=lived_memory_damaged)
    assert told.code == 1
    assert LOCK in told.err
    recovered = cli_here("memory", "recover", repo=lived_memory_damaged)
    assert recovered.code == 1
    assert LOCK in recovered.err
    assert (lived_memory_damaged / LOCK).exists()
