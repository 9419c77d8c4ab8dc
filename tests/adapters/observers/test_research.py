"""Research of a brief: what a model says is kept where its source says it, and the web is asked by code alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import briefs, research
from ralph_mission.adapters.observers.research import Researcher
from ralph_mission.app.ports import ProgressObserver
from ralph_mission.errors import UserError
from ralph_mission.loop.rules.verdicts import UnclearVerdict
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation, Usage
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import AgentQuestion, PaidObserver
from ralph_mission.mission.proposals.analysis import quote_line
from tests.helpers import make_repo

NOW = datetime(2026, 11, 26, 9, tzinfo=UTC)
SOURCE, OTHER = "https://tides.example.org/api", "https://tides.example.org/v2"
PAGE = f"Tide API\nThe endpoint /v1/tides  is deprecated\nand will be shut down on 2027-03-01. See {OTHER}."
QUOTE = "The endpoint /v1/tides is deprecated and will be shut down on 2027-03-01."
BRIEF = (
    f"---\ntitle: The tide API\nkind: integration\nsources: ['{SOURCE}']\ndone_when: it is said\n---\nWhat changes?\n"
)
GOOD = {"heading": "The end of v1", "text": "Version 1 goes on 2027-03-01.", "source": SOURCE, "quote": QUOTE}


@dataclass
class Web:
    """`Pages` of the test's; an address that it does not know is not there."""

    pages: dict[str, str] = field(default_factory=lambda: {SOURCE: PAGE, OTHER: "Version 2 takes a key in a header."})
    searches: bool = False
    asked: list[str] = field(default_factory=list)

    def fetch(self, address: str) -> str:
        self.asked.append(address)
        if address not in self.pages:
            raise UserError("it answers with status 404", "look again")
        return self.pages[address]

    def search(self, words: str) -> str:
        self.asked.append(f"search {words}")
        return f"Version 2 of the tide API\n{OTHER}"


@dataclass
class Agent:
    """`AskAgent`: one answer for each question."""

    answers: Sequence[Any]
    prompts: list[str] = field(default_factory=list)
    hats: list[str] = field(default_factory=list)

    def __call__(self, question: AgentQuestion, parse: Any) -> Any:
        self.prompts.append(question.prompt(""))
        self.hats.append(question.hat.name)
        try:
            return parse(json.dumps(self.answers[len(self.prompts) - 1])), "", Usage(1, cost_usd=0.1)
        except UnclearVerdict as unclear:
            return None, str(unclear), Usage(1, cost_usd=0.1)


def sections(*rows: dict[str, str]) -> dict[str, Any]:
    return {"sections": list(rows)}


def made(web: Web, *answers: Any, networks: tuple[str, ...] = ()) -> research.Research:
    return Researcher(Agent(answers)).research("What changes?", (SOURCE,), networks, web, "a" * 40, 1.0)


def test_a_section_is_kept_when_its_source_asked_anew_says_it() -> None:
    web = Web()
    found = made(web, sections(GOOD))
    assert [one.heading for one in found.sections] == ["The end of v1"] and web.asked == [SOURCE, SOURCE]
    assert (found.dropped, found.usage) == (0, Usage(1, cost_usd=0.1))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"quote": QUOTE.replace("deprecated", "removed")}, "its quote is not in the source"),
        ({"quote": "is deprecated"}, "its quote is too short or too long"),
        ({"source": "https://elsewhere.example.org"}, "its source was not read"),
        ({"text": "Version 1 goes on 2028-03-01."}, "2028-03-01 is not in the source"),
        ({"text": " "}, "it says nothing"),
    ],
)
def test_a_section_that_its_source_does_not_show_is_dropped(changes: dict[str, str], why: str) -> None:
    found = made(Web(), sections(GOOD, GOOD | changes))
    assert len(found.sections) == 1 and found.dropped == 1 and why in found.why


def test_a_page_that_says_something_else_the_second_time_shows_nothing() -> None:
    class Fickle(Web):
        def fetch(self, address: str) -> str:
            first = not self.asked
            super().fetch(address)
            return PAGE if first else "Nothing here."

    assert made(Fickle(), sections(GOOD)).sections == ()


def test_a_researcher_reads_on_by_addresses_that_it_was_shown_alone() -> None:
    web, quoted = Web(), GOOD | {"source": OTHER, "quote": "Version 2 takes a key in a header.", "text": "A key."}
    assert len(made(web, {"fetch": [OTHER]}, sections(quoted)).sections) == 1
    assert web.asked == [SOURCE, OTHER, OTHER]
    leak = made(Web(), {"fetch": [f"{OTHER}?stolen=key"]})
    assert leak.sections == () and "stands in nothing that was shown" in leak.why


def test_a_search_is_asked_where_there_is_one_and_rounds_end() -> None:
    web = Web(searches=True)
    assert made(web, {"search": "tide api v2"}, {"fetch": [OTHER]}, sections(GOOD)).sections
    assert web.asked == [SOURCE, "search tide api v2", OTHER, SOURCE]
    assert "sections" in made(web, {"search": "a"}, {"search": "b"}, {"search": "c"}).why


