"""A death at every call of every stage, and every fault at every sort of call: nothing twice, nothing lost, no cap
passed, and it comes to rest.

What the cycles after a struck one come to is compared with what would have come undisturbed. Of a kind of fault
`make crash` plays one case in each stage for each sort of call and phase of the transaction, at a call that chance
chooses by CRASH_SEED (0 unless it is set): where those are the same, so is the code that deals with it. `make test`
plays a few; whatever goes wrong is told with the command that plays it alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import pytest

from ralph_mission.mission.model.cycle import CycleSummary, EffectLine
from tests.crash.calls import Call
from tests.crash.cases import ALL, SEED, Case, End, Scene, Struck, scene, strike
from tests.crash.ends import lost
from tests.crash.fault_kinds import AFTER, ELSEWHERE, KILLS, KINDS, LISTED, REFUSED, Kind
from tests.crash.faults import Strike, death
from tests.crash.recoveries import Log
from tests.crash.stages import EVERY, Rest
from tests.fakes.github.nouns import Request
from tests.figures import Table, shown
from tests.helpers import git
from tests.integration.hub import Hub

DEATHS = ("crash before", "crash after response", "stale list")
GROUPS = {
    "lost answers": ("answer-lost", "garbage", "post-cut", "502-applied", "post-500-applied"),
    "no answer": ("timeout-applied", "timeout-not-applied", "post-timeout"),
    "server errors": ("500", "post-500"),
    "bad gateways": ("502-not-applied", "read-502"),
    "primary rate limits": ("rate-primary", "read-rate-primary"),
    "secondary rate limits": ("rate-secondary", "read-rate-secondary"),
    "too many requests": ("rate-429", "post-429"),
    "others in between": ("cas-person", "cas-runner", "cas-stranger", "cas-409", "elsewhere"),
    "no rights": ("401", "403", "404", "post-403"),
    "refusals": ("409", "422", "redirect", "reset-not-applied"),
}
"""Kinds of faults that are played together: about as many cases each, so that processes share the work."""
KILLED = (
    "a fix is opened",
    "an approved pull is merged",
    "an approved pull goes through the merge queue",
    "a pull to be changed is escalated",
    "a proposal is made",
    "an approved proposal is acted on",
    "a list is brought up to date",
)
DAILY = [
    ("crash-after", "POST /pulls"),
    ("crash-before", "POST /pulls"),
    ("502-applied", "POST /pulls"),
    ("rate-secondary", "POST /pulls"),
]


class Tables:
    """The same cases by scenario, by kind of fault, and by the way in which they went on."""

    def __init__(self) -> None:
        self.scenarios, self.kinds = Table("crashes by stage"), Table("crashes by kind of fault")
        self.paths = Table("recovery paths")

    def begin(self, on: Scene) -> None:
        """Of a stage that is played: at how many calls something may happen."""
        self.scenarios.count(_row(on), points=len(on.calls))

    def count(self, struck: Struck) -> None:
        case = struck.case
        self.scenarios.count(_row(struck.scene), **struck.figures)
        self.kinds.count(ALL[case.kind].of + ", by SIGKILL" * ALL[case.kind].instead, **struck.figures)
        for path, times in struck.end.log.taken.items():
            if times:
                self.paths.count(path, fired=times)


def _row(on: Scene) -> str:
    return f"{on.stage.scenario} ({on.name})"


@pytest.fixture(scope="module")
def tables(request) -> Iterator[Tables]:
    made = Tables()
    yield made
    for table in (made.scenarios, made.kinds, made.paths):
        shown(request.config, table)


def played(on: Scene, cases: Iterable[Case], tables: Tables) -> list[str]:
    """Play all of them; gives which went wrong."""
    wrong = []
    tables.begin(on)
    for case in cases:
        struck = strike(on, case)
        tables.count(struck)
        if struck.wrong:
            wrong.append(f"{struck.call}: {'; '.join(struck.wrong)}\n  {case.command}")
            print(wrong[-1], flush=True)  # the others take minutes
    return wrong


def represented(folder, names: Collection[str], kinds: Sequence[str], tables: Tables) -> None:
    """Play one case in each of these stages for each of these kinds, sort of call and phase."""
    draw, tried, wrong = Random(SEED), 0, []
    for name in draw.sample(sorted(names), len(names)):
        with scene(folder / name, name) as on:
            cases = on.representatives(kinds, draw)
            tried += len(cases)
            wrong += played(on, cases, tables)
    assert tried and wrong == [], "\n".join(wrong) or "no call was struck"


def of(group: Sequence[str]) -> list[str]:
    """The kinds of a group."""
    return [name for name, kind in KINDS.items() if kind.of in group]


@pytest.mark.long  # a sample of what `make crash` plays whole
def test_a_few_faults_of_a_fixs_life_end_as_if_nothing_had_happened(tmp_path, tables):
    with scene(tmp_path, "a fix is opened") as on:
        chosen = [
            case
            for kind, what in DAILY
            for case in on.cases([kind])
            if str(on.calls[case.at - 1]).endswith(what) and on.calls[case.at - 1].before == 0
        ]
        assert len(chosen) == len(DAILY)
        assert played(on, chosen, tables) == []


MADE = {"threads": {"issue-aa": ("x", False), "pull-bb": ("y", True)}, "comments": [], "posts": {"discord": ["out"]}}
GONE = {"threads": {}, "comments": [], "posts": {"discord": []}}


def refused(kind: str, stage: str = "a fix is opened", comments: Sequence[object] = (), **found: object) -> Struck:
    """One effect is refused with 403, and told; of what was to come there is nothing but what is `found`."""
    log = Log(reports=[(SimpleNamespace(effects=(EffectLine("bb", "open-fix", kind, "failed", ""),)), CycleSummary())])
    end = End(Rest(), GONE | found, [], [], [], log)
    call = Call(1, Request("POST", "/pulls", {}, below="/pulls"), 0)
    on = Scene(None, stage, None, [], MADE | {"comments": comments})
    return Struck(Case(on.name, "403", 1), call, on, True, end, False)


def test_what_is_gone_is_lost_but_for_what_itself_was_refused():
    struck = refused("open_pull")
    assert (struck.missing, struck.left) == (["aa", "discord: out"], ["bb"])
    assert (struck.figures["lost"], struck.figures["left_to_a_person"]) == (2, 1)
    assert "lost: ['aa', 'discord: out']" in struck.wrong


def test_there_is_nothing_to_announce_of_a_merge_that_was_refused_and_never_came():
    assert refused("merge_pull", threads=MADE["threads"] | {"pull-bb": ("y", False)}).left == ["discord: out"]
    assert refused("merge_pull", threads=MADE["threads"]).missing == ["discord: out"]


def test_there_is_nobody_to_answer_about_a_pull_that_was_refused_and_never_came():
    said = [("issue-aa", "**Rejected.**\n\n<!-- ralph:v1 key=00000000000000cc -->")]
    there = {"issue-aa": ("x", False)}
    struck = refused("open_pull", "a person closes every pull she sees", said, threads=there)
    assert struck.left == ["00000000000000cc", "bb"]
    struck = refused("open_pull", "a fix is opened", said, threads=there)
    assert struck.missing == ["00000000000000cc", "discord: out"]


def test_only_of_her_who_closes_each_pull_an_answer_follows_a_pull(monkeypatch):
    said = [("issue-aa", "**Rejected.**\n\n<!-- ralph:v1 key=00000000000000cc -->")]
    other = replace(EVERY["a person closes every pull she sees"], meanwhile=lambda hub: None)
    monkeypatch.setitem(EVERY, "a person does something else", other)
    struck = refused("open_pull", "a person does something else", said, threads={"issue-aa": ("x", False)})
    assert struck.missing == ["00000000000000cc", "discord: out"]


def test_a_comment_without_a_key_can_be_lost():
    said = [("issue-aa", "we said this, and its marker is gone")]
    assert lost(MADE | {"comments": said}, MADE) == ["issue-aa: we said this, and its marker is gone"]
    assert lost(MADE | {"comments": said}, MADE | {"comments": said}) == []
    struck = refused("open_pull", "a person closes every pull she sees", said, threads={"issue-aa": ("x", False)})
    assert struck.missing == ["discord: out", *lost(MADE | {"comments": said}, MADE)]


@contextmanager
def forging(hub: Hub, call: Call) -> Iterator[Strike]:
    """A death, and a forgery before anybody goes on."""
    with death("after")(hub, call) as found:
        yield found
    forged(hub)


def forged(hub: Hub) -> None:
    """Another case's hands: a merge that nobody approved, and a line of the journal that says something else now."""
    pull, path = hub.pulls[0], "ls-tree -r --name-only ralph-memory memory/journal"
    bot, below = hub.fake.bot(pull.author.login), f"/pulls/{pull.number}/merge"
    sha = hub.fake.branch(pull.pull.head)
    bot.merge(pull.number)
    hub.fake.journal.append(Request("PUT", below, {}, body={"sha": sha}, status=200, below=below))
    hub.fake.push("ralph-memory", {git(hub.fake.bare, *path.split()).splitlines()[0]: b"{}"})


