from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.mission.findings.identity import identify, is_gone, is_known, merge_findings, to_backlog
from ralph_mission.mission.model.ledger import FindingRecord
from ralph_mission.mission.model.mission import Observation, Signal
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
