"""The page of a job in which an agent worked or reviewed, from the document that the command prints.

What the runner of GitHub Actions is told, in the files it names.

The page of a job: everything a person needs, with links, and nothing of what strangers wrote alive.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ralph_mission.adapters.report.progress import RequestCounts
from ralph_mission.adapters.report.step_summary import (
    Places,
    agent_outputs,
    outputs,
    places,
    problem_summary,
    review_page,
    step_summary,
    tell_agent,
    tell_problem,
    tell_runner,
    work_page,
)
from ralph_mission.mission.lifecycle.checkboxes import without_boxes
from ralph_mission.mission.model.cycle import CycleSummary, DecisionLine, EffectLine, MissionLine, ObserverLine
from ralph_mission.mission.model.mission import Status, Tier, Usage, Verdict
from ralph_mission.mission.policy import LIFTED_BY
from tests.adapters.report.samples import MISSION, REPORT, ask
from tests.helpers import cli_here, git
from tests.integration.hub import open_hub, unpaced

HERE_AGENT_SUMMARY = "https://github.example/mara/harbour"
PLACES_AGENT_SUMMARY = Places(repository=HERE_AGENT_SUMMARY)
WORKED: dict[str, Any] = {
    "outcome": "done", "code": 0, "issue": 7, "title": "Add a table", "try": 1, "branch": "ralph/issue-7",
    "pull_request": 8, "reason": "", "run": "r", "sessions": 2, "seconds": 61.4, "cost_usd": 0.5, "skipped": [],
    "settled": [],
}  # fmt: skip  # one document
REVIEWED: dict[str, Any] = {
    "outcome": "posted", "code": 0, "pull_request": 8, "head": "c" * 40, "url": "", "reason": "", "sessions": 1,
    "points": [{"gravity": "major"}, {"gravity": "minor"}, {"gravity": "major"}], "seconds": 3.0, "cost_usd": 0.25,
}  # fmt: skip  # one document
HOSTILE_AGENT_SUMMARY = "x](https://evil.example) @mara closes #1\n::add-mask::harbour\n<img src=x> | `touch owned`"


def test_work_that_ended_in_a_pull_request() -> None:
    assert work_page(WORKED, PLACES_AGENT_SUMMARY).splitlines() == [
        f"## Ralph, issue [#7]({HERE_AGENT_SUMMARY}/issues/7): done",
        "",
        "Add a table",
        "",
        "### Result",
        "",
        f"- pull request [#8]({HERE_AGENT_SUMMARY}/pull/8)",
        "- 2 sessions in 61 s, $0.50",
    ]


def test_a_try_that_came_to_nothing_says_why_and_how_it_ended() -> None:
    page = work_page(
        WORKED | {"outcome": "waiting", "code": 2, "pull_request": None, "reason": "max-iterations"},
        PLACES_AGENT_SUMMARY,
    )
    assert "- max-iterations\n- exit code 2\n- 2 sessions" in page


def test_without_an_issue_it_says_what_is_not_taken_and_what_was_put_in_order() -> None:
    more = {"skipped": [{"issue": 3, "why": "it had its 2 tries"}], "settled": [{"issue": 2, "outcome": "failed"}]}
    idle = WORKED | {"outcome": "idle", "issue": None, "title": "", "pull_request": None, "sessions": 0} | more
    page = work_page(idle, Places())
    assert page.startswith("## Ralph, no issue: idle\n")
    assert "### Not taken\n\n- #3: it had its 2 tries" in page
    assert "### Left behind by a runner that died\n\n- #2: failed" in page


def test_a_review_says_how_much_was_found() -> None:
    page = review_page(REVIEWED, PLACES_AGENT_SUMMARY)
    assert page.startswith(f"## Ralph, review of [#8]({HERE_AGENT_SUMMARY}/pull/8): posted\n")
    assert "- 3 points (2 major, 1 minor); they stand in the review\n- 1 session in 3 s, $0.25" in page
    assert "- 0 points; they" in review_page(REVIEWED | {"points": []}, PLACES_AGENT_SUMMARY)
    assert "point" not in review_page(REVIEWED | {"points": None, "outcome": "reviewed"}, PLACES_AGENT_SUMMARY)


@pytest.mark.attack(40)
def test_what_strangers_wrote_is_words_and_no_more() -> None:
    for page in (
        work_page(WORKED | {"title": HOSTILE_AGENT_SUMMARY, "reason": HOSTILE_AGENT_SUMMARY}, PLACES_AGENT_SUMMARY),
        review_page(REVIEWED | {"reason": HOSTILE_AGENT_SUMMARY}, PLACES_AGENT_SUMMARY),
    ):
        assert "](https://evil.example)" not in page and "<img" not in page and "@mara" not in page
        assert not [line for line in page.splitlines() if line.lstrip().startswith(("::", "##["))]


def test_outputs_are_empty_where_there_is_nothing() -> None:
    assert agent_outputs(WORKED) == {"outcome": "done", "issue": "7", "pull-request": "8"}
    assert agent_outputs(WORKED | {"issue": None, "pull_request": None}) == {
        "outcome": "done",
        "issue": "",
        "pull-request": "",
    }
    assert agent_outputs(REVIEWED) == {"outcome": "posted", "issue": "", "pull-request": "8"}


def test_the_runner_gets_page_outputs_and_a_copy_of_the_page(tmp_path: Path) -> None:
    environ = {"GITHUB_STEP_SUMMARY": str(tmp_path / "page"), "GITHUB_OUTPUT": str(tmp_path / "out"),
               "RUNNER_TEMP": str(tmp_path)}  # fmt: skip  # one environment
    tell_agent(WORKED, environ, work_page)
    told = (tmp_path / "out").read_text()
    (copy,) = tmp_path.glob("ralph-summary-*.md")
    assert copy.read_text() == (tmp_path / "page").read_text() == work_page(WORKED, Places())
    assert "pull-request<<ralph-" in told and json.dumps(str(copy)).strip('"') in told


def test_outside_of_a_workflow_nothing_is_written(tmp_path: Path) -> None:
    tell_agent(WORKED, {"RUNNER_TEMP": str(tmp_path)}, work_page)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The environment of a step."""
    return {
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "harbour/slackwater",
    }


