"""Watches as people write them: exact numbers, one kind each, errors that name the watch."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from ralph_mission.config.database import DatabaseSettings, DatabaseWatch

APR = {"name": "apr", "model": "Apr", "value": "value", "by": "chainId", "at": "createdAt"}


def refusal(**changed):
    with pytest.raises(ValidationError) as caught:
        DatabaseSettings.model_validate({"watches": [{**APR, **changed}]})
    return caught.value.errors()[0]["msg"]


def test_the_documented_watches_are_read():
    made = DatabaseSettings.model_validate(
        {
            "prisma_schema": "prisma/schema.prisma",
            "watches": [
                {**APR, "change": {"over": "30%", "within": "24h"}, "include": ["chain.name"], "kind": "anomaly"},
                {"name": "new", "model": "Validator", "new_since": "id", "kind": "content"},
                {"name": "top", "model": "ChainParams", "top": {"order_by": "apr", "take": 5}, "kind": "content"},
                {"name": "live", "model": "Proposal", "where": {"status": "VOTING_PERIOD"}, "new_since": "id"},
                {"name": "feed", "model": "app.prices", "at": "at", "missing": "2h"},
                {
                    "name": "votes",
                    "model": "Proposal",
                    "value": "count(votes)",
                    "change": {"over": "10%", "within": "1h"},
                },
                {"name": "odd", "model": "Flags", "where": {"on": True, "rate": 0.1, "kind": ["a", None]}},
            ],
        }
    )
    assert [watch.sort for watch in made.watches] == [
        *("change", "new_since", "top", "new_since", "missing", "change", "where")
    ]
    assert made.watches[0].change.over == 30
    assert made.watches[-1].where == {"on": True, "rate": Decimal("0.1"), "kind": ("a", None)}


@pytest.mark.parametrize("written", [30, "30", "-3%", "30 percent", True, "nan%", None])
def test_a_percentage_is_written_as_one(written):
    assert "watch apr: change.over: a percentage looks like 30%" in refusal(change={"over": written, "within": "1d"})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"chnage": {}}, "watch apr: unknown key chnage; did you mean change?"),
        ({"change": {"ovr": "3%", "within": "1d"}}, "watch apr: unknown key change.ovr; did you mean over?"),
        ({"threshold": {"above": "much"}}, "watch apr: threshold.above: write a number"),
        ({"threshold": {}}, "a threshold needs above, below or both"),
        ({"threshold": {"above": 1, "below": 2}}, "every value would be reported"),
        ({}, "it has a value: add one of change, threshold, outlier"),
        ({"threshold": {"above": 1}, "missing": "1d"}, "one kind of watch, not threshold and missing"),
        ({"model": None, "threshold": {"above": 1}}, "name a model, a table or its own SQL"),
        ({"value": None, "threshold": {"above": 1}}, "threshold needs a value"),
        ({"at": None, "value": None, "missing": "1d"}, "missing needs at"),
        ({"new_since": "id"}, "new_since has no value"),
        ({"value": "sum(votes)", "by": None, "threshold": {"above": 1}}, "such as delegations.amount"),
        ({"value": "count(votes)", "threshold": {"above": 1}}, "leave by out"),
        ({"value": "a; drop table", "threshold": {"above": 1}}, "watch apr: value: a name has no quotation marks"),
        ({"kind": "Odd One", "threshold": {"above": 1}}, "watch apr: kind: String should match pattern '^[a-z]"),
        ({"model": "query apr", "threshold": {"above": 1}}, "is kept for SQL of your own"),
    ],
)
def test_a_refusal_names_the_watch_and_what_to_write(changed, said):
    assert said in refusal(**changed)


def test_names_are_distinct_and_prisma_needs_a_schema():
    watch = {**APR, "threshold": {"above": 1}}
    with pytest.raises(ValidationError, match="a name of its own"):
        DatabaseSettings.model_validate({"watches": [watch, watch]})
    with pytest.raises(ValidationError, match="needs prisma_schema"):
        DatabaseSettings.model_validate({"backend": "prisma"})


def test_numbers_are_kept_as_written():
    assert DatabaseWatch.model_validate({**APR, "threshold": {"above": 0.1}}).threshold.above == Decimal("0.1")


def test_names_may_have_spaces_and_capitals():
    told = {"model": "App.Odd Table", "value": "The Größe", "where": {"Is On": True}, "include": ["a b.c d"]}
    watch = DatabaseWatch.model_validate({"name": "apr", **told, "threshold": {"above": 1}})
    assert (watch.source, watch.value, watch.include) == ("App.Odd Table", "The Größe", ("a b.c d",))


@pytest.mark.parametrize(
    ("older", "now"),
    [
        ({"table": "app.prices", "where": {"a": 1}}, {"model": "app.prices", "where": {"a": 1}}),
        ({"model": "Proposal", "count": "votes"}, {"model": "Proposal", "value": "count(votes)"}),
        ({"model": "Proposal", "sum": "votes.power"}, {"model": "Proposal", "value": "sum(votes.power)"}),
        (
            {"model": "Apr", "top": {"order_by": "apr", "order": "asc"}},
            {"model": "Apr", "top": {"order_by": "apr asc"}},
        ),
    ],
)
def test_older_spellings_mean_the_same(older, now):
    kind = {} if "top" in older or "where" in older else {"threshold": {"above": 1}}
    read = [DatabaseWatch.model_validate({"name": "w", **kind, **keys}) for keys in (older, now)]
    assert read[0] == read[1]


def test_rows_may_be_ordered_from_either_end():
    first, last = (
        DatabaseWatch.model_validate({"name": "w", "model": "Apr", "top": {"order_by": order}}).top
        for order in ("apr", "apr asc")
    )
    assert (first.field, first.is_descending) == ("apr", True)
    assert (last.field, last.is_descending) == ("apr", False)
