"""What every backend has to answer, whatever it is made of: questions and rows, planted in `world`."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from ralph_mission.adapters.database.model import Aggregate, Filter, Interest, Query, RowOrder
from tests.adapters.database.world import ONE, THREE, TWO

SMALLEST = Decimal("13.000000000000000000000000000001")
JUNE = datetime(2030, 6, 1, 11, tzinfo=UTC)
MAY = datetime(2030, 5, 30, 12, tzinfo=UTC)
BY_ID = (RowOrder("id"),)

QUESTIONS = {
    "numbers beyond 2^53 are exact": (
        Query("Chain", ("id", "supply"), order=(RowOrder("supply", True),)),
        [
            {"id": 11, "supply": 9223372036854775807},
            {"id": 7, "supply": 9007199254740993},
            {"id": 9, "supply": 5},
        ],
    ),
    "and are found by their value": (
        Query("Chain", ("id",), (Filter("supply", "=", 9007199254740993),)),
        [{"id": 7}],
    ),
    "floats are their shortest writing, unknown is unknown": (
        Query("Apr", ("id", "ratio"), order=BY_ID),
        [{"id": n, "ratio": r and Decimal(r)} for n, r in enumerate(("0.1", None, "1.5", "2.0", None), 1)],
    ),
    "times have a zone, those without one are UTC, days begin in UTC": (
        Query("Apr", ("createdAt", "localAt", "day"), (Filter("id", "=", 3),)),
        [
            {
                "createdAt": MAY,
                "localAt": datetime(2030, 5, 30, 0, 15, 0, 500_000, tzinfo=UTC),
                "day": datetime(2030, 5, 29, tzinfo=UTC),
            }
        ],
    ),
    "times compare as moments": (
        Query("Apr", ("id",), (Filter("createdAt", "<=", MAY), Filter("localAt", "<", MAY)), BY_ID),
        [{"id": 3}],
    ),
    "to the millisecond": (
        Query("Apr", ("id",), (Filter("createdAt", ">", JUNE),), BY_ID),
        [{"id": 4}],
    ),
    "enums have the schema's names": (
        Query("Proposal", ("key", "status", "open"), (Filter("status", "=", "VOTING_PERIOD"),), (RowOrder("key"),)),
        [
            {"key": ONE, "status": "VOTING_PERIOD", "open": True},
            {"key": TWO, "status": "VOTING_PERIOD", "open": False},
        ],
    ),
    "yes and no are values": (
        Query("Proposal", ("key",), (Filter("open", "=", False), Filter("chainId", "=", None))),
        [{"key": TWO}],
    ),
    "nobody is any of none": (Query("Tag", ("id",), (Filter("word", "in", ()),)), []),
    "nor neither yes nor no": (Query("Proposal", ("key",), (Filter("open", "in", ()),)), []),
    "nor nothing where there is always something": (Query("Tag", ("id",), (Filter("word", "=", None),)), []),
    "any of several, nothing among them": (
        Query("Proposal", ("key",), (Filter("chainId", "in", (9, None)),), (RowOrder("key"),)),
        [{"key": TWO}, {"key": THREE}],
    ),
    "json is sorted and without spaces": (
        Query("Proposal", ("meta",), order=(RowOrder("key"),)),
        [{"meta": '{"a":"ö \\" x","aa":{"c":true,"d":1},"b":[1,2.5,null]}'}, {"meta": None}, {"meta": '"text"'}],
    ),
    "related rows over two steps, none where there is none": (
        Query("Apr", ("id", "chain.name", "chain.parent.name"), (Filter("id", "in", (1, 4)),), BY_ID),
        [
            {"id": 1, "chain.name": "Cosmos Hub", "chain.parent.name": None},
            {"id": 4, "chain.name": "Osmosis", "chain.parent.name": "Cosmos Hub"},
        ],
    ),
    "texts are read as numbers, and others are none": (
        Query("Amount", ("id", "said"), order=BY_ID, read_as=(("said", "decimal"),)),
        [
            {"id": n, "said": said and Decimal(said)}
            for n, said in enumerate(("12345678901234567890.5", "1e3", None, None, None, "-7", None), 1)
        ],
    ),
    "and ordered as such": (
        Query("Amount", ("id",), (Filter("said", "known"),), (RowOrder("said", True),), read_as=(("said", "decimal"),)),
        [{"id": 1}, {"id": 2}, {"id": 6}],
    ),
    "texts are read as times, and compare as moments": (
        Query("Amount", ("id", "at"), (Filter("at", "<", JUNE),), BY_ID, read_as=(("at", "time"),)),
        [
            {"id": 2, "at": datetime(2030, 6, 1, 10, 45, tzinfo=UTC)},
            {"id": 6, "at": datetime(2028, 2, 29, tzinfo=UTC)},
            {"id": 7, "at": datetime(2030, 6, 1, 10, 59, 59, 500_000, tzinfo=UTC)},
        ],
    ),
    "texts are no code": (
        Query("Chain", ("name",), (Filter("name", "=", 'Ünïcode "quoted" $1 %s :id'),)),
        [{"name": 'Ünïcode "quoted" $1 %s :id'}],
    ),
    "nulls come last upwards": (
        Query("Apr", ("id",), order=(RowOrder("value"), RowOrder("id")), limit=5),
        [{"id": n} for n in (1, 2, 3, 4, 5)],
    ),
    "and downwards": (
        Query("Apr", ("id",), order=(RowOrder("value", True), RowOrder("id"))),
        [{"id": n} for n in (4, 3, 2, 1, 5)],
    ),
    "what is known": (
        Query("Apr", ("id",), (Filter("value", "known"),), BY_ID, limit=2),
        [{"id": 1}, {"id": 2}],
    ),
    "the latest of each series": (
        Query("Apr", ("id", "chainId"), (), (RowOrder("createdAt", True), RowOrder("id", True)), first_of="chainId"),
        [{"id": 4, "chainId": 9}, {"id": 2, "chainId": 7}, {"id": 5, "chainId": 11}],
    ),
    "nulls are one group": (
        Query("Apr", ("id",), (Filter("createdAt", ">", MAY),), (RowOrder("createdAt", True),), first_of="day"),
        [{"id": 4}],
    ),
    "a limit counts groups": (
        Query("Apr", ("id",), (), (RowOrder("createdAt", True), RowOrder("id", True)), first_of="chainId", limit=2),
        [{"id": 4}, {"id": 2}],
    ),
    "counts of related rows at two moments": (
        Query(
            "Chain",
            ("id",),
            order=BY_ID,
            aggregates=(
                Aggregate("now", "count", "aprs"),
                Aggregate("then", "count", "aprs", where=(Filter("createdAt", "<=", MAY),)),
            ),
        ),
        [
            {"id": 7, "now": 2, "then": 1},
            {"id": 9, "now": 2, "then": 1},
            {"id": 11, "now": 1, "then": 0},
        ],
    ),
    "sums of whole numbers beyond 2^53, zero where there are none": (
        Query("Proposal", ("key",), order=(RowOrder("key"),), aggregates=(Aggregate("sum", "sum", "votes", "power"),)),
        [{"key": ONE, "sum": 9007199254740995}, {"key": TWO, "sum": 0}, {"key": THREE, "sum": 1}],
    ),
    "counts and sums over many to many": (
        Query(
            "Chain",
            ("id",),
            order=BY_ID,
            aggregates=(
                Aggregate("count", "count", "tags"),
                Aggregate("sum", "sum", "tags", "weight", (Filter("weight", ">", 2),)),
            ),
        ),
        [{"id": 7, "count": 2, "sum": 3}, {"id": 9, "count": 1, "sum": 3}, {"id": 11, "count": 0, "sum": 0}],
    ),
    "nothing, an empty text and a text that reads like nothing are three groups": (
        Query("Odd", ("id", "word"), order=(RowOrder("id", True),), first_of="word"),
        [{"id": 5, "word": ""}, {"id": 4, "word": None}, {"id": 3, "word": "None"}],
    ),
    "and where some of them have no place": (
        Query("Odd", ("id", "word"), order=(RowOrder("at", True), RowOrder("id")), first_of="word"),
        [{"id": 5, "word": ""}, {"id": 1, "word": None}, {"id": 3, "word": "None"}],
    ),
    "rows that lead nowhere belong to nobody": (
        Query("Odd", ("id",), order=BY_ID, aggregates=(Aggregate("marks", "count", "marks"),)),
        [{"id": n, "marks": many} for n, many in ((1, 0), (2, 1), (3, 1), (4, 0), (5, 2))],
    ),
    "and a table of which all lead nowhere": (
        Query("Odd", ("id",), (Filter("code", "=", None),), aggregates=(Aggregate("marks", "count", "marks"),)),
        [{"id": 1, "marks": 0}],
    ),
    "names with quotes, spaces and words of SQL over a relation": (
        Query("Mark", ("id", "odd.word", "odd.code"), (Filter("id", "in", (1, 6)),), BY_ID),
        [{"id": 1, "odd.word": None, "odd.code": None}, {"id": 6, "odd.word": "", "odd.code": "x"}],
    ),
    "an empty text is not nothing": (
        Query("Odd", ("id",), (Filter("word", "=", ""),), BY_ID),
        [{"id": 2}, {"id": 5}],
    ),
    "nor is it known less": (Query("Odd", ("id",), (Filter("word", "known"),), BY_ID), [{"id": n} for n in (2, 3, 5)]),
    "of no rows there is no first": (
        Query("Odd", ("id",), (Filter("id", "<", 0),), (RowOrder("at", True),), first_of="word"),
        [],
    ),
    "the way back over one's own table": (
        Query("Chain", ("id",), order=BY_ID, aggregates=(Aggregate("forks", "count", "forks"),)),
        [{"id": 7, "forks": 1}, {"id": 9, "forks": 1}, {"id": 11, "forks": 0}],
    ),
}
EXACT = {
    "floats of four bytes are found by their value": (
        Query("Odd", ("id", "small"), (Filter("small", "in", (Decimal("0.1"), Decimal("0.7"))),), BY_ID),
        [{"id": 1, "small": Decimal("0.1")}, {"id": 3, "small": Decimal("0.7")}],
    ),
    "and compared by it": (
        Query("Odd", ("id",), (Filter("small", ">", Decimal("0.3")),), BY_ID),
        [{"id": 3}, {"id": 5}],
    ),
    "decimals are exact": (
        Query("Apr", ("id", "value"), (Filter("value", "known"),), BY_ID),
        [{"id": n, "value": v} for n, v in enumerate((Decimal("0.1"), Decimal("0.13"), Decimal(10), SMALLEST), 1)],
    ),
    "decimals are found by their value": (Query("Apr", ("id",), (Filter("value", "=", SMALLEST),)), [{"id": 4}]),
    "decimals are compared by their value": (
        Query("Apr", ("id",), (Filter("value", ">", Decimal(13)), Filter("ratio", ">", Decimal("0.1")))),
        [{"id": 4}],
    ),
    "sums of decimals are exact": (
        Query("Chain", ("id",), order=BY_ID, aggregates=(Aggregate("sum", "sum", "aprs", "value"),)),
        [
            {"id": 7, "sum": Decimal("0.23")},
            {"id": 9, "sum": Decimal("23.000000000000000000000000000001")},
            {"id": 11, "sum": 0},
        ],
    ),
}
"""What SQLite cannot: its numbers are floats."""


def interest(query: Query) -> Interest:
    """What a question is about."""
    paths = {name.rpartition(".")[0] for name in query.fields} | {one.relation for one in query.aggregates}
    return Interest(query.source, tuple(sorted(paths - {""})))
