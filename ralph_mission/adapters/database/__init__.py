"""Read-only access to databases, with limits of time and size.

`model` has the nouns, `prisma_schema` reads a Prisma schema, `statements` writes the one SELECT. `sql` (SQLAlchemy) and
`prisma` (the Prisma client) send it and implement `model.Database`. Each takes half a second to import, so that happens
only when one is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from ralph_mission.adapters.database.address import Address
from ralph_mission.adapters.database.model import Catalog, Database
from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra

Backend = Literal["sqlalchemy", "prisma"]


@contextmanager
def open_database(
    backend: Backend, address: Address, schema: Catalog | None, environment: Mapping[str, str]
) -> Iterator[Database]:
    """A database, closed at the end. Raises UserError."""
    if backend == "prisma":
        if schema is None:
            raise UserError("the backend prisma needs a Prisma schema", "name it in prisma_schema")
        require_extra("prisma", "the backend prisma needs")
        from ralph_mission.adapters.database import prisma

        with prisma.open_prisma(address, schema, environment) as database:
            yield database
    else:
        require_extra("database", "watching a database needs")
        from ralph_mission.adapters.database import sql

        with sql.open_sql(address, schema) as database:
            yield database
