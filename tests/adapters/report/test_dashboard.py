"""The dashboard: one page, a function of memory, short on a phone, safe whatever a title says."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ralph_mission.adapters.report.dashboard import dashboard, ours
from ralph_mission.mission.model.ledger import OpenState
from ralph_mission.mission.model.memory import CompletedNote, IssueNote, Memory
from ralph_mission.mission.model.mission import Status, update_mission
from ralph_mission.safety.detect import mentions
from tests.adapters.report.samples import MEMORY, NOON, STATE, mission

HOSTILE = (
    "a | b \\| c",
    "x](https://evil.example/) [y",
    "`a` ``b",
    "**bold** _it_ ~~no~~",
    "```\n# head\n```",
    "<img src=x onerror=y> <details>",
    "::: {init} %%{x}%%",
    "- item\n\n# head",
    "@mara `@joe`",
    "$x$ ![i](//e.example)",
    "[ref]\n\n[ref]: https://evil.example/",
    "&#91;x&#93;(javascript:y)",
    "\\`code\\` \\",
    "<https://evil.example/>",
)
WAKES = tuple((NOON + timedelta(hours=n), drift) for n, drift in enumerate((0, 40, 119, 130, 7_300)))


def link(number: int) -> str:
    return f"https://github.com/o/r/issues/{number}"


def how(what: str, number: int) -> str:
    return {
        "show_pull": f"see https://github.com/o/r/pull/{number}/files",
        "approve_pull": f"approve https://github.com/o/r/pull/{number} (Files changed)",
        "show_issue": f"ralph issue show {number}",
        "approve_issue": f"ralph issue label {number} ralph:approved",
    }[what]


def test_every_part_is_there() -> None:
    page = dashboard(MEMORY, replace(STATE, wakes=WAKES), "slackwater")
    for expected in (
        "# Ralph looks after slackwater",
        "●○○ 1 of 3",
        "cycle 3, 2026-05-04 12:00 UTC",
        "2026-05-04 13:00 UTC",
        "## Waiting for you",
        "review the change",
        "ralph journal resolve e4 --sent",
        "## Missions (1 of 3 slots)",
        "IN_REVIEW, 2 d old",
        "next: review it",
        "## Done",
        "2026-05-01, merged: small",
        "spelling: 3 of 4 accepted, the next with 67%",
        "$0.25, 2 wakes granted",
        "late by 119 s at the median, 2 h at most",
        "| 05-04 15:00 | 2 min |",
        "```mermaid",
    ):
        assert expected in page


def test_empty_memory_makes_a_page() -> None:
    page = dashboard(Memory(), OpenState(), "new")
    for expected in ("**Last:** none yet", "○○○ 0 of 3", "## Waiting for you\n\nNothing.", "## Missions\n\nNone."):
        assert expected in page
    for absent in ("mermaid", "## Done", "## Issues at work", "## Wakes", "## Parked", "## Rejected"):
        assert absent not in page


def test_issues_that_an_agent_was_given_stand_with_what_became_of_them() -> None:
    notes = (
        IssueNote(12, "Tides", "working", 1),
        IssueNote(11, "Moons", "failed", 2),
        IssueNote(9, "Sun", "done", 1, 10),
    )
    page = dashboard(replace(MEMORY, issues=notes), STATE, "x", link=link)
    part = page[page.index("## Issues at work") : page.index("## Done")]
    assert "- **Tides** [#12](https://github.com/o/r/issues/12)\n  - try 1, an agent is at it\n" in part
    assert "try 2, in vain: it needs a person" in part and "issues/10)\n  - try 1, done: see its pull" in part


def test_a_paused_repository_says_so_first() -> None:
    paused = replace(MEMORY, header=replace(MEMORY.header, paused=True))
    assert dashboard(paused, STATE, "x").splitlines()[2].startswith("**Paused.**")


def test_what_was_turned_down_stands_apart_with_what_was_said() -> None:
    no = CompletedNote("2026-05-02", "Bump a thing", 1, "rejected", "mara said no: too early")
    page = dashboard(replace(MEMORY, completed=(no, *MEMORY.completed)), STATE, "x")
    assert page.index("Fix a typo") < page.index("## Rejected and learned") < page.index("too early")


def test_a_parked_mission_takes_no_slot() -> None:
    page = dashboard(MEMORY, OpenState(missions=(mission(status=Status.PARKED),)), "x")
    assert "○○○ 0 of 3" in page and "## Parked" in page and "## Missions\n\nNone." in page


# --- what a person is asked for -------------------------------------------------------


def test_a_review_is_asked_for_with_what_to_click() -> None:
    page = dashboard(MEMORY, STATE, "x", link=link, how=how)
    asked = page.partition("## Missions")[0]
    assert f"[#4]({link(4)}), [#5]({link(5)}): review the change" in asked
    assert "  - look: see [it](https://github.com/o/r/pull/5/files)" in asked
    assert "  - approve: approve [it](https://github.com/o/r/pull/5) (Files changed)" in asked


def test_a_review_whose_merge_was_refused_says_what_stands_in_the_way() -> None:
    stopped = mission(status=Status.IN_REVIEW, pull=5, failure="blocked: a *check* is missing")
    page = dashboard(MEMORY, OpenState(missions=(stopped,)), "x", how=how)
    assert "  - failed: blocked: a \\*check\\* is missing; the next cycle tries again" in page
    assert "(Files changed) (unless it is approved)" in page


def test_a_proposal_waits_for_a_person_once_it_is_made() -> None:
    made = mission(status=Status.DISCOVERED, proposal_hash="ab12cd34")
    page = dashboard(MEMORY, OpenState(missions=(made,)), "x", how=how)
    assert "approve or reject the proposal" in page
    assert "  - approve: `ralph issue label 4 ralph:approved`" in page
    unasked = OpenState(missions=(update_mission(made, proposal_hash=""),))
    assert "approve or reject" not in dashboard(MEMORY, unasked, "x")


@pytest.mark.parametrize("status", [Status.PLANNED, Status.ESCALATED])
def test_what_a_person_must_decide_has_nothing_to_say_yes_to(status: Status) -> None:
    page = dashboard(MEMORY, OpenState(missions=(mission(status=status, pull=0),)), "x", how=how)
    asked = page.partition("## Missions")[0]
    assert "look: `ralph issue show 4`" in asked
    assert "say yes" not in asked


@pytest.mark.parametrize("status", [Status.EXECUTING, Status.FIXING, Status.PARKED])
def test_what_goes_on_by_itself_waits_for_nobody(status: Status) -> None:
    page = dashboard(MEMORY, OpenState(missions=(mission(status=status),)), "x")
    assert "## Waiting for you\n\nNothing." in page


def test_without_addresses_numbers_stand_alone() -> None:
    assert "** #4, #5: review the change" in dashboard(MEMORY, STATE, "x")


# --- whatever a title says ------------------------------------------------------------


def tokens(page: str) -> list[Token]:
    found = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page):
        found += [token, *(token.children or ())]
    return found


def shape(page: str) -> list[tuple[str, str]]:
    """The page's mark-up without its texts: what a title must not change."""
    wanted = [token for token in tokens(page) if token.type not in ("text", "inline", "softbreak", "fence")]
    return [(token.type, str(token.attrs.get("href", "")) or token.content) for token in wanted]


