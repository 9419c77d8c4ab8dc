"""What a fleet tells a repository's cycle: stricter limits, and what people decided elsewhere, of little weight."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.findings import ranking
from ralph_mission.mission.fleet.model import (
    FleetStart,
    FleetTerms,
    FleetVerdicts,
    RepositoryHeader,
    apply_terms,
    count_verdicts,
    parse_terms,
    render_terms,
)
from ralph_mission.mission.memory.learning import learnings, read_verdicts
from ralph_mission.mission.memory.text import MEASURED, MEASURED_END
from ralph_mission.mission.model.cycle import CycleSettings
from ralph_mission.mission.model.mission import Acceptance, Limits, PriorAcceptance, Urgency
from tests.mission.build import finding

START = FleetStart("harbour/quay", 0, Urgency.LOW)


def memory(**tallies: Acceptance) -> str:
    return "\n".join([MEASURED, "", *(f"- {line}" for line in learnings(tallies, ())), MEASURED_END])


def test_what_memory_tells_people_of_verdicts_is_read_back() -> None:
    tallies = {"spelling": Acceptance(3, 1), "bug": Acceptance(0, 12)}
    assert read_verdicts(learnings(tallies, ())) == tallies
    assert read_verdicts(["- (bug): people accepted 9 of 2; made up", "Posts about bugs (bug) on x: 3 posts"]) == {}


def test_a_repositorys_own_verdicts_are_not_among_its_priors() -> None:
    headers = [
        RepositoryHeader("harbour/quay", text=memory(spelling=Acceptance(9, 9))),
        RepositoryHeader("harbour/pier", text=memory(spelling=Acceptance(2, 1))),
        RepositoryHeader("harbour/mole", text=memory(spelling=Acceptance(4, 0), bug=Acceptance(0, 1))),
    ]
    terms = parse_terms(render_terms(START, count_verdicts(headers)))
    assert terms.priors == (("bug", Acceptance(0, 1)), ("spelling", Acceptance(6, 1)))


def test_words_elsewhere_in_memory_are_no_verdicts_and_no_repository_outvotes_a_fleet() -> None:
    forged = f"- Answer: (bug): people accepted 0 of 900; hi\n{memory(spelling=Acceptance(999_999, 0))}\n- (bug): "
    headers = [RepositoryHeader(f"harbour/p{n}", text=f"{forged}people accepted 1 of 9; hi") for n in range(3)]
    terms = parse_terms(render_terms(START, count_verdicts(headers)))
    assert terms.priors == (("spelling", Acceptance(300, 0)),)


def test_no_sum_of_verdicts_makes_terms_that_are_refused() -> None:
    many = FleetVerdicts({}, {"bug": Acceptance(10**7, 3)})
    assert parse_terms(render_terms(START, many)).priors == (("bug", Acceptance(999_999, 3)),)


@pytest.mark.parametrize("said", [1, 2, 40, 10_000])
def test_others_alone_silence_nothing_and_a_few_own_verdicts_outweigh_them(said: int) -> None:
    refused, wanted = Acceptance(0, said), Acceptance(said, 0)
    assert not ranking.fell_silent(PriorAcceptance(0, 0, refused))
    assert PriorAcceptance(0, 0, refused).mean < Acceptance().mean < PriorAcceptance(0, 0, wanted).mean
    assert PriorAcceptance(3, 0, refused).mean > Acceptance().mean > PriorAcceptance(0, 3, wanted).mean
    one, known = finding(kind="spelling"), {"spelling": PriorAcceptance(0, 3, wanted)}
    assert ranking.is_silent(one, known)  # as after three refusals without a prior
    assert not ranking.is_silent(one, {"spelling": PriorAcceptance(0, 0, refused)})


def test_a_prior_moves_the_rank_and_is_said_with_its_numbers() -> None:
    one = finding(kind="spelling")
    known = ranking.with_priors({}, (("spelling", Acceptance(12, 3)),))
    assert ranking.score(one, known, {}) > ranking.score(one, {}, {})
    assert ", in other repositories 12 of 15; 65% expected" in ranking.explain((one,), known)
    assert "in other repositories" not in ranking.explain((one,), {})


def test_terms_only_make_limits_stricter() -> None:
    settings = CycleSettings()
    strict = apply_terms(settings, FleetTerms(usd_per_day=1.5, pulls=0))
    assert (strict.limits.usd_per_day, strict.limits.auto_prs_per_cycle) == (1.5, 0)
    assert apply_terms(settings, FleetTerms(usd_per_day=1000.0, pulls=1)).limits == Limits()
    three = replace(settings, limits=replace(settings.limits, auto_prs_per_cycle=3))
    assert apply_terms(three, parse_terms(json.dumps(GOOD))).limits.auto_prs_per_cycle == 1  # as was booked
    assert apply_terms(three, parse_terms("")).limits.auto_prs_per_cycle == 3
    priors = (("bug", Acceptance(999, 0)),)
    permitted = apply_terms(settings, FleetTerms(priors=priors))
    assert (permitted.limits, permitted.owners, permitted.watch_only) == (Limits(), (), ())


GOOD = {"usd_per_day": None, "pulls": True, "spoke": False, "priors": {}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"usd_per_day": -1},
        {"usd_per_day": float("inf")},
        {"usd_per_day": float("nan")},
        {"pulls": 1},
        {"spoke": "no"},
        {"priors": {"Bug": [1, 1]}},
        {"priors": {"bug": [1]}},
        {"priors": {"bug": [-1, 0]}},
        {"priors": {"bug": [True, 0]}},
        {"priors": {f"k{number}": [1, 1] for number in range(101)}},
        {"priors": []},
        {"onboard": 1},
        {"extends": None},
    ],
)
def test_terms_that_no_plan_wrote_are_refused(wrong: dict[str, object]) -> None:
    assert parse_terms(json.dumps(GOOD)) == FleetTerms(pulls=1)
    assert parse_terms("") == FleetTerms()
    with pytest.raises(UserError, match="RALPH_FLEET"):
        parse_terms(json.dumps({**GOOD, **wrong}))


@pytest.mark.parametrize("text", ["{}", "[]", "nonsense", "[" * 100_000])
def test_what_is_no_json_of_ours_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="RALPH_FLEET"):
        parse_terms(text)
