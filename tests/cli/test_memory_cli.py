"""`ralph memory` as a person uses it: show, verify, and recover after something went wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.storage.memory.making import Intruder, batch, branch_store, claim
from tests.helpers import cli_here, git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"README.md": "# Sample\n\nPlease recieve teh parcel.\n"})


@pytest.fixture
def lived(repo: Path) -> Path:
    """A repository after its first cycle."""
    assert cli_here("cycle", repo=repo).code == 0
    return repo


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
    assert [mission["issue"] for mission in document["missions"]] == [1]


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
    issues = cli_here("issue", "list", "--json", repo=lived).json
    assert len(next(iter(issues.values()))) == 1
