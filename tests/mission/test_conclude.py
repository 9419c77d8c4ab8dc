"""What a cycle leaves behind can be read by the next one."""

from __future__ import annotations

from ralph_mission.mission.conclude import cursors
from ralph_mission.mission.memory.text import parse_memory, render_memory
from ralph_mission.mission.model.memory import Header, Memory
from ralph_mission.mission.model.mission import Observation


def seen(name: str, cursor: str) -> Observation:
    return Observation(name, "ok", cursor=cursor)


def test_cursors_that_memory_has_no_room_for_begin_anew() -> None:
    large, others = '{"a":"b"}' * 25_000, [seen(f"web.{number}", "x" * 1_900) for number in range(50)]
    kept = cursors((("code", "abc"), ("web.0", "old")), [seen("database", large), *others])
    assert dict(kept) == {"code": "abc", **{one.name: one.cursor for one in others}}
    assert parse_memory(render_memory(Memory(Header(lineage="abc", cursors=kept)))).header.cursors == kept


def test_cursors_of_those_that_saw_nothing_are_kept() -> None:
    assert cursors((("code", "abc"),), [Observation("code", "unavailable", cursor="lost"), seen("forge", "")]) == (
        ("code", "abc"),
    )
