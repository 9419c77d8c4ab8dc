"""Frozen dataclasses and regular expressions that are cheap to define; defining them took most of the start-up time.

The standard dataclass looks through each class and compiles six methods for it. Here the first is done when somebody
asks for it, and `__init__` is compiled when a class is used more than a few times. Use it like the standard
decorator: `from ralph_mission.values import dataclass`. The standard library's `fields`, `replace` and `asdict` work on
these classes. Unsupported features raise: `__post_init__`, `ClassVar`, `InitVar`, a base by the standard
decorator, a field with its own `hash`, a field with a default and `init=False`.

`compile_regex` is `re.compile` for the constants of a module: it compiles when the expression is first used.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, MISSING
from itertools import pairwise
from operator import attrgetter
from threading import RLock
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

    compile_regex = re.compile
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False) -> Any:
        """The standard decorator, but cheap for frozen classes with slots."""
        return _define_value if frozen and slots else dataclasses.dataclass(cls, frozen=frozen, slots=slots)

    class compile_regex:  # called as the function that it stands for
        """A regular expression that is compiled on first use."""

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self.pattern, self._flags = pattern, flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            compiled = re.compile(self.pattern, self._flags)
            self.__dict__ |= {one: getattr(compiled, one) for one in dir(compiled) if not one.startswith("_")}
            return getattr(compiled, name)


def _define_value(plain: type) -> type:
    """`plain` with slots and the methods of a value."""
    own = tuple(_own_fields(plain))
    bases = [_VALUES[base] for base in reversed(plain.__mro__) if base in _VALUES]
    fields = {one.name: one for one in (*(one for base in bases for one in base.fields), *own)}
    value = _Value(plain, tuple(fields.values()))
    _refuse_unsupported(value, own)
    left_out = {"__dict__", "__weakref__", *fields}
    content = {name: thing for name, thing in vars(plain).items() if name not in left_out}
    inherited = {one.name for base in bases for one in base.fields}
    content["__slots__"] = tuple(one.name for one in own if one.name not in inherited)
    methods = _SHARED | {name: _made_when_called(name, make, value) for name, make in _COMPARISONS.items()}
    methods["__init__"] = _interpreted_init(value)
    content |= {name: method for name, method in methods.items() if content.get(name) is None}
    content |= {name: _Described(name, value) for name in _DESCRIPTION}
    cls = value.cls = type(plain)(plain.__name__, plain.__bases__, content)
    cls.__qualname__ = plain.__qualname__
    _VALUES[cls] = value
    return cls


def _refuse_unsupported(value: _Value, own: tuple[_Field, ...]) -> None:
    """Refuse what would silently be lost, such as a `__post_init__` that nobody calls, and what is a mistake."""
    plain, places = value.plain, [one for one in value.fields if one.init and not one.kw_only]
    lost = [one.name for one in own if one.is_lost]
    lost += ["__post_init__"] if hasattr(plain, "__post_init__") else []
    lost += [base.__name__ for base in plain.__mro__ if "__dataclass_fields__" in vars(base) and base not in _VALUES]
    lost += [second.name for first, second in pairwise(places) if first.has_default and not second.has_default]
    if lost:
        raise TypeError(f"{plain.__qualname__} cannot be a value: {', '.join(lost)}")


class _Field:
    """A field, by its annotation and what is assigned to it."""

    __slots__ = ("compare", "default", "factory", "init", "is_lost", "kw_only", "name")
    factory: Any

    def __init__(self, name: str, kind: object, given: Any, kw_only: bool) -> None:
        self.name, self.kw_only, self.init, self.compare = name, kw_only, True, True
        self.default, self.factory = given, MISSING
        self.is_lost = any(word in str(kind) for word in ("ClassVar", "InitVar")) or given.__class__.__hash__ is None
        if isinstance(given, dataclasses.Field):
            self.default, self.factory = given.default, given.default_factory
            self.init, self.compare = given.init, given.compare
            self.kw_only = kw_only if given.kw_only is MISSING else given.kw_only
            self.is_lost |= given.hash is not None or not (given.init or given.default is MISSING)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING or self.factory is not MISSING


def _own_fields(plain: type) -> Iterator[_Field]:
    kw_only = False
    for name, kind in plain.__annotations__.items():
        if kind is KW_ONLY or str(kind).endswith("KW_ONLY"):
            kw_only = True
        else:
            given = getattr(plain, name, MISSING)  # a slot of a base is no default
            yield _Field(name, kind, MISSING if isinstance(given, MemberDescriptorType) else given, kw_only)


class _Value:
    """A class, its fields with those of its bases, and the class that it was made of."""

    def __init__(self, plain: type, fields: tuple[_Field, ...]) -> None:
        self.plain, self.fields, self.cls = plain, fields, plain


class _Described:
    """What the standard decorator says of a class, `__dataclass_fields__` for instance; asked when it is first read."""

    def __init__(self, name: str, value: _Value) -> None:
        self._name, self._value = name, value

    def __get__(self, _: object, reader: type) -> Any:
        cls, plain = self._value.cls, self._value.plain
        with _DESCRIBING:
            if isinstance(vars(cls)[self._name], _Described):
                described: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(plain)
                for name in _DESCRIPTION:
                    setattr(cls, name, vars(described)[name])
            return vars(cls)[self._name]


def _made_when_called(name: str, make: Callable[[_Value], Any], value: _Value) -> Any:
    def call_first(*arguments: Any) -> Any:
        method = make(value)
        setattr(value.cls, name, method)
        return method(*arguments)

    return call_first


def _interpreted_init(value: _Value) -> Any:
    """An `__init__` for the first few values of a class: compiling one costs as much as a hundred calls."""
    calls = 0

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > FEW or not _fill(self, value.fields, given, named):
            value.cls.__init__ = compiled = _compile_init(value)  # type: ignore[misc]  # which is what this stands for
            compiled(self, *given, **named)

    return __init__


def _fill(one: object, fields: tuple[_Field, ...], given: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Set all fields; False if the arguments are wrong, for the compiled `__init__` to say how."""
    places = [field.name for field in fields if field.init and not field.kw_only]
    values = dict(zip(places, given, strict=False)) | named
    if len(values) < len(given) + len(named):  # too many, or one given twice
        return False
    for field in fields:
        if field.init and field.name in values:
            value = values.pop(field.name)
        elif field.has_default:
            value = field.factory() if field.default is MISSING else field.default
        elif field.init:
            return False
        else:
            continue
        object.__setattr__(one, field.name, value)
    return not values


