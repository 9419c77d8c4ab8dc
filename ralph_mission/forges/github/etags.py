"""What was read before, kept in one file: answers with their ETags, and the details of quiet threads.

Nothing here is needed: a file that is missing, broken, or another account's is an empty one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ralph_mission.gateways.files import atomic

MOST = 8_000_000  # characters of the file
BALLAST = frozenset({"_links", "node_id", "reactions", "performed_via_github_app", "pinned_comment"})
VERSION = 2


@dataclass(frozen=True, slots=True)
class Page:
    """An answer to a GET: its ETag, its JSON without ballast, and the path of the page after it ("" for none)."""

    etag: str
    body: Any
    next: str = ""


class ReadCache:
    """A bounded memory of JSON values by name, written at once by `save`; without a path it is never written."""

    def __init__(self, path: Path | None, scope: str) -> None:
        self.path, self.scope = path, scope
        self.values: dict[str, Any] = _load(path, scope) if path else {}
        self.changed = False

    def get(self, name: str) -> Any:
        """The value kept under a name, None when there is none; what is asked for stays longest."""
        if name not in self.values:
            return None
        self.values[name] = self.values.pop(name)
        return self.values[name]

    def put(self, name: str, value: Any) -> None:
        """Keep a JSON value."""
        self.values.pop(name, None)
        self.values[name] = value
        self.changed = True

    def drop(self, name: str) -> None:
        """Keep nothing under a name."""
        self.changed |= self.values.pop(name, None) is not None

    def page(self, path: str) -> Page | None:
        """The answer to a GET of this path that was kept."""
        value = self.get(f"GET {path}")
        with suppress(TypeError, KeyError):
            return Page(value["etag"], value["body"], value["next"])
        return None

    def put_page(self, path: str, page: Page) -> None:
        """Keep the answer to a GET, if a server can tell later whether it still holds."""
        if page.etag:
            self.put(f"GET {path}", {"etag": page.etag, "body": page.body, "next": page.next})

    def save(self) -> None:
        """Write what fits, the newest first. A disk that refuses costs some requests and nothing else."""
        if self.path is None or not self.changed:
            return
        with suppress(OSError, ValueError):
            text = json.dumps({"version": VERSION, "scope": self.scope, "values": self._fitting()})
            self.path.unlink(missing_ok=True)  # or its mode would be kept, whoever made it
            atomic.write(self.path, text.encode(), 0o600, lasting=False)
            self.changed = False

    def _fitting(self) -> dict[str, Any]:
        room, fitting = MOST, []
        for name, value in reversed(self.values.items()):
            room -= len(name) + len(json.dumps(value))
            if room < 0:
                break
            fitting.append((name, value))
        return dict(reversed(fitting))


def scope_of(api_url: str, repository: str, token: str) -> str:
    """Whose answers these are. Tokens of Actions live an hour and see the same, so they share one scope."""
    account = "installation" if token.startswith("ghs_") else hashlib.sha256(token.encode()).hexdigest()[:16]
    return f"{api_url} {repository} {account}"


def slim(value: Any) -> Any:
    """JSON of GitHub's without links to itself and other ballast: about a tenth of the size."""
    if isinstance(value, list):
        return [slim(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    kept = {key: slim(item) for key, item in value.items() if key not in BALLAST and not _is_link(key)}
    if isinstance(repo := value.get("repo"), Mapping):
        kept["repo"] = {key: repo.get(key) for key in ("id", "full_name")}
    if "issue_url" in value and "node_id" in value:  # GraphQL is asked about comments by it
        kept["node_id"] = value["node_id"]
    return kept


def _is_link(key: str) -> bool:
    return key.endswith("_url") and key not in ("html_url", "issue_url")


def _load(path: Path, scope: str) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        known = json.loads(path.read_bytes())
        if isinstance(known, dict) and (known.get("version"), known.get("scope")) == (VERSION, scope):
            values = known.get("values")
            return values if isinstance(values, dict) else {}
    return {}
