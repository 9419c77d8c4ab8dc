"""The page of a fleet, as markdown and as HTML: complete, bounded, and made of nobody's mark-up."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

from markdown_it import MarkdownIt

from ralph_mission.adapters.report import to_document
from ralph_mission.adapters.report.fleet import LONGEST, fleet_page
from ralph_mission.adapters.report.fleet_page import page
from ralph_mission.mission.fleet.plan import FleetAsk, FleetOverview, FleetResult, FleetRow, FleetStanding
from ralph_mission.mission.model.mission import Acceptance
from tests.helpers import NOON

HOSTILE = "`|</td><script>alert(1)</script> [x](https://evil.example) @mara closes #7 ![](//evil.example/a.png)"
ROWS = (
    FleetRow("harbour/old", FleetStanding.FAILING, "it is archived"),
    FleetRow(
        "harbour/quay",
        FleetStanding.LATE,
        next_due_at=NOON,
        late=timedelta(hours=3),
        missions=2,
        waiting=2,
        due=True,
    ),
    FleetRow("harbour/pier", FleetStanding.ON_TIME, next_due_at=NOON + timedelta(hours=6), done=1, spent_usd=1.5),
)
ASKS = (
    FleetAsk("mara", "harbour/quay", "review", "Fix 4 dead links", 8, True),
    FleetAsk("", "harbour/quay", "answer", "Update next", 9),
)
RESULTS = (FleetResult("2026-03-01", "harbour/pier", "Correct 3 misspellings", "merged"),)
FLEET = FleetOverview(NOON, ROWS, ASKS, RESULTS, {"spelling": Acceptance(6, 2)}, 20.0, "https://github.com")


def hostile() -> FleetOverview:
    row = FleetRow(HOSTILE, FleetStanding.FAILING, HOSTILE)
    asks = (FleetAsk(HOSTILE, HOSTILE, "review", HOSTILE, 1, True),)
    return FleetOverview(
        NOON, (row,), asks, (FleetResult(HOSTILE, HOSTILE, HOSTILE, HOSTILE),), {HOSTILE: Acceptance(1)}
    )


def test_the_issue_tells_who_waits_who_fails_and_where_each_stands() -> None:
    text = fleet_page(FLEET)
    assert text.startswith(
        "3 repositories: 1 due, 1 of them late; 1 failing. 2 things waiting for people; $1.50 of $20.00 spent today.\n"
    )
    assert "- **`mara`** (1)\n  - [`harbour/quay`](https://github.com/harbour/quay): review `Fix 4 dead links`" in text
    assert "[#8](https://github.com/harbour/quay/issues/8)" in text
    assert "- [`harbour/old`](https://github.com/harbour/old): `it is archived`" in text
    assert "| [`harbour/quay`](https://github.com/harbour/quay) | late | 3 h late | 2 | 2 |  |  |" in text
    assert text.count("\n| ") == 1 + len(ROWS)


def test_the_page_says_the_same() -> None:
    told = unescape(re.sub(r"<[^>]+>", " ", page(FLEET)))
    for word in (
        "mara 1",
        "Review: Fix 4 dead links",
        "it is archived",
        "3 h late",
        "Spent today, of $20 $1.50",
        "misspellings 6 2",
    ):
        assert word in " ".join(told.split())


def test_nobodys_words_are_mark_up() -> None:
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(fleet_page(hostile()))
    outside = re.sub(r"<code>.*?</code>", "", rendered, flags=re.DOTALL)
    for sign in ("<script", "evil.example", "mara", "#7", "<img"):
        assert sign not in outside
    html = page(hostile())
    assert "<script" not in html
    assert "evil.example</a>" not in html
    assert "<img" not in html


def test_where_nothing_has_an_address_it_is_said_what_to_type() -> None:
    local = FleetOverview(NOON, ROWS, (FleetAsk("", "./my site", "review", "Fix", 8, True),), ())
    for text in (fleet_page(local), unescape(page(local))):
        assert "ralph pr show 8 --repo './my site'" in text
        assert "https://" not in text


def test_a_thousand_repositories_fit_into_an_issue() -> None:
    rows = tuple(FleetRow(f"harbour/{'long-name' * 8}-{n}", FleetStanding.ON_TIME) for n in range(1000))
    asks = tuple(FleetAsk(f"person{n % 300}", "harbour/quay", "review", "A title " * 20, n) for n in range(3000))
    text = fleet_page(FleetOverview(NOON, rows, asks, RESULTS * 300, server="https://github.com"))
    assert len(text) <= 65_536
    assert len(text) + 500 > LONGEST
    assert re.search(r"^And \d+ more repositories\.$", text, re.MULTILINE)
    assert re.search(r"^- and \d+ more lines$", text, re.MULTILINE)


def test_an_empty_fleet_has_a_page() -> None:
    empty = FleetOverview(NOON, (), (), ())
    assert "0 repositories" in fleet_page(empty)
    assert "Ralph looks after 0 repositories" in page(empty)
    assert to_document(FLEET)["rows"][1]["standing"] == "late"
