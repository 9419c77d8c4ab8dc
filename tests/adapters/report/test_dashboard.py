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

from ralph_mission.adapters.forges.github.dashboard import OPENING
from ralph_mission.adapters.report.dashboard import dashboard, ours
from ralph_mission.mission.lifecycle.checkboxes import box, find_boxes, without_boxes
from ralph_mission.mission.lifecycle.waiting import HELD_CHECKS
from ralph_mission.mission.model.ledger import HeldFix, MonitorRecord, OpenState, RedBase, Urgency
from ralph_mission.mission.model.memory import CompletedNote, CycleNote, IssueNote, Memory
from ralph_mission.mission.model.mission import Status
from ralph_mission.safety.detect import mentions
from tests.adapters.report.samples import MEMORY, NOON, STATE, mission
from tests.mission.build import finding

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


def link(number: int) -> str:
    return f"https://github.com/o/r/issues/{number}"


def section(page: str, name: str) -> str:
    return page.partition(f"## {name}\n")[2].partition("\n## ")[0]


def test_what_waits_for_a_person_comes_first_with_boxes_bound_to_what_was_shown() -> None:
    asks = mission(
        id=8, status=Status.DISCOVERED, issue=11, pull=0, title="`found` may be unset", proposal_hash="ab12cd34"
    )
    ready = mission(status=Status.IN_REVIEW, pull=5, head_sha="c" * 40)
    page = dashboard(MEMORY, replace(STATE, missions=(ready, asks)), "slackwater", link=link)
    waiting = section(page, "Waiting for you")
    assert page.index("## Waiting for you") < page.index("## Done this week")
    assert (
        f"- **`found` may be unset [#11]({link(11)})**\n  - [ ] Go ahead <!-- ralph:box approve 11 ab12cd34 -->"
        in waiting
    )
    assert f"- [ ] Approve and merge <!-- ralph:box approve 5 {'c' * 40} -->" in waiting
    assert "ralph journal resolve e4 --sent" in waiting


def test_an_empty_memory_makes_a_page() -> None:
    page = dashboard(Memory(), OpenState(), "new")
    assert page.startswith(OPENING)
    assert section(page, "Waiting for you").startswith("\nNothing needs you.")
    assert find_boxes(page) == {"run 0", "pause 0"}
    for absent in ("## Under way", "## Also found", "## Done", "<details>"):
        assert absent not in page


def test_a_red_check_of_the_base_waits_for_a_person() -> None:
    page = dashboard(MEMORY, OpenState(red=RedBase("0" * 40, "main", ("make [test](x)",))), "x")
    assert section(page, "Waiting for you") == "\n- **Your check `make \\[test\\](x)` is red on main.**\n"


def test_nothing_needs_you_never_stands_above_what_is_held_back() -> None:
    page = dashboard(MEMORY, OpenState(held=(HeldFix("k", "Fix it", "no `uv`", ran=False),)), "x")
    assert "## Held back" in page and "Nothing needs you" not in page and "## Waiting for you" not in page


def test_the_page_changes_with_no_clock_and_no_count_of_cycles() -> None:
    later = replace(
        MEMORY.header, cycle=99, serial=99, last_cycle_at=NOON + timedelta(hours=6), next_due_at=None, spend_usd=9.0
    )
    assert dashboard(replace(MEMORY, header=later), STATE, "x") == dashboard(MEMORY, STATE, "x")


def test_issues_that_an_agent_was_given_stand_with_what_became_of_them() -> None:
    notes = (
        IssueNote(12, "Tides", "working", 1),
        IssueNote(11, "Moons", "failed", 2),
        IssueNote(9, "Sun", "done", 1, 10),
    )
    part = section(dashboard(replace(MEMORY, issues=notes), STATE, "x", link=link), "Under way")
    assert f"- Tides [#12]({link(12)}): an agent is working on it" in part
    assert "failed; it needs a person" in part and f"[#10]({link(10)}): done, in its pull request" in part


def test_a_paused_repository_says_so_first_and_offers_nothing_about_itself() -> None:
    paused = replace(MEMORY, header=replace(MEMORY.header, paused=True))
    page = dashboard(paused, STATE, "x")
    assert page.splitlines()[2].startswith("**Paused.**")
    assert not {"run 0", "pause 0"} & find_boxes(page)


def test_what_was_set_aside_is_folded_and_can_be_taken_up_again() -> None:
    page = dashboard(MEMORY, OpenState(missions=(mission(status=Status.PARKED),)), "x")
    assert "<summary>Set aside: 1 mission</summary>" in page
    assert [order for order in find_boxes(page) if order.startswith("retry 4 ")]


