"""Which repository on which GitHub, and by whose token: read from the environment, and from nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ralph_mission.trouble import UserError

PUBLIC_API = "https://api.github.com"
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """A repository on a GitHub server. Addresses carry no slash at the end and no token."""

    repository: str  # owner/name
    api: str
    server: str
    token: str = field(repr=False)

    @property
    def git_url(self) -> str:
        """Where git finds it."""
        return f"{self.server}/{self.repository}.git"

    @property
    def page(self) -> str:
        """Where a person finds it."""
        return f"{self.server}/{self.repository}"


def place(environ: Mapping[str, str]) -> RepositoryPlace:
    """The repository that GITHUB_REPOSITORY, GITHUB_API_URL and GITHUB_TOKEN name. Raises Trouble (usage)."""
    repository = environ.get("GITHUB_REPOSITORY", "")
    if not REPOSITORY.fullmatch(repository) or repository.endswith("/.."):
        said = f"GITHUB_REPOSITORY is {repository!r}" if repository else "GITHUB_REPOSITORY is not set"
        raise UserError(said, "set it to owner/name", usage=True)
    token = environ.get("GITHUB_TOKEN", "")
    if not token or not token.isprintable() or " " in token:
        said = "GITHUB_TOKEN is not set" if not token else "GITHUB_TOKEN holds a space or a line break"
        raise UserError(said, "give it in the environment: the action does, from its input github-token", usage=True)
    api = _address("GITHUB_API_URL", environ.get("GITHUB_API_URL") or PUBLIC_API)
    server = environ.get("GITHUB_SERVER_URL") or _server_of(api)
    return RepositoryPlace(repository, api, _address("GITHUB_SERVER_URL", server), token)


def acts_on_github(environ: Mapping[str, str]) -> bool:
    """Whether we run in a GitHub workflow."""
    return environ.get("GITHUB_ACTIONS") == "true"


def _server_of(api: str) -> str:
    return "https://github.com" if api == PUBLIC_API else api.removesuffix("/api/v3")


def _address(name: str, url: str) -> str:
    parts = urlsplit(url)
    loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.username or not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and loopback)):
        raise UserError(
            f"{name} is no https address", f"set it to one, such as {PUBLIC_API}, without a user name", usage=True
        )
    return url.rstrip("/")