@pytest.mark.long  # takes ten seconds
def test_a_case_looks_at_all_of_memory_and_at_what_stands_on_the_server(tmp_path, monkeypatch):
    monkeypatch.setitem(ALL, "crash-after", Kind(AFTER, ALL["crash-after"].at, forging))
    with scene(tmp_path, "a fix is opened") as on:
        struck = strike(on, on.cases(["crash-after"])[-1])
    assert any("journal" in wrong and "was altered" in wrong for wrong in struck.end.wrong)
    assert any("to which nobody had said yes" in breach for breach in struck.end.breaches)
    assert struck.figures["cap_breaches"] > 0


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("group", GROUPS)
def test_any_fault_at_any_sort_of_call_ends_as_if_nothing_had_happened(tmp_path, group, tables):
    represented(tmp_path, EVERY, GROUPS[group], tables)


@pytest.mark.crash  # takes minutes
def test_a_process_that_is_killed_at_any_sort_of_write_is_carried_on_by_the_next(tmp_path, tables):
    represented(tmp_path, KILLED, list(KILLS), tables)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", EVERY)
def test_a_death_at_any_call_ends_as_if_nothing_had_happened(tmp_path, name, tables):
    with scene(tmp_path, name) as on:
        wrong = played(on, on.cases(of(DEATHS)), tables)
    assert wrong == [], "\n".join(wrong)


def test_every_fault_of_the_list_is_played():
    assert {kind.of for kind in KINDS.values()} == {*LISTED, REFUSED, ELSEWHERE}
    assert sorted((*of(DEATHS), *(name for group in GROUPS.values() for name in group))) == sorted(KINDS)
