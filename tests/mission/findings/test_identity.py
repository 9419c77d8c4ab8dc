from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.mission.findings.identity import (
    identify,
    is_gone,
    is_known,
    is_refused,
    keys_of_parts,
    merge_findings,
    to_backlog,
    without_parts,
)
from ralph_mission.mission.memory.learning import acted_on, apply_lessons
from ralph_mission.mission.model.cycle import Lesson
from ralph_mission.mission.model.ledger import FindingRecord
from ralph_mission.mission.model.mission import Finding, Observation, Signal, SignalPart
from ralph_mission.safety.patch import FileChange, Patch
from tests.mission.build import DAY, NOW, finding, patch, signal

essences = st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=8)


@given(essences, st.integers(0, 500), st.text(min_size=1, max_size=12))
def test_a_fingerprint_survives_line_moves_and_renames(found, offset, folder):
    before = [signal(essence=e, path=f"a{n:02}.py", line=n + 1) for n, e in enumerate(found)]
    after = [replace(s, path=f"{folder}/{s.path}", line=s.line + offset) for s in before]
    assert {f.fingerprint for f in identify(before)} == {f.fingerprint for f in identify(after)}


@given(essences, st.randoms(use_true_random=False))
def test_identity_does_not_depend_on_the_order_of_looking(found, shuffler):
    signals = [signal(essence=e, line=n) for n, e in enumerate(found)]
    shuffled = list(signals)
    shuffler.shuffle(shuffled)
    assert identify(signals) == identify(shuffled)


def test_equals_are_told_apart():
    first, second = identify([signal(line=1), signal(line=2)])
    assert first.fingerprint != second.fingerprint


def test_another_kind_is_another_thing():
    assert finding(kind="todo").fingerprint != finding(kind="spelling").fingerprint


def test_known_looks_at_the_occurrence_too():
    monday, tuesday = finding(occurrence="monday"), finding(occurrence="tuesday")
    records = {monday.fingerprint: FindingRecord(monday.fingerprint, "spelling", "t", ("monday",), 1)}
    assert monday.fingerprint == tuesday.fingerprint
    assert (is_known(monday, records), is_known(tuesday, records)) == (True, False)


def test_a_rejection_covers_every_occurrence():
    seen = finding(occurrence="tuesday")
    records = {seen.fingerprint: FindingRecord(seen.fingerprint, "spelling", "t", ("monday",), 1, verdict="rejected")}
    assert is_known(seen, records)


def test_what_a_complete_look_no_longer_shows_leaves_the_backlog():
    waiting = finding()
    assert merge_findings([Observation("codespell", "ok")], [waiting]) == ()
    assert merge_findings([Observation("codespell", "ok", complete=False)], [waiting]) == (waiting,)
    assert merge_findings([Observation("codespell", "unavailable")], [waiting]) == (waiting,)


def test_what_an_observer_saw_go_leaves_the_backlog():
    one, two = identify([signal(), signal(path="docs/other.md")])
    seen = Observation("codespell", "ok", complete=False, gone=(one.signal.essence,))
    assert merge_findings([seen], [one]) == ()
    assert merge_findings([seen], [one, two]) == (two,)
    assert merge_findings([replace(seen, gone=()), replace(seen, name="another")], [one]) == (one,)


def test_the_backlog_keeps_no_file_contents():
    assert to_backlog([finding(patch=patch())])[0].signal.patch is None


def test_what_waits_remembers_when_it_was_seen_first_also_when_it_is_seen_again():
    (found,) = identify([signal()])
    (kept,) = to_backlog([found], NOW)
    assert kept.seen_at == NOW
    (again,) = to_backlog(merge_findings([Observation(found.signal.observer, "ok", (signal(),))], [kept]), NOW + DAY)
    assert again.seen_at == NOW