def test_lists_are_folded_and_can_be_switched_off_and_on() -> None:
    lists = OpenState(watched=(MonitorRecord("k", "todo", 0, ("- one", "- two"), 30),))
    page = dashboard(MEMORY, lists, "x")
    assert "<summary>Watched: TODO, FIXME and HACK markers</summary>\n\n- one\n- two\n- and 10 seen earlier\n" in page
    assert "unlist todo" in find_boxes(page)
    silent = dashboard(MEMORY, replace(lists, silenced=("todo",)), "x")
    assert "- one" not in silent and "list todo" in find_boxes(silent)


@pytest.mark.attack(18)
@pytest.mark.parametrize("kind", ["todo", f"todo -->\n{box('Look now', 'approve 3 ab12')}"])
def test_a_list_that_memory_invents_offers_no_box_and_calls_nobody(kind: str) -> None:
    lines = (box("Look now", "approve 3 ab12"), "- @mara look", "- fixes #1\n" + box("Pause", "approve 4 ab12"))
    page = dashboard(MEMORY, OpenState(watched=(MonitorRecord("k", kind, 0, lines, 3),)), "x")
    assert not {one for one in find_boxes(page) if one.startswith("approve")} - find_boxes(
        dashboard(MEMORY, OpenState(), "x")
    )
    assert mentions(page) == ()


def test_lines_of_lists_keep_their_links_to_this_repository_alone() -> None:
    here = "[#2](https://ghe.example/o/r/issues/2) [`a.py:3`](https://ghe.example/o/r/blob/c0ffee/a%20b.py#L3)"
    lists = (MonitorRecord("k", "todo", 0, (f"- {here} `x`", "- [#2](https://evil.example/o/r/issues/2) @team"), 2),)
    page = dashboard(MEMORY, OpenState(watched=lists), "x", link="https://ghe.example/o/r/issues/{}".format)
    assert f"\n- {here} `x`\n" in page and "https://evil.example" not in page and "@team" not in page


def test_a_source_that_cannot_be_looked_at_is_the_line_of_health() -> None:
    assert dashboard(MEMORY, STATE, "x").endswith("All sources were read.\n")
    seen = ("ci unavailable: no token", "fixers.project unavailable: no uv", "not checked: advisories: no: network")
    note = CycleNote(3, NOON, seen, (), Urgency.LOW, "6h")
    page = dashboard(replace(MEMORY, observations=(note,)), STATE, "x")
    told = "ci (no token); this repository's formatters (no uv); advisories (no: network)"
    assert page.endswith(f"Not checked: {told}.\n")


def test_a_fix_that_is_held_back_is_told_with_its_reason_and_is_not_next() -> None:
    waiting, other = (finding(essence=(name,), title=name) for name in ("1 misspelling", "another one"))
    held = HeldFix("k", "Correct it", "no uv here", (waiting.fingerprint,))
    page = dashboard(MEMORY, replace(STATE, backlog=(waiting, other), held=(held,)), "x")
    assert "- Correct it: no uv here (tried again on the next commit)" in section(page, "Held back")
    assert section(page, "Also found").strip().startswith("- another one") and "1 misspelling" not in page


@pytest.mark.parametrize("failure", ["blocked: a *check* is missing"])
def test_a_review_whose_merge_was_refused_says_what_stands_in_the_way(failure: str) -> None:
    stopped = mission(status=Status.IN_REVIEW, pull=5, failure=failure)
    page = dashboard(MEMORY, OpenState(missions=(stopped,)), "x")
    assert "blocked: a \\*check\\* is missing; the next cycle tries again" in page


RUN = "https://ghe.example/o/r/actions/runs/5"


def test_checks_that_wait_for_a_click_come_first_and_what_failed_is_told_before_anybody_approved() -> None:
    red = mission(id=8, pull=6, issue=0, checks=f"test @team failed: {RUN}/job/9; and 1 more")
    held = mission(pull=5, issue=0, checks=f"{HELD_CHECKS}: {RUN}", failure="older")
    page = dashboard(MEMORY, OpenState(missions=(red, held)), "x", link="https://ghe.example/o/r/issues/{}".format)
    first, second = re.findall(r"^- \*\*.*$", page, re.M)
    assert first.endswith(f"issues/5)**: {HELD_CHECKS} ([details]({RUN}))")
    assert second.endswith(f"issues/6)**: test @ team failed ([details]({RUN}/job/9)); and 1 more")


