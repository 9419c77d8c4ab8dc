"""Templates: what they can say, what they cannot do, and what a missing fact is told as."""

from decimal import Decimal

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.publishing.templates import check, render
from ralph_mission.mission.publishing.texts import compact, percent, thousands

FACTS = {
    "value": Decimal("1234567.891"),
    "change_percent": Decimal("31.25"),
    "unit": "%",
    "row": {"chain": {"name": "Cosmos Hub"}, "1": {"chain": "Osmosis"}},
    "rows": [{"name": "a", "apr": Decimal(3)}, {"name": "b", "apr": Decimal(2)}],
    "window_to": "2026-02-16T06:00:00Z",
}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ row.chain.name }}: {{ value | thousands }}", "Cosmos Hub: 1,234,567.89"),
        ("{{ row.1.chain }} {{ row['1'].chain }}", "Osmosis Osmosis"),
        ("{{ change_percent | percent }}", "31.2%"),
        ("{{ change_percent | percent(0, signed=true) }}", "+31%"),
        ("{{ value | compact }}", "1.2M"),
        ("{{ window_to | day }}", "2026-02-16"),
        ("{% if change_percent > 30 %}up{% else %}down{% endif %}", "up"),
        ("{% for one in rows %}{{ loop.index }}. {{ one.name }} {{ one.apr }}\n{% endfor %}", "1. a 3\n2. b 2"),
        ("{{ value * 2 - 0.5 }}", "2469135.282"),
        ("{{ what | default('nothing') }}", "nothing"),
        ("  x  \n\n", "x"),
        ("{{ unit ~ '!' }}", "%!"),
        ("<b>{{ unit }}</b> & co", "<b>%</b> & co"),
    ],
)
def test_a_template_says(source: str, said: str) -> None:
    check("t", source)
    assert render("t", source, FACTS) == said


@pytest.mark.parametrize(
    ("source", "missing"),
    [("{{ wert }}", "wert"), ("{{ row.chain.nam }}", "nam"), ("{% if wert > 3 %}x{% endif %}", "wert")],
)
def test_a_missing_fact_is_named_with_those_there_are(source: str, missing: str) -> None:
    with pytest.raises(UserError) as told:
        render("apr", source, FACTS)
    assert told.value.what == f"the template apr wants the fact {missing}, which is not there"
    assert "row.chain.name" in told.value.next_step
    assert "change_percent" in told.value.next_step


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ unit.__class__ }}",
    ],
)
def test_nothing_of_python_is_reached(source: str) -> None:
    check("t", source)
    with pytest.raises(UserError, match="template t"):
        render("t", source, FACTS)


@pytest.mark.parametrize(
    "source",
    [
        "{{ unit.upper() }}",
        "{% set x = 1 %}",
        "{{ range(9) }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% macro m() %}{% endmacro %}",
        "{% for a in rows %}{% for b in rows %}{% for c in rows %}x{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in rows recursive %}x{% endfor %}",
        "{{ 2 ** 999999999 }}",
        "{{ unit | replace('a', 'b') }}",
        "{{ '%9d' | format(3) }}",
        "{{ [1, 2] }}",
        "{{ unit",
        "{% if %}",
    ],
)
def test_a_template_that_could_run_away_is_refused_when_it_is_read(source: str) -> None:
    with pytest.raises(ValueError, match="template t"):
        check("t", source)


@pytest.mark.parametrize(
    "source", ["{{ 'x' * 1000000000 }}", "{{ unit % 3 }}", "{{ value / 0 }}", "{{ unit | percent }}"]
)
def test_a_template_that_fails_says_so(source: str) -> None:
    with pytest.raises((UserError, ValueError), match="template t"):
        check("t", source)
        render("t", source, FACTS)


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 1_500 + "1" + ")" * 1_500 + " }}",
        "{{ " + "-" * 3_000 + "1 }}",
        "{% if 1 %}" * 350 + "{% endif %}" * 350,
    ],
    ids=["brackets", "signs", "conditions"],
)
def test_a_template_that_is_too_deep_is_refused_in_words(source: str) -> None:
    with pytest.raises(ValueError, match="template t cannot be read"):
        check("t", source)


def test_a_column_may_have_the_name_of_anything() -> None:
    told = {"row": {"items": "three", "values": {"copy": Decimal(4)}}, "rows": [{"keys": "k"}]}
    source = "{{ row.items }} {{ row['values'].copy }} {% for one in rows %}{{ one.keys }}{% endfor %}"
    assert render("t", source, told) == "three 4 k"


@pytest.mark.parametrize(
    "source", ["{{ row.items }}", "{{ unit.upper }}", "{{ value.as_tuple }}", "{{ unit['format'] }}"]
)
def test_what_python_knows_under_a_name_is_no_fact(source: str) -> None:
    with pytest.raises(UserError, match="which is not there"):
        render("t", source, FACTS)


@pytest.mark.parametrize(
    "source", ["{{ row }}", "{{ rows }}", "{% for one in rows %}{{ loop }}{% endfor %}", "{{ self }}"]
)
def test_what_is_no_text_is_not_shown_as_python_writes_it(source: str) -> None:
    with pytest.raises(UserError, match="no text"):
        render("t", source, FACTS)


def test_texts_cannot_be_multiplied_by_joining_them() -> None:
    source = "{{ a | join(a | join(a | join(a | join(a | join(a))))) }}"
    with pytest.raises(UserError, match="joined"):
        render("t", source, {"a": "x" * 80})


def test_what_is_far_too_long_is_stopped() -> None:
    many = {"rows": [{"name": "x" * 80}] * 100}
    with pytest.raises(UserError, match="more than"):
        render("t", "{% for a in rows %}{% for b in rows %}{{ a.name }}{% endfor %}{% endfor %}", many)


def test_a_value_that_looks_like_a_template_stays_a_value() -> None:
    assert render("t", "{{ unit }}", {"unit": "{{ value }}{% for %}"}) == "{{ value }}{% for %}"


@pytest.mark.parametrize(
    ("number", "said"),
    [("0", "0"), ("-1234.5", "-1,234.5"), (1000, "1,000"), (0.30000000000000004, "0.3"), ("-0.001", "0")],
)
def test_numbers_for_people(number: object, said: str) -> None:
    assert thousands(number) == said


def test_percentages_and_sizes() -> None:
    assert (percent("-5.25"), percent(100, 0), percent(3, signed=True)) == ("-5.2%", "100%", "+3%")
    assert (compact(999), compact(1_500), compact("-2500000000")) == ("999", "1.5K", "-2.5B")


def test_numbers_of_any_size_that_a_chain_counts_in_are_told() -> None:
    assert thousands(10**27) == "1" + ",000" * 9
    assert compact(Decimal(10) ** 45) == "1" + ",000" * 11 + "T"
    assert thousands(1e300).startswith("1,000")
    with pytest.raises(ValueError, match="320 digits"):
        thousands("1e999999")
