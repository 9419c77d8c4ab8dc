"""An address of libpq as Prisma's engines take it. Neither of them understands all of it, and one believes too much.

A `Query` in the words of the Prisma client, and its answer as rows. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from ralph_mission.adapters.database.address import Address
from ralph_mission.adapters.database.cells import cell
from ralph_mission.adapters.database.prisma.derived import Names, value_name
from ralph_mission.adapters.database.queries import CAP, GROUPS, SERIES, Aggregate, Filter, Query, RowOrder, Value
from ralph_mission.adapters.database.sessions import Caps
from ralph_mission.adapters.database.shapes import Catalog, Column, Relation, Shape
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

SYSTEM = "system"  # of sslrootcert: the authorities that this host believes
ELSE = "take the backend sqlalchemy"


def prisma_url(address: Address, caps: Caps, native: bool, encrypted: bool) -> str:
    """The address with what every session has to be: read-only, impatient, in UTC, on one connection.

    `encrypted`: what libpq came to with the same address. Raises UserError for a check that an engine cannot make.
    """
    parts = urlsplit(address.url)
    asked = dict(parse_qsl(parts.query))
    session = {
        "default_transaction_read_only": "on",
        "statement_timeout": str(int(caps.seconds * 1000)),
        "lock_timeout": str(int(caps.lock_seconds * 1000)),
        "idle_in_transaction_session_timeout": str(int(caps.seconds * 4000)),
        "TimeZone": "UTC",
    }
    options = " ".join([asked.get("options", ""), *(f"-c {name}={value}" for name, value in session.items())]).strip()
    asked |= {"options": options, "connection_limit": "1", "connect_timeout": str(caps.connect_seconds)}
    if address.schema:
        asked["schema"] = address.schema
    return parts._replace(query=urlencode(_trusting(asked, native, encrypted))).geturl()


def _trusting(asked: dict[str, str], native: bool, encrypted: bool) -> dict[str, str]:
    """With the TLS that was asked for, in the engine's own words."""
    mode, root = asked.get("sslmode", "prefer"), asked.get("sslrootcert", "")
    rest = {name: value for name, value in asked.items() if name not in ("sslmode", "sslrootcert")}
    if mode in ("allow", "prefer"):  # libpq tries both ways, the engines only one
        return rest | {"sslmode": "require" if encrypted else "disable"}
    if mode == "disable" or (mode == "require" and not root):
        return rest | {"sslmode": mode}
    if not root:
        raise UserError(f"the backend prisma needs sslrootcert beside sslmode={mode}", f"name the file, or {ELSE}")
    if native:
        return rest | _strict(mode, root, rest)
    file = {} if root == SYSTEM else {"sslrootcert": str(Path(root).absolute())}
    return rest | {"sslmode": mode} | file


def _strict(mode: str, root: str, rest: dict[str, str]) -> dict[str, str]:
    """Prisma's own program checks names too or nothing at all, and would take a mode it does not know for `prefer`."""
    if mode != "verify-full":
        raise UserError(f"Prisma's own engine cannot check an authority by sslmode={mode}", f"verify-full, or {ELSE}")
    if rest.keys() & {"sslcert", "sslkey"}:
        raise UserError("Prisma's own engine takes no sslcert and sslkey beside sslrootcert", ELSE)
    return {"sslmode": "require", "sslaccept": "strict"} | (
        {} if root == SYSTEM else {"sslcert": str(Path(root).absolute())}
    )


