"""The grammar of a Prisma schema: blocks, their lines, and attributes as trees. What they mean is `prisma_schema`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ralph_mission.trouble import UserError

LARGEST = 4_000_000  # characters of one file
DEEPEST = 40  # brackets in brackets
_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\ufeff]+|//[^\n]*|/\*.*?\*/)|(?P<newline>\n)|(?P<text>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<word>-?[\w][\w-]*(?:\.\d+)?)|(?P<mark>@@|[@{}()\[\]:,?=.])""",
    re.S,
)


@dataclass(frozen=True, slots=True)
class Text:
    """What stood in quotes."""

    said: str


@dataclass(frozen=True, slots=True)
class AttributeCall:
    """A word, with arguments where it had brackets: `id`, `now()`, `title(sort: Desc)`."""

    name: str
    arguments: tuple[tuple[str, Expression], ...] = ()


Expression = Text | AttributeCall | tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """`@map("id")` or `@@index([a, b])`, without its signs. An argument's name is "" where it has none."""

    name: str
    arguments: tuple[tuple[str, Expression], ...] = ()

    def argument(self, *names: str) -> Expression | None:
        """The first argument that has one of these names; "" is one without a name."""
        return next((value for name, value in self.arguments if name in names), None)


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
    """A `model`, `view`, `enum` or `type`, with what stands in it."""

    kind: str
    name: str
    lines: tuple[SchemaLine, ...]
    attributes: tuple[Attribute, ...]


def blocks(text: str, source: str) -> tuple[SchemaBlock, ...]:
    """What a file declares; data sources and generators are passed over. Raises Trouble with the line."""
    if len(text) > LARGEST:
        raise UserError(f"{source} is longer than {LARGEST:,} characters", "name a smaller schema")
    reader = _Reader(list(_tokens(text, source)), source)
    return tuple(reader.blocks())


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    said: str
    line: int


def _tokens(text: str, source: str) -> Iterator[_Token]:
    place, line = 0, 1
    while place < len(text):
        found = _TOKEN.match(text, place)
        # What a data source or an index's raw expression may hold is none of our business.
        kind, said = (str(found.lastgroup), found[0]) if found else ("mark", text[place])
        if kind != "skip":
            yield _Token(kind, said, line)
        line += said.count("\n")
        place += len(said)
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
        while self._past_newlines().said != "}":
            if self._take("@@"):
                attributes.append(self._attribute())
            else:
                lines.append(self._line(kind == "enum"))
            if self._now.kind != "newline" and self._now.said != "}":
                raise self._unread()
        self._place += 1
        return SchemaBlock(kind, name, tuple(lines), tuple(attributes))

    def _pass_over(self) -> None:
        open_ones = 1
        while open_ones:
            if self._now.kind == "end":
                raise self._unread()
            open_ones += {"{": 1, "}": -1}.get(self._now.said, 0)
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
        return Attribute(name, self._arguments() if self._now.said == "(" else ())

    def _arguments(self) -> tuple[tuple[str, Expression], ...]:
        self._expect("(")
        found = []
        while not self._closed(")"):
            following = self._tokens[self._place + 1]
            name = self._word() if self._now.kind == "word" and following.said == ":" else ""
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
                return Text(_unquote(self._next().said))
            if self._take("["):
                found = []
                while not self._closed("]"):
                    found.append(self._expression())
                return tuple(found)
            name = self._path()
            return AttributeCall(name, self._arguments() if self._now.said == "(" else ())
        finally:
            self._depth -= 1

    def _closed(self, mark: str) -> bool:
        """Whether brackets end here; else what separates their members is passed over."""
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
        return self._next().said

    def _take(self, mark: str) -> bool:
        taken = self._now.kind == "mark" and self._now.said == mark
        self._place += taken
        return taken

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self._unread()

    def _unread(self) -> UserError:
        said = ascii(self._now.said)[1:-1][:40] if self._now.kind != "newline" else "the end of the line"
        return UserError(f"{self._source} line {self._now.line}: {said} is not expected here", "mend the schema")


def _unquote(quoted: str) -> str:
    try:
        return str(json.loads(quoted, strict=False))
    except ValueError:  # an escape that JSON does not know stands for itself
        return re.sub(r"\\(.)", r"\1", quoted[1:-1])
