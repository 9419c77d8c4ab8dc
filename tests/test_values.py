"""A class of `values.dataclass` is what the standard decorator makes of it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, InitVar
from typing import Any, ClassVar

import pytest
from pydantic import TypeAdapter

from ralph_mission.values import FEW, compile_regex, dataclass


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
class Lock(Tug):
    """One with fields by name only, one of which replaces another."""

    _: KW_ONLY
    berth: int
    gate: str = "north"
    seen: list[str] = dataclasses.field(init=False, repr=False, compare=False)


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


def test_the_first_values_of_a_class_are_as_those_after_them() -> None:
    made = [Lock("a", {}, "k", 2.5, berth=number % 3) for number in range(3 * FEW)]
    assert made[:3] == made[-3:] and made[0] == made[3] != made[1]
    assert {(one.name, one.pool is not None, one.key, one.power, one.gate) for one in made} == {
        ("a", True, "k", 2.5, "north")
    }
    assert [field.name for field in dataclasses.fields(Lock)] == [
        "name",
        "berth",
        "pool",
        "key",
        "power",
        "gate",
        "seen",
    ]
    assert not hasattr(made[0], "seen") and not hasattr(made[-1], "seen")


WRONG = [
    ((), {}, "missing 1 required positional argument: 'name'"),
    (("a", 1, {}, "k", 2), {}, "takes from 2 to 5 positional arguments but 6 were given"),
    (("a",), {"name": "b"}, "got multiple values for argument 'name'"),
    (("a",), {"mast": 1}, "got an unexpected keyword argument 'mast'"),
]


@pytest.mark.parametrize(("given", "named", "complaint"), WRONG)
def test_a_wrong_argument_is_refused_as_usual(given: tuple[str, ...], named: dict[str, str], complaint: str) -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh(Boat):
        """One whose `__init__` nobody called yet."""

    for _ in range(2):
        with pytest.raises(TypeError) as problem:
            Fresh(*given, **named)  # type: ignore[arg-type]  # that is the point
        assert complaint in str(problem.value)


def test_threads_may_ask_for_the_fields_of_a_class_at_the_same_time() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh(Boat):
        """One whose fields nobody asked for yet."""

        crew: list[str] = dataclasses.field(default_factory=list)

    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda _: [field.name for field in dataclasses.fields(Fresh)], range(64)))
    assert asked == [["name", "berth", "pool", "key", "crew"]] * 64
    assert dataclasses.replace(Fresh("a"), crew=["b"]).crew == ["b"]


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


def test_annotations_may_be_objects_instead_of_texts() -> None:
    class Plain:
        name: str

    Plain.__annotations__ = {"name": str, "_": KW_ONLY, "berth": int}
    value: Any = dataclass(frozen=True, slots=True)(Plain)
    assert value("a", berth=2) == value(berth=2, name="a") and value.__slots__ == ("name", "berth")
    assert [field.name for field in dataclasses.fields(value)] == ["name", "berth"]


def test_a_default_may_come_from_a_class_above() -> None:
    class Above:
        berth = 3

    @dataclass(frozen=True, slots=True)
    class Below(Above):
        """One with that default."""

        berth: int

    assert Below() == Below(3)  # type: ignore[call-arg]  # that is the point


def test_what_would_be_lost_is_refused() -> None:
    class Checked:
        name: str

        def __post_init__(self) -> None:
            raise ValueError

    class Constant:
        name: str = dataclasses.field(default="", init=False)

    class Unhashed:
        name: str = dataclasses.field(hash=False)

    class Counted:
        many: ClassVar[int] = 1
        name: str

    class Logged(Log):
        name: str

    class Opened:
        name: InitVar[str]

    class Shared:
        names: list[str] = []  # noqa: RUF012  # that is the point

    class Unordered:
        berth: int = 1
        name: str

    for plain in (Checked, Constant, Unhashed, Counted, Logged, Opened, Shared, Unordered):
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
