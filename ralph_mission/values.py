"""Frozen dataclasses and regular expressions that are cheap to define; defining them took most of the start-up time.

The standard dataclass compiles six methods for each class. Here five are shared, and `__init__` is compiled when it is
first called. Use it like the standard decorator: `from ralph_mission.values import dataclass`. The standard library's
`fields`, `replace` and `asdict` work on these classes. Unsupported features raise: `__post_init__`, a field with its
own `hash`, a field with a default and `init=False`.

`compile_regex` is `re.compile` for the constants of a module: it compiles when the expression is first used.
"""

from __future__ import annotations

import dataclasses
import re
from operator import attrgetter
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
    cls: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(plain)
    _refuse_unsupported(cls)
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    shared = {
        "__init__": _compiled_when_called(cls),
        "__repr__": _show,
        "__eq__": _same(_reader(names)),
        "__hash__": _hashed(_reader(names)),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getstate__": _state,
        "__setstate__": _restore,
    }
    for name, method in shared.items():
        if plain.__dict__.get(name) is None:
            setattr(cls, name, method)
    return cls


def _refuse_unsupported(cls: type) -> None:
    """Refuse what would silently be lost, such as a `__post_init__` that nobody calls."""
    lost = [one.name for one in dataclasses.fields(cls) if one.hash is not None or _is_constant(one)]
    if lost or hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__qualname__} cannot be a value: {', '.join(lost) or '__post_init__'}")


def _is_constant(field: dataclasses.Field[Any]) -> bool:
    return not field.init and field.default is not dataclasses.MISSING


def _compiled_when_called(cls: Any) -> Any:
    def __init__(self: Any, *values: Any, **named: Any) -> None:
        compiled = _compile_init(cls)
        cls.__init__ = compiled
        compiled(self, *values, **named)

    return __init__


def _compile_init(cls: Any) -> Any:
    """The `__init__` that the standard decorator would write, without the five other methods."""
    given: dict[str, Any] = {"_set": object.__setattr__}
    places, by_name, body = ["self"], ["*"], ["    pass"]
    for one in dataclasses.fields(cls):
        name, default = one.name, f"_of_{one.name}"
        has_factory = one.default_factory is not dataclasses.MISSING
        if has_factory or one.default is not dataclasses.MISSING:
            given[default] = one.default_factory if has_factory else one.default
        elif not one.init:
            continue
        if one.init:
            (by_name if one.kw_only else places).append(f"{name}={default}" if default in given else name)
        initial = f"{default}()" if has_factory else default
        value = (
            f"{initial} if {name} is {default} else {name}"
            if one.init and has_factory
            else name
            if one.init
            else initial
        )
        body.append(f"    _set(self, {name!r}, {value})")
    head = ", ".join([*places, *(by_name if len(by_name) > 1 else [])])
    exec("\n".join([f"def __init__({head}):", *body]), given)
    compiled = given["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled


def _reader(names: list[str]) -> Any:
    return attrgetter(*names) if names else lambda _: ()


def _same(values: Any) -> Any:
    def __eq__(self: Any, other: object) -> bool:
        return bool(values(self) == values(other)) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hashed(values: Any) -> Any:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _show(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
