"""A `Query` as one SELECT of SQLAlchemy, the same for PostgreSQL and SQLite, and the cells of its answer as `Value`s.

Values are always parameters. An owner's own query is wrapped as a table, and defines its columns itself.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import expression as sql
from sqlalchemy.types import NULLTYPE, TypeEngine

from ralph_mission.adapters.database.model import (
    Aggregate,
    Catalog,
    Column,
    Filter,
    Interest,
    Query,
    Relation,
    RowOrder,
    Shape,
    Type,
    Value,
    read_text,
)
from ralph_mission.values import compile_regex, dataclass

LONGEST = 4_000
"""Maximum characters of a text to show or compare."""
DIGITS = 400
"""Digits of an integer; a longer one written out (a text such as 1e999999999 in SQLite) may take all memory."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cell(raw: Any, column: Column) -> Value:
    """A value of the column's type. Raises ValueError if invalid, such as a text that is not a date."""
    if raw is None or (column.text and not _reads_like(raw, column.type)):
        return None
    match column.type:
        case "bool":
            return bool(raw) and raw != "false"
        case "int" | "decimal" | "float":
            return _number(raw, column.type)
        case "time":
            return _time(raw)
        case "json":
            return canonical(raw)[:LONGEST]
        case "enum":
            return {stored: name for name, stored in column.values}.get(str(raw), str(raw))
        case _:
            return str(raw)[:LONGEST]


NUMBER = r"^ *[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})? *$"
MOMENT = (
    r"^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|[0-9]{2}([02468][048]|[13579][26])-02-29)"
    r"([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$"
)
"""The patterns of texts that are a number or a time (ISO 8601), the same for PostgreSQL and Python."""
_LIKE = {"decimal": compile_regex(NUMBER), "time": compile_regex(MOMENT)}


def _reads_like(raw: Any, kind: str) -> bool:
    """Whether a text has its type's form; SQLite stores anything."""
    return not isinstance(raw, str) or bool(_LIKE[kind].search(raw))


def canonical(raw: Any) -> str:
    """JSON with sorted keys and without spaces, from text or a value."""
    try:
        value = json.loads(raw) if isinstance(raw, str) else raw
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
        return text.encode("utf-8", "replace").decode()  # half a letter ("\ud800") is one that no file can hold
    except (ValueError, RecursionError):  # cut off, or never JSON
        return str(raw)


def _number(raw: Any, kind: str) -> Value:
    try:
        number = Decimal(repr(raw) if isinstance(raw, float) else str(raw))
    except InvalidOperation:
        raise ValueError("no number") from None
    ordinary = kind == "int" and number.is_finite() and number.adjusted() < DIGITS
    whole = ordinary and number == number.to_integral_value()
    return int(number) if whole else number


def _time(raw: Any) -> datetime:
    """A time: text is ISO 8601; an integer is Prisma's form in SQLite, milliseconds. Without a zone it is UTC."""
    if isinstance(raw, int):
        return EPOCH + timedelta(milliseconds=raw)
    if isinstance(raw, date) and not isinstance(raw, datetime):
        return datetime(raw.year, raw.month, raw.day, tzinfo=UTC)
    at = raw if isinstance(raw, datetime) else datetime.fromisoformat(str(raw))
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)


Expression = sql.ColumnElement[Any]
TYPES: Mapping[type, TypeEngine[Any]] = {
    bool: sa.Boolean(),
    int: sa.BigInteger(),
    Decimal: sa.Numeric(),
    datetime: sa.TIMESTAMP(timezone=True),
}
"""The declared types of parameters; the server infers a text's type (an enum's value, a UUID) from its context."""
SPANNING = ("int", "decimal", "time")
"""Types with a minimum and maximum in every database, consistent with its sort order."""
COMPARING = (">", ">=", "<", "<=")


@dataclass(frozen=True, slots=True)
class Dialect:
    """`schema`: the default schema of tables.

    With `native_type`, every value is transferred as text, so that no driver can change it: it returns the database's
    name of a column's type.
    """

    name: str = "postgresql"
    schema: str = ""
    native_type: Callable[[Shape, Column], str] | None = None


def build_select(query: Query, catalog: Catalog, dialect: Dialect) -> sql.Select[Any]:
    """A SELECT whose columns are the query's fields and aggregates, in order."""
    catalog = read_text(catalog, query.source, query.read_as)
    return _SelectWriter(catalog, dialect, catalog.shape(query.source), query).build()


