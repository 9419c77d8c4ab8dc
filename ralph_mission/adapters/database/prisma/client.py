"""The backend of the Prisma client for Python: it asks, and SQLAlchemy says what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ralph_mission.adapters.database.address import Address
from ralph_mission.adapters.database.prisma.derived import Names, derive_schema
from ralph_mission.adapters.database.prisma.process import PrismaWorker, connect_worker
from ralph_mission.adapters.database.prisma.questions import ELSE, Answer, ClientCall, QueryTranslator
from ralph_mission.adapters.database.prisma.tools import Tools, prepare_tools
from ralph_mission.adapters.database.queries import Interest, Query, Row
from ralph_mission.adapters.database.sessions import Caps
from ralph_mission.adapters.database.shapes import Catalog, Shape, shapes_reached
from ralph_mission.adapters.database.sql import SqlDatabase
from ralph_mission.adapters.database.sql import open_sql as opened_by_sql
from ralph_mission.errors import UserError


@contextmanager
def open_prisma(
    address: Address,
    files: Mapping[str, str],
    schema: Catalog,
    environment: Mapping[str, str],
    caps: Caps | None = None,
) -> Iterator[PrismaDatabase]:
    """A database, closed at the end. `files` are the texts that `schema` was parsed from. Raises UserError."""
    caps = caps or Caps()
    if address.kind != "postgresql":
        raise UserError("the backend prisma asks PostgreSQL alone", "take the backend sqlalchemy")
    with opened_by_sql(address, schema, caps) as beside:  # it also knows better why nobody answers
        tools = prepare_tools(derive_schema(files, schema), environment)
        with connect_worker(tools, address, caps, beside.encrypted) as worker:
            yield PrismaDatabase(tools, worker, beside, QueryTranslator(schema, Names.of(schema)))


@dataclass
class PrismaDatabase:
    """Implements `queries.Database`. `beside` compares the schema with the database, which the client cannot."""

    tools: Tools
    worker: PrismaWorker
    beside: SqlDatabase
    questions: QueryTranslator

    @property
    def engine(self) -> str:
        """The client and the engine that is truly in use."""
        if self.tools.native:
            return "Prisma 5.17.0, its native engine"
        with TemporaryDirectory(prefix="ralph-") as scratch:
            return f"Prisma 5.17.0, its engine in WebAssembly on Node.js {self.tools.node.version(Path(scratch))}"

    def describe(self, interest: Interest) -> Catalog:
        """See `queries.Database`. Raises UserError for what this client cannot ask.

        That is an owner's own SQL, whose decimals it would round, and names with a quotation mark.
        """
        if interest.sql:
            raise UserError("the backend prisma takes no sql", "take the backend sqlalchemy")
        catalog = self.beside.describe(interest)
        for shape in shapes_reached(catalog, interest.source, interest.paths):
            _askable(shape)
        return catalog

    def drift(self) -> tuple[str, ...]:
        """See `queries.Database`."""
        return self.beside.drift()

    def writable(self, interest: Interest) -> tuple[str, ...]:
        """See `queries.Database`."""
        return self.beside.writable(interest)

    def rows(self, query: Query) -> Sequence[Row]:
        """See `queries.Database`."""
        firsts = self.questions.firsts(query)
        groups = self._asked(query, firsts) if firsts else None
        if groups is not None and not groups:
            return []
        answer = self.questions.picked(query, self._asked(query, self.questions.rows(query, groups)))
        rows = self.questions.told(query, answer)
        for one in query.aggregates if answer else ():
            numbers = self._asked(query, self.questions.related(query, one, answer))
            for row, made in zip(rows, self.questions.made(query, one, answer, numbers), strict=True):
                row[one.name] = made
        return rows

    def _asked(self, query: Query, call: ClientCall) -> Answer:
        answer: Answer = self.worker.ask(call, f"table {self.questions.catalog.shape(query.source).place}")
        return answer


def _askable(shape: Shape) -> None:
    """Raises UserError for a name that the engine would put into its SQL as it stands, and so would end it there."""
    through = [one.through.table for one in shape.relations if one.through]
    for name in (shape.schema, shape.table, *(one.column for one in shape.columns), *through):
        if '"' in name:
            raise UserError(f"the Prisma client cannot ask for a name with a quotation mark ({name})", ELSE)
