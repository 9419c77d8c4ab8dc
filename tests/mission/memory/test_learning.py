"""Numbers in Learnings come from recorded verdicts alone, and they put what people accept before what they reject."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.storage.memory.codec import dump
from ralph_mission.mission.findings.ranking import rank
from ralph_mission.mission.memory import learning
from ralph_mission.mission.memory.learning import acceptance, posts, recount_learnings
from ralph_mission.mission.model.cycle import Lesson
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.ledger import FindingRecord
from tests.mission.build import NOW, finding

KINDS = ("spelling", "lint-fix", "bug", "feature")
verdicts = st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(["accepted", "rejected"]), st.integers(0, 6)))


def history(said):
    """What a run of verdicts leaves behind: tallies, and a journal's `counted` for each cycle."""
    tallies, records, documents = {}, {}, []
    for number, (kind, verdict, member) in enumerate(said):
        key = f"{kind}{member}"
        records.setdefault(key, FindingRecord(key, kind, "a title", ("",), number))
        lessons = (Lesson(number, kind, (key,), verdict),)
        documents.append(read({"counted": learning.worth_reporting(lessons, records)}))
        tallies = learning.learn(tallies, lessons, records)
        records |= {record.key: record for record in learning.apply_lessons(lessons, records)}
    return tallies, documents


def read(document):
    import json

    return json.loads(dump(document))


@given(verdicts)
def test_verdicts_counted_again_from_the_journal_are_the_ones_that_were_learned(said):
    tallies, documents = history(said)
    assert acceptance(documents) == tallies
    assert recount_learnings(documents) == learning.learnings(tallies, ())


def test_a_history_of_verdicts_puts_accepted_kinds_above_rejected_ones():
    said = [("spelling", "accepted", n) for n in range(5)] + [("lint-fix", "rejected", n) for n in range(5)]
    said += [("feature", "accepted", 0), ("feature", "accepted", 1), ("bug", "rejected", 0)]
    tallies, documents = history(said)
    found = [finding(kind=kind, essence=(kind,)) for kind in ("spelling", "lint-fix")]
    alike = [finding(kind=kind, essence=(kind,)) for kind in ("feature", "architecture")]
    assert [ranked.kind for ranked in rank(found, {}, {})] == ["lint-fix", "spelling"]
    assert [ranked.kind for ranked in rank(found, tallies, {})] == ["spelling", "lint-fix"]
    assert [ranked.kind for ranked in rank(alike, {}, {})] == ["architecture", "feature"]
    assert [ranked.kind for ranked in rank(alike, acceptance(documents), {})] == ["feature", "architecture"]
    line = "Misspellings (spelling): people accepted 5 of 5; expected acceptance 86%."
    assert line in recount_learnings(documents)


def test_a_verdict_that_is_on_record_counts_once():
    tallies, documents = history([("bug", "rejected", 1), ("bug", "rejected", 1)])
    assert (tallies["bug"].rejected, len([d for d in documents if d["counted"]])) == (1, 1)


def test_posts_counted_again_are_the_newest_word_of_each():
    first = Posted("a", "twitter", "anomaly", NOW, "7", "https://x.test/7")
    second = replace(first, reactions=4, views=90, measured_at=NOW)
    documents = [read({"posts": (first, replace(first, key="b"))}), read({"posts": (second,)}), {"report": {}}]
    assert posts(documents) == (second, replace(first, key="b"))
