"""What a database says of itself as a `Catalog`: names and keys of all tables, columns of those that are needed.

A relation is called by its column without `_id` (`chain_id` leads to `chain`), or else by the table it leads to;
the way back is called by the table it comes from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.engine.reflection import Inspector, ObjectKind

from ralph_mission.gateways.database.shapes import Catalog, Column, Relation, Shape, Type

KINDS: Sequence[tuple[type | tuple[type, ...], Type]] = (
    (sa.Enum, "enum"),
    (sa.Boolean, "bool"),
    (sa.Integer, "int"),
    ((sa.Float, sa.Double), "float"),
    (sa.Numeric, "decimal"),
    ((sa.DateTime, sa.Date), "time"),
    (sa.JSON, "json"),
    ((sa.String, sa.Uuid, pg.INET, pg.CIDR, pg.MACADDR), "text"),
    ((sa.LargeBinary, pg.BYTEA), "bytes"),
)
"""The first that fits; what is none of them is `other`, and cannot be told."""
Place = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class _Foreign:
    """One foreign key, by the names of columns."""

    here: Place
    there: Place
    pairs: tuple[tuple[str, str], ...]
    name: str


def skeleton(inspector: Inspector, schemas: Iterable[str | None]) -> Catalog:
    """All tables and views of some schemas with their keys and relations, without columns."""
    found = [(schema, *_skeleton(inspector, schema)) for schema in dict.fromkeys(schemas)]
    shapes = [shape for _, ones, _ in found for shape in ones]
    places = {(shape.schema or None, shape.table) for shape in shapes}
    keys = [key for _, _, ones in found for key in ones if {key.here, key.there} <= places]
    return Catalog(tuple(replace(shape, relations=tuple(_relations(shape, keys))) for shape in shapes))


def add_columns(inspector: Inspector, catalog: Catalog, places: Collection[str]) -> Catalog:
    """With the columns of the tables at `places` that had none yet."""
    bare = [shape for shape in catalog.shapes if shape.place in places and not shape.columns]
    columns: dict[str, tuple[Column, ...]] = {}
    for schema in {shape.schema or None for shape in bare}:
        names = [shape.table for shape in bare if (shape.schema or None) == schema]
        read = inspector.get_multi_columns(schema=schema, filter_names=names, kind=ObjectKind.ANY)
        for (_, table), ones in read.items():
            columns[f"{schema}.{table}" if schema else table] = tuple(map(_column, ones))
    return replace(
        catalog, shapes=tuple(replace(one, columns=columns.get(one.place, one.columns)) for one in catalog.shapes)
    )


def _skeleton(inspector: Inspector, schema: str | None) -> tuple[list[Shape], list[_Foreign]]:
    where: Mapping[str, Any] = {"schema": schema, "kind": ObjectKind.ANY}
    primary = inspector.get_multi_pk_constraint(**where)
    tables = {*primary, *((schema, name) for name in _views(inspector, schema))}
    shapes = [
        Shape(
            name,
            name,
            schema or "",
            (),
            tuple(key["constrained_columns"]) if (key := primary.get((schema, name))) else (),
        )
        for _, name in sorted(tables, key=lambda place: place[1])
    ]
    return shapes, list(_foreign(inspector.get_multi_foreign_keys(**where)))


def _views(inspector: Inspector, schema: str | None) -> Iterator[str]:
    yield from inspector.get_view_names(schema)
    if inspector.dialect.name == "postgresql":
        yield from inspector.get_materialized_view_names(schema)


def _foreign(read: Mapping[Place, Sequence[Mapping[str, Any]]]) -> Iterator[_Foreign]:
    for (schema, table), keys in read.items():
        for key in keys:
            pairs = tuple(zip(key["constrained_columns"], key["referred_columns"], strict=False))
            there = (key.get("referred_schema") or schema, key["referred_table"])
            yield _Foreign((schema, table), there, pairs, key.get("name") or "")


def _relations(shape: Shape, keys: Sequence[_Foreign]) -> Iterator[Relation]:
    here: Place = (shape.schema or None, shape.table)
    out = [key for key in keys if key.here == here]
    back = [key for key in keys if key.there == here]
    names = Counter(_forward(key) for key in out)
    for key in out:
        name = _forward(key) if names[_forward(key)] == 1 else "_".join(ours for ours, _ in key.pairs)
        yield Relation(name, _place(key.there), False, key.pairs)
    taken = Counter(key.here[1] for key in back)
    for key in back:
        table = key.here[1]
        name = table if taken[table] == 1 else f"{table}_{_forward(key)}"
        yield Relation(name, _place(key.here), True, tuple((theirs, ours) for ours, theirs in key.pairs))


def _forward(key: _Foreign) -> str:
    column = key.pairs[0][0] if len(key.pairs) == 1 else ""
    short = re.sub(r"(_id|Id|_ID|ID)$", "", column)
    return short if short and short != column else key.there[1]


def _place(place: Place) -> str:
    return f"{place[0]}.{place[1]}" if place[0] else place[1]


def _column(read: ReflectedColumn) -> Column:
    kind: Any = read["type"]
    if isinstance(kind, pg.DOMAIN):
        kind = kind.data_type
    many = isinstance(kind, sa.ARRAY)
    kind = kind.item_type if many else kind
    values = tuple((value, value) for value in getattr(kind, "enums", None) or ())
    return Column(read["name"], read["name"], _type(kind), read.get("nullable", True), many, values=values)


def _type(kind: Any) -> Type:
    return next((ours for theirs, ours in KINDS if isinstance(kind, theirs)), "other")
