"""A schema of our own, made from somebody's: the same tables, told to the one release of Prisma that Python has.

Every model, field and value has a name of ours here. The client is Python code that is generated from these names; so
nothing that somebody wrote gets into code, and no name is a word that Python or the client keeps for itself. What only
writers need (defaults, indexes) and what later releases brought is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from ralph_mission.adapters.database.prisma.schema import (
    SCALARS,
    Attribute,
    AttributeCall,
    Expression,
    SchemaBlock,
    SchemaLine,
    Text,
    blocks,
)
from ralph_mission.adapters.database.shapes import Catalog, Shape
from ralph_mission.values import dataclass

GENERATOR = "ralph-prisma-client-py"
"""What the command line of Prisma is told to run; a program of that name has to be on its path."""
FEATURES = ("multiSchema", "views")


@dataclass(frozen=True, slots=True)
class Names:
    """Ours, in the order of theirs: Prisma tells the two columns of a table between two models by that order."""

    models: Mapping[str, str]
    fields: Mapping[tuple[str, str], str]

    @classmethod
    def of(cls, catalog: Catalog) -> Names:
        """Of every model and field."""
        shapes = sorted(catalog.shapes, key=lambda shape: shape.name)
        fields = {}
        for shape in shapes:
            known = sorted({*(one.name for one in shape.columns), *(one.name for one in shape.relations)})
            fields.update({(shape.name, name): f"f{place:03}" for place, name in enumerate(known)})
        return cls({shape.name: f"M{place:04}" for place, shape in enumerate(shapes)}, fields)

    def model(self, shape: Shape) -> str:
        """The name of a model."""
        return self.models[shape.name]

    def field(self, shape: Shape, name: str) -> str:
        """The name of a field or a relation, by either name of a column."""
        column = shape.column(name)
        return self.fields[shape.name, column.name if column else name]


def derive_schema(files: Mapping[str, str], catalog: Catalog) -> str:
    """The schema's text. `catalog` is what `files` were parsed to."""
    found = [block for name, text in sorted(files.items()) for block in blocks(text, name)]
    enums = {one.name: f"E{place:04}" for place, one in enumerate(found) if one.kind == "enum"}
    writer = _SchemaWriter(Names.of(catalog), enums, {one.name: one for one in found if one.kind in ("model", "view")})
    parts = [writer.enum(one) for one in found if one.kind == "enum"]
    parts += [writer.model(one) for one in writer.models.values()]
    return "\n".join([_head(found), *parts])


def value_name(place: int) -> str:
    """What a value of an enum is called, by its place."""
    return f"V{place:04}"


def _head(found: Iterable[SchemaBlock]) -> str:
    schemas = sorted({_text(one) for block in found for one in block.attributes if one.name == "schema"})
    lines = ['  provider = "postgresql"', '  url = env("DATABASE_URL")']
    lines += [f"  schemas = [{', '.join(map(_quote, schemas))}]"] if schemas else []
    told = {
        "provider": _quote(GENERATOR),
        "output": '"./ralph_client"',
        "interface": '"sync"',
        "recursive_type_depth": "-1",
        "enable_experimental_decimal": "true",
        "previewFeatures": f"[{', '.join(map(_quote, FEATURES))}]",
    }
    ours = [f"  {name} = {value}" for name, value in told.items()]
    return "\n".join(["datasource db {", *lines, "}", "generator client {", *ours, "}", ""])


@dataclass(frozen=True, slots=True)
class _SchemaWriter:
    names: Names
    enums: Mapping[str, str]
    models: Mapping[str, SchemaBlock]

    def enum(self, block: SchemaBlock) -> str:
        values = [f"  {value_name(place)} @map({_quote(_map(one))})" for place, one in enumerate(block.lines)]
        return "\n".join(
            [
                f"enum {self.enums[block.name]} {{",
                *values,
                *_schema_attributes(block),
                f"  @@map({_quote(_mapped_name(block))})",
                "}",
                "",
            ]
        )

    def model(self, block: SchemaBlock) -> str:
        lines = [self._line(block, line) for line in block.lines if self._known(line)]
        keys = [line for one in block.attributes if one.name in ("id", "unique") for line in self._key(block, one)]
        table = f"  @@map({_quote(_mapped_name(block))})"
        head = f"{block.kind} {self.names.models[block.name]} {{"
        return "\n".join([head, *lines, *dict.fromkeys(keys), *_schema_attributes(block), table, "}", ""])

    def _known(self, line: SchemaLine) -> bool:
        return (
            line.type in self.models or line.type in self.enums or (line.type in SCALARS and line.type != "Unsupported")
        )

    def _line(self, block: SchemaBlock, line: SchemaLine) -> str:
        name = self.names.fields[block.name, line.name]
        suffix = "[]" if line.many else "?" if line.optional else ""
        if line.type in self.models:
            return f"  {name} {self.names.models[line.type]}{suffix} {self._relation(block, line)}"
        marks = [f"@{one.name}" for one in line.attributes if one.name in ("id", "unique")]
        native = [_native(one) for one in line.attributes if one.name.startswith("db.")]
        kind = self.enums.get(line.type, line.type)
        return " ".join([f"  {name} {kind}{suffix}", *marks, f"@map({_quote(_map(line))})", *native])

    def _relation(self, block: SchemaBlock, line: SchemaLine) -> str:
        """Always with the name that Prisma would give it, which is made of the models'."""
        told = next((one for one in line.attributes if one.name == "relation"), Attribute("relation"))
        first, last = sorted((block.name, line.type))
        parts = [_quote(_text(told) or f"{first}To{last}")]
        for word, owner in (("fields", block.name), ("references", line.type)):
            if fields := _names(told.argument(word)):
                parts.append(f"{word}: [{', '.join(self.names.fields[owner, name] for name in fields)}]")
        return f"@relation({', '.join(parts)})"

    def _key(self, block: SchemaBlock, told: Attribute) -> Iterator[str]:
        fields = [self.names.fields.get((block.name, name)) for name in _names(told.argument("", "fields"))]
        if fields and None not in fields:
            yield f"  @@{told.name}([{', '.join(map(str, fields))}])"


def _schema_attributes(block: SchemaBlock) -> list[str]:
    return [f"  @@schema({_quote(_text(one))})" for one in block.attributes if one.name == "schema"]


def _mapped_name(block: SchemaBlock) -> str:
    return next((_text(one) for one in block.attributes if one.name == "map"), "") or block.name


def _map(line: SchemaLine) -> str:
    return next((_text(one) for one in line.attributes if one.name == "map"), "") or line.name


def _native(told: Attribute) -> str:
    arguments = ", ".join(value.name for _, value in told.arguments if isinstance(value, AttributeCall))
    return f"@{told.name}({arguments})" if arguments else f"@{told.name}"


def _text(told: Attribute) -> str:
    value = told.argument("", "name")
    return value.said if isinstance(value, Text) else ""


def _names(expression: Expression | None) -> list[str]:
    members = expression if isinstance(expression, tuple) else ()
    return [one.name for one in members if isinstance(one, AttributeCall)]


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