def read(environ: dict[str, str]) -> dict[str, str]:
    """The outputs, as the runner reads them."""
    text = Path(environ["GITHUB_OUTPUT"]).read_text()
    found = re.findall(r"^([a-z-]+)<<(\S+)\n(.*?)\n\2$", text, re.MULTILINE | re.DOTALL)
    return {name: value for name, _, value in found}


def test_outputs_are_those_of_the_action(environ: dict[str, str]) -> None:
    tell_runner(REPORT, CycleSummary(taken=1), environ)
    told = read(environ)
    summary = Path(told.pop("summary-path"))
    assert told == {
        "cycle": "3",
        "urgency": "medium",
        "next-due-at": "2026-05-04T13:00:00Z",
        "missions-active": "1",
        "actions-taken": "1",
    }
    assert summary.read_text() == Path(environ["GITHUB_STEP_SUMMARY"]).read_text()
    assert summary.stat().st_mode & 0o077 == 0


@pytest.mark.attack(39)
def test_the_fence_is_another_one_each_time(environ: dict[str, str]) -> None:
    for _ in range(2):
        tell_runner(REPORT, CycleSummary(), environ)
    fences = set(re.findall(r"<<(ralph-[0-9a-f]{32})$", Path(environ["GITHUB_OUTPUT"]).read_text(), re.MULTILINE))
    assert len(fences) == 2


def test_what_earlier_steps_wrote_is_kept(environ: dict[str, str]) -> None:
    Path(environ["GITHUB_STEP_SUMMARY"]).write_text("before\n")
    tell_runner(REPORT, CycleSummary(), environ)
    assert Path(environ["GITHUB_STEP_SUMMARY"]).read_text().startswith("before\n## Ralph, cycle 3")