OPERATORS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
Answer = Sequence[Mapping[str, Any]]
MEASURED = ("int", "decimal", "float", "time")
BROKEN = "\x85\u2028\u2029"
"""The client takes these for ends of lines, in the middle of a text."""


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call of the client: `select` are the fields that come back, as GraphQL writes them."""

    model: str
    method: str
    arguments: Mapping[str, Any]
    select: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryTranslator:
    """Translates for one schema."""

    catalog: Catalog
    names: Names

    def firsts(self, query: Query) -> ClientCall | None:
        """How far each group of `first_of` goes; None where the server cannot say, or nobody asked.

        What the client calls distinct reads the whole table; the greatest of each group is a question of its own.
        """
        shape = self.catalog.shape(query.source)
        if not query.first_of or not query.order or _column(shape, query.order[0].field).type not in MEASURED:
            return None
        group, field = self.names.field(shape, query.first_of), self.names.field(shape, query.order[0].field)
        arguments = {
            "by": [group],
            "where": self._where(shape, query.where),
            "order_by": [{group: "asc"}],
            "take": GROUPS,
        }
        far = "_max" if query.order[0].descending else "_min"
        return ClientCall(self.names.model(shape), "group_by", arguments, (group, f"{far} {{ {field} }}"))

    def rows(self, query: Query, firsts: Answer | None = None) -> ClientCall:
        """The rows themselves, with fields of related ones; with `firsts`, those of which the first ones are some."""
        shape = self.catalog.shape(query.source)
        arguments: dict[str, Any] = {
            "where": self._where(shape, query.where),
            "order_by": [self._order(shape, one) for one in query.order],
            "take": query.limit,
        }
        if firsts is not None:
            groups = [self._farthest(shape, query, raw) for raw in firsts]
            arguments |= {"where": {"AND": [arguments["where"], {"OR": groups}]}, "take": SERIES}
        elif query.first_of:
            arguments |= {"distinct": [self.names.field(shape, query.first_of)]}
        ordered = (one.field for one in query.order)
        paths = [*query.fields, query.first_of, *ordered, *_near(shape, query.aggregates)]
        return ClientCall(self.names.model(shape), "find_many", arguments, tuple(self._selected(shape, paths)))

    def picked(self, query: Query, answer: Answer) -> Answer:
        """The first row of each group; of ungrouped ones all. Raises UserError when too many share the first place."""
        if not query.first_of:
            return answer
        if len(answer) >= SERIES:
            raise UserError(
                f"more than {SERIES:,} rows of {query.source} are the first ones", "use the backend sqlalchemy"
            )
        group = self.names.field(self.catalog.shape(query.source), query.first_of)
        first: dict[str, Mapping[str, Any]] = {}
        for raw in answer:
            first.setdefault(json.dumps(raw[group], sort_keys=True), raw)  # null is no text, not even "None"
        return list(first.values())[: query.limit]

    def told(self, query: Query, answer: Answer) -> list[dict[str, Value]]:
        """The rows of such an answer."""
        shape = self.catalog.shape(query.source)
        return [{path: self._cell(shape, raw, path.split(".")) for path in query.fields} for raw in answer]

    def _farthest(self, shape: Shape, query: Query, raw: Mapping[str, Any]) -> dict[str, Any]:
        """A group and its first place. Times come to the millisecond, while the server knows them better."""
        group, order = self.names.field(shape, query.first_of), query.order[0]
        field, column = self.names.field(shape, order.field), _column(shape, order.field)
        end = raw["_max" if order.descending else "_min"][field]
        value = cell(end, column)
        place: Any = end if value is None or column.type == "text" else _graphql_value(column, value)
        if isinstance(value, datetime):
            place = {
                "gte": _graphql_value(column, value),
                "lt": _graphql_value(column, value + timedelta(milliseconds=1)),
            }
        return {group: _unbroken(raw[group]), field: place}

    # --- related rows -----------------------------------------------------------------

    def related(self, query: Query, one: Aggregate, answer: Answer) -> ClientCall:
        """Numbers made of rows that are related to those of an answer."""
        shape = self.catalog.shape(query.source)
        relation, far = self._relation(shape, one.relation)
        where = self._where(far, one.where)
        if relation.through:
            inner = {"where": where, "take": CAP + 1}
            keys = [self.names.field(shape, near) for near, _ in relation.pairs]
            asked = {"AND": [self._where(shape, query.where), self._among(keys, keys, answer)]}
            select = (*keys,)
            return ClientCall(
                self.names.model(shape),
                "find_many",
                {"where": asked, "take": query.limit, "include": {self.names.field(shape, one.relation): inner}},
                select,
            )
        ours = [self.names.field(shape, near) for near, _ in relation.pairs]
        theirs = [self.names.field(far, there) for _, there in relation.pairs]
        number = f"_sum {{ {self.names.field(far, one.field)} }}" if one.function == "sum" else "_count { _all }"
        both = {"AND": [where, self._among(ours, theirs, answer)]}
        return ClientCall(self.names.model(far), "group_by", {"by": theirs, "where": both}, (*theirs, number))

    def made(self, query: Query, one: Aggregate, answer: Answer, numbers: Answer) -> Iterator[Value]:
        """One for each row of `answer`. Raises UserError where there is too much to be added up here."""
        shape = self.catalog.shape(query.source)
        relation, far = self._relation(shape, one.relation)
        ours = [self.names.field(shape, near) for near, _ in relation.pairs]
        theirs = ours if relation.through else [self.names.field(far, there) for _, there in relation.pairs]
        found = {tuple(str(raw[name]) for name in theirs): raw for raw in numbers if _whole(raw, theirs)}
        for raw in answer:
            number = found.get(tuple(str(raw[name]) for name in ours)) if _whole(raw, ours) else None
            yield self._number(shape, far, one, number)

    def _number(self, shape: Shape, far: Shape, one: Aggregate, raw: Mapping[str, Any] | None) -> Value:
        if raw is None:
            return 0
        column = _column(far, one.field) if one.function == "sum" else Column("", "", "int")
        if "_count" in raw or "_sum" in raw:
            made = raw["_sum"][self.names.field(far, one.field)] if one.function == "sum" else raw["_count"]["_all"]
            return cell(made, column) or 0
        related = raw[self.names.field(shape, one.relation)]
        if len(related) > CAP:
            raise UserError(f"a row of {shape.name} has more than {CAP:,} {one.relation}", "use the backend sqlalchemy")
        if one.function == "count":
            return len(related)
        cells = [cell(row[self.names.field(far, one.field)], column) for row in related]
        return sum((number for number in cells if isinstance(number, int | Decimal)), 0)

    def _among(self, ours: Sequence[str], theirs: Sequence[str], answer: Answer) -> dict[str, Any]:
        """Rows whose `theirs` are the `ours` of one of the answer; null is nobody's."""
        keys = [[_unbroken(raw[name]) for name in ours] for raw in answer if _whole(raw, ours)]
        if len(ours) == 1:
            return {theirs[0]: {"in": [key for (key,) in keys]}}
        return {"OR": [dict(zip(theirs, key, strict=True)) for key in keys] or [{theirs[0]: {"in": []}}]}

    # --- fields -----------------------------------------------------------------------

    def _selected(self, shape: Shape, paths: Iterable[str]) -> Iterator[str]:
        """`f001 f002 { f000 }`, each relation once."""
        heads: dict[str, list[str]] = {}
        for path in filter(None, paths):
            name, _, rest = path.partition(".")
            heads.setdefault(name, []).extend([rest] if rest else [])
        for name, rests in heads.items():
            relation = shape.relation(name)
            if relation is None or not rests:
                yield self.names.field(shape, name)
            else:
                inner = " ".join(self._selected(self.catalog.shape(relation.target), rests))
                yield f"{self.names.field(shape, name)} {{ {inner} }}"

    def _cell(self, shape: Shape, raw: Mapping[str, Any] | None, path: Sequence[str]) -> Value:
        if raw is None:
            return None
        name, *rest = path
        if rest:
            _, far = self._relation(shape, name)
            return self._cell(far, raw[self.names.field(shape, name)], rest)
        column, value = _column(shape, name), raw[self.names.field(shape, name)]
        try:
            return _enum(column, value) if column.type == "enum" else cell(value, column)
        except (ValueError, OverflowError, TypeError):
            raise UserError(f"{shape.name}.{name} holds what is no {column.type}", "leave the field out") from None

    def _relation(self, shape: Shape, name: str) -> tuple[Relation, Shape]:
        relation = shape.relation(name)
        assert relation is not None, f"{shape.name} has no {name}"
        return relation, self.catalog.shape(relation.target)

    # --- conditions -------------------------------------------------------------------

    def _order(self, shape: Shape, one: RowOrder) -> dict[str, Any]:
        way, field = "desc" if one.descending else "asc", self.names.field(shape, one.field)
        return {field: {"sort": way, "nulls": "last"}} if _column(shape, one.field).nullable else {field: way}

    def _where(self, shape: Shape, filters: Iterable[Filter]) -> dict[str, Any]:
        return {"AND": [self._holds(shape, one) for one in filters]}

    def _holds(self, shape: Shape, one: Filter) -> dict[str, Any]:
        column, field = _column(shape, one.field), self.names.field(shape, one.field)
        if column.type == "json":
            raise UserError(f"the Prisma client cannot ask for {shape.name}.{one.field}, which is JSON", ELSE)
        if one.operator == "known":
            return {"NOT": [{field: None}]} if column.nullable else {}
        if one.operator in OPERATORS:
            assert not isinstance(one.value, tuple)
            return {field: {OPERATORS[one.operator]: _graphql_value(column, one.value)}}
        values = one.value if isinstance(one.value, tuple) else (one.value,)
        possible = [value for value in values if value is not None or column.nullable]
        if not possible:  # the engine takes an OR of nothing for no condition at all
            return {"AND": [{field: True}, {field: False}]} if column.type == "bool" else {field: {"in": []}}
        return {"OR": [{field: None if value is None else _graphql_value(column, value)} for value in possible]}


def _whole(raw: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Whether a key has all its parts."""
    return all(raw[name] is not None for name in names)


def _near(shape: Shape, aggregates: Iterable[Aggregate]) -> Iterator[str]:
    for one in aggregates:
        relation = shape.relation(one.relation)
        yield from (near for near, _ in relation.pairs) if relation else ()


def _column(shape: Shape, name: str) -> Column:
    found = shape.column(name)
    assert found is not None, f"{shape.name} has no {name}"
    return found


def _enum(column: Column, raw: Any) -> Value:
    names = {value_name(place): name for place, (name, _) in enumerate(column.values)}
    return names.get(str(raw), str(raw)) if raw is not None else None


def _graphql_value(column: Column, value: Value) -> Any:
    """A value as GraphQL takes it. Raises UserError for a text that the client would change."""
    if column.type == "enum":
        places = {name: value_name(place) for place, (name, _) in enumerate(column.values)}
        return places.get(str(value), str(value))
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return float(value) if column.type == "float" else str(value)
    return _unbroken(value)


def _unbroken(value: Any) -> Any:
    if isinstance(value, str) and any(letter in value for letter in BROKEN):
        raise UserError("the Prisma client cannot ask for a text with such ends of lines", "use the backend sqlalchemy")
    return value
