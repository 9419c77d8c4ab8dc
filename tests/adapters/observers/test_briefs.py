"""Standing briefs and texts: due by the day and the file alone, and nobody else's pages taken for them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.briefs import BriefObserver, period_of
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from tests.helpers import git, make_repo

THURSDAY = datetime(2026, 11, 26, 9, tzinfo=UTC)
BRIEF = """---
title: Compare our tide tables with the harbour's
every: 7d
kind: integration
sources: ['https://harbour.example.org/tides']
networks: [telegram]
done_when: docs/tides.md names every difference
---
Read the table of this week, and list what differs.
"""
TEXT = "---\ntitle: Twelve harbours\nnetworks: [twitter]\n---\nThe tide table holds 12 harbours now.\n"


def look(folder: Path, files: dict[str, str], now: datetime = THURSDAY) -> Observation:
    repo = make_repo(folder, files)
    opened = Git.open(repo)
    return BriefObserver(opened).observe(
        ObservationContext(Branch("main", opened.resolve("HEAD")), now, None, "", str(repo))
    )


def test_a_brief_is_told_once_in_each_period_and_is_the_same_thing_in_all(tmp_path: Path) -> None:
    (this,) = look(tmp_path / "a", {"missions/tides.md": BRIEF}).signals
    (later,) = look(tmp_path / "b", {"missions/tides.md": BRIEF}, THURSDAY + timedelta(days=3)).signals
    edited = BRIEF.replace("of this week", "of the week")
    (following,) = look(tmp_path / "c", {"missions/tides.md": edited}, THURSDAY + timedelta(days=4)).signals
    assert (this.kind, this.title, this.path) == (
        "integration", "Compare our tide tables with the harbour's", "missions/tides.md")  # fmt: skip  # one identity
    assert [one.occurrence for one in (this, later, following)] == ["2026-11-23", "2026-11-23", "2026-11-30"]
    assert len({one.fingerprint for told in (this, later, following) for one in identify((told,))}) == 1


def test_what_is_to_be_done_holds_sources_the_end_and_where_a_text_goes(tmp_path: Path) -> None:
    (told,) = look(tmp_path / "repo", {"missions/tides.md": BRIEF}).signals
    assert told.detail.splitlines() == [
        "Read the table of this week, and list what differs.",
        "",
        "Sources:",
        "- https://harbour.example.org/tides",
        "",
        "Done when:",
        "- docs/tides.md names every difference",
        "",
        "Write the text to be published into content/tides-2026-11-23.md, below front matter with title: and networks: "
        "[telegram]. A person reads it before it goes out.",
    ]


def test_a_text_that_changed_is_another_thing(tmp_path: Path) -> None:
    (told,) = look(tmp_path / "a", {"content/twelve.md": TEXT}).signals
    (same,) = look(tmp_path / "b", {"content/twelve.md": TEXT.replace("Twelve", "A dozen")}).signals
    (other,) = look(tmp_path / "c", {"content/twelve.md": TEXT.replace("12", "13")}).signals
    assert (told.kind, told.detail, told.facts) == (
        "content", "The tide table holds 12 harbours now.", (("network", "twitter"),))  # fmt: skip  # one identity
    assert told.essence == same.essence != other.essence


@pytest.mark.parametrize(
    ("every", "after", "now", "period"),
    [
        (None, None, THURSDAY, ""),
        (None, date(2026, 11, 27), THURSDAY, None),
        (None, date(2026, 11, 26), THURSDAY, ""),
        (1, None, THURSDAY, "2026-11-26"),
        (7, None, THURSDAY, "2026-11-23"),
        (7, date(2026, 11, 12), THURSDAY, "2026-11-26"),
        (7, date(2026, 11, 13), THURSDAY, "2026-11-20"),
        (7, date(2026, 12, 1), THURSDAY, None),
    ],
)
def test_periods_are_counted_from_a_named_day_or_a_monday(
    every: int | None, after: date | None, now: datetime, period: str | None
) -> None:
    assert period_of(now, timedelta(days=every) if every else None, after) == period


PAGES = {
    "missions/README.md": "# Missions\n\nevery: 7d\n",
    "missions/level-1.md": "---\ntitle: Rescue the cat\nreward: 40\n---\nGo north.\n",
    "content/about.md": "---\ntitle: About\ndate: 2020-01-01\n---\nWe are networks: people.\n",
    "content/posts/deep.md": TEXT,
    "docs/missions/tides.md": BRIEF,
    "missions/tides.txt": BRIEF,
}


def test_pages_of_others_are_left_alone(tmp_path: Path) -> None:
    told = look(tmp_path / "repo", PAGES)
    assert (told.status, told.signals, told.detail) == ("ok", (), "none")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("every: 7d", "evry: 7d"), "missions/tides.md line 3: unknown key evry"),
        (("every: 7d", "every: 12h"), "missions/tides.md line 3: every is '12h'; "),
        (("every: 7d", "every: often"), "missions/tides.md line 3: every is 'often'; write a duration"),
        (("kind: integration", "kind: content"), "missions/tides.md line 4: kind is 'content'"),
        (("https://", "file://"), "missions/tides.md line 5: sources"),
        (("done_when: docs", "done_when: [docs"), "missions/tides.md line "),
        (("Read the table of this week, and list what differs.", ""), "it has no text; write one of at most 4,000"),
    ],
)
def test_a_brief_that_cannot_be_read_is_a_line_in_the_report_and_holds_up_no_other(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    told = look(tmp_path / "repo", {"missions/tides.md": BRIEF.replace(*change), "content/twelve.md": TEXT})
    assert [signal.path for signal in told.signals] == ["content/twelve.md"]
    assert not told.complete  # so that nobody takes what it asks for to be done
    assert told.status == "ok" and said in told.detail and "\n" not in told.detail, told.detail


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"elsewhere.md": BRIEF})
    (repo / "missions").mkdir()
    (repo / "missions" / "tides.md").symlink_to("../elsewhere.md")
    git(repo, "add", "-A")
    git(repo, "-c", "user.name=Mara", "-c", "user.email=mara@x", "commit", "-q", "-m", "link")
    opened = Git.open(repo)
    head = Branch("main", opened.resolve("HEAD"))
    assert BriefObserver(opened).observe(ObservationContext(head, THURSDAY, None, "", str(repo))).signals == ()