def _compile_init(value: _Value) -> Any:
    """The `__init__` that the standard decorator would write."""
    given: dict[str, Any] = {"_set": object.__setattr__}
    places, by_name, body = ["self"], ["*"], ["    pass"]
    for one in value.fields:
        name, default = one.name, f"_of_{one.name}"
        if one.has_default:
            given[default] = one.factory if one.default is MISSING else one.default
        elif not one.init:
            continue
        if one.init:
            (by_name if one.kw_only else places).append(f"{name}={default}" if one.has_default else name)
        initial = f"{default}()" if one.default is MISSING else default
        if not one.init:
            body.append(f"    _set(self, {name!r}, {initial})")
        elif one.factory is not MISSING:
            body.append(f"    _set(self, {name!r}, {initial} if {name} is {default} else {name})")
        else:
            body.append(f"    _set(self, {name!r}, {name})")
    head = ", ".join([*places, *(by_name if len(by_name) > 1 else [])])
    exec("\n".join([f"def __init__({head}):", *body]), given)
    compiled = given["__init__"]
    compiled.__qualname__ = f"{value.cls.__qualname__}.__init__"
    return compiled


def _reader(value: _Value) -> Any:
    names = [field.name for field in value.fields if field.compare]
    return attrgetter(*names) if names else lambda _: ()


def _make_eq(value: _Value) -> Any:
    read = _reader(value)

    def __eq__(self: Any, other: object) -> bool:
        return bool(read(self) == read(other)) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _make_hash(value: _Value) -> Any:
    read = _reader(value)

    def __hash__(self: Any) -> int:
        return hash(read(self))

    return __hash__


def _show(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _replace(self: Any, /, **changes: Any) -> Any:
    return dataclasses.replace(self, **changes)


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


FEW = 8
"""Values of a class before its `__init__` is compiled."""
_COMPARISONS = {"__eq__": _make_eq, "__hash__": _make_hash}
_SHARED = {
    "__repr__": _show,
    "__replace__": _replace,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _state,
    "__setstate__": _restore,
}
_DESCRIPTION = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_DESCRIBING = RLock()  # reentrant: a class asks those above it
_VALUES: dict[type, _Value] = {}
