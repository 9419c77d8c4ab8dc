"""A class of `values.dataclass` is what the standard decorator makes of it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re

import pytest
from pydantic import TypeAdapter

from ralph_mission.values import compile_regex, dataclass


@dataclass(frozen=True, slots=True)
class Boat:
    """One with every kind of field."""

    name: str
    berth: int = 3
    pool: dict[str, int] = dataclasses.field(default_factory=dict, compare=False)
    key: str = dataclasses.field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Tug(Boat):
    """One below it."""

    power: float = 1.5


@dataclass(frozen=True, slots=True)
class Quay:
    """One without fields."""


@dataclass(slots=True)
class Log:
    """One that may be changed."""

    lines: int = 0


@dataclass
class Page:
    """One by the bare decorator."""

    number: int = 1


def test_it_takes_arguments_by_place_name_and_default() -> None:
    assert (Boat("Inge").berth, Boat("Inge", 4).berth, Boat(berth=5, name="Inge").berth) == (3, 4, 5)
    assert Tug("Emil", power=2.5).power == 2.5
    assert Boat("a").pool is not Boat("b").pool


def test_a_wrong_argument_is_refused_as_usual() -> None:
    for _ in range(2):  # also before it was compiled
        with pytest.raises(TypeError, match=r"Boat\.__init__\(\) .*name"):
            Boat()  # type: ignore[call-arg]  # that is the point


def test_it_compares_and_hashes_by_class_and_compared_fields() -> None:
    assert Boat("a", pool={"x": 1}) == Boat("a") != Boat("b")
    assert hash(Boat("a", pool={"x": 1})) == hash(Boat("a"))
    assert Boat("a") != Tug("a") and Quay() == Quay() and len({Quay(), Quay()}) == 1
    assert Boat("a") != ("a", 3, "")


def test_it_cannot_be_changed() -> None:
    boat = Boat("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        boat.name = "b"  # type: ignore[misc]  # that is the point
    with pytest.raises(dataclasses.FrozenInstanceError):
        del boat.name  # that is the point
    assert not hasattr(boat, "__dict__")


def test_it_is_shown_without_what_is_hidden() -> None:
    assert repr(Boat("a", key="secret")) == "Boat(name='a', berth=3, pool={})"
    assert repr(Quay()) == "Quay()"


def test_the_tools_of_the_standard_library_and_pydantic_know_it() -> None:
    boat = Tug("a", pool={"x": 1})
    assert dataclasses.replace(boat, berth=9) == Tug("a", 9)
    assert dataclasses.asdict(Boat("a")) == {"name": "a", "berth": 3, "pool": {}, "key": ""}
    assert copy.deepcopy(boat) == copy.copy(boat) == pickle.loads(pickle.dumps(boat)) == boat
    assert TypeAdapter(Boat).validate_python({"name": "a", "berth": "7"}) == Boat("a", 7)
    match boat:
        case Boat(name, berth):
            assert (name, berth) == ("a", 3)


def test_what_would_be_lost_is_refused() -> None:
    class Checked:
        name: str

        def __post_init__(self) -> None:
            raise ValueError

    class Constant:
        name: str = dataclasses.field(default="", init=False)

    class Unhashed:
        name: str = dataclasses.field(hash=False)

    for plain in (Checked, Constant, Unhashed):
        with pytest.raises(TypeError, match="cannot be a value"):
            dataclass(frozen=True, slots=True)(plain)


def test_one_that_is_not_frozen_is_the_standard_one() -> None:
    log = Log()
    log.lines = 4
    assert log == Log(4)
    assert Page(2).__dict__ == {"number": 2}


def test_a_regular_expression_is_compiled_when_it_is_first_used() -> None:
    berth = compile_regex(r"berth (\d+)", re.IGNORECASE)
    assert berth.pattern == r"berth (\d+)"
    assert "search" not in vars(berth)
    assert [berth.sub("x", "Berth 7"), berth.findall("a BERTH 12"), berth.groups] == ["x", ["12"], 1]
    assert "search" in vars(berth)


def test_a_regular_expression_that_is_none_is_an_error_at_its_first_use() -> None:
    with pytest.raises(re.error):
        compile_regex("(").search("")
