"""A plain client for the fakes' own tests: no retries, no redirects, no opinions."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.fakes.github.server import FakeGitHub


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def said(self) -> tuple[int, str]:
        """Status and message of a refusal."""
        return self.status, self.json["message"]


@dataclass(frozen=True, slots=True)
class Client:
    """Requests to one fake with one token ("" for none)."""

    fake: FakeGitHub
    token: str
    timeout: float = 20

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        **query: Any,
    ) -> Answer:
        """A request to the API; a path that starts with `.` is below the repository."""
        place = urlsplit(self.fake.api_url)
        target = place.path + path.replace(".", f"/repos/{self.fake.repository}", 1) if path[0] == "." else path
        target = target if path[0] == "." else place.path + path
        content = raw if raw is not None else json.dumps(body).encode() if body is not None else b""
        sent = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=self.timeout)
        try:
            connection.request(
                method, target + (f"?{urlencode(query)}" if query else ""), content, sent | dict(headers or {})
            )
            reply = connection.getresponse()
            return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def issue(self, title: str = "Typo", **fields: object) -> int:
        """Creates an issue; its number."""
        made = self("POST", "./issues", {"title": title, **fields})
        assert made.status == 201, made.raw
        return int(made.json["number"])

    def pull(self, branch: str = "topic", **fields: object) -> int:
        """Somebody pushes a better README.md to a branch, and a pull is created on it; its number."""
        self.fake.push(branch, {"README.md": b"# Better\n"})
        made = self("POST", "./pulls", {"title": "Better", "head": branch, "base": self.fake.default_branch, **fields})
        assert made.status == 201, made.raw
        return int(made.json["number"])

    def merge(self, number: int, **fields: object) -> Answer:
        """Asks for a merge, by squash when nothing else is said."""
        return self("PUT", f"./pulls/{number}/merge", {"merge_method": "squash", **fields})

    def git(self, repo: Path, *arguments: str, user: str = "x-access-token") -> subprocess.CompletedProcess[str]:
        """`git ARGUMENTS` in a clone; `URL` stands for the remote with the token in it."""
        url = self.fake.git_url.replace("://", f"://{user}:{self.token}@") if self.token else self.fake.git_url
        command = ["git", "-C", str(repo), *[url if argument == "URL" else argument for argument in arguments]]
        return subprocess.run(command, capture_output=True, text=True, check=False)