def test_a_text_is_written_of_what_was_found_alone() -> None:
    text = "Version 1 goes on 2027-03-01."
    ours = {"texts": [{"network": "telegram", "text": text}]}
    assert made(Web(), sections(GOOD), ours, networks=("telegram",)).text == text
    invented = {"texts": [{"network": "telegram", "text": "Version 1 goes in May."}]}
    lost = made(Web(), sections(GOOD), invented, networks=("telegram",))
    assert lost.text == "" and "no text was kept: it says “May”" in lost.why


# --- in a look ------------------------------------------------------------------------


def look(repo: Path, agent: Agent | None, cursor: str = "", usd: float = 1.0) -> Observation:
    git = Git.open(repo)
    make = (lambda: Researcher(agent)) if agent else None
    context = ObservationContext(Branch("main", git.resolve("HEAD")), NOW, None, cursor, str(repo), usd)
    return briefs.BriefObserver(git, repo / ".ralph/cache", make).observe(context)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(research, "GuardedPages", lambda *_: Web())
    return make_repo(tmp_path / "repo", {"missions/tides.md": BRIEF})


def test_what_was_found_stands_in_the_finding_and_is_found_once(repo: Path) -> None:
    agent = Agent([sections(GOOD)])
    first = look(repo, agent)
    (told,) = first.signals
    assert "The end of v1: Version 1 goes on 2027-03-01." in told.detail and told.kind == "integration"
    assert quote_line("", told.quotes[1]) == f"<{SOURCE}>: `{QUOTE}`"
    second = look(repo, agent, first.cursor)
    assert second.signals == first.signals and len(agent.prompts) == 1 and second.usage == Usage()


def test_money_is_set_aside_while_a_brief_is_to_be_researched(repo: Path) -> None:
    git, agent = Git.open(repo), Agent([sections(GOOD)])
    context = ObservationContext(Branch("main", git.resolve("HEAD")), NOW, None, "", str(repo), 1.0)
    observer = ProgressObserver(briefs.BriefObserver(git, repo / ".ralph/cache", lambda: Researcher(agent)))
    assert isinstance(observer, PaidObserver) and observer.asks(context)
    assert not observer.asks(replace(context, cursor=observer.observe(context).cursor))
    assert not ProgressObserver(briefs.BriefObserver(git)).asks(context)


def test_nothing_is_found_out_for_a_brief_that_is_under_way(repo: Path) -> None:
    git, agent = Git.open(repo), Agent([])
    context = ObservationContext(Branch("main", git.resolve("HEAD")), NOW, None, "", str(repo), 1.0)
    (plain,) = identify(briefs.BriefObserver(git).observe(context).signals)
    observer = briefs.BriefObserver(git, repo / ".ralph/cache", lambda: Researcher(agent), lambda: {plain.fingerprint})
    assert not observer.asks(context) and observer.observe(context).signals == (plain.signal,) and not agent.prompts


def test_a_brief_waits_for_its_research_and_is_told_without_it_in_the_end(repo: Path) -> None:
    seen = look(repo, Agent([]), usd=0.0)
    assert (seen.signals, seen.complete) == ((), False) and "waits for money" in seen.detail
    for _ in range(2):
        seen = look(repo, Agent([]), seen.cursor, usd=0.0)
    (told,) = seen.signals
    assert seen.complete and "What its sources say" not in told.detail and told.detail.startswith("What changes?")


def test_without_an_agent_a_brief_is_told_as_it_stands(repo: Path) -> None:
    (told,) = look(repo, None).signals
    assert told.detail.startswith("What changes?\n\nSources:") and "What its sources say" not in told.detail


# --- without a model ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "place"),
    [
        ("The endpoint /v1/tides is deprecated and goes in May.", "/v1/tides"),
        ("https://api.tides.example.org/v1 will be shut down.", "https://api.tides.example.org/v1"),
        ("The API /api/v2/orders is no longer supported.", "/api/v2/orders"),
        ("Read on.\n/v1 was sunset. Use /v2 then.", "/v1"),
    ],
)
def test_a_sentence_about_the_end_of_one_interface_is_found(page: str, place: str) -> None:
    assert [found for _, found in research.ended_places(page)] == [place]


@pytest.mark.parametrize(
    "page",
    [
        "The endpoint /v1/tides is not deprecated.",
        "/v1 is deprecated: use /v2/tides.",
        "The endpoint /v1/tides is new.",
        "Everything is deprecated.",
        "It isn't retired: /v1/tides.",
        "/v1/tides " + "is deprecated and " * 40,
    ],
)
def test_a_sentence_that_may_mean_something_else_is_left_alone(page: str) -> None:
    assert list(research.ended_places(page)) == []


def test_what_a_source_ends_and_the_code_uses_is_told_without_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web({SOURCE: PAGE})
    monkeypatch.setattr(research, "GuardedPages", lambda *_: web)
    code = "import http\nURL = 'https://tides.example.org' + '/v1/tides'\nOTHER = '/v1/tides-old'\n"
    files = {"missions/tides.md": BRIEF, "src/tides.py": code, "docs/a.py": code, "tests/test_a.py": code}
    repo = make_repo(tmp_path / "repo", files)
    first = look(repo, None)
    (told,) = first.signals
    assert [(one.url, one.path, one.line) for one in told.quotes[1:]] == [(SOURCE, "", 0), ("", "src/tides.py", 2)]
    assert told.quotes[1].text == "The endpoint /v1/tides is deprecated"
    assert look(repo, None, first.cursor).signals == first.signals and web.asked == [SOURCE]