@given(
    st.text(max_size=120) | st.sampled_from(HOSTILE).flatmap(lambda a: st.sampled_from(HOSTILE).map(lambda b: a + b))
)
@example("-")
def test_a_title_changes_nothing_but_the_text(title: str) -> None:
    def page(text: str) -> str:
        missions = (mission(title=text), mission(id=8, title=text, status=Status.PARKED))
        notes = (
            CompletedNote("2026-05-01", text, 1, "merged", text),
            CompletedNote("2026-05-01", text, 1, "rejected", text),
        )
        at_work = (IssueNote(12, text, "waiting", 1),)
        return dashboard(
            replace(MEMORY, completed=notes, issues=at_work),
            replace(STATE, missions=missions),
            text,
            link=link,
            how=how,
        )

    if re.search(r"\S", title):
        assert shape(page(title + "x")) == shape(page("plain"))
        assert not mentions(page(title), True)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_next_step_opens_nothing_and_leads_nowhere(text: str) -> None:
    page = dashboard(MEMORY, replace(STATE, missions=(mission(title="t", next_step=text),)), "x")
    found = tokens(page.partition("## Rejected")[0])
    assert not [token for token in found if token.type in ("link_open", "image", "html_inline", "html_block")]
    plain = dashboard(MEMORY, replace(STATE, missions=(mission(title="t", next_step="n"),)), "x")
    assert page.count("\n") == plain.count("\n")


