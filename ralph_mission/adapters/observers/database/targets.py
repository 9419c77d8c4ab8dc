"""A watch with its names resolved in the database, or one line that says what is wrong with them.

Numbers, times and texts of rows are compared exactly and always formatted the same way. People read names instead of
ids, words instead of identifiers: a row's name comes from the first field that a watch includes, else from a column
whose name suggests names. A row that belongs to another (a node of a chain) also has its parent's name, or only that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

from ralph_mission.adapters.database.model import (
    CAP,
    Aggregate,
    Catalog,
    Column,
    Filter,
    Query,
    Relation,
    Row,
    RowOrder,
    Shape,
    Type,
    Value,
    nearest,
    read_text,
)
from ralph_mission.config.database import DatabaseWatch
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

CALLED = (
    *("prettyname", "displayname", "title", "name", "moniker", "fullname", "label", "username", "symbol", "slug"),
)
"""Columns that hold a row's name, best first; without underscores, in lower case."""
TEXTS = ("text", "enum")
MOST_PARENTS = 2  # parents whose names a row without a name gets


def name_column(shape: Shape) -> str:
    """The column with a row's name, or ""."""
    named = {compact_name(one.name): one for one in reversed(shape.columns)}
    return next((named[word].name for word in CALLED if word in named and _is_text(named[word])), "")


def name_paths(shape: Shape, catalog: Catalog, by: str = "") -> tuple[str, ...]:
    """Paths to a row's name: its own columns, and its parent's. `by`: the columns of a series, if only its name is
    wanted."""
    if by:
        parent = next((one for one in parents(shape, catalog) if one.pairs[0][0] == by), None)
        found = f"{parent.name}.{name_column(catalog.shape(parent.target))}" if parent else ""
        return (found,) if found and not found.endswith(".") else ()
    own = name_column(shape)
    required = [one for one in parents(shape, catalog) if not _optional(shape, one)]
    above = [f"{one.name}.{name}" for one in required if (name := name_column(catalog.shape(one.target)))]
    return (own, *above[:1]) if own else tuple(above[:MOST_PARENTS])


def is_name(path: str) -> bool:
    """Whether a field's name suggests names."""
    return compact_name(path.rpartition(".")[2]) in CALLED


def parents(shape: Shape, catalog: Catalog) -> Iterator[Relation]:
    """Relations to a row's one parent."""
    for one in shape.relations:
        if not one.many and one.through is None and len(one.pairs) == 1 and shape.column(one.pairs[0][0]):
            ((ours, theirs),) = one.pairs
            # In a one-to-one relation found by our key, the other row is the child.
            if ours not in shape.key or theirs in catalog.shape(one.target).key:
                yield one


def join_names(names: Iterable[str]) -> str:
    """A row's own name, and its parent's in brackets."""
    first, *rest = [*dict.fromkeys(filter(None, names))] or [""]
    return f"{first} ({', '.join(rest)})" if rest else first


def words_of(identifier: str) -> str:
    """`inCommittee`, `in_committee` and `IN_COMMITTEE` as "in committee"."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", identifier)
    return " ".join(apart.replace("_", " ").lower().split())


def plural(identifier: str) -> str:
    """The plural of a model's or table's name."""
    words = words_of(identifier)
    if words.endswith("s"):
        return words
    return words[:-1] + "ies" if re.search(r"[^aeiou]y$", words) else words + "s"


def quality(column: Column) -> str:
    """A boolean column as an adjective: `isJailed` and `jailed` as "jailed"."""
    return re.sub(r"^(is|was) ", "", words_of(column.name))


def state_words(column: Column, value: str) -> str:
    """A state's value in words, without the common prefix of all its values."""
    known = [name for name, _ in column.values]
    start = ""
    if len(known) > 1:
        words = [name.split("_") for name in known]
        shared = 0
        while all(len(one) > shared + 1 and one[shared] == words[0][shared] for one in words):
            shared += 1
        start = "_".join(words[0][:shared]) + "_" if shared else ""
    return words_of(value.removeprefix(start))


def _is_text(column: Column) -> bool:
    return column.type in TEXTS and not column.many


def _optional(shape: Shape, relation: Relation) -> bool:
    column = shape.column(relation.pairs[0][0])
    return column is None or column.nullable


def compact_name(name: str) -> str:
    """A name without underscores, in lower case."""
    return name.replace("_", "").lower()


LONGEST = 100  # characters of a key as text
DIGITS = 400  # before and after the point
NONE, EMPTY = "(none)", "(empty)"


