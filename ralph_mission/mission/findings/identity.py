"""From signals to findings: their identity, what is new, what they must not be about, the backlog, announcements.

A fingerprint says *which thing* and survives moves and renames, as it hashes only the kind and the essence; equal ones
in one observation are numbered. The signal's occurrence says *which instance*. Both together decide what is known.

An announcement is a finding made of typed facts. It is stored in `OpenState.finished` together with the merge, so not
before that is a fact, and removed once the finding is known, so it is not announced twice.

Bans in Do Not Repeat are paths as backticked globs, issues as `#N`, finding kinds. A list item may hold several of them
among other words; a kind counts in backticks or as the item's subject (`- spelling: enough of these`). An item without
any is reported as not understood, so that nobody relies on a ban that does not work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from ralph_mission.mission.model.effects import Effect, OpenPull, PushBranch
from ralph_mission.mission.model.forge import Pull, Touch
from ralph_mission.mission.model.ledger import (
    FindingRecord,
    FinishedMission,
    MonitorRecord,
    Record,
    key_of,
    monitor_key,
)
from ralph_mission.mission.model.mission import Finding, Mission, Observation, Signal, SignalPart, Status
from ralph_mission.mission.model.proposal import Ban, KindBan, PathBan, ReferenceBan, count_findings, lookup
from ralph_mission.safety.detect import closing_keywords
from ralph_mission.safety.patch import Edit, Patch, Span, edits, line_hunks, patch_ids
from ralph_mission.values import compile_regex

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

BACKLOG = 200  # findings in the backlog; bounded to keep memory small
WIDTH = 300  # characters of a line that count for an essence
_COMMENT = compile_regex(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TICKED = compile_regex(r"`([^`\n]+)`")
_NUMBER = compile_regex(r"(?<![\w&/])#(\d{1,18})\b")
_SUBJECT = compile_regex(r"[\w@-]+(?=\s*(?:[:(,.]|-\s|\Z))")
_ITEM = compile_regex(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)")
_STARS = compile_regex(r"\*+")
_MAX_GLOB = 512
_MAX_STARS = 4  # pathspec backtracks: matching time grows with the path's length to this power


def normalise_line(line: str) -> str:
    """A line for an essence: without what a move or a new indentation changes, cut to `WIDTH`."""
    return " ".join(line.split())[:WIDTH]


def identify(signals: Iterable[Signal]) -> tuple[Finding, ...]:
    """Signals with their fingerprints. Equal essences are numbered by place, so order does not matter."""
    counts: Counter[tuple[str, ...]] = Counter()
    findings = []
    for signal in sorted(signals, key=lambda s: (s.kind, s.essence, s.path, s.line, s.occurrence)):
        identity = (signal.kind, *signal.essence, signal.occurrence)
        findings.append(Finding(key_of("finding", signal.kind, *signal.essence, str(counts[identity])), signal))
        counts[identity] += 1
    return tuple(findings)


def is_known(finding: Finding, records: Mapping[str, Record]) -> bool:
    """Whether this instance was acted on, or a person rejected the thing itself."""
    record = records.get(finding.fingerprint)
    if not isinstance(record, FindingRecord):
        return False
    return record.verdict == "rejected" or (
        finding.signal.occurrence in record.occurrences and not _never_listed(finding, records)
    )


def _never_listed(finding: Finding, records: Mapping[str, Record]) -> bool:
    """Whether a person reported that its list was never sent."""
    record = records.get(monitor_key(finding.kind))
    return isinstance(record, MonitorRecord) and not record.issue and not record.total


def is_rejected(finding: Finding, records: Mapping[str, Record]) -> bool:
    """Whether a person rejected the thing, whatever the instance."""
    return is_refused(finding.fingerprint, records)


def keys_of_parts(signal: Signal) -> tuple[str, ...]:
    """The keys of a signal's single corrections: two each, see `_keys_of`."""
    return tuple(key for part in signal.parts for key in _keys_of(part, signal))


def _keys_of(part: SignalPart, signal: Signal) -> tuple[str, str]:
    """One by the current line, which shows whether a change still fits; one by what the line becomes, which stays the
    same when something else in the line is corrected."""
    place = ("part", signal.kind, signal.path)
    return key_of(*place, part.essence), key_of(*place, part.what)


def is_refused(key: str, records: Mapping[str, Record]) -> bool:
    """Whether a person rejected a fingerprint or a correction."""
    record = records.get(key)
    return isinstance(record, FindingRecord) and record.verdict == "rejected"


