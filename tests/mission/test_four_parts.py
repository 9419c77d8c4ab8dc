"""Whatever people are shown says what it is, why, on what evidence, and how to say no: a phone, ten seconds."""

from __future__ import annotations

import pytest

from ralph_mission.mission.model.effects import Ref
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.proposal import KINDS, MATTERS, reason
from ralph_mission.mission.proposals import wording
from tests.mission.build import BASE, finding, mission, patch

KEY, FACTS = "0123456789abcdef", {"mission": "1"}
RANKED = "impact 2 of 10, severity low; number 1 of 1 by score (5.62)"
FIX = [finding(patch=patch(), facts=(("count", 3),))]
BUG = finding(kind="bug", path="src/a.py", line=3, detail="it falls over")

TEXTS = {
    "fix issue": (wording.fix_issue("spelling", FIX, RANKED, patch(), "no right", KEY, FACTS), "3 misspellings", "teh"),
    "fix pull": (wording.fix_pull("spelling", FIX, RANKED, Ref(KEY), KEY, FACTS), "3 misspellings", "teh"),
    "fix pull alone": (wording.fix_pull("spelling", FIX, RANKED, 0, KEY, FACTS), "3 misspellings", "teh"),
    "proposal": (wording.proposal_body(BUG, RANKED, None), "Bug** in", "falls over"),
    "proposed change": (wording.proposal_body(FIX[0], RANKED, patch()), "Misspelling**", "+line 0 the"),
    "commit": (wording.commit_message("Correct 3", "spelling", FIX, Ref(KEY)), "Correct 3", "docs/guide.md: teh"),
    "merge": (wording.merge_message(mission(), "mara"), "a title", "mara at cccccccccccc in #4"),
    "catch-up": (wording.catch_up_message(mission(), Branch("main", BASE)), "Merge main into", "bbbbbbbbbbbb"),
}
COMMITS = ("commit", "merge", "catch-up")


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_says_what_why_on_what_evidence_and_how_to_say_no(name):
    text, what, evidence = TEXTS[name]
    first, no = text.splitlines()[0], text.index("To reject:" if name in COMMITS else "**Close**")
    assert what in first and evidence in text
    assert "Why:" in text if name in COMMITS else reason("bug" if name == "proposal" else "spelling")[1:] in text[:no]
    assert text.index(first) < no and len(text[no:].splitlines()[0]) <= 200


@pytest.mark.parametrize("name", COMMITS)
def test_a_commit_names_its_issue_and_closes_nothing(name):
    text, _, _ = TEXTS[name]
    assert "Part of #" in text


@pytest.mark.parametrize("name", ["fix issue", "fix pull", "proposal", "proposed change"])
def test_the_score_is_evidence_and_no_reason(name):
    text, _, _ = TEXTS[name]
    assert "impact" not in text[: text.index("<details>")]
    assert RANKED in text


def test_every_kind_has_its_reason():
    assert set(MATTERS) == {*KINDS, "human"}
