"""The backend of the Prisma client for Python: it sends the SELECT that SQLAlchemy writes, and all values as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy.dialects.postgresql import asyncpg  # its way of writing parameters ($1); no driver is imported

from ralph_mission.adapters.database.address import Address
from ralph_mission.adapters.database.prisma.process import ELSE, PrismaWorker, connect_worker
from ralph_mission.adapters.database.prisma.tools import Tools, prepare_tools
from ralph_mission.adapters.database.queries import Interest, Query, Row
from ralph_mission.adapters.database.sessions import Caps
from ralph_mission.adapters.database.shapes import Catalog
from ralph_mission.adapters.database.sql import SqlDatabase, open_sql, read_rows
from ralph_mission.adapters.database.statements import build_select
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

LINE_ENDS = "\x85\u2028\u2029"
"""The client takes these for ends of lines, in the middle of a text."""


@contextmanager
def open_prisma(
    address: Address, schema: Catalog, environment: Mapping[str, str], caps: Caps | None = None
) -> Iterator[PrismaDatabase]:
    """A database, closed at the end. Raises UserError."""
    caps = caps or Caps()
    if address.kind != "postgresql":
        raise UserError("the backend prisma asks PostgreSQL alone", ELSE)
    with open_sql(address, schema, caps) as beside:  # it also knows better why nobody answers
        tools = prepare_tools(environment)
        with connect_worker(tools, address, caps, beside.encrypted) as worker:
            yield PrismaDatabase(tools, worker, beside, schema)


@dataclass(frozen=True, slots=True)
class PrismaDatabase:
    """Implements `queries.Database`. `beside` compares the schema with the database, which the client cannot."""

    tools: Tools
    worker: PrismaWorker
    beside: SqlDatabase
    schema: Catalog

    @property
    def engine(self) -> str:
        """The client and the engine that is truly in use."""
        if self.tools.native:
            return "Prisma 5.17.0, its native engine"
        with TemporaryDirectory(prefix="ralph-") as scratch:
            return f"Prisma 5.17.0, its engine in WebAssembly on Node.js {self.tools.node.version(Path(scratch))}"

    def describe(self, interest: Interest) -> Catalog:
        """See `queries.Database`. Raises UserError for an owner's own SQL: nothing rolls back what that might set."""
        if interest.sql:
            raise UserError("the backend prisma takes no sql", ELSE)
        return self.beside.describe(interest)

    def drift(self) -> tuple[str, ...]:
        """See `queries.Database`."""
        return self.beside.drift()

    def writable(self, interest: Interest) -> tuple[str, ...]:
        """See `queries.Database`."""
        return self.beside.writable(interest)

    def rows(self, query: Query) -> Sequence[Row]:
        """See `queries.Database`."""
        selected = build_select(query, self.schema, self.beside.text_dialect())
        compiled = selected.compile(dialect=asyncpg.dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy's own
        values = [compiled.params[name] for name in compiled.positiontup or ()]
        if any(letter in str(text) for text in (compiled, *values) for letter in LINE_ENDS):
            raise UserError("the Prisma client cannot ask for a text with such ends of lines", ELSE)
        what = self.beside.describe_source(query)
        return read_rows(query, self.schema, self.worker.ask(str(compiled), values, what), what)