def number(value: Value) -> Decimal | None:
    """A cell as a number; None if it is null, not a number, not finite, or has thousands of digits."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    parsed = Decimal(value)
    return parsed if _ordinary(parsed) else None


def moved_over(value: Decimal, base: Decimal, percent: Decimal) -> bool:
    """Whether `value` is more than `percent` % away from `base`, exactly. Any other value is if `base` is zero."""
    return abs(Fraction(value) - Fraction(base)) * 100 > Fraction(percent) * abs(Fraction(base))


def percentage(value: Decimal, base: Decimal) -> Decimal | None:
    """The signed change in percent of `base`, to two places; None if `base` is zero."""
    if not base:
        return None
    return round_exact((Fraction(value) - Fraction(base)) * 100 / abs(Fraction(base)))


def shown(value: Decimal) -> str:
    """A number for people: with thousands separators, and no more digits than are significant."""
    with localcontext(prec=1_000):
        short = round_exact(Fraction(value), 0) if abs(value) >= 1_000 else value
    if abs(value) < 1_000:
        with localcontext(prec=6):
            short = plain(+value)
    return f"{short:,}"


def round_exact(exact: Fraction, places: int = 2) -> Decimal:
    """Round to a number of places, half to even."""
    with localcontext(prec=400, rounding=ROUND_HALF_EVEN):
        return Decimal(round(exact * 10**places)).scaleb(-places)


def median(values: Sequence[Fraction]) -> Fraction:
    """The median. `values` must not be empty."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def decimal(exact: Fraction, digits: int = 1_000) -> Decimal:
    """A fraction as a decimal: unrounded if its expansion terminates, as that of a median of decimals does."""
    with localcontext(prec=digits):
        return plain(Decimal(exact.numerator) / Decimal(exact.denominator))


def plain(value: Decimal) -> Decimal:
    """Without an exponent or trailing zeros: 1.50 as 1.5, 1E+3 as 1000."""
    with localcontext(prec=1_000):
        shorter = value.normalize()
        return shorter if int(shorter.as_tuple().exponent) <= 0 else shorter.quantize(Decimal(1))


def format_value(value: Value) -> str:
    """One text per value, the same for all backends: for groups, occurrences and rows' ids."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return str(plain(value)) if _ordinary(value) else str(value)
    return str(value)


def join_key(values: Sequence[Value]) -> str:
    """A key of several fields as one text; of a single field, its own. A long one is replaced by its digest.

    Different keys have different texts: null and an empty text are words, a text that equals one of these is quoted.
    """
    text = _alone(values[0]) if len(values) == 1 else _json([v if v is None else format_value(v) for v in values])
    return text if len(text) <= LONGEST else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _alone(value: Value) -> str:
    if value in (None, ""):
        return NONE if value is None else EMPTY
    text = format_value(value)
    return _json(text) if text in (NONE, EMPTY) or text.startswith('"') else text


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _ordinary(value: Decimal) -> bool:
    """Whether it is finite and can be written out: a database's numbers may have a hundred thousand digits."""
    return value.is_finite() and abs(value.adjusted()) < DIGITS and int(value.as_tuple().exponent) > -DIGITS


VALUE = "#value"  # no field has this name: a number aggregated over related rows
NUMBERS = ("int", "decimal", "float")
GROWING = ("int", "decimal", "time", "text")
UNREADABLE_TYPES = ("bytes", "other")


