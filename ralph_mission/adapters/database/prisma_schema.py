"""Reads a Prisma schema, one file or several, into a `Catalog`, without Prisma or a database."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ralph_mission.adapters.database.model import Catalog, Column, Relation, Shape, Through, Type, nearest
from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

LARGEST = 4_000_000  # characters of one file
DEEPEST = 40  # brackets in brackets
_TOKEN = compile_regex(
    r"""(?P<skip>[ \t\r\ufeff]+|//[^\n]*|/\*.*?\*/)|(?P<newline>\n)|(?P<text>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<word>-?[\w][\w-]*(?:\.\d+)?)|(?P<mark>@@|[@{}()\[\]:,?=.])""",
    re.S,
)


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted text."""

    text: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """`@map("id")` or `@@index([a, b])`, without its signs; in an argument a word, such as `id` or `now()`.

    An unnamed argument has the name "".
    """

    name: str
    arguments: tuple[tuple[str, Expression], ...] = ()

    def argument(self, *names: str) -> Expression | None:
        """The first argument that has one of these names; "" is one without a name."""
        return next((value for name, value in self.arguments if name in names), None)


Expression = Text | Attribute | tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class SchemaLine:
    """A field, or a value of an enum, which has no type."""

    name: str
    type: str = ""
    many: bool = False
    optional: bool = False
    attributes: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaBlock:
    """A `model`, `view`, `enum` or `type`, with its lines."""

    kind: str
    name: str
    lines: tuple[SchemaLine, ...]
    attributes: tuple[Attribute, ...]


def blocks(text: str, source: str) -> tuple[SchemaBlock, ...]:
    """A file's declarations; data sources and generators are skipped. Raises UserError with the line."""
    if len(text) > LARGEST:
        raise UserError(f"{source} is longer than {LARGEST:,} characters", "name a smaller schema")
    reader = _Reader(list(_tokens(text, source)), source)
    return tuple(reader.blocks())


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


def _tokens(text: str, source: str) -> Iterator[_Token]:
    place, line = 0, 1
    while place < len(text):
        found = _TOKEN.match(text, place)
        # The contents of a data source or an index's raw expression do not matter here.
        kind, mark = (str(found.lastgroup), found[0]) if found else ("mark", text[place])
        if kind != "skip":
            yield _Token(kind, mark, line)
        line += mark.count("\n")
        place += len(mark)
    yield _Token("end", "the end of the file", line)


class _Reader:
    """Recursive descent over tokens; the last one is always `end`."""

    def __init__(self, tokens: list[_Token], source: str) -> None:
        self._tokens = tokens
        self._source = source
        self._place = 0
        self._depth = 0

    def blocks(self) -> Iterator[SchemaBlock]:
        while self._past_newlines().kind != "end":
            kind, name = self._word(), self._word()
            self._expect("{")
            if kind in ("model", "view", "enum", "type"):
                yield self._block(kind, name)
            else:
                self._pass_over()

    def _block(self, kind: str, name: str) -> SchemaBlock:
        lines: list[SchemaLine] = []
        attributes: list[Attribute] = []
        while self._past_newlines().text != "}":
            if self._take("@@"):
                attributes.append(self._attribute())
            else:
                lines.append(self._line(kind == "enum"))
            if self._now.kind != "newline" and self._now.text != "}":
                raise self._unread()
        self._place += 1
        return SchemaBlock(kind, name, tuple(lines), tuple(attributes))

    def _pass_over(self) -> None:
        open_ones = 1
        while open_ones:
            if self._now.kind == "end":
                raise self._unread()
            open_ones += {"{": 1, "}": -1}.get(self._now.text, 0)
            self._place += 1

    def _line(self, bare: bool) -> SchemaLine:
        name, kind, many, optional = self._word(), "", False, False
        if not bare:
            self._take(":")  # of old schemas
            kind = self._word()
            if kind == "Unsupported":
                self._arguments()
            if self._take("["):
                self._expect("]")
                many = True
            optional = self._take("?")
        attributes = []
        while self._take("@"):
            attributes.append(self._attribute())
        return SchemaLine(name, kind, many, optional, tuple(attributes))

    def _attribute(self) -> Attribute:
        name = self._path()
        return Attribute(name, self._arguments() if self._now.text == "(" else ())

    def _arguments(self) -> tuple[tuple[str, Expression], ...]:
        self._expect("(")
        found = []
        while not self._closed(")"):
            following = self._tokens[self._place + 1]
            name = self._word() if self._now.kind == "word" and following.text == ":" else ""
            if name:
                self._expect(":")
                self._past_newlines()
            found.append((name, self._expression()))
        return tuple(found)

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._unread()
        try:
            if self._now.kind == "text":
                return Text(_unquote(self._next().text))
            if self._take("["):
                found = []
                while not self._closed("]"):
                    found.append(self._expression())
                return tuple(found)
            return self._attribute()
        finally:
            self._depth -= 1

    def _closed(self, mark: str) -> bool:
        """Whether brackets end here; else skips a separator."""
        self._past_newlines()
        if self._take(","):
            self._past_newlines()
        return self._take(mark)

    def _path(self) -> str:
        words = [self._word()]
        while self._take("."):
            words.append(self._word())
        return ".".join(words)

    @property
    def _now(self) -> _Token:
        return self._tokens[self._place]

    def _next(self) -> _Token:
        self._place += 1
        return self._tokens[self._place - 1]

    def _past_newlines(self) -> _Token:
        while self._now.kind == "newline":
            self._place += 1
        return self._now

    def _word(self) -> str:
        if self._now.kind != "word":
            raise self._unread()
        return self._next().text

    def _take(self, mark: str) -> bool:
        matches = self._now.kind == "mark" and self._now.text == mark
        self._place += matches
        return matches

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self._unread()

    def _unread(self) -> UserError:
        token = ascii(self._now.text)[1:-1][:40] if self._now.kind != "newline" else "the end of the line"
        return UserError(f"{self._source} line {self._now.line}: {token} is not expected here", "fix the schema")


def _unquote(quoted: str) -> str:
    try:
        return str(json.loads(quoted, strict=False))
    except ValueError:  # an escape that JSON does not know stands for itself
        return re.sub(r"\\(.)", r"\1", quoted[1:-1])


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
    """The tables of a schema, by texts of its files. Raises UserError that names the file and the line, or the field.

    `origin`: the schema's name in complaints. Views are tables too; a field of an embedded `type` is a column
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
    names: set[str] = set()
    for block in found:
        if block.name in names:
            raise UserError(f"{origin} declares {block.name} twice", "keep one of them")
        names.add(block.name)


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
    """The fields that identify a row: the id, else unique non-null fields."""
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
    """The side of a relation without keys: those are on the other side, or in a join table."""
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
    """Many to many without a join model: Prisma creates `_AToB`, whose A are rows of the first model by name.

    For a self-relation, A is the target of the first field by name.
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
                what = f"{origin}: {model.name}.{line.name} relates by {owner}.{name}, which is not a field"
                raise UserError(what, nearest(name, known))


def _label(line: SchemaLine) -> str:
    return _text(_one(line.attributes, "relation"))


def _one(attributes: Iterable[Attribute], name: str) -> Attribute | None:
    return next((one for one in attributes if one.name == name), None)


def _text(attribute: Attribute | None) -> str:
    """An attribute's name: its first argument, or the one called `name`."""
    value = attribute.argument("", "name") if attribute else None
    return value.text if isinstance(value, Text) else ""


def _names(expression: Expression | None) -> tuple[str, ...]:
    members = expression if isinstance(expression, tuple) else ()
    return tuple(one.name for one in members if isinstance(one, Attribute))