def wrap_own_query(text: str, limit: int) -> sql.Select[Any]:
    """The first rows of an owner's query. It stays an expression: with a parameter, servers only accept one
    statement."""
    inner = sa.text(f"(\n{_own(text)}) AS own")
    return sa.select(sa.text("*")).select_from(inner).limit(limit)


def _own(text: str) -> str:
    """An owner's SQL, verbatim: it has no parameters of ours, and a comment at its end hides nothing after it."""
    return text.rstrip().removesuffix(";").replace(":", "\\:") + "\n"


@dataclasses.dataclass
class _SelectWriter:
    catalog: Catalog
    dialect: Dialect
    shape: Shape
    query: Query
    joined: dict[tuple[str, ...], tuple[Shape, sql.FromClause]] = field(default_factory=dict)
    source: sql.FromClause = field(init=False)

    def build(self) -> sql.Select[Any]:
        self.source = base = self._table(self.shape).alias()
        self.joined[()] = (self.shape, base)
        fields = [self._field(name).label(f"c{place}") for place, name in enumerate(self.query.fields)]
        numbers = [self._number(one, base).label(f"m{place}") for place, one in enumerate(self.query.aggregates)]
        where = [self._condition(self.shape, base, one) for one in self.query.where]
        order = [self._key(base, one).label(f"o{place}") for place, one in enumerate(self.query.order)]
        if self.query.first_of:
            return self._first_rows(base, [*fields, *numbers], where, order)
        found = sa.select(*map(self._sent, [*fields, *numbers])).select_from(self.source).where(*where)
        return found.order_by(*self._ordered(order)).limit(self.query.limit)

    def _first_rows(
        self,
        base: sql.FromClause,
        columns: list[sql.Label[Any]],
        where: Iterable[Expression],
        order: list[sql.Label[Any]],
    ) -> sql.Select[Any]:
        """The first row of each group; a partition treats nulls as equal, as groups do."""
        group = self._raw(self.shape, base, self.query.first_of)
        rank = sa.func.row_number().over(partition_by=group, order_by=self._ordered(one.element for one in order))
        narrower = (*where, *self._candidates(base))
        rows = sa.select(*columns, *order, rank.label("place")).select_from(self.source).where(*narrower).subquery()
        outer = [self._sent(rows.c[one.key].label(one.key)) for one in columns]
        return (
            sa.select(*outer)
            .where(rows.c.place == 1)
            .order_by(*self._ordered(rows.c[one.key] for one in order))
            .limit(self.query.limit)
        )

    def _candidates(self, base: sql.FromClause) -> Iterator[Expression]:
        """Candidates for the first rows of groups: found in one pass, without sorting the rest."""
        first = next(iter(self.query.order), None)
        if first is None or self.shape.sql or not self._never_null(first.field):
            return
        if _column(self.shape, first.field).type in SPANNING:
            again = self._table(self.shape).alias()
            key, group = self._key(again, first), self._raw(self.shape, again, self.query.first_of)
            begins = sa.func.max(key) if first.descending else sa.func.min(key)
            where = [self._condition(self.shape, again, one) for one in self.query.where]
            yield self._key(base, first).in_(sa.select(begins).select_from(again).where(*where).group_by(group))

    def _sent(self, value: sql.Label[Any]) -> Expression:
        return sa.cast(value.element, sa.Text).label(value.key) if self.dialect.native_type else value

    # --- columns ----------------------------------------------------------------------

    def _table(self, shape: Shape) -> sql.FromClause:
        columns: list[sql.ColumnClause[Any]] = [sa.column(one.column) for one in shape.columns]
        if shape.sql:
            return sa.text(_own(shape.sql)).columns(*columns).subquery()
        return sa.table(shape.table, *columns, schema=shape.schema or self.dialect.schema or None)

    def _field(self, path: str) -> Expression:
        """A field in the SELECT, cut to the maximum length."""
        *relations, name = path.split(".")
        shape, source = self._join(tuple(relations))
        column, raw = _column(shape, name), self._raw(shape, source, name)
        if (column.type not in ("text", "json") and not column.text) or column.many:
            return raw
        return sa.func.substr(sa.cast(raw, sa.Text), 1, 25 * LONGEST if column.type == "json" else LONGEST)

    def _join(self, path: tuple[str, ...]) -> tuple[Shape, sql.FromClause]:
        if path not in self.joined:
            near, source = self._join(path[:-1])
            relation = _relation(near, path[-1])
            far = self.catalog.shape(relation.target)
            table = self._table(far).alias()
            pairs = [self._raw(near, source, a) == self._raw(far, table, b) for a, b in relation.pairs]
            self.source = self.source.outerjoin(table, sa.and_(*pairs))
            self.joined[path] = (far, table)
        return self.joined[path]

    def _raw(self, shape: Shape, source: sql.FromClause, name: str) -> Expression:
        found: Expression = source.c[_column(shape, name).column]
        return found

    def _key(self, base: sql.FromClause, order: RowOrder) -> Expression:
        return self._comparable(self.shape, base, order.field)

    def _ordered(self, keys: Iterable[Expression]) -> list[Expression]:
        """Nulls last; omitted without nulls, because an index is only used for its own order."""
        pairs = zip(keys, self.query.order, strict=True)
        sorted_by = [(key.desc() if order.descending else key.asc(), order) for key, order in pairs]
        return [key if self._never_null(order.field) else key.nulls_last() for key, order in sorted_by]

    def _never_null(self, name: str) -> bool:
        compared = any(one.field == name and one.operator in (*COMPARING, "known") for one in self.query.where)
        return compared or not _column(self.shape, name).nullable

    # --- conditions -------------------------------------------------------------------

    def _condition(self, shape: Shape, source: sql.FromClause, one: Filter) -> Expression:
        column, raw = _column(shape, one.field), self._comparable(shape, source, one.field)
        if one.operator == "known":
            return raw.is_not(None)
        if one.operator in COMPARING:
            assert not isinstance(one.value, tuple)
            return raw.bool_op(one.operator)(self._bound(one.value, shape, column))
        values = one.value if isinstance(one.value, tuple) else (one.value,)
        same = [raw.is_(None) if value is None else raw == self._bound(value, shape, column) for value in values]
        return sa.or_(sa.false(), *same)

    def _comparable(self, shape: Shape, source: sql.FromClause, name: str) -> Expression:
        """SQLite stores times as text in several forms, or as milliseconds: convert all to one form."""
        raw, column = self._raw(shape, source, name), _column(shape, name)
        if self.dialect.name != "sqlite":
            return _read_in_postgresql(raw, column) if column.text else raw
        if column.text and column.type == "decimal":
            return _number_in_sqlite(raw)
        if column.type != "time":
            return raw
        if column.text:
            day = sa.func.substr(raw, 1, 10)  # SQLite would take 30 February for 2 March, and 12 for a day too
            return sa.case((sa.func.date(day, "+0 days") == day, sa.func.strftime("%Y-%m-%d %H:%M:%f", raw)))
        whole = sa.func.strftime("%Y-%m-%d %H:%M:%f", raw / sa.literal(1000.0), "unixepoch")
        return sa.case((sa.func.typeof(raw) == "integer", whole), else_=sa.func.strftime("%Y-%m-%d %H:%M:%f", raw))

    def _bound(self, value: Value, shape: Shape, column: Column) -> Expression:
        if column.type == "enum":
            value = dict(column.values).get(str(value), str(value))
        if self.dialect.name == "sqlite":
            return sa.bindparam(None, _for_sqlite(value), type_=NULLTYPE, unique=True)
        large = isinstance(value, int) and abs(value) >= 2**63
        kind = sa.Numeric() if large else TYPES.get(type(value), NULLTYPE)
        if self.dialect.native_type:
            native = "" if column.text else self.dialect.native_type(shape, column)
            return _from_text(value, NativeType(native) if native else kind)
        if column.type == "float":  # as text, which the server takes for what it meets: 0.1 of four bytes is another
            return sa.bindparam(None, str(value), type_=NULLTYPE, unique=True)
        return sa.bindparam(None, value, type_=kind, unique=True)

    # --- related rows -----------------------------------------------------------------

    def _number(self, one: Aggregate, base: sql.FromClause) -> Expression:
        """Computed once for all rows, then joined: a count per row would read the related table each time."""
        relation = _relation(self.shape, one.relation)
        far = self.catalog.shape(relation.target)
        table = self._table(far).alias()
        source, keys = self._near_keys(relation, far, table)
        number = sa.func.count() if one.function == "count" else sa.func.sum(self._comparable(far, table, one.field))
        where = [self._condition(far, table, condition) for condition in one.where]
        named = [key.label(f"k{place}") for place, key in enumerate(keys)]
        grouped = sa.select(*named, number.label("number")).select_from(source).where(*where).group_by(*keys).subquery()
        ours = [self._raw(self.shape, base, near) for near, _ in relation.pairs]
        same = [key == grouped.c[f"k{place}"] for place, key in enumerate(ours)]
        self.source = self.source.outerjoin(grouped, sa.and_(*same))
        return sa.func.coalesce(grouped.c.number, 0)

    def _near_keys(
        self, relation: Relation, far: Shape, table: sql.FromClause
    ) -> tuple[sql.FromClause, list[Expression]]:
        through = relation.through
        if through is None:
            return table, [self._raw(far, table, theirs) for _, theirs in relation.pairs]
        schema = through.schema or self.dialect.schema or None
        between = sa.table(through.table, sa.column(through.near), sa.column(through.far), schema=schema).alias()
        same = [between.c[through.far] == self._raw(far, table, theirs) for _, theirs in relation.pairs]
        return between.join(table, sa.and_(*same)), [between.c[through.near]]


