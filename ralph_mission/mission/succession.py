"""What is made once and lasts, a list or a standing remark, and what follows it once people took it away.

The first has a key of its own; a successor's key names all that were lost before it. So nothing is made twice
under one key, and a lost thing is not taken for one that stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ralph_mission.mission.ledger import SETTLED, EffectRecord, Record, key_of, monitor_key

SuccessorKeys = tuple[str, ...]  # the parts of the first one's key


def of_list(kind: str) -> SuccessorKeys:
    """The monitoring issues of a finding kind."""
    return monitor_key(kind), "open_issue"


def of_remark(mission: str) -> SuccessorKeys:
    """The standing remarks of the mission with this key."""
    return mission, "comment", "standing"


def successor_keys(line: SuccessorKeys, records: Mapping[str, Record]) -> Iterator[str]:
    """The keys of those that were made, oldest first; then the key that the next one would have."""
    lost: tuple[str, ...] = ()
    while True:
        key = key_of(*line, *lost)
        yield key
        record = records.get(key)
        if not isinstance(record, EffectRecord) or record.state not in SETTLED or record.receipt is None:
            return
        lost = (*lost, str(record.receipt.number))


def upcoming(line: SuccessorKeys, records: Mapping[str, Record]) -> str:
    """The key of the next one: that of nothing that was ever made."""
    *_, last = successor_keys(line, records)
    return last


def latest(line: SuccessorKeys, records: Mapping[str, Record]) -> str:
    """The key of the last one that was made; without any, of the first."""
    *made, last = successor_keys(line, records)
    return made[-1] if made else last


def read(lines: Iterable[SuccessorKeys], get: Callable[[set[str]], Mapping[str, Record]]) -> dict[str, Record]:
    """The records of these lines, as far as they go; `get` looks keys up."""
    lines, asked, found = tuple(lines), set[str](), dict[str, Record]()
    while wanted := {key for line in lines for key in successor_keys(line, found)} - asked:
        asked |= wanted
        found |= get(wanted)
    return found