def test_outside_of_a_runner_nothing_is_written(tmp_path: Path) -> None:
    tell_runner(REPORT, CycleSummary(), {"RUNNER_TEMP": str(tmp_path)})
    tell_problem({"who": "you", "what": "x", "next": "y"}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_parked_mission_is_not_active() -> None:
    parked = MissionLine(8, "Old", Status.PARKED, 9, None, 1)
    assert outputs(replace(REPORT, missions=(*REPORT.missions, parked)), CycleSummary())["missions-active"] == "1"


def test_without_a_next_cycle_there_is_no_moment() -> None:
    assert outputs(replace(REPORT, next_due_at=None), CycleSummary())["next-due-at"] == ""


def test_an_error_is_told_on_the_page(environ: dict[str, str]) -> None:
    tell_problem({"who": "network", "what": "no answer", "next": "nothing"}, environ)
    assert "no answer" in Path(environ["GITHUB_STEP_SUMMARY"]).read_text()


def test_a_page_that_cannot_be_written_hides_no_error(tmp_path: Path) -> None:
    tell_problem({"who": "you", "what": "x", "next": "y"}, {"GITHUB_STEP_SUMMARY": str(tmp_path / "no" / "folder")})


def test_rules_are_linked_in_the_version_of_the_action(environ: dict[str, str]) -> None:
    assert places(environ).rules == ""
    told = places({**environ, "RALPH_ACTION_REPOSITORY": "ralph/mission", "RALPH_ACTION_REF": "v1"})
    assert told.rules == "https://github.com/ralph/mission/blob/v1/docs/rules.md"


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
    assert f"- commented on [#7]({HERE}/issues/7#issuecomment-12)" in page.splitlines()


def test_what_failed_or_is_in_doubt_is_not_told_as_done() -> None:
    assert "commented" not in step_summary(REPORT, CycleSummary(), PLACES)


def test_what_is_held_names_its_rules_and_leads_to_what_they_mean_below_the_fold() -> None:
    held = ("Old marker: waits for the next cycle and a person (new-mission-cap, kind-tier)",)
    page, _, folded = step_summary(REPORT, CycleSummary(held=held), PLACES).partition("<details>")
    rules = f"([new-mission-cap]({RULES}#new-mission-cap), [kind-tier]({RULES}#kind-tier))"
    assert "- Old marker: waits for the next cycle and a person" in page.splitlines()
    assert f"- Old marker: waits for the next cycle and a person {rules}" in folded.splitlines()


def test_a_title_that_ends_like_rules_makes_no_link_of_its_own() -> None:
    page = step_summary(REPORT, CycleSummary(held=("Title (see-here)",)), PLACES)
    assert "- Title (see-here)" in page.splitlines()


@pytest.mark.parametrize("rule", sorted(LIFTED_BY))
def test_every_rule_can_be_linked(rule: str) -> None:
    page = step_summary(REPORT, CycleSummary(held=(f"Title: waits for something ({rule})",)), PLACES)
    assert f"[{rule}]({RULES}#{rule})" in page


def test_what_waits_for_you_can_be_clicked() -> None:
    page = step_summary(REPORT, CycleSummary(waiting=(ask(f"see {HERE}/pull/5/files"),)), PLACES)
    assert f"- [#5]({HERE}/pull/5) {MISSION.title}. approve: see [#5]({HERE}/pull/5/files)" in page.splitlines()


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
    texts = (HOSTILE, f"{HERE}/pull/5 {HOSTILE}")
    told = tuple(ask(text, text) for text in texts) if field == "waiting" else texts
    _is_dead(step_summary(REPORT, CycleSummary(**{field: told}), PLACES))


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
    texts = (way, f"[1]: /evil/x {way}", "see [1]")
    told = tuple(ask(text, text) for text in texts) if field == "waiting" else texts
    page = step_summary(REPORT, CycleSummary(**{field: told}), PLACES)
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
    asks = tuple(ask(text, text) for text in waiting)
    page = step_summary(report, CycleSummary(why, held, asks, remarks), PLACES)
    assert len(page) < 80_000
    assert len(page.encode("utf-8", "backslashreplace")) < 512 * 1024


def test_an_error_says_who_must_act_and_what_next() -> None:
    error = {"who": "forge", "what": "the token may not push", "next": "give the job `permissions: contents: write`"}
    page = problem_summary(error)
    assert "the token may not push" in page
    assert "settings on GitHub** must act. Next: give the job" in page


@pytest.mark.attack(40)
def test_an_error_that_quotes_a_stranger_stays_dead() -> None:
    _is_dead(problem_summary({"who": "you", "what": HOSTILE, "next": HOSTILE}))


def _is_dead(page: str) -> None:
    assert re.search(r"^\s*::|##\[[a-z]|<img|\$\{\{|@mara|fixes #3", page, re.MULTILINE) is None
    assert {link for link in links(page) if not link.startswith(f"{HERE}/")} <= {"hxxps://evil.example/x.png"} | {
        link for link in links(page) if link.startswith(("unsafe-", "hxxp"))
    }


# --- on github ---


@pytest.mark.long  # cycles on the fake of GitHub; the lines have tests of their own
@pytest.mark.parametrize("place", ["in the clone that ran the cycle", "in another"])
def test_the_report_of_a_repository_on_github_is_the_readme_of_its_memory_branch(tmp_path: Path, place: str) -> None:
    with open_hub(tmp_path) as hub:
        hub.cycle()
        hub.runner = hub.runner if "ran" in place else "another"
        job = {**hub.environ, "GITHUB_ACTIONS": "true"}
        with unpaced():
            told = cli_here("report", "--format", "md", repo=hub.clone, env=job)
        readme = git(hub.fake.bare, "show", "ralph-memory:README.md")
        assert told.code == 0, told.err
        assert without_boxes(told.out) == f"{readme}\n"
        assert f"({hub.fake.url}/harbour/slackwater/issues/1)" in told.out
        changed = git(hub.fake.bare, "log", "-1", "--name-only", "--format=", "ralph-memory").splitlines()
        assert {"README.md", "memory/ralph-log.md"} <= set(changed), "not in one commit with memory"


@pytest.mark.long  # cycles on the fake of GitHub; the lines have tests of their own
@pytest.mark.parametrize("as_json", [False, True], ids=["at a terminal", "in the action"])
def test_requests_and_those_that_found_nothing_changed_are_told_by_the_command(tmp_path: Path, as_json: bool) -> None:
    page = tmp_path / "page"
    with open_hub(tmp_path, {"a.txt": "fine\n"}) as hub, unpaced():
        job = {**hub.environ, "GITHUB_STEP_SUMMARY": str(page)}
        for _ in range(2):
            hub.fake.journal.clear()
            page.unlink(missing_ok=True)
            options = ["--json"] if as_json else ["-v"]
            told = cli_here("cycle", "--force", "--forge", "github", *options, repo=hub.clone, env=job)
            assert told.code == 0, told.err
        api = [request for request in hub.fake.journal if request.transport != "git"]
        unchanged = [request for request in api if request.status == 304]
    assert unchanged
    words = f"{len(api)} requests to the forge, {len(unchanged)} of them unchanged"
    assert words in page.read_text()
    assert as_json or f"Asked: {words}" in told.out.splitlines()


@pytest.mark.long  # cycles on the fake of GitHub; the lines have tests of their own
def test_how_late_a_cycle_started_is_told_beside_the_next_one_under_a_quarter_of_an_hour_too(tmp_path: Path) -> None:
    page = tmp_path / "page"
    with open_hub(tmp_path, {"a.txt": "fine\n"}) as hub:
        report, _ = hub.cycle()
        assert report.next_due_at
        for late, words in ((10, "this one started 10 min after it was due"), (0, "this one was not late")):
            report, cycle_summary = hub.cycle(report.next_due_at - hub.now + timedelta(minutes=late))
            assert report.next_due_at
            page.unlink(missing_ok=True)
            tell_runner(report, cycle_summary, {"GITHUB_STEP_SUMMARY": str(page)})
            assert re.search(rf"^\*\*Next\*\*: .* UTC \(urgency low\); {words}$", page.read_text(), re.MULTILINE)