class TestWhatIsGone:
    """A finding is gone only where its observer would have told of it."""

    made = Signal("eye", "bug", "a title", ("essence",))

    def known(self, **changes):
        (one,) = identify([self.made])
        return replace(FindingRecord(one.fingerprint, "bug", "a title", ("",), 1, observer="eye"), **changes)

    def test_after_a_whole_look_without_it(self):
        assert is_gone(self.known(), [Observation("eye", "ok")])
        assert not is_gone(self.known(), [Observation("eye", "ok", (self.made,))])

    def test_not_where_nobody_looked_or_not_everywhere(self):
        blind = [Observation("eye", status) for status in ("unavailable", "skipped")]
        for look in (*blind, Observation("other", "ok"), Observation("eye", "ok", complete=False)):
            assert not is_gone(self.known(), [look])
        assert not is_gone(self.known(observer=""), [Observation("eye", "ok")])

    def test_where_a_partial_look_says_so(self):
        told = Observation("eye", "ok", complete=False, gone=(("essence",),))
        assert is_gone(self.known(), [told])
        assert not is_gone(self.known(key="other"), [told])

    def test_not_where_the_same_is_seen_elsewhere(self):
        moved = replace(self.made, essence=("other neighbours",))
        assert not is_gone(self.known(), [Observation("eye", "ok", (moved,))])


class TestSingleCorrections:
    def seen(self, text: str, *lines: int, apart: bool = True) -> Finding:
        old = text.encode()
        rows = text.splitlines()
        new = "\n".join(row.replace("teh", "the") for row in rows).encode() + b"\n"
        parts = tuple(SignalPart(f"teh → the @ {rows[n - 1]}", f"the {rows[n - 1]}", n if apart else 0) for n in lines)
        return identify(
            [
                signal(
                    title=f"{len(lines)} misspelling{'s' * (len(lines) != 1)} in README.md",
                    essence=tuple(sorted(part.essence for part in parts)),
                    detail="\n".join(f"line {n}: teh → the" for n in lines),
                    path="README.md",
                    line=lines[0],
                    facts=(("count", len(lines)),),
                    patch=Patch("base", (FileChange("README.md", "100644", "100644", old, new),)),
                    parts=parts,
                )
            ]
        )[0]

    def test_what_was_refused_is_taken_out_of_the_change_and_its_words(self):
        (refused,) = [self.seen("a teh\n", 1)]
        known = set(keys_of_parts(refused.signal))
        left = without_parts(self.seen("a teh\nb\nc teh\n", 1, 3), known.__contains__)
        assert left is not None and left.signal.patch is not None
        assert left.signal.patch.changes[0].new == b"a teh\nb\nc the\n"
        assert (left.title, left.signal.detail, left.signal.line) == (
            "1 misspelling in README.md",
            "line 3: teh → the",
            3,
        )
        assert left.fingerprint == self.seen("c teh\n", 1).fingerprint

    def test_nothing_is_left_of_a_change_whose_edits_need_each_other(self):
        known = set(keys_of_parts(self.seen("a teh\n", 1).signal))
        assert without_parts(self.seen("a teh\nc teh\n", 1, 2, apart=False), known.__contains__) is None

    def test_a_fix_is_not_gone_while_one_of_its_corrections_is_there(self):
        both, half = self.seen("a teh\nc teh\n", 1, 2), self.seen("a the\nc teh\n", 2)
        (record,) = acted_on([both], {}, 1, 1)
        assert not is_gone(record, [Observation("codespell", "ok", (half.signal,))])
        assert is_gone(record, [Observation("codespell", "ok", (self.seen("x teh\n", 1).signal,))])

    def test_a_no_to_a_fix_is_a_no_to_each_of_its_corrections(self):
        both = self.seen("a teh\nc teh\n", 1, 2)
        (record,) = acted_on([both], {}, 1, 1)
        lesson = Lesson(1, "spelling", (both.fingerprint,), "rejected", "no")
        said = apply_lessons([lesson], {both.fingerprint: record})
        assert {one.key for one in said} == {both.fingerprint, *keys_of_parts(both.signal)}
        assert without_parts(self.seen("c teh\n", 1), lambda key: is_refused(key, {r.key: r for r in said})) is None
