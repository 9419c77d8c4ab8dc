"""The auditor of the memory branch sees what it is there for: each thing that must never stand there is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash.history import ARCHIVE, JOURNAL, LEDGER, LOG, STATE, audit
from tests.helpers import commit, git, make_repo

CYCLE = "### Cycle #{0} (2026-05-04T19:00)\n- **Urgency:** low\n"
NOTE = JOURNAL + "0000/000001-abc.json"
EFFECT = LEDGER + "ab/abcd.json"


BY = {name: f"{name} <{name.lower()}@example.org>" for name in ("Ralph", "mara", "ona")}


def log(serial: int, *cycles: int, learned: str = "") -> str:
    seen = "\n".join(CYCLE.format(number) for number in cycles)
    return f"---\nserial: {serial}\n---\n## Observations Log\n\n{seen}\n## Learnings\n{learned}\n"


def effect(state: str, action: str = "open-fix", key: str = "k") -> str:
    return json.dumps({"state": state, "action": action, "action_key": key, "receipt": {"number": 3}})


def state(*missions: str) -> str:
    return json.dumps({"missions": [{"id": n, "status": one} for n, one in enumerate(missions)], "next_mission": 1})


BEFORE = {LOG: log(1, 1, learned="- mara's"), STATE: state("IN_REVIEW"), NOTE: "{}", EFFECT: effect("done")}
FINE = {LOG: log(2, 2, 1, learned="- mara's"), JOURNAL + "0000/000002-abc.json": "{}"}
ARCHIVED = {LOG: log(2, 2, learned="- mara's"), ARCHIVE + "2026-05.md": CYCLE.format(1)}
MANY = {LEDGER + f"ab/{n}.json": effect("intended", "monitor", str(n)) for n in range(4)}


def history(folder: Path, after: dict[str, str | None], author: str = "Ralph") -> Path:
    """Two commits: the second changes files of the first, or removes them."""
    repo = make_repo(folder, {})
    git(repo, "checkout", "--quiet", "--orphan", "ralph-memory")
    commit(repo, BEFORE, BY["Ralph"])
    commit(repo, after, BY[author])
    return repo


@pytest.mark.parametrize("after", [FINE, ARCHIVED])
def test_what_runners_write_is_found_in_order(tmp_path, after):
    found = audit(history(tmp_path / "r", after))
    assert (found.commits, found.wrong, found.breaches) == (2, [], [])


@pytest.mark.parametrize(
    ("after", "author", "told"),
    [
        ({LOG: log(2, 2, 1), NOTE: '{"x": 1}'}, "Ralph", "was altered"),
        ({LOG: log(2, 1), EFFECT: effect("intended")}, "Ralph", "was altered"),
        ({LOG: log(2, 1), EFFECT: None}, "Ralph", "was altered"),
        ({LOG: log(3, 1)}, "Ralph", "serial 1 became 3"),
        ({LOG: log(2, 2)}, "Ralph", "lost: ### Cycle #1"),
        ({LOG: log(1, 1), STATE: state()}, "mara", "was changed by mara"),
        ({LOG: log(2, 1)}, "mara", "serial 1 became 2"),
    ],
)
def test_what_must_never_stand_there_is_found(tmp_path, after, author, told):
    assert any(told in wrong for wrong in audit(history(tmp_path / "r", after, author)).wrong)


def test_a_line_of_a_person_that_is_gone_is_found(tmp_path):
    repo = history(tmp_path / "r", {LOG: log(1, 1, learned="- mara's\n- ona's")}, "ona")
    commit(repo, {LOG: log(2, 1, learned="- mara's")}, BY["Ralph"])
    assert any("what a person wrote: - ona's" in wrong for wrong in audit(repo).wrong)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({LOG: log(2, 1), **MANY}, "4 actions in a cycle"),
        ({LOG: log(2, 1), STATE: state(*["IN_REVIEW"] * 4)}, "4 active missions"),
        ({LOG: log(2, 1), STATE: state("PARKED").replace('"next_mission": 1', '"next_mission": 3')}, "2 new missions"),
    ],
)
def test_a_cap_that_was_broken_is_found(tmp_path, after, told):
    assert any(told in breach for breach in audit(history(tmp_path / "r", after)).breaches)
