"""Read-only access to databases, with limits of time and size.

`model` has the nouns, `prisma_schema` reads a Prisma schema, `statements` writes the one SELECT. `sql` (SQLAlchemy) and
`prisma` (the Prisma client) send it and implement `model.Database`. Each takes half a second to import, so that happens
only when one is opened.

A connection URL comes from the environment and is never shown, neither host nor user. A database's refusals are
reworded, as its messages may contain a host, a user or a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ralph_mission.adapters.database.model import Catalog, Database
from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra
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


EXPLANATIONS = {
    "28": ("the database refuses the user or the password", "let the address name a role that may log in", "you"),
    "3D000": ("the server has no database of that name", "look at the end of its address", "you"),
    "42501": ("the role may not read {what}", "GRANT SELECT on it to the role", "you"),
    "42P01": ("the database has no {what}", "look at the name, or migrate the database", "you"),
    "42703": ("the database lacks a column of {what}", "look at the schema, or migrate the database", "you"),
    "42": ("the database does not understand what was asked of {what}", "look at the watch", "you"),
    "22": ("{what} holds a value that cannot be read", "leave that column out of the watch", "you"),
    "57014": (
        "the database took too long over {what}",
        "an index on the fields that the watch names would help",
        "network",
    ),
    "55P03": ("{what} was locked", "the next look tries again", "network"),
    "25006": ("the database refused to write", "nothing of ours writes; look at the query", "you"),
    "53": ("the database has no room for another connection", "the next look tries again", "network"),
    "08": ("the database closed the connection", "the next look tries again", "network"),
    "57": ("the database is starting or stopping", "the next look tries again", "network"),
}
"""By SQLSTATE, with the longest matching prefix. PostgreSQL's appendix A."""
HINTS = (
    (r"password authentication failed|no password supplied|no pg_hba\.conf entry|role .* does not exist", "28"),
    (r"database .* does not exist", "3D000"),
    (r"interrupted", "57014"),
    (r"database is locked", "55P03"),
    (r"no such table", "42P01"),
    (r"no such column", "42703"),
    (r"readonly database|attempt to write", "25006"),
    (r"too many connections|too many clients|remaining connection slots", "53"),
    (r"starting up|shutting down", "57"),
    (r"^(timestamp|date) too (large|small)", "22"),  # psycopg's own: infinity has no place in Python
    (r"codec can't (de|en)code", "22"),  # Python's own, where the server does not know its texts' encoding
)
"""Without an SQLSTATE: before a session exists, and in SQLite."""
REACH = (
    (r"invalid (URI|connection) ", "the database's address has an unknown part", "look at what follows its ?"),
    (r"root certificate file", "the file of sslrootcert cannot be read", "name a file of certificates that is there"),
    (
        r"does not match host name",
        "the database's certificate is for another host",
        "let the address name the host as the certificate does, or take sslmode=verify-ca",
    ),
    (
        r"verify failed",
        "the database's certificate is not signed by a trusted authority",
        "let sslrootcert name the file of the authority that does",
    ),
    (
        r"not support SSL",
        "the database does not support TLS, and sslmode requires it",
        "look at sslmode, and at ssl of the server",
    ),
    (r"certificate|SSL|TLS", "the database's certificate does not fit", "look at sslmode and sslrootcert"),
    (r"resolve|translate host|Name or service|getaddrinfo", "the database's host has no address", "look at its name"),
    (r"refused", "nothing listens where the database should be", "start the database or its tunnel"),
    (r"timeout|timed out", "the database does not answer", "look at the network, a firewall or the tunnel"),
    (r"unable to open database file", "the database's file cannot be opened", "look at its path"),
    (r"not a database|malformed", "the file is not an SQLite database", "look at its path"),
)


def explain_error(error: BaseException, what: str) -> UserError:
    """A UserError with who must act. `what`: our words, such as "table chains"."""
    origin = getattr(error, "orig", None) or error
    message = str(origin)
    code = getattr(origin, "sqlstate", None) or next((code for words, code in HINTS if re.search(words, message)), "")
    for length in (5, 2):
        if (short := code[:length]) in EXPLANATIONS and code:
            reason, hint, who = EXPLANATIONS[short]
            return UserError(reason.format(what=what), hint, who)
    return _why_unreachable(message, type(origin).__name__, what)


def _why_unreachable(message: str, name: str, what: str) -> UserError:
    for words, reason, hint in REACH:
        if re.search(words, message, re.IGNORECASE):
            return UserError(reason, hint, "network")
    return UserError(
        f"the database failed over {what} ({name})", "look at its log; the next look tries again", "network"
    )


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
