"""What sessions leave for all later ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop.notes import Memories
from ralph_mission.errors import UserError
from ralph_mission.loop.prompt import situation as memories_text
from ralph_mission.loop.prompt.situation import LoopMemory
from tests.helpers import NOON

THEIRS = """# Memories

Notes of ours, by hand.

## Patterns

### mem-1737372000-a1b2
> Uses barrel exports for modules
<!-- tags: imports, structure | created: 2026-01-20 -->

## Decisions

### mem-1737372100-c3d4
> Chose Postgres over SQLite
>
> because of the locks
<!-- tags: database | created: 2026-01-21 -->

## Fixes

## Context

### mem-1737372300-a7b8
> No date here

### mem-bad
> not one of ours
"""


def _memories(folder: Path, text: str = "") -> Memories:
    memories = Memories(folder, lambda: NOON)
    if text:
        memories.path.parent.mkdir(parents=True, exist_ok=True)
        memories.path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return memories


def test_a_file_of_ralph_orchestrator_is_read(tmp_path: Path) -> None:
    first, second, third = _memories(tmp_path, THEIRS).all()
    assert first == LoopMemory(
        "mem-1737372000-a1b2", "Uses barrel exports for modules", "pattern", ("imports", "structure"), "2026-01-20"
    )
    assert (second.kind, second.content) == ("decision", "Chose Postgres over SQLite\n\nbecause of the locks")
    assert (third.kind, third.tags, third.created) == ("context", (), "")


def test_a_new_memory_stands_on_top_of_its_section_and_nothing_else_moves(tmp_path: Path) -> None:
    memories = _memories(tmp_path, THEIRS)
    added = memories.add("ECONNREFUSED means:\nstart the database", "fix", ["docker", "debugging"])
    block = f"""
### {added.id}
> ECONNREFUSED means:
> start the database
<!-- tags: docker, debugging | created: 2026-05-04 -->
"""
    assert memories.text() == THEIRS.replace("## Fixes\n", "## Fixes\n" + block)
    assert re.fullmatch(r"mem-\d+-[0-9a-f]{4}", added.id)
    assert added in memories.all()


def test_the_first_memory_makes_the_file(tmp_path: Path) -> None:
    memories = _memories(tmp_path)
    added = memories.add("Run the tests in parallel")
    assert memories.all() == (added,)
    assert [line for line in memories.text().splitlines() if line.startswith("## ")] == [
        "## Patterns", "## Decisions", "## Fixes", "## Context",
    ]  # fmt: skip  # one list


def test_a_section_that_is_missing_is_added(tmp_path: Path) -> None:
    memories = _memories(tmp_path, "# Memories\n\nBy hand, mentioning ## Fixes in a sentence.\n")
    added = memories.add("Start the database", "fix")
    assert memories.all() == (added,)
    assert memories.text().startswith("# Memories\n\nBy hand, mentioning ## Fixes in a sentence.\n\n## Fixes\n")


def test_words_of_an_agent_cannot_pose_as_structure(tmp_path: Path) -> None:
    memories = _memories(tmp_path)
    words = "### mem-1-0000\n## Fixes\n<!-- tags: a | created: 2026-01-01 -->\n> quoted"
    added = memories.add(words, tags=["a, b", "x | y --> <!--", " ", "c++"])
    assert memories.all() == (added,)
    assert added.content == words
    assert added.tags == ("a b", "x y", "c++")


def test_bytes_that_are_no_text_survive_an_addition(tmp_path: Path) -> None:
    memories = _memories(tmp_path, "# Memories\n\n\udcff\udcfe by hand\n")
    memories.add("Lone \ud800 half")
    assert b"\xff\xfe by hand" in memories.path.read_bytes()


def test_every_word_of_a_search_counts_in_text_and_tags_and_any_case(tmp_path: Path) -> None:
    memories = _memories(tmp_path, THEIRS)
    assert [memory.id[-4:] for memory in memories.search("POSTGRES database")] == ["c3d4"]
    assert memories.search("postgres imports") == ()
    assert len(memories.search("")) == 3


@pytest.mark.parametrize(("content", "kind"), [("", "pattern"), (" ", "fix"), ("x" * 4001, "fix"), ("x", "rumour")])
def test_what_is_no_memory_is_not_added(tmp_path: Path, content: str, kind: str) -> None:
    memories = _memories(tmp_path)
    with pytest.raises(UserError):
        memories.add(content, kind)
    assert not memories.path.exists()


def test_an_added_memory_is_one_the_parser_of_ralph_orchestrator_finds() -> None:
    text = memories_text.insert_memory(
        "", LoopMemory("mem-1737372000-a1b2", "One\nTwo", "context", ("a", "b"), "2026-05-04")
    )
    assert re.search(r"^### (mem-\d+-[0-9a-f]{4})", text, re.MULTILINE)
    assert re.findall(r"^> (.+)$", text, re.MULTILINE) == ["One", "Two"]
    assert re.search(r"<!-- tags: ([^|]*) \| created: (\d{4}-\d{2}-\d{2}) -->", text)