def _read_in_postgresql(raw: Expression, column: Column) -> Expression:
    text, (like, kind) = sa.cast(raw, sa.Text), _READ[column.type]
    return sa.case((text.op("~")(sa.literal_column(f"'{like}'")), sa.cast(text, kind)))


def _number_in_sqlite(raw: Expression) -> Expression:
    """Without regular expressions: only characters of numbers, with at least one digit."""
    text = sa.func.trim(sa.cast(raw, sa.Text))
    other, digit = text.op("GLOB")(sa.literal("*[^0-9.eE+-]*")), text.op("GLOB")(sa.literal("*[0-9]*"))
    return sa.case((sa.and_(sa.not_(other), digit), sa.cast(text, sa.NUMERIC)))


_READ: Mapping[str, tuple[str, TypeEngine[Any]]] = {
    "decimal": (NUMBER, sa.Numeric()),
    "time": (MOMENT, sa.TIMESTAMP(timezone=True)),
}


def _column(shape: Shape, name: str) -> Column:
    found = shape.column(name)
    assert found is not None, f"{shape.name} has no {name}"  # targets are made of what is there
    return found


def _relation(shape: Shape, name: str) -> Relation:
    found = shape.relation(name)
    assert found is not None, f"{shape.name} has no {name}"
    return found


