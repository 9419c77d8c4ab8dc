"""Reads a Prisma schema, one file or several, into a `Catalog`: no Prisma needed, nothing is asked of a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ralph_mission.gateways.database.prisma_text import (
    Attribute,
    AttributeCall,
    Expression,
    SchemaBlock,
    SchemaLine,
    Text,
    blocks,
)
from ralph_mission.gateways.database.shapes import Catalog, Column, Relation, Shape, Through, Type, nearest
from ralph_mission.trouble import UserError

SCALARS: Mapping[str, Type] = {
    "Int": "int",
    "BigInt": "int",
    "Float": "float",
    "Decimal": "decimal",
    "String": "text",
    "Boolean": "bool",
    "DateTime": "time",
    "Json": "json",
    "Bytes": "bytes",
    "Unsupported": "other",
}


def parse(files: Mapping[str, str], origin: str) -> Catalog:
    """The tables of a schema, by texts of its files. Raises Trouble that names the file and the line, or the field.

    `origin` is how complaints call the whole. Views are tables too; a field of an embedded `type` is a column
    of type `other`.
    """
    found = [block for name, text in sorted(files.items()) for block in blocks(text, name)]
    _check_names(found, origin)
    models = {one.name: one for one in found if one.kind in ("model", "view")}
    enums = {one.name: _values(one) for one in found if one.kind == "enum"}
    embedded = {one.name for one in found if one.kind == "type"}
    shapes = {name: _shape(one, models, enums, embedded, origin) for name, one in models.items()}
    relations = {name: tuple(_relations(one, models, shapes, origin)) for name, one in models.items()}
    return Catalog(tuple(replace(one, relations=relations[name]) for name, one in shapes.items()), origin)


def _check_names(found: Iterable[SchemaBlock], origin: str) -> None:
    seen: set[str] = set()
    for block in found:
        if block.name in seen:
            raise UserError(f"{origin} declares {block.name} twice", "keep one of them")
        seen.add(block.name)


def _values(enum: SchemaBlock) -> tuple[tuple[str, str], ...]:
    return tuple((line.name, _text(_one(line.attributes, "map")) or line.name) for line in enum.lines)


def _shape(
    model: SchemaBlock,
    models: Mapping[str, SchemaBlock],
    enums: Mapping[str, tuple[tuple[str, str], ...]],
    embedded: Iterable[str],
    origin: str,
) -> Shape:
    types: dict[str, Type] = {**SCALARS}
    types.update((name, "enum") for name in enums)
    types.update((name, "other") for name in embedded)
    key = _key(model)
    columns = []
    for line in model.lines:
        if line.type in models:
            continue
        if line.type not in types:
            advice = nearest(line.type, {*types, *models})
            raise UserError(f"{origin}: {model.name}.{line.name} has the unknown type {line.type}", advice)
        unique = key == (line.name,) or _one(line.attributes, "unique") is not None
        column = _text(_one(line.attributes, "map")) or line.name
        columns.append(
            Column(line.name, column, types[line.type], line.optional, line.many, unique, enums.get(line.type, ()))
        )
    table = _text(_one(model.attributes, "map")) or model.name
    return Shape(model.name, table, _text(_one(model.attributes, "schema")), tuple(columns), key)


def _key(model: SchemaBlock) -> tuple[str, ...]:
    """The fields that identify a row: the id, else what is unique and never null."""
    single = [line.name for line in model.lines if _one(line.attributes, "id")]
    whole = [_names(one.argument("", "fields")) for one in model.attributes if one.name == "id"]
    unique = [line.name for line in model.lines if _one(line.attributes, "unique") and not line.optional]
    optional = {line.name for line in model.lines if line.optional}
    several = [_names(one.argument("", "fields")) for one in model.attributes if one.name == "unique"]
    certain = [fields for fields in several if not optional & {*fields}]
    return next(iter([*((name,) for name in single), *whole, *((name,) for name in unique), *certain]), ())


def _relations(
    model: SchemaBlock, models: Mapping[str, SchemaBlock], shapes: Mapping[str, Shape], origin: str
) -> Iterator[Relation]:
    for line in model.lines:
        if line.type not in models:
            continue
        other = models[line.type]
        if pairs := _pairs(line):
            _check_pairs(pairs, model, line, shapes, origin)
            yield Relation(line.name, other.name, line.many, pairs)
        else:
            yield _back(model, line, other, shapes, origin)


def _back(
    model: SchemaBlock, line: SchemaLine, other: SchemaBlock, shapes: Mapping[str, Shape], origin: str
) -> Relation:
    """The side of a relation that holds no keys: those are on the other side, or in a table between."""
    candidates = [
        one
        for one in other.lines
        if one.type == model.name and _label(one) == _label(line) and not (model is other and one.name == line.name)
    ]
    keys = [pairs for one in candidates if (pairs := _pairs(one))]
    if keys:
        return Relation(line.name, other.name, line.many, tuple((theirs, ours) for ours, theirs in keys[0]))
    if line.many and (candidates or model is other):
        return _many(model, line, other, candidates[0] if candidates else line, shapes)
    what = f"{origin}: {model.name}.{line.name} has no opposite in {other.name}"
    raise UserError(what, "add the field there; `prisma format` does")


def _many(
    model: SchemaBlock, line: SchemaLine, other: SchemaBlock, opposite: SchemaLine, shapes: Mapping[str, Shape]
) -> Relation:
    """Many to many without a model between: Prisma keeps `_AToB`, whose A are rows of the first model by name.

    Of a model with itself, A is what the first field by name leads to.
    """
    first, last = sorted((model.name, other.name))
    is_first = line.name > opposite.name if model is other else model.name == first
    near, far = ("A", "B") if is_first else ("B", "A")
    table = f"_{_label(line) or f'{first}To{last}'}"
    pair = tuple(zip(shapes[model.name].key, shapes[other.name].key, strict=False))
    through = Through(table, shapes[first].schema, near, far)
    return Relation(line.name, other.name, True, pair, through)


def _pairs(line: SchemaLine) -> tuple[tuple[str, str], ...]:
    relation = _one(line.attributes, "relation")
    if relation is None:
        return ()
    return tuple(zip(_names(relation.argument("fields")), _names(relation.argument("references")), strict=False))


def _check_pairs(
    pairs: Iterable[tuple[str, str]], model: SchemaBlock, line: SchemaLine, shapes: Mapping[str, Shape], origin: str
) -> None:
    for ours, theirs in pairs:
        for owner, name in ((model.name, ours), (line.type, theirs)):
            known = [one.name for one in shapes[owner].columns]
            if name not in known:
                what = f"{origin}: {model.name}.{line.name} relates by {owner}.{name}, which is no field"
                raise UserError(what, nearest(name, known))


def _label(line: SchemaLine) -> str:
    return _text(_one(line.attributes, "relation"))


def _one(attributes: Iterable[Attribute], name: str) -> Attribute | None:
    return next((one for one in attributes if one.name == name), None)


def _text(attribute: Attribute | None) -> str:
    """The name that an attribute gives: its first argument, or the one called `name`."""
    said = attribute.argument("", "name") if attribute else None
    return said.said if isinstance(said, Text) else ""


def _names(expression: Expression | None) -> tuple[str, ...]:
    members = expression if isinstance(expression, tuple) else ()
    return tuple(one.name for one in members if isinstance(one, AttributeCall))