@pytest.mark.parametrize("before", ["", "\\", "\\\\", "\\\\\\", "`a\\`", "\\`", "`a` \\"])
def test_no_backslash_brings_a_link_to_life(before: str) -> None:
    text = f"{before}[x](//evil.example) \\"
    found = MarkdownIt("commonmark").parse(f"- {ours(text)}[ours](//good.example)")
    links = [child.attrs["href"] for token in found for child in token.children or () if child.type == "link_open"]
    assert links == ["//good.example"]


def test_an_empty_title_still_has_a_row() -> None:
    page = dashboard(MEMORY, replace(STATE, missions=(mission(title=" "),)), "x")
    assert "- **\\-** #4, #5" in page
    assert "  7. mission :active" in page


# --- the diagram ----------------------------------------------------------------------

WHEN = r"\d{4}-\d\d-\d\dT\d\d:\d\d"
BAR = re.compile(rf"  \d+\. [^:;#%`{{}}<>\"|\[\]]+ :active, {WHEN}, {WHEN}")
MILESTONE = re.compile(rf"  - [^:;#%`{{}}<>\"|\[\]]+ :milestone, done, {WHEN}, 0d")
GRAMMAR = re.compile(
    r"gantt\n  dateFormat YYYY-MM-DDTHH:mm\n  axisFormat %d %b\n(?:  section Active\n(?:A\n)+)?"
    r"(?:  section Over\n(?:M\n)+)?"
)


def diagram(page: str) -> str:
    (fence,) = [token for token in tokens(page) if token.type == "fence"]
    assert fence.info == "mermaid"
    return fence.content


TITLES = st.text(max_size=60) | st.sampled_from((*HOSTILE, "section x", "click me", "title", "2026-05-01", "%% x"))


@given(st.lists(TITLES, min_size=1, max_size=4))
def test_the_diagram_is_one_whatever_the_titles_are(titles: list[str]) -> None:
    missions = tuple(mission(id=n, title=title) for n, title in enumerate(titles, 1))
    notes = tuple(CompletedNote("2026-05-01", title, 1, "merged") for title in titles)
    lines = diagram(dashboard(replace(MEMORY, completed=notes), OpenState(missions=missions), "x")).splitlines()
    marked = ("A" if BAR.fullmatch(line) else "M" if MILESTONE.fullmatch(line) else line for line in lines)
    assert GRAMMAR.fullmatch("".join(f"{line}\n" for line in marked))
    assert len(lines) == 5 + 2 * len(titles)


def test_a_day_that_is_none_is_left_out_of_the_diagram() -> None:
    notes = (CompletedNote("2026-13-01", "a", 1, "merged"), CompletedNote("x :crit, 1", "b", 1, "merged"))
    assert "section Over" not in diagram(dashboard(replace(MEMORY, completed=notes), STATE, "x"))


def test_names_in_the_diagram_fit_a_phone() -> None:
    page = diagram(dashboard(MEMORY, replace(STATE, missions=(mission(title="long " * 40),)), "x"))
    assert max(len(line.partition(" :")[0]) for line in page.splitlines()) < 40


def test_no_table_is_wide() -> None:
    rows = [line for line in dashboard(MEMORY, replace(STATE, wakes=WAKES), "x").splitlines() if line.startswith("|")]
    assert rows and max(len(cell) for row in rows for cell in row.split("|")) < 40
