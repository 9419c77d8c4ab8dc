"""The page of a job: everything a person needs, with links, and nothing of what strangers wrote alive."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ralph_mission.mission.account import CycleSummary, DecisionLine, EffectLine, MissionLine, ObserverLine
from ralph_mission.mission.model import Status, Tier, Usage, Verdict
from ralph_mission.mission.rules import LIFTED_BY
from ralph_mission.report.lines import RequestCounts
from ralph_mission.report.step_summary import Places, step_summary, trouble_summary
from tests.report.samples import REPORT

HERE = "https://github.com/harbour/slackwater"
RULES = "https://github.com/ralph/mission/blob/v1/docs/rules.md"
PLACES = Places(HERE, RULES)
HOSTILE = (
    "$(touch pwned) `id` ::set-output name=cycle::99\n::add-mask::a\n##[error]x\n]] | <img src=x onerror=y> "
    "![x](https://evil.example/x.png) [click](javascript:alert(1)) @mara fixes #3 ${{ github.token }} https://evil.example"
)
TEXTS = st.lists(st.text(max_size=400), max_size=40).map(tuple)


def links(page: str) -> set[str]:
    """Where a reader of the page can get by a click, or gets to without one."""
    tokens = [
        child for token in MarkdownIt("gfm-like", {"linkify": False}).parse(page) for child in token.children or ()
    ]
    return {str(token.attrGet(name)) for token in tokens for name in ("href", "src") if token.attrGet(name)}


def test_missions_link_to_their_issue_and_pull_request() -> None:
    row = f"| Fix two misspellings in README.md | IN_REVIEW | [#4]({HERE}/issues/4), [#5]({HERE}/pull/5) | 3 |"
    assert row in step_summary(REPORT, CycleSummary(), PLACES).splitlines()


def test_what_was_done_links_to_the_very_comment() -> None:
    said = EffectLine("e", "answer", "comment", "done", f"{HERE}/issues/7#issuecomment-12")
    page = step_summary(replace(REPORT, effects=(said,)), CycleSummary(), PLACES)
    assert f"- commented [#7]({HERE}/issues/7#issuecomment-12)" in page.splitlines()


def test_a_doubtful_effect_is_shown_as_such() -> None:
    assert "- commented **unknown** e4" in step_summary(REPORT, CycleSummary(), PLACES).splitlines()


def test_what_is_held_names_its_rules_and_leads_to_what_they_mean() -> None:
    held = ("Old marker: waits for the next cycle and a person (new-mission-cap, kind-tier)",)
    page = step_summary(REPORT, CycleSummary(held=held), PLACES)
    rules = f"([new-mission-cap]({RULES}#new-mission-cap), [kind-tier]({RULES}#kind-tier))"
    assert f"- Old marker: waits for the next cycle and a person {rules}" in page.splitlines()


def test_a_title_that_ends_like_rules_makes_no_link_of_its_own() -> None:
    page = step_summary(REPORT, CycleSummary(held=("Title (see-here)",)), PLACES)
    assert "- Title (see-here)" in page.splitlines()


@pytest.mark.parametrize("rule", sorted(LIFTED_BY))
def test_every_rule_can_be_linked(rule: str) -> None:
    page = step_summary(REPORT, CycleSummary(held=(f"Title: waits for something ({rule})",)), PLACES)
    assert f"[{rule}]({RULES}#{rule})" in page


def test_what_waits_for_you_can_be_clicked() -> None:
    page = step_summary(REPORT, CycleSummary(waiting=(f"review it: {HERE}/pull/5/files",)), PLACES)
    assert f"- review it: [#5]({HERE}/pull/5/files)" in page.splitlines()


def test_without_places_nothing_is_linked() -> None:
    page = step_summary(REPORT, CycleSummary(held=("Old: waits for a person (kind-tier)",)))
    assert links(page) == set()
    assert "waits for a person (kind-tier)" in page


def test_spend_requests_and_the_next_wake_are_told() -> None:
    report = replace(REPORT, usage=Usage(2, 1000, 234, 0.125))
    page = step_summary(report, CycleSummary(), PLACES, RequestCounts(5, 2))
    assert "Spent: 2 model calls, 1234 tokens, $0.12; 5 requests to the forge, 2 of them unchanged" in page
    assert "**Next**: 2026-05-04 13:00 UTC (urgency medium)" in page


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (None, "(urgency medium)"),
        (0, "(urgency medium); this one was not late"),
        (40, "(urgency medium); this one started 40 s after it was due"),
        (600, "(urgency medium); this one started 10 min after it was due"),
        (9_000, "(urgency medium); this one started 2 h 30 min after it was due"),
    ],
)
def test_how_late_this_cycle_was_stands_beside_the_next_one(late: int | None, words: str) -> None:
    page = step_summary(REPORT, CycleSummary(late=late), PLACES)
    assert [line for line in page.splitlines() if "**Next**" in line] == [f"**Next**: 2026-05-04 13:00 UTC {words}"]
    unplanned = step_summary(replace(REPORT, next_due_at=None), CycleSummary(late=late), PLACES)
    assert ("after it was due" in unplanned) == bool(late)


def test_drift_and_a_source_that_failed_are_told() -> None:
    page = step_summary(REPORT, CycleSummary(remarks=("this cycle started 20 minutes after it was due",)), PLACES)
    assert "- this cycle started 20 minutes after it was due" in page
    assert "- commands could not be observed: tsc is missing" in page


def test_a_staged_cycle_says_that_nothing_was_changed() -> None:
    page = step_summary(replace(REPORT, staged=True), CycleSummary(), PLACES)
    assert "nothing was changed" in page.splitlines()[0]
    assert "### Would be done" in page


@pytest.mark.attack(40)
@pytest.mark.parametrize("field", ["why", "held", "waiting", "remarks"])
def test_a_hostile_text_stays_dead(field: str) -> None:
    _is_dead(step_summary(REPORT, CycleSummary(**{field: (HOSTILE, f"{HERE}/pull/5 {HOSTILE}")}), PLACES))


@pytest.mark.attack(40)
def test_a_hostile_title_stays_dead_and_in_its_cell() -> None:
    missions = (MissionLine(1, HOSTILE, Status.IN_REVIEW, 4, None, 1),)
    page = step_summary(replace(REPORT, missions=missions), CycleSummary(), PLACES)
    _is_dead(page)
    row = next(line for line in page.splitlines() if "IN_REVIEW" in line)
    assert len(row.split("|")) == 6


@pytest.mark.attack(36, 40)
@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/issues/3",
        f"{HERE}.evil.example/issues/3",
        f"{HERE}/issues/3)](https://evil.example",
        f"{HERE}/issues/3\n::add-mask::x",
        "javascript:alert(1)",
    ],
)
def test_a_hostile_address_is_no_link(url: str) -> None:
    page = step_summary(
        replace(REPORT, effects=(EffectLine("e", "a", "open_issue", "done", url),)), CycleSummary(), PLACES
    )
    assert {link for link in links(page) if not link.startswith((f"{HERE}/issues/", f"{HERE}/pull/"))} == set()
    assert re.search(r"^\s*::", page, re.MULTILINE) is None


@pytest.mark.attack(36, 40)
@pytest.mark.parametrize(
    "way",
    [
        "[yes](/evil/x)",
        "[yes][1] [1]: /evil/x",
        "![x](../../evil/x)",
        r"\[yes](/evil/x)",
        f"{HERE}/issues/3/../../../../evil/x",
    ],
)
@pytest.mark.parametrize("field", ["why", "held", "waiting", "remarks"])
def test_a_hostile_text_leads_nowhere_else_on_the_same_server(field: str, way: str) -> None:
    page = step_summary(REPORT, CycleSummary(**{field: (way, f"[1]: /evil/x {way}", "see [1]")}), PLACES)
    assert not any("evil" in link for link in links(page))


@settings(max_examples=20)  # each is a page of two hundred lines
@given(TEXTS, TEXTS, TEXTS, TEXTS, st.integers(0, 60))
def test_it_stays_small_whatever_happened(
    why: tuple[str, ...], held: tuple[str, ...], waiting: tuple[str, ...], remarks: tuple[str, ...], many: int
) -> None:
    report = replace(
        REPORT,
        observers=tuple(ObserverLine(f"o{n}", "unavailable", 0, 0.0, "x" * 200) for n in range(many)),
        missions=tuple(MissionLine(n, "t" * 500, Status.PARKED, n, n, 1) for n in range(many)),
        decisions=tuple(DecisionLine(f"{n}", "a", f"k{n}", Tier.HIGH, Verdict.DENY, ("scope",)) for n in range(many)),
        effects=tuple(EffectLine(f"e{n}", "a", "open_issue", "done", f"{HERE}/issues/{n}") for n in range(many)),
    )
    page = step_summary(report, CycleSummary(why, held, waiting, remarks), PLACES)
    assert len(page) < 80_000
    assert len(page.encode("utf-8", "backslashreplace")) < 512 * 1024


def test_an_error_says_who_must_act_and_what_next() -> None:
    error = {"who": "forge", "what": "the token may not push", "next": "give the job `permissions: contents: write`"}
    page = trouble_summary(error)
    assert "the token may not push" in page
    assert "settings on GitHub** must act. Next: give the job" in page


@pytest.mark.attack(40)
def test_an_error_that_quotes_a_stranger_stays_dead() -> None:
    _is_dead(trouble_summary({"who": "you", "what": HOSTILE, "next": HOSTILE}))


def _is_dead(page: str) -> None:
    assert re.search(r"^\s*::|##\[[a-z]|<img|\$\{\{|@mara|fixes #3", page, re.MULTILINE) is None
    assert {link for link in links(page) if not link.startswith(f"{HERE}/")} <= {"hxxps://evil.example/x.png"} | {
        link for link in links(page) if link.startswith(("unsafe-", "hxxp"))
    }
