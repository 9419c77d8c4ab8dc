"""An address of libpq as Prisma's engines take it. Neither of them understands all of it, and one believes too much."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from ralph_mission.gateways.database.address import Address
from ralph_mission.gateways.database.sessions import Caps
from ralph_mission.trouble import UserError

SYSTEM = "system"  # of sslrootcert: the authorities that this host believes
ELSE = "take the backend sqlalchemy"


def prisma_url(address: Address, caps: Caps, native: bool, encrypted: bool) -> str:
    """The address with what every session has to be: read-only, impatient, in UTC, on one connection.

    `encrypted`: what libpq came to with the same address. Raises Trouble for a check that an engine cannot make.
    """
    parts = urlsplit(address.url)
    asked = dict(parse_qsl(parts.query))
    session = {
        "default_transaction_read_only": "on",
        "statement_timeout": str(int(caps.seconds * 1000)),
        "lock_timeout": str(int(caps.lock_seconds * 1000)),
        "idle_in_transaction_session_timeout": str(int(caps.seconds * 4000)),
        "TimeZone": "UTC",
    }
    options = " ".join([asked.get("options", ""), *(f"-c {name}={value}" for name, value in session.items())]).strip()
    asked |= {"options": options, "connection_limit": "1", "connect_timeout": str(caps.connect_seconds)}
    if address.schema:
        asked["schema"] = address.schema
    return parts._replace(query=urlencode(_trusting(asked, native, encrypted))).geturl()


def _trusting(asked: dict[str, str], native: bool, encrypted: bool) -> dict[str, str]:
    """With the TLS that was asked for, in the engine's own words."""
    mode, root = asked.get("sslmode", "prefer"), asked.get("sslrootcert", "")
    rest = {name: value for name, value in asked.items() if name not in ("sslmode", "sslrootcert")}
    if mode in ("allow", "prefer"):  # libpq tries both ways, the engines only one
        return rest | {"sslmode": "require" if encrypted else "disable"}
    if mode == "disable" or (mode == "require" and not root):
        return rest | {"sslmode": mode}
    if not root:
        raise UserError(f"the backend prisma needs sslrootcert beside sslmode={mode}", f"name the file, or {ELSE}")
    if native:
        return rest | _strict(mode, root, rest)
    file = {} if root == SYSTEM else {"sslrootcert": str(Path(root).absolute())}
    return rest | {"sslmode": mode} | file


def _strict(mode: str, root: str, rest: dict[str, str]) -> dict[str, str]:
    """Prisma's own program checks names too or nothing at all, and would take a mode it does not know for `prefer`."""
    if mode != "verify-full":
        raise UserError(f"Prisma's own engine cannot check an authority by sslmode={mode}", f"verify-full, or {ELSE}")
    if rest.keys() & {"sslcert", "sslkey"}:
        raise UserError("Prisma's own engine takes no sslcert and sslkey beside sslrootcert", ELSE)
    return {"sslmode": "require", "sslaccept": "strict"} | (
        {} if root == SYSTEM else {"sslcert": str(Path(root).absolute())}
    )
