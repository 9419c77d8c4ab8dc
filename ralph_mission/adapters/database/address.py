"""Where a database is: a URL from the environment, never shown, neither host nor user."""

from __future__ import annotations

import re
from dataclasses import field
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

POSTGRES = ("postgres", "postgresql", "postgresql+psycopg")
SQLITE = ("sqlite", "file")
PRISMAS_OWN = (
    *("schema", "connection_limit", "pool_timeout", "pgbouncer", "socket_timeout", "statement_cache_size"),
    *("sslaccept", "sslidentity", "sslpassword"),
)
"""Parameters of Prisma unknown to libpq."""


@dataclass(frozen=True, slots=True)
class Address:
    """`path`: the file of an SQLite database; `url`: a URL for libpq.

    `schema`: the default schema of tables; "" leaves it to the server.
    """

    kind: str  # postgresql, sqlite
    url: str = field(default="", repr=False)
    path: str = field(default="", repr=False)
    schema: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no text may contain."""
        parts = urlsplit(self.url)
        query = dict(parse_qsl(parts.query))
        passwords = (parts.password or "", unquote(parts.password or ""), query.get("password", ""))
        return tuple(dict.fromkeys(filter(None, (self.url, *passwords))))


def read_address(text: str, variable: str) -> Address:
    """A URL in the form of SQLAlchemy, libpq or Prisma. Raises UserError that only names the variable."""
    scheme, _, rest = text.strip().partition(":")
    if scheme.lower() in SQLITE and (path := _path(rest)):
        return Address("sqlite", path=path)
    try:
        if scheme.lower() in POSTGRES and urlsplit(text.strip()).netloc + urlsplit(text).path:
            return _postgresql(rest.strip())
    except ValueError:  # of urlsplit: a port that is no number, brackets that do not close
        pass
    raise UserError(
        f"{variable} is not a database address", "write postgresql://USER:PASSWORD@HOST:PORT/NAME or sqlite:///FILE"
    )


def _path(rest: str) -> str:
    """`sqlite:///dev.db` and Prisma's `file:./dev.db`; four slashes begin an absolute path."""
    path = re.sub(r"^///", "", rest) if rest.startswith("///") else rest
    return unquote(path.partition("?")[0]) if not path.startswith("//") else ""


def _postgresql(rest: str) -> Address:
    parts = urlsplit(f"postgresql:{rest}")
    if parts.port == 0:
        raise ValueError("port 0")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    options = {name: value for name, value in query.items() if name not in PRISMAS_OWN}
    if query.get("sslaccept") == "strict" and options.get("sslmode", "prefer") in ("prefer", "require"):
        options = {"sslrootcert": "system", **options, "sslmode": "verify-full"}  # what Prisma means by strict
    bare = parts._replace(query=urlencode(options)).geturl()
    url = bare if "://" in bare else bare.replace("postgresql:", "postgresql://", 1)
    return Address("postgresql", url, schema=query.get("schema", ""))