class NativeType(sa.types.UserDefinedType[Any]):
    """A type by the database's own name."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """The type's name in a cast."""
        return self.name


def _from_text(value: Value, kind: TypeEngine[Any]) -> Expression:
    """A parameter sent as text and parsed by the server."""
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    bound = sa.cast(sa.bindparam(None, text, type_=sa.Text(), unique=True), sa.Text)
    return bound if kind is NULLTYPE else sa.cast(bound, kind)


def _for_sqlite(value: Value) -> str | int | None:
    """Decimals as text, which a numeric column converts; times in a single form."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return str(value) if isinstance(value, Decimal) else value


DRIVER_TYPES: Mapping[str, Type] = {
    **dict.fromkeys(("int2", "int4", "int8"), "int"),
    **dict.fromkeys(("float4", "float8"), "float"),
    **dict.fromkeys(("timestamp", "timestamptz", "date"), "time"),
    **dict.fromkeys(("json", "jsonb"), "json"),
    "numeric": "decimal",
    "bool": "bool",
    "bytea": "bytes",
}
"""By PostgreSQL's own names; all others are text."""
SAMPLED = 50  # rows that tell SQLite's types, which are those of its values


def shape_of(connection: sa.Connection, interest: Interest) -> Shape:
    """A shape without a key or relations."""
    postgres = connection.dialect.name == "postgresql"
    with connection.execute(wrap_own_query(interest.sql, 0 if postgres else SAMPLED)) as result:
        names = list(result.keys())
        types = (
            [_of_server(int(str(one[1]))) for one in result.cursor.description] if postgres and result.cursor else None
        )
        rows = [] if postgres else [tuple(row) for row in result]
    columns = [
        Column(name, name, types[place] if types else _of_values([row[place] for row in rows]), True)
        for place, name in enumerate(names)
    ]
    return replace(Shape(interest.source, interest.source, "", tuple(columns)), sql=interest.sql)


def _of_server(oid: int) -> Type:
    from psycopg import postgres

    known = postgres.types.get(oid)
    return DRIVER_TYPES.get(known.name, "text") if known else "text"


def _of_values(values: list[Any]) -> Type:
    kinds: dict[type, Type] = {int: "int", float: "float", Decimal: "decimal", bytes: "bytes"}
    found = {kinds.get(type(value), "text") for value in values if value is not None}
    return found.pop() if len(found) == 1 else "float" if found == {"int", "float"} else "text"
