"""The cycle report's document: exact keys, and a schema that it obeys.

The summary: what a person must see, in at most 40 rows.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.report import to_document
from ralph_mission.adapters.report.dashboard import dashboard
from ralph_mission.adapters.report.progress import WIDTH, RequestCounts, fold_lines, rows, wrap_text
from ralph_mission.adapters.report.step_summary import step_summary
from ralph_mission.adapters.report.summary import ROWS, Standpoint, schema, summary, to_json
from ralph_mission.mission.model.cycle import CycleSummary, DecisionLine, EffectLine, ObserverLine, PostLine, ThreadLine
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.mission import Tier, Verdict
from tests.adapters.report.samples import MEMORY, NOON, REPORT, STATE, ask

KEYS = (
    "schema_version cycle cycle_id outcome trigger staged started_at finished_at observers findings missions "
    "decisions effects urgency next_due_at usage"
).split()


def test_the_keys_are_the_contract() -> None:
    assert list(to_document(REPORT)) == KEYS
    assert list(to_document(REPORT)["missions"][0]) == "id title status issue pull_request started_cycle".split()
    assert list(to_document(REPORT)["usage"]) == "model_calls input_tokens output_tokens cost_usd".split()


def test_moments_are_utc_with_z() -> None:
    assert to_document(REPORT)["started_at"] == "2026-05-04T12:00:00Z"


def test_both_forms_say_the_same() -> None:
    assert json.loads(to_json(REPORT)) == to_document(REPORT)


def test_a_report_obeys_the_schema() -> None:
    for report in (REPORT, replace(REPORT, next_due_at=None, outcome="lost")):
        jsonschema.Draft202012Validator(schema()).validate(to_document(report))


@pytest.mark.parametrize("path", [(), ("missions", 0), ("observers", 0), ("usage",)])
def test_an_unknown_key_breaks_the_schema(path: tuple[str | int, ...]) -> None:
    document = to_document(REPORT)
    place = document
    for step in path:
        place = place[step]  # type: ignore[index]  # JSON
    place["extra"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_breaks_the_schema(key: str) -> None:
    document = to_document(REPORT)
    del document[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


CYCLE_SUMMARY = CycleSummary(
    why=("two misspellings, found by codespell, each with one correction",),
    held=("Old marker: waits for the next cycle (new-mission-cap)",),
    waiting=(ask("ralph pr approve 5"),),
    remarks=("started 42 s late",),
)
TEXTS = st.lists(st.text(max_size=300), max_size=60).map(tuple)


def test_what_was_opened_why_and_what_to_type_next_are_shown() -> None:
    text = summary(REPORT, CYCLE_SUMMARY)
    for expected in (
        "Cycle 3 done in 4 s. 2 findings, 1 already handled.",
        "Opened issue\n    issue 4",
        "Opened pull request\n    pull 5",
        "Old marker: waits for the next cycle\n",
        "Pull request #5: Fix two misspellings in README.md\n    approve  ralph pr approve 5",
        "Next cycle: in 59 min, at 2026-05-04 13:00 UTC",
    ):
        assert expected in text
    assert CYCLE_SUMMARY.why[0] not in text


def test_ids_scores_rules_and_reasons_are_for_those_who_ask() -> None:
    text = summary(REPORT, CYCLE_SUMMARY, verbose=True)
    for expected in (CYCLE_SUMMARY.why[0], CYCLE_SUMMARY.held[0], REPORT.cycle_id, "2.00 Two", "(urgency medium)"):
        assert expected in text and expected not in summary(REPORT, CYCLE_SUMMARY)


def test_an_effect_is_told_with_the_number_and_title_of_its_thread() -> None:
    merged = EffectLine("m", "finish", "merge_pull", "done", "https://github.com/a/b/pull/5")
    text = summary(replace(REPORT, effects=(merged,)), CycleSummary())
    assert f"  Merged pull request #5: {REPORT.missions[0].title}\n    https://github.com/a/b/pull/5" in text


def test_a_staged_cycle_shows_texts_and_changes_whole() -> None:
    thread = ThreadLine("k", "Correct it", "Why.\n<!-- ralph:v1 key=k -->", "--- a/x\n+++ b/x\n-teh\n+the\x1b[2J")
    text = summary(
        replace(REPORT, staged=True), CycleSummary(threads=(thread,)), lambda words, role: f"<{role}>{words}"
    )
    assert "<title>─── Correct it\n  Why.\n\n" in text
    assert "<removed>  -teh\n<added>  +the" in text and "key=k" not in text and "\x1b" not in text
    assert "Why." not in summary(REPORT, CycleSummary(threads=(thread,)))


def test_what_would_be_opened_is_told_by_its_title() -> None:
    (first, *rest) = (replace(effect, status="staged", url="") for effect in REPORT.effects)
    threads = (ThreadLine(first.key, "Correct 3 misspellings in 3 files", "body"),)
    text = summary(replace(REPORT, effects=(first, *rest), staged=True), CycleSummary(threads=threads))
    assert "  Open issue: Correct 3 misspellings in 3 files\n" in text and first.key not in text


def test_what_would_be_closed_is_told_by_its_mission() -> None:
    effect = EffectLine("4c90d153c6a7bf90", "finish", "close_pull", "staged", "")
    about = CycleSummary(subjects=(("4c90d153c6a7bf90", "Correct 3 misspellings"),))
    text = summary(replace(REPORT, effects=(effect,), staged=True), about)
    assert "Finish with pull request: Correct 3 misspellings" in text and "4c90d153" not in text


def test_what_the_forge_was_asked_is_told_where_somebody_counted() -> None:
    told = summary(REPORT, CYCLE_SUMMARY, requests=RequestCounts(5, 2), verbose=True).splitlines()
    assert "Asked: 5 requests to the forge, 2 of them unchanged" in told
    one = summary(REPORT, CYCLE_SUMMARY, requests=RequestCounts(1), verbose=True)
    assert "Asked: 1 request to the forge, 0 of" in one
    assert "request" not in summary(REPORT, CYCLE_SUMMARY, verbose=True).lower().replace("pull request", "")


def test_what_failed_or_is_in_doubt_is_not_told_as_done() -> None:
    assert "ommented" not in summary(REPORT, CYCLE_SUMMARY)


def test_an_unavailable_observer_says_why() -> None:
    assert "Not looked at\n  commands: tsc is missing" in summary(REPORT, CYCLE_SUMMARY)


def test_one_long_reason_of_several_observers_is_told_once_and_never_only_counted() -> None:
    blind = tuple(ObserverLine(name, "unavailable", 0, 0.0, "no setup: " + "x " * 60) for name in ("types", "eslint"))
    assert "Not looked at\n  types, eslint: no setup: x" in summary(replace(REPORT, observers=blind), CYCLE_SUMMARY)
    long = replace(blind[0], name="scan", detail="y " * 200)
    text = summary(replace(REPORT, observers=(long, *blind)), CYCLE_SUMMARY)
    assert "Not looked at\n  scan: y y" in text and "  … and 1 more: ralph journal show" in text
    noted = summary(REPORT, replace(CYCLE_SUMMARY, remarks=("z " * 300,)))
    assert "Note\n  z z" in noted and "  … the rest: ralph journal show" in noted


def test_a_cycle_that_was_told_to_pause_names_no_next_one() -> None:
    text = summary(REPORT, replace(CYCLE_SUMMARY, paused=True))
    assert text.splitlines()[-1] == "Paused: nothing is done until ralph resume" and "Next cycle" not in text


def test_without_words_for_what_is_held_the_rules_are_named() -> None:
    assert "1 x todo: hold (new-mission-cap)" in summary(REPORT, CycleSummary())


def test_a_staged_cycle_says_that_nothing_was_changed() -> None:
    text = summary(replace(REPORT, staged=True), CYCLE_SUMMARY)
    assert "Next cycle" not in text and text.splitlines()[-1] == "To do it: type ralph cycle"
    assert "nothing was changed" in text.splitlines()[0]
    idle = summary(replace(REPORT, staged=True, effects=(), findings=()), CycleSummary())
    assert idle.splitlines()[-1] == "There is nothing to do now"
    only_seen = summary(replace(REPORT, staged=True, effects=()), CYCLE_SUMMARY)
    assert only_seen.splitlines()[-1] == "There is nothing to do now"
    forced = summary(replace(REPORT, staged=True), CYCLE_SUMMARY, at=Standpoint(begin="ralph cycle --force"))
    assert forced.splitlines()[-1] == "To do it: type ralph cycle --force"
    assert "Would do" in text


@pytest.mark.attack(38)
def test_escape_sequences_never_reach_the_terminal() -> None:
    text = summary(
        REPORT, CycleSummary(why=("\x1b[31mred\x1b]8;;http://x\x07",), waiting=(ask("ralph \x1b[2J pr", "\x1b[2J"),))
    )
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_command_is_shown_whole() -> None:
    command = "ralph journal resolve " + "k" * 100 + " --sent"
    assert command in summary(REPORT, CycleSummary(waiting=(ask(command),)))


@given(TEXTS, TEXTS, TEXTS, TEXTS, st.integers(0, 50))
def test_it_never_takes_more_than_forty_rows(
    why: tuple[str, ...], held: tuple[str, ...], waiting: tuple[str, ...], remarks: tuple[str, ...], many: int
) -> None:
    report = replace(
        REPORT,
        observers=tuple(ObserverLine(f"o{n}", "unavailable", 0, 0.0, "x" * 200) for n in range(many)),
        decisions=tuple(DecisionLine(f"{n}", "a", f"k{n}", Tier.HIGH, Verdict.DENY, ("scope",)) for n in range(many)),
        effects=tuple(EffectLine(f"e{n}", "a", "open_issue", "done", "u" * 200) for n in range(many)),
    )
    told = CycleSummary(why, held, tuple(ask(text[:60], text) for text in waiting), remarks)
    lines = summary(report, told, requests=RequestCounts(10_000, 9_999)).split("\n")
    assert sum(rows(line, WIDTH) for line in lines) <= ROWS


def test_a_cycle_that_looked_at_nothing_says_so() -> None:
    skipped = (ObserverLine("code", "skipped", 0, 0.0, "no free mission slot"),)
    text = summary(replace(REPORT, observers=skipped, findings=()), CycleSummary())
    assert "nothing was looked at: no free mission slot" in text
    assert "0 findings" not in text


def test_a_quiet_cycle_says_what_was_looked_at() -> None:
    seen = (
        ObserverLine("docs", "ok", 0, 0.1, "42 pages, 0 broken references; as before"),
        ObserverLine("typos", "ok", 0, 0.1, ""),
        ObserverLine("briefs", "ok", 0, 0.1, "none"),
    )
    quiet = replace(REPORT, observers=seen, findings=(), missions=(), effects=())
    said = "Nothing needs you looked at docs: 42 pages; typos: 0 results; briefs: none"
    assert said in " ".join(summary(quiet, CycleSummary()).split())
    held = summary(quiet, CycleSummary(held=("Fix it: make test failed",), needs_person=True))
    assert "Nothing needs you" not in held and "Looked at\n  docs: 42 pages" in held and "Held back" in held
    assert "looked at docs" not in summary(REPORT, CYCLE_SUMMARY)
    assert "looked at docs" not in summary(replace(quiet, outcome="failed"), CycleSummary())


def test_findings_of_before_are_not_called_new() -> None:
    assert "2 findings, 1 already handled." in summary(REPORT, CYCLE_SUMMARY)
    known = tuple(replace(finding, known=True) for finding in REPORT.findings)
    assert "2 findings, all already handled." in summary(replace(REPORT, findings=known), CYCLE_SUMMARY)


def test_commands_and_places_are_written_for_where_one_stands() -> None:
    at = Standpoint(lambda text: text.replace("ralph journal", "bin/ralph journal"), lambda place: f"over/{place}")
    held = tuple(f"{'word ' * 40}{n}" for n in range(9))
    text = summary(REPORT, CycleSummary(held=held), at=at)
    assert "Opened issue\n    over/issue 4" in text
    assert f"more: bin/ralph journal show {REPORT.cycle}" in text


def test_a_command_in_a_note_is_never_broken_in_two() -> None:
    remark = f"{'word ' * 14}`ralph journal resolve {'k' * 16} --sent|--not-sent`"
    assert f"  {remark}" in summary(REPORT, CycleSummary(remarks=(remark,))).splitlines()


def test_a_long_reason_gets_more_rows() -> None:
    reason = "because " * 25
    lines = summary(REPORT, CycleSummary(held=(reason,))).split("\n")
    start = lines.index("Held back")
    assert " ".join("".join(lines[start + 1 : start + 4]).split()) == reason.strip()


@pytest.mark.attack(37)
@pytest.mark.parametrize("lay", [wrap_text, lambda text: fold_lines([text])], ids=["wrapped", "told"])
@pytest.mark.parametrize("before", range(60, 82))
def test_no_row_of_a_wrapped_text_is_a_command_for_the_runner(lay, before):
    text = f"{'x' * before} ::set-env name=A::b ##[error]c ::error::d"
    lines = "\n".join(lay(text)).split("\n")
    assert not any(line.strip().startswith("::") for line in lines)


# --- Posts in reports: where, what came of them, and the exact words; within the rows that a person reads. ---

SAID = "Osmosis TVL up 45% this week"
POSTS = (
    PostLine("twitter", "done", "https://x.test/7", (SAID,), (28,), 280),
    PostLine("telegram", "unknown", "", (SAID,), (28,), 4096),
    PostLine("discord", "failed", "", ("Longer words", "in two parts"), (12, 12), 2000),
)
texts = st.text(max_size=400)
lines = st.lists(texts, max_size=40).map(tuple)
posts = st.lists(
    st.builds(
        lambda network, text: PostLine(network, "done", "", (text, text), (len(text),) * 2, 280), st.text(), texts
    ),
    max_size=6,
).map(tuple)


def test_the_summary_names_each_network_with_its_fate_and_how_the_post_begins() -> None:
    shown = summary(REPORT, CycleSummary(posts=POSTS)).splitlines()
    start = shown.index("Posted")
    assert shown[start + 1 : start + 5] == [
        "  twitter https://x.test/7, telegram unknown",
        f"    {SAID}",
        "  discord failed",
        "    Longer words",
    ]


def test_before_anything_is_sent_all_of_it_stands_there_with_its_length() -> None:
    thread = replace(POSTS[0], status="staged", url="", parts=("one " * 60, "two"), lengths=(240, 3))
    shown = summary(replace(REPORT, staged=True), CycleSummary(posts=(thread,)))
    assert "Would post\n  twitter (240, 3 of 280)\n" in shown
    assert " ".join(shown.split()).count("one") >= 60
    assert "/ two" in " ".join(shown.split())


@pytest.mark.parametrize("staged", [False, True])
@given(lines, lines, lines, lines, posts)
def test_posts_take_no_rows_that_are_not_there(staged, why, held, waiting, remarks, said) -> None:
    told = CycleSummary(why, held, tuple(ask(text[:60], text) for text in waiting), remarks, posts=said)
    shown = summary(replace(REPORT, staged=staged), told).split("\n")
    assert sum(rows(line, WIDTH) for line in shown) <= ROWS


def test_the_page_of_a_job_holds_the_exact_words_and_no_markup_of_theirs() -> None:
    hostile = replace(POSTS[0], parts=("<b>a</b> [b](https://evil.test) @mara fixes #1",))
    page = step_summary(REPORT, CycleSummary(posts=(*POSTS, hostile)))
    assert f"- twitter done (28 of 280): {SAID}" in page
    assert "- telegram unknown (28 of 4096)" in page
    assert "Longer words / in two parts" in page
    assert "<b>" not in page
    assert "](https://evil.test" not in page


def test_the_dashboard_names_the_posts_of_the_week() -> None:
    out = [Posted(f"k{n}", "twitter", "anomaly", NOON - timedelta(days=n), url=f"https://x.test/{n}") for n in range(9)]
    page = dashboard(MEMORY, replace(STATE, posted=tuple(out)), "harbour")
    assert page.count("- Posted on twitter") == 7
    assert "Posted on" not in dashboard(MEMORY, STATE, "harbour")
