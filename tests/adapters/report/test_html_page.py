"""The parts of our HTML pages: what comes from elsewhere never becomes mark-up, and a page loads nothing."""

from __future__ import annotations

from datetime import UTC, datetime

from ralph_mission.adapters.report import html_page
from ralph_mission.adapters.report.html_page import ChartColumn

EVIL = "<script>alert('x')</script>\x1b[31m\u202e"


def test_text_is_escaped_wherever_it_is_put_in() -> None:
    every = html_page.document(
        EVIL,
        html_page.section(EVIL, EVIL, id=EVIL),
        html_page.figures([(EVIL, EVIL)]),
        html_page.table((EVIL,), [(EVIL,)], name=EVIL),
        html_page.column_chart([ChartColumn(EVIL, (("good", 1),))], (EVIL, EVIL), EVIL, EVIL),
        html_page.legend([("good", EVIL)], EVIL, EVIL),
        html_page.link(EVIL, "https://example.org/" + EVIL),
    )
    assert "<script" not in every and "\x1b" not in every and "\u202e" not in every
    assert every.count("&lt;script&gt;") == 19


def test_only_addresses_of_the_web_become_links() -> None:
    assert html_page.link("x", "javascript:alert(1)") == "x"
    assert html_page.link("x", "https://example.org") == '<a href="https://example.org">x</a>'


def test_a_page_may_load_and_run_nothing() -> None:
    page = html_page.document("Title", html_page.section("Part", "text"))
    assert 'content="default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;"' in page
    assert '<html lang="en">' in page and '<main class="page">' in page


def test_a_chart_is_as_high_as_its_highest_column() -> None:
    chart = html_page.column_chart(
        [ChartColumn("a", (("good", 2), ("warn", 2))), ChartColumn("b", (("good", 1),))], ("then", "now"), "both"
    )
    assert chart.count("<rect") == 3 and 'height="55.0"' in chart and 'height="27.5"' in chart
    assert 'aria-label="both"' in chart


def test_what_stands_between_back_ticks_of_a_title_is_code() -> None:
    assert html_page.titled("`a<b` is unset") == "<code>a&lt;b</code> is unset"
    assert html_page.titled("one ` alone") == "one ` alone"


def test_a_moment_is_told_in_utc() -> None:
    at = html_page.moment(datetime(2026, 1, 31, 12, tzinfo=UTC))
    assert at == '<time datetime="2026-01-31T12:00:00Z">2026-01-31 12:00</time>'