def without_parts(finding: Finding, settled: Callable[[str], bool]) -> Finding | None:
    """The finding without the corrections whose key is settled; None if nothing is left."""
    signal = finding.signal
    over = {part.line for part in signal.parts if any(map(settled, _keys_of(part, signal)))}
    if not over:
        return finding
    change = signal.patch.changes[0] if signal.patch and len(signal.patch.changes) == 1 else None
    if signal.patch is None or change is None or change.old is None or change.new is None:
        return None
    old, new = change.old.splitlines(keepends=True), change.new.splitlines(keepends=True)
    hunks = line_hunks(old, new)
    remaining = [hunk for hunk in hunks if over.isdisjoint(_lines_of(hunk))]
    lines = {line for hunk in remaining for line in _lines_of(hunk)}
    parts = tuple(part for part in signal.parts if part.line in lines)
    out = {line for hunk in hunks for line in _lines_of(hunk)} - lines
    if not parts or not over <= out:
        return None
    count, before = len(parts), len(signal.parts)
    rest = replace(
        signal,
        title=count_findings(count, signal.kind) + signal.title.removeprefix(count_findings(before, signal.kind)),
        essence=tuple(sorted({part.essence for part in parts})),
        detail="\n".join(line for line in signal.detail.splitlines() if not _tells_of(line, out)),
        line=parts[0].line,
        facts=(("count", count), *(fact for fact in signal.facts if fact[0] != "count")),
        quotes=tuple(quote for quote in signal.quotes if quote.line not in out),
        patch=replace(signal.patch, changes=(replace(change, new=_with_hunks(old, new, remaining)),)),
        parts=parts,
    )
    return replace(identify((rest,))[0], seen_at=finding.seen_at)


def _lines_of(hunk: Span) -> range:
    return range(hunk[0] + 1, max(hunk[1], hunk[0] + 1) + 1)


def _tells_of(line: str, out: Collection[int]) -> bool:
    number = line.removeprefix("line ").partition(":")[0]
    return line.startswith("line ") and number.isdecimal() and int(number) in out


def _with_hunks(old: Sequence[bytes], new: Sequence[bytes], hunks: Iterable[Span]) -> bytes:
    """The old lines with some of the changes applied."""
    content, at = list[bytes](), 0
    for a, b, c, d in hunks:
        content += [*old[at:a], *new[c:d]]
        at = b
    return b"".join((*content, *old[at:]))


def merge_findings(observations: Iterable[Observation], backlog: Iterable[Finding]) -> tuple[Finding, ...]:
    """All findings now: fresh ones and the backlog.

    A finding leaves the backlog if its observer looked at everything again, saw it go, or is no longer configured.
    """
    observations = tuple(observations)
    answered = {observation.name for observation in observations if observation.status == "ok" and observation.complete}
    unanswered = {observation.name for observation in observations} - answered
    backlog = tuple(backlog)
    first = {(one.fingerprint, one.signal.occurrence): one.seen_at for one in backlog}
    identities = identify(signal for observation in observations for signal in observation.signals)
    fresh = (replace(one, seen_at=first.get((one.fingerprint, one.signal.occurrence))) for one in identities)
    gone = Counter((observation.name, essence) for observation in observations for essence in observation.gone)
    waiting = (finding for finding in backlog if finding.signal.observer in unanswered)
    return drop_duplicates((*fresh, *_without(waiting, gone)))


def _without(waiting: Iterable[Finding], gone: Counter[tuple[str, tuple[str, ...]]]) -> Iterable[Finding]:
    """The backlog without what is gone; of several equal findings, as many as went."""
    for finding in waiting:
        thing = (finding.signal.observer, finding.signal.essence)
        if gone[thing]:
            gone[thing] -= 1
        else:
            yield finding


def is_gone(record: FindingRecord, observations: Iterable[Observation]) -> bool:
    """Whether the observer that found it looked in this cycle and no longer finds it.

    That is only certain if it saw everything, or reports what is gone. A finding with the same title may be the same
    thing in other words, or in another place.
    """
    look = next((one for one in observations if one.name == record.observer and one.status == "ok"), None)
    gone = {key_of("finding", record.kind, *essence, "0") for essence in look.gone} if look else set()
    if look and record.parts:
        there = {key for signal in look.signals for key in keys_of_parts(signal)}
        there |= {finding.fingerprint for finding in identify(look.signals)}  # which knows a file that was renamed
        all_seen = look.complete or record.kind in look.whole or record.key in gone
        return all_seen and there.isdisjoint((record.key, *record.parts))
    if look is None or any((one.kind, one.title) == (record.kind, record.title) for one in look.signals):
        return False
    if record.key in {finding.fingerprint for finding in identify(look.signals)}:
        return False
    return look.complete or record.key in gone