@dataclass(frozen=True, slots=True)
class Target:
    """`value` is the path to the number in a row; with an `aggregate`, `at` is a field of the related rows."""

    watch: DatabaseWatch
    shape: Shape
    value: str = ""
    by: str = ""
    at: str = ""
    field: str = ""  # of new_since or top
    include: tuple[str, ...] = ()
    where: tuple[Filter, ...] = ()
    aggregate: Aggregate | None = None
    label: tuple[str, ...] = ()
    read_as: tuple[tuple[str, Type], ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The fields that distinguish series; empty for a single one. Without a time, each row is a series."""
        if self.by:
            return (self.by,)
        return self.shape.key if self.aggregate or not self.at else ()

    def group(self, row: Row) -> str:
        """The series that a row belongs to; "" if there is only one."""
        return join_key([row[name] for name in self.series]) if self.series else ""

    def identity(self, row: Row) -> str:
        """A row's identity; in a table without a key, by the requested columns."""
        return join_key([row[name] for name in self.shape.key or self.fields])

    @property
    def states(self) -> tuple[Column, ...]:
        """The columns in `where`."""
        return tuple(column for one in self.where if (column := self.shape.column(one.field)))

    def name(self, row: Row) -> str:
        """A row's readable name; "" if it has none."""
        return join_names(format_value(row[path]) for path in self.label if path in row)

    @property
    def noun(self) -> str:
        """The plural noun for its series or rows."""
        ours = [one for one in self.shape.relations if not one.many]
        called = [path.partition(".")[0] for path in self.label]
        if self.by:
            found = next((one for one in ours if one.pairs[0][0] == self.by), None)
            return plural(found.target.rpartition(".")[2]) if found else "series"
        # A row with only its parent's name (figures of a chain) stands for its parent.
        owner = next((one for one in ours if called == [one.name]), None)
        return plural((owner.target if owner else self.shape.name).rpartition(".")[2])

    @property
    def fields(self) -> tuple[str, ...]:
        """All reported fields of a row."""
        own = () if self.aggregate else (self.value, self.at)
        states = (one.name for one in self.states) if self.watch.sort == "where" else ()
        names = (*self.shape.key, self.by, *own, self.field, *self.include, *states, *self.label)
        return tuple(dict.fromkeys(filter(None, names)))

    def query(self, *where: Filter, order: tuple[RowOrder, ...] = (), first_of: str = "", limit: int = CAP) -> Query:
        """A query of this table; ties are broken by the key, so that equal databases answer equally."""
        fields = {one.field for one in order}
        ties = tuple(RowOrder(name, order[0].descending if order else False) for name in self.shape.key)
        ordered = (*order, *(tie for tie in ties if tie.field not in fields))
        filters = (*self.where, *where)
        return Query(self.shape.name, self.fields, filters, ordered, first_of, limit=limit, read_as=self.read_as)


def find_target(watch: DatabaseWatch, catalog: Catalog) -> Target:
    """Resolve a watch. Raises UserError that names the watch, the missing name, and the nearest existing one."""
    try:
        read_as = tuple(_read_as(watch, catalog))
        return _Finder(watch, read_text(catalog, watch.source, read_as), read_as).target()
    except UserError as problem:
        raise UserError(f"watch {watch.name}: {problem.what}", problem.next_step) from None


def _read_as(watch: DatabaseWatch, catalog: Catalog) -> Iterator[tuple[str, Type]]:
    """Text fields that a watch uses as numbers or times: their values decide, not their type."""
    shape = catalog.shape(watch.source)
    related = watch.count or (watch.sum or "").partition(".")[0]
    relation = shape.relation(related) if related else None
    far = catalog.shape(relation.target) if relation else None
    at = (watch.at or "").removeprefix(f"{related}.") if related else watch.at
    columns: tuple[tuple[Shape | None, str, str | None, Type], ...] = (
        (shape, "", watch.value, "decimal"),
        (shape, "", watch.top.field if watch.top else None, "decimal"),
        (far, f"{related}.", (watch.sum or "").partition(".")[2], "decimal"),
        (far if related else shape, f"{related}." if related else "", at, "time"),
    )
    for one, path, name, kind in columns:
        column = one.column(name) if one and name else None
        if column and column.type == "text" and not column.many:
            yield path + column.name, kind


@dataclass(frozen=True, slots=True)
class _Finder:
    watch: DatabaseWatch
    catalog: Catalog
    read_as: tuple[tuple[str, Type], ...] = ()

    def target(self) -> Target:
        watch, shape = self.watch, self.catalog.shape(self.watch.source)
        aggregate, at = self._aggregate(shape) if watch.derived else (None, self._time(shape, watch.at))
        if not shape.key and (aggregate or (watch.sort in ("change", "threshold") and not (watch.by or at))):
            raise UserError(
                f"{shape.place} has no key that identifies its rows", "name by, or at, or a table with a key"
            )
        return Target(
            watch,
            shape,
            VALUE if aggregate else self._field(shape, watch.value, NUMBERS),
            self._field(shape, watch.by),
            at,
            self._field(shape, watch.new_since, GROWING) or self._field(shape, watch.top.field if watch.top else None),
            tuple(self._path(shape, path) for path in watch.include),
            tuple(self._filter(shape, name, value) for name, value in watch.where.items()),
            aggregate,
            self._label(shape, at),
            self.read_as,
        )

    def _label(self, shape: Shape, at: str) -> tuple[str, ...]:
        """The columns of a row's name: the first included one, and names among the rest; else columns that look like a
        name."""
        watch = self.watch
        included = [self._path(shape, path) for path in watch.include]
        if included and (is_name(included[0]) or not any(map(is_name, included))):
            return (included[0], *(path for path in included[1:] if is_name(path)))
        if included:
            return tuple(filter(is_name, included))
        by = self._field(shape, watch.by)
        single = watch.sort in ("change", "threshold", "outlier", "missing") and at and not by and not watch.derived
        return () if single else name_paths(shape, self.catalog, by)

    def _field(self, shape: Shape, name: str | None, types: tuple[str, ...] = ()) -> str:
        if not name:
            return ""
        column = self._column(shape, name)
        if types and column.type not in types:
            raise UserError(f"{shape.name}.{name} is {column.type}", f"name a field that is {', '.join(types)}")
        return column.name

    def _column(self, shape: Shape, name: str) -> Column:
        column = shape.column(name)
        if column is None:
            what = f"{shape.name} (table {shape.place}) has no field {name} in {self.catalog.origin}"
            if shape.relation(name):
                raise UserError(f"{shape.name}.{name} is a relation", f"name a field of it, such as {name}.id")
            raise UserError(what, nearest(name, _names(shape)))
        if column.many or column.type in UNREADABLE_TYPES:
            raise UserError(f"{shape.name}.{name} is {'a list' if column.many else column.type}", "name another field")
        return column

    def _time(self, shape: Shape, name: str | None) -> str:
        return self._field(shape, name, ("time",))

    def _relation(self, shape: Shape, name: str, many: bool) -> Relation:
        relation = shape.relation(name)
        if relation is None:
            what = f"{shape.name} (table {shape.place}) has no relation {name} in {self.catalog.origin}"
            raise UserError(what, nearest(name, [one.name for one in shape.relations]))
        if relation.many != many:
            leads = "many rows" if relation.many else "one row"
            raise UserError(
                f"{shape.name}.{name} leads to {leads}", "use count or sum" if relation.many else "include it"
            )
        return relation

    def _path(self, shape: Shape, path: str) -> str:
        *relations, last = path.split(".")
        for name in relations:
            shape = self.catalog.shape(self._relation(shape, name, many=False).target)
        return ".".join((*relations, self._column(shape, last).name))

    def _aggregate(self, shape: Shape) -> tuple[Aggregate, str]:
        name, _, field = (self.watch.sum or self.watch.count or "").partition(".")
        related = self.catalog.shape(self._relation(shape, name, many=True).target)
        at = self._time(related, (self.watch.at or "").removeprefix(f"{name}.") or None)
        if self.watch.count:
            return Aggregate(VALUE, "count", name), at
        return Aggregate(VALUE, "sum", name, self._field(related, field, NUMBERS)), at

    def _filter(self, shape: Shape, name: str, value: Value | tuple[Value, ...]) -> Filter:
        column = self._column(shape, name)
        if isinstance(value, tuple):
            return Filter(column.name, "in", tuple(_to_column_type(shape, column, one) for one in value))
        return Filter(column.name, "=", _to_column_type(shape, column, value))


def _to_column_type(shape: Shape, column: Column, value: Value) -> Value:
    """A setting's value as the column's type."""
    if value is None:
        return None
    text = format_value(value)
    if column.type == "enum" and column.values:
        return _member(shape, column, text)
    if column.type == "time" and isinstance(value, str):
        return _moment(shape, column, value)
    wrong = {
        "bool": not isinstance(value, bool),
        "int": isinstance(value, bool) or not isinstance(value, int),
        "decimal": isinstance(value, bool) or not isinstance(value, int | Decimal),
        "float": isinstance(value, bool) or not isinstance(value, int | Decimal),
        "text": not isinstance(value, str),
    }
    if wrong.get(column.type, column.type in ("json", "time")):
        raise UserError(f"where: {shape.name}.{column.name} is {column.type}, not {text!a}", "fix the watch")
    return Decimal(value) if column.type in ("decimal", "float") and isinstance(value, int) else value


def _member(shape: Shape, column: Column, text: str) -> str:
    names = {stored: name for name, stored in column.values} | {name: name for name, _ in column.values}
    if text not in names:
        raise UserError(f"where: {shape.name}.{column.name} is never {text!a}", nearest(text, dict(column.values)))
    return names[text]


def _moment(shape: Shape, column: Column, text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            f"where: {shape.name}.{column.name} is a time, not {text!a}", "write it as 2030-01-31T12:00:00Z"
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _names(shape: Shape) -> set[str]:
    return {name for column in shape.columns for name in (column.name, column.column)}
