"""Templates of posts: sandboxed Jinja2, reduced to constructs that always terminate.

The owner writes the template, but its facts are untrusted. It may show facts, branch and loop over rows; it cannot
call, assign or multiply text, and it terminates because loops only go over facts, at most two deep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError, nodes
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import SandboxedEnvironment

from ralph_mission.errors import UserError
from ralph_mission.mission.publishing.texts import FILTERS, number

LONGEST = 6_000  # characters of the result
DEPTH = 2  # of loops
LANGUAGE = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem),
    *(nodes.If, nodes.For, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.Concat, nodes.Filter, nodes.Test, nodes.Keyword),
)
JINJA_FILTERS = ("abs", "capitalize", "default", "first", "last", "length", "lower", "title", "trim", "upper")
"""The allowed filters of Jinja2."""
TESTS = ("defined", "undefined", "none", "string", "number")
Value = str | Decimal | Sequence[Any] | Mapping[str, Any]


# --- the language ----------------------------------------------------------------------


class _Sandbox(SandboxedEnvironment):
    intercepted_binops = frozenset("+-*/")

    def is_safe_callable(self, obj: Any) -> bool:
        return False

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A fact by its name; of Python's attributes only those of `loop`."""
        if isinstance(obj, LoopContext):
            value = super().getattr(obj, attribute)
            return self.undefined(obj=obj, name=attribute) if callable(value) else value
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An item of a row or a ranking, never a Python attribute. The n-th one (`row.1`) has its number as name."""
        if isinstance(obj, Mapping) and isinstance(argument, int):
            argument = str(argument)
        try:
            return obj[argument]
        except (LookupError, TypeError):
            return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic is for numbers, and exact."""
        return super().call_binop(context, operator, number(left), number(right))


def _text(value: Any) -> Any:
    """A single fact as text. Raises ValueError for a whole row or ranking."""
    if isinstance(value, str | int | float | Decimal | StrictUndefined):
        return value
    raise ValueError("what is no text is shown: name a cell of it, or use a filter such as cells")


def _join(values: Sequence[Any], between: object = "") -> str:
    """Join values. Raises ValueError if the result would be far too long, as it may be nested in another."""
    texts = [str(value) for value in values]
    if sum(map(len, texts)) + len(texts) * len(str(between)) > LONGEST:
        raise ValueError(f"more than {LONGEST:,} characters are joined")
    return str(between).join(texts)


@cache
def _sandbox() -> _Sandbox:
    sandbox = _Sandbox(undefined=StrictUndefined, finalize=_text, trim_blocks=True, lstrip_blocks=True)
    sandbox.globals.clear()
    sandbox.filters = {**{name: sandbox.filters[name] for name in JINJA_FILTERS}, **FILTERS, "join": _join}
    sandbox.tests = {name: sandbox.tests[name] for name in TESTS} | {
        n: t for n, t in sandbox.tests.items() if not n.isalpha()
    }
    return sandbox


def check(name: str, source: str) -> None:
    """Raise ValueError, in words, for an unusable template."""
    try:
        _speaks(name, _sandbox().parse(source))
        _sandbox().from_string(source)
    except TemplateSyntaxError as error:
        raise ValueError(f"the template {name} cannot be read: {error.message}, line {error.lineno}") from None
    except RecursionError:
        raise ValueError(f"the template {name} cannot be read: too much stands within each other") from None


def _speaks(name: str, tree: nodes.Template) -> None:
    """Raise ValueError for disallowed constructs; before compiling, which evaluates constants."""
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, LANGUAGE):
            raise ValueError(f"the template {name} may not use {type(node).__name__.lower()}, line {node.lineno}")
        if isinstance(node, nodes.For) and (_depth(node) > DEPTH or node.recursive):
            raise ValueError(f"the template {name} has loops more than {DEPTH} deep, line {node.lineno}")


def _depth(loop: nodes.Node) -> int:
    return 1 + max((_depth(inner) for inner in loop.find_all(nodes.For)), default=0)


def render(name: str, source: str, facts: Mapping[str, Value]) -> str:
    """Render the template with these facts, stripped. Raises UserError that names what is missing."""
    pieces, length = [], 0
    try:
        for piece in _sandbox().from_string(source).generate(facts):
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST:
                raise UserError(f"the template {name} says more than {LONGEST:,} characters", "shorten it in ralph.yml")
    except UndefinedError as error:
        raise _missing(name, str(error.message), facts) from None
    except (TemplateError, ArithmeticError, TypeError, ValueError) as error:
        raise UserError(f"the template {name} fails: {str(error)[:120]}", "fix publishers.templates") from None
    except RecursionError:
        raise UserError(f"the template {name} fails: it is too deep", "fix publishers.templates") from None
    lines = [line.rstrip() for line in "".join(pieces).strip().splitlines()]
    return "\n".join(lines)


def _missing(name: str, message: str, facts: Mapping[str, Value]) -> UserError:
    missing = (re.findall("'([^']*)'", message) or [message])[-1]  # Jinja2 names it last, in quotation marks
    there = ", ".join(sorted(_names(facts)))[:600]
    return UserError(f"the template {name} wants the fact {missing}, which is not there", f"there are: {there}")


def _names(facts: Mapping[str, Any], before: str = "") -> list[str]:
    names: list[str] = []
    for name, value in facts.items():
        names += _names(value, f"{before}{name}.") if isinstance(value, Mapping) else [f"{before}{name}"]
    return names