def drop_duplicates(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Keep the first of each (fingerprint, occurrence)."""
    return tuple({(f.fingerprint, f.signal.occurrence): f for f in reversed(tuple(findings))}.values())[::-1]


def to_backlog(findings: Iterable[Finding], now: datetime | None = None) -> tuple[Finding, ...]:
    """The findings for the backlog: bounded, and without patches, which are made again when needed.

    `now`: the start of waiting for new ones.
    """
    first = tuple(findings)[:BACKLOG]
    bare = (replace(f, signal=replace(f.signal, patch=None, parts=())) for f in first)
    return tuple(replace(f, seen_at=f.seen_at or now) for f in bare)


def not_yet_handled(present: Iterable[Finding], records: Mapping[str, Record]) -> tuple[Finding, ...]:
    """The findings that still need handling."""
    return tuple(finding for finding in present if not is_known(finding, records))


KIND = "completed"
STALE = timedelta(days=7)  # older news is not announced
OBSERVER = "missions"


def list_announceable(
    ended: Iterable[Mission], kinds: Collection[str], cycle: int, now: datetime
) -> tuple[FinishedMission, ...]:
    """What to announce about missions that ended in this cycle."""
    return tuple(
        FinishedMission(
            mission.id, mission.key, mission.kind, mission.pull, now, _days(mission, now), _cycles(mission, cycle)
        )
        for mission in ended
        if mission.status is Status.COMPLETED and mission.outcome == "merged" and mission.kind in kinds
    )


def _days(mission: Mission, now: datetime) -> int:
    return max(0, (now - mission.started_at).days)


def _cycles(mission: Mission, cycle: int) -> int:
    return max(1, cycle - mission.started_cycle + 1)


def finished_findings(finished: Iterable[FinishedMission]) -> tuple[Finding, ...]:
    """Findings about finished missions. Facts: mission, what, pull, days, cycles."""
    return identify(map(_signal, finished))


def _signal(finished: FinishedMission) -> Signal:
    what = lookup(finished.kind).noun
    facts = (
        ("mission", finished.mission),
        ("what", what),
        ("pull", finished.pull),
        ("days", finished.days),
        ("cycles", finished.cycles),
    )
    title = f"Mission {finished.mission} is merged: {what}"
    return Signal(OBSERVER, KIND, title, (finished.key,), confidence=1.0, reference=finished.pull, facts=facts)


def still_waiting(
    finished: Iterable[FinishedMission], waiting: Collection[str], now: datetime
) -> tuple[FinishedMission, ...]:
    """What is still to be announced: the owner has a text for it (`waiting`, fingerprints), and it is recent."""
    return tuple(
        mission
        for mission in finished
        if now - mission.at < STALE and finished_findings((mission,))[0].fingerprint in waiting
    )


def parse_bans(text: str, kinds: Collection[str]) -> tuple[tuple[Ban, ...], tuple[str, ...]]:
    """The bans in the section, and the lines that could not be understood."""
    bans: dict[Ban, None] = {}
    unclear = []
    for line in _items(text):
        found = list(_bans(line, kinds))
        bans.update(dict.fromkeys(found))
        if not found:
            unclear.append(line)
    return tuple(bans), tuple(unclear)


def is_forbidden(bans: Iterable[Ban], path: str = "", kind: str = "", reference: int = 0) -> bool:
    """Whether any ban covers a finding at `path` ("": none) of `kind`, about issue `reference` (0: none)."""
    return any(_covers(ban, path, kind, reference) for ban in bans)


def _items(text: str) -> Iterable[str]:
    # Headings and comments are skipped; an indented line belongs to the item above, any other stands alone.
    items: list[str] = []
    for raw in _COMMENT.sub("", text).splitlines():
        match = _ITEM.match(raw)
        line = (match[1] if match else raw).strip()
        if not line or (line.startswith("#") and not _NUMBER.match(line)):
            continue
        if items and not match and raw[0] in " \t":
            items[-1] += " " + line
        else:
            items.append(line)
    return items


def _bans(line: str, kinds: Collection[str]) -> Iterable[Ban]:
    for ticked in _TICKED.findall(line):
        if ticked in kinds:
            yield KindBan(ticked)
        elif number := _NUMBER.fullmatch(ticked):
            yield ReferenceBan(int(number[1]))
        elif _is_glob(ticked):
            yield PathBan(ticked)
    plain = _TICKED.sub(" ", line)
    yield from (ReferenceBan(int(number)) for number in _NUMBER.findall(plain))
    subject = _SUBJECT.match(plain)  # a kind in running text ("any", "bug") is only a word
    if subject and subject[0] in kinds:
        yield KindBan(subject[0])


def _is_glob(text: str) -> bool:
    # A negation forbids nothing on its own.
    if text.startswith("!") or text != text.strip() or len(text) > _MAX_GLOB:
        return False
    return len(_STARS.findall(text)) <= _MAX_STARS and _pattern(text) is not None


def _covers(ban: Ban, path: str, kind: str, reference: int) -> bool:
    if isinstance(ban, KindBan):
        return ban.kind == kind
    if isinstance(ban, ReferenceBan):
        return ban.number == reference
    pattern = _pattern(ban.glob)
    return bool(path and pattern and pattern.match_file(path))


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines([glob])
    except ValueError:
        return None
    return spec if any(pattern.include for pattern in spec.patterns) else None


_ISSUE_NUMBER = compile_regex(r"(?<!\d)\d{1,18}$")
"""The end of a reference. No forge counts further, and `int` refuses thousands of digits."""


def other_pulls(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Open pull requests of everybody but us."""
    return tuple(pull for pull in pulls if pull.author.id != bot and pull.state == "open")


def own_pulls(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Open pull requests of ours that somebody may merge soon: none that was parked."""
    ours = (pull for pull in pulls if pull.author.id == bot and pull.state == "open")
    return tuple(pull for pull in ours if "ralph:parked" not in pull.labels)


def recent_pulls(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Pull requests of everybody but us that are open or were merged recently."""
    return tuple(pull for pull in pulls if pull.author.id != bot and pull.state in ("open", "merged"))


def closed_issues(pull: Pull) -> frozenset[int]:
    """The issues that merging this pull request closes, by its title and text."""
    clauses = closing_keywords(f"{pull.title}\n\n{pull.body}")
    return frozenset(int(number) for words in clauses for number in _ISSUE_NUMBER.findall(words))


def same_change(pull: Pull, patch: Patch | None) -> bool:
    """Whether a pull request makes every change of a patch, file by file, wherever the lines are."""
    return patch is not None and bool(patch.changes) and patch_ids(patch) <= pull.patch_ids


def does_the_same(pull: Pull, effect: Effect) -> bool:
    """Whether a pull request makes the same change as an effect, or changes a line that the effect changes."""
    ids = frozenset(effect.patch_ids) if isinstance(effect, OpenPull) else frozenset()
    return bool(ids and ids <= pull.patch_ids) or _meet(pull.touches, _touched_lines(effect))


def _touched_lines(effect: Effect) -> tuple[Touch, ...]:
    if isinstance(effect, PushBranch):
        return tuple(_touch(file.path, edit) for file in effect.files for edit in file.edits)
    return effect.touches if isinstance(effect, OpenPull) else ()


def _meet(some: Iterable[Touch], others: Sequence[Touch]) -> bool:
    return any(a.path == b.path and a.first <= b.last and b.first <= a.last for a in some for b in others)


NEAR = 1
"""Unchanged lines that git needs at least between two changes to merge both."""


def is_near(pulls: Iterable[Pull], patch: Patch) -> bool:
    """Whether a patch would conflict with one of these pull requests; no if one of its files is not UTF-8."""
    around = [Touch(one.path, one.first - NEAR, one.last + NEAR) for pull in pulls for one in pull.touches]
    try:
        return bool(around) and _meet(around, touched_by(patch))
    except UnicodeDecodeError:
        return False


def touched_by(patch: Patch) -> tuple[Touch, ...]:
    """The lines of the old files that a patch changes. Raises UnicodeDecodeError if one is not UTF-8."""
    return tuple(
        _touch(change.path, edit) for change in patch.changes for edit in edits(change.old or b"", change.new or b"")
    )


def _touch(path: str, edit: Edit) -> Touch:
    """For a pure insertion, the line above counts as touched."""
    return Touch(path, edit.start + 1, edit.start + max(edit.delete, 1))


def touches(pull: Pull, finding: Finding) -> bool:
    """Whether a pull request changes a line of the finding, or one that the finding's patch changes in its files."""
    signal = finding.signal
    own = [touch for touch in touched_by(signal.patch) if touch.path in signal.paths] if signal.patch else []
    here = [Touch(signal.path, signal.line, signal.line)] if signal.line else []
    return _meet(pull.touches, [*own, *here])


def drop_touched(members: Sequence[Finding], pulls: Sequence[Pull]) -> Sequence[Finding]:
    """A proposal's members without those that a pull request touches, so that these do not hold up the others.

    If every member is touched, all stay: policy then says why they wait.
    """
    return [member for member in members if not any(touches(pull, member) for pull in pulls)] or members