@pytest.mark.parametrize(
    "elsewhere", ["https://ci.example/7", f"{RUN}/../x)y", "https://ghe.example/o/rr/1", f"{RUN}`a`"]
)
def test_only_pages_of_this_repository_are_linked(elsewhere: str) -> None:
    stopped = mission(status=Status.ESCALATED, next_step=f"Not green: lint failed ({elsewhere}). Look at it.")
    page = dashboard(MEMORY, OpenState(missions=(stopped,)), "x", link="https://ghe.example/o/r/issues/{}".format)
    assert "lint failed" in page and "Look at it." in page
    links = re.findall(r"\]\((.*?)\)", page)
    assert all(one.startswith("https://ghe.example/o/r/") and "`" not in one for one in links), links
    assert "hxxp" not in page and "ci.example" not in page and "/rr/" not in page


@pytest.mark.parametrize("status", [Status.EXECUTING, Status.FIXING, Status.PARKED])
def test_what_goes_on_by_itself_waits_for_nobody(status: Status) -> None:
    page = dashboard(MEMORY, OpenState(missions=(mission(status=status),)), "x")
    assert "## Waiting for you\n\nNothing needs you." in page


def test_a_tick_that_counts_for_nothing_is_explained_where_it_stands() -> None:
    page = dashboard(MEMORY, replace(STATE, ignored=(("pause 0", "ticked by @eve, <b>"), ("run 9", "gone"))), "x")
    (line,) = [line for line in page.split("\n") if "Pause Ralph" in line]
    assert line == "- [ ] Pause Ralph (ticked by @ eve, &lt;b\\>) <!-- ralph:box pause 0 -->"
    assert "pause 0" in find_boxes(page) and "gone" not in page


def test_however_much_there_is_github_takes_the_page_and_what_waits_is_there() -> None:
    long = "`settings` may be unset in ralph/adapters/storage/memory/branch.py:61 " * 3
    many = [
        mission(
            id=n, issue=n, pull=n + 1, title=long, status=status, failure=long * 3, next_step=long, head_sha="c" * 40
        )
        for status in (Status.IN_REVIEW, Status.EXECUTING, Status.PARKED)
        for n in range(100, 200)
    ]
    lists = tuple(MonitorRecord(kind, kind, 0, ("- " + "x" * 600,) * 40, 500) for kind in ("todo", "lint", "docs"))
    done = (CompletedNote("2026-05-03", long, 1, "merged", long),) * 90
    state = OpenState(missions=tuple(many), watched=lists, unknown=("e4",) * 50)
    page = dashboard(replace(MEMORY, completed=done), state, "x", link=link)
    assert len(page) < 65_000 and "- and 130 more" in page and "left out: this page would be too long" in page
    assert "## Waiting for you" in page and {"run 0", "pause 0"} <= find_boxes(page)


def test_without_addresses_numbers_stand_alone() -> None:
    assert " #4, #5**" in dashboard(MEMORY, STATE, "x")


def test_the_copy_on_the_memory_branch_has_no_boxes() -> None:
    page = dashboard(MEMORY, STATE, "x")
    assert find_boxes(page) and "[ ]" not in without_boxes(page) and "ralph:box" not in without_boxes(page)


# --- whatever a title says ------------------------------------------------------------


def tokens(page: str) -> list[Token]:
    found = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page):
        found += [token, *(token.children or ())]
    return found


def shape(page: str) -> list[tuple[str, str]]:
    """The page's mark-up without its texts: what a title must not change."""
    wanted = [token for token in tokens(page) if token.type not in ("text", "inline", "softbreak", "code_inline")]
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
        )

    if re.search(r"\S", title):
        assert shape(page(title + "x")) == shape(page("plain"))
        assert not mentions(page(title), True)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_next_step_opens_nothing_and_leads_nowhere(text: str) -> None:
    def shown(next_step: str) -> str:
        stuck = mission(title="t", status=Status.ESCALATED, next_step=next_step)
        return dashboard(MEMORY, replace(STATE, missions=(stuck,)), "x")

    page, plain = shown(text), shown("n")
    strange = [one for one in tokens(page) if one.type in ("link_open", "image", "html_inline", "html_block")]
    assert not [token for token in strange if "ralph:box" not in token.content and token.content not in plain]
    assert page.count("\n") == plain.count("\n") and not mentions(page)
    assert plain.count(": n\n") == 1


@pytest.mark.parametrize("before", ["", "\\", "\\\\", "\\\\\\", "`a\\`", "\\`", "`a` \\"])
def test_no_backslash_brings_a_link_to_life(before: str) -> None:
    text = f"{before}[x](//evil.example) \\"
    found = MarkdownIt("commonmark").parse(f"- {ours(text)}[ours](//good.example)")
    links = [child.attrs["href"] for token in found for child in token.children or () if child.type == "link_open"]
    assert links == ["//good.example"]
