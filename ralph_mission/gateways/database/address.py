"""Where a database is, from what an environment says. Nothing here is ever shown: not the host, not the user."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ralph_mission.trouble import UserError

POSTGRES = ("postgres", "postgresql", "postgresql+psycopg")
SQLITE = ("sqlite", "file")
PRISMAS_OWN = (
    *("schema", "connection_limit", "pool_timeout", "pgbouncer", "socket_timeout", "statement_cache_size"),
    *("sslaccept", "sslidentity", "sslpassword"),
)
"""Parameters that Prisma understands and libpq does not."""


@dataclass(frozen=True, slots=True)
class Address:
    """`path` is the file of an SQLite database, `url` an address as libpq takes it.

    `schema` is where tables are that name none; "" leaves it to the server.
    """

    kind: str  # postgresql, sqlite
    url: str = field(default="", repr=False)
    path: str = field(default="", repr=False)
    schema: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not stand in any text."""
        parts = urlsplit(self.url)
        told = dict(parse_qsl(parts.query))
        passwords = (parts.password or "", unquote(parts.password or ""), told.get("password", ""))
        return tuple(dict.fromkeys(filter(None, (self.url, *passwords))))


def read(said: str, variable: str) -> Address:
    """An address as SQLAlchemy, libpq or Prisma write it. Raises Trouble that names the variable alone."""
    scheme, _, rest = said.strip().partition(":")
    if scheme.lower() in SQLITE and (path := _path(rest)):
        return Address("sqlite", path=path)
    try:
        if scheme.lower() in POSTGRES and urlsplit(said.strip()).netloc + urlsplit(said).path:
            return _postgresql(rest.strip())
    except ValueError:  # of urlsplit: a port that is no number, brackets that do not close
        pass
    raise UserError(
        f"{variable} is no address of a database", "write postgresql://USER:PASSWORD@HOST:PORT/NAME or sqlite:///FILE"
    )


def _path(rest: str) -> str:
    """`sqlite:///dev.db` and Prisma's `file:./dev.db`; four slashes begin an absolute path."""
    path = re.sub(r"^///", "", rest) if rest.startswith("///") else rest
    return unquote(path.partition("?")[0]) if not path.startswith("//") else ""


def _postgresql(rest: str) -> Address:
    parts = urlsplit(f"postgresql:{rest}")
    if parts.port == 0:
        raise ValueError("port 0")
    told = dict(parse_qsl(parts.query, keep_blank_values=True))
    kept = {name: value for name, value in told.items() if name not in PRISMAS_OWN}
    if told.get("sslaccept") == "strict" and kept.get("sslmode", "prefer") in ("prefer", "require"):
        kept = {"sslrootcert": "system", **kept, "sslmode": "verify-full"}  # what Prisma means by strict
    bare = parts._replace(query=urlencode(kept)).geturl()
    url = bare if "://" in bare else bare.replace("postgresql:", "postgresql://", 1)
    return Address("postgresql", url, schema=told.get("schema", ""))
