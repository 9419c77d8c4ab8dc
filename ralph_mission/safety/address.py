"""Strict parsing of URLs, and which addresses belong to the public Internet. Pure: no lookups.

A URL that two parsers could read differently is refused, not repaired: what was judged is what is requested.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urlsplit

from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

PORTS = {"http": 80, "https": 443}
LONGEST = 4_000  # characters of a URL
_AMBIGUOUS = compile_regex(r"[\x00-\x20\x7f-\xa0\\\ud800-\udfff]")
_NAME = compile_regex(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*")
_NUMERIC = compile_regex(r"(?:[0-9]+|0x[0-9a-f]*)$")
_WRITTEN = "%/:=&?~#+!$,;'@()*[]|"  # characters kept in a path and a query
_UNICAST = IPv6Network("2000::/3")
# Teredo and 6to4, which embed addresses, and documentation (RFC 9637), which some Pythons take for public
_UNUSED = (IPv6Network("2001::/32"), IPv6Network("2002::/16"), IPv6Network("3fff::/20"))
_TRANSLATED = IPv6Network("64:ff9b::/96")  # RFC 6052, the way to IPv4 where there is IPv6 alone
_SPECIAL = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))  # some Pythons take parts of these for public


class AddressRefused(UserError):
    """A URL that must not be requested, whoever names it."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A parsed URL. `host`: lower case, without brackets or a trailing dot. `target`: path and query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port as in the header `Host` and in `allow`, without path and query, which may hold a key."""
        return self._bracketed if self.port == PORTS[self.scheme] else f"{self._bracketed}:{self.port}"

    @property
    def door(self) -> str:
        """Host and port, even the default one: what `allow` accepts for one port of a host."""
        return f"{self._bracketed}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The whole URL, as requested."""
        return self.origin + self.target

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def among(self, allow: Collection[str]) -> bool:
        """Whether `allow` names this host, or this host with this port."""
        return bool({self.host, self._bracketed, self.door} & {name.lower() for name in allow})


def parse_address(url: str) -> WebAddress:
    """Parse a URL. Raises AddressRefused for everything but plain http and https URLs without credentials."""
    if len(url) > LONGEST or _AMBIGUOUS.search(url):
        raise _refusal("it is too long, or has spaces, control characters or backslashes in it")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refusal("it cannot be read") from None
    if parts.scheme not in PORTS:
        raise _refusal("it is neither http nor https")
    if "@" in parts.netloc or not parts.hostname or parts.netloc.endswith(":") or port == 0:
        raise _refusal("it names a user, no host, or no port")
    target = quote(parts.path or "/", safe=_WRITTEN) + (f"?{quote(parts.query, safe=_WRITTEN)}" if parts.query else "")
    return WebAddress(parts.scheme, _host(parts.hostname, "[" in parts.netloc), port or PORTS[parts.scheme], target)


def is_public(address: str) -> bool:
    """Whether an IP address is public; False if it is not an address."""
    try:
        there = ip_address(address)
    except ValueError:
        return False
    return _is_public_4(there) if isinstance(there, IPv4Address) else _is_public_6(there)


def _is_public_4(there: IPv4Address) -> bool:
    return there.is_global and not there.is_multicast and not there.is_reserved and not _within(there, _SPECIAL)


def _is_public_6(there: IPv6Address) -> bool:
    if there.scope_id:
        return False
    if there in _TRANSLATED:
        return _is_public_4(IPv4Address(there.packed[-4:]))
    return there in _UNICAST and there.is_global and not _within(there, _UNUSED)


def _within(there: IPv4Address | IPv6Address, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return any(there in network for network in networks)


def _host(written: str, bracketed: bool) -> str:
    if bracketed:
        return _address(written)
    try:
        name = written if written.isascii() else written[:253].encode("idna").decode("ascii")
    except UnicodeError:
        raise _refusal("its host is no name") from None
    name = name.lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        raise _refusal("its host is no name")
    # As in browsers (WHATWG URL, "ends in a number"): such a name is an address, and only one form is accepted.
    return _address(name) if _NUMERIC.match(name.rpartition(".")[2]) else name


def _address(written: str) -> str:
    if "%" in written:
        raise _refusal("its host has a zone")
    try:
        return str(ip_address(written))
    except ValueError:
        raise _refusal("its host is an address in an unusual form") from None


def _refusal(why: str) -> AddressRefused:
    return AddressRefused(f"a web address was refused: {why}", "write a plain http or https address", who="network")
