"""Sends and counts requests to GitHub, one at a time; retries reads, never mutations.

PyGithub's requester is the HTTP client; this module builds requests and interprets answers. A read is retried after a
failure and waits for a rate limit; a mutation is sent once, and ends as done, `ForgeRefused` (it certainly did not
happen) or `Doubt`. One file caches answers with their ETags and details of quiet threads, another keeps what is owed; a
missing or broken file, or another account's answers, count as empty.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ralph_mission.adapters import files
from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.forges.github import limits
from ralph_mission.adapters.forges.github.limits import Absent, ApiAnswer, Doubt, GitHubRequester
from ralph_mission.adapters.git.remote import RepositoryPlace, current_token
from ralph_mission.adapters.http.client import NoAnswer
from ralph_mission.adapters.http.guard import GuardedWeb
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.values import compile_regex, dataclass

MOST = 8_000_000  # characters of the file
CAP = 2 * MOST  # bytes that are read of it
LASTING, LASTING_CAP = "owed.json", 100_000
UNUSED_KEYS = frozenset({"secret", "_links", "node_id", "reactions", "performed_via_github_app", "pinned_comment"})
VERSION = 2


@dataclass(frozen=True, slots=True)
class Page:
    """An answer to a GET: its ETag, its trimmed JSON, and the path of the next page ("" for none)."""

    etag: str
    body: Any
    next: str = ""


class ReadCache:
    """A bounded cache of JSON values by name, which `save` writes; without a path it is never written.

    Lasting values stand in a small file of their own beside it, which is read and written at once, and belong to the
    repository, whichever account or token is in use. Two processes do not write them at once: memory's lock is held.
    """

    def __init__(self, path: Path | None, scope: str) -> None:
        self.path, self.scope = path, scope
        self.repository = scope.rpartition(" ")[0]
        self.values: dict[str, Any] = _load(path, scope) if path else {}
        self.unwritten: dict[str, Any] = {}
        self.changed = False

    def get(self, name: str) -> Any:
        """The value under a name, or None; recently used values stay longest."""
        if name not in self.values:
            return None
        self.values[name] = self.values.pop(name)
        return self.values[name]

    def put(self, name: str, value: Any) -> None:
        """Store a JSON value."""
        self.values.pop(name, None)
        self.values[name] = value
        self.changed = True

    def get_lasting(self, name: str) -> Any:
        """The lasting value under a name, or None. An older version kept it among the others."""
        return {**self.values, **self._load_lasting(), **self.unwritten}.get(name)

    def put_lasting(self, name: str, value: Any) -> None:
        """Store a value that the next cycle has to know even if this one ends with an error."""
        self.unwritten[name] = value
        self._save_lasting()

    def _load_lasting(self) -> dict[str, Any]:
        return _load(self.path.with_name(LASTING), self.repository, LASTING_CAP) if self.path else {}

    def _save_lasting(self) -> None:
        if self.path is None or not self.unwritten:
            return
        values = {**self._load_lasting(), **self.unwritten}
        if _write(self.path.with_name(LASTING), self.repository, values, lasting=True):
            for name in self.unwritten:
                self.drop(name)
            self.unwritten = {}

    def drop(self, name: str) -> None:
        """Delete the value under a name."""
        self.changed |= self.values.pop(name, None) is not None

    def page(self, path: str) -> Page | None:
        """The cached answer to a GET of this path."""
        value = self.get(f"GET {path}")
        with suppress(TypeError, KeyError):
            return Page(value["etag"], value["body"], value["next"])
        return None

    def put_page(self, path: str, page: Page) -> None:
        """Cache the answer to a GET, if a server can revalidate it later."""
        if page.etag:
            self.put(f"GET {path}", {"etag": page.etag, "body": page.body, "next": page.next})

    def save(self) -> None:
        """Write what fits, the newest first. A failed write only costs some requests."""
        self._save_lasting()  # what could not be written when it was put there
        if self.path is None or not self.changed:
            return
        with suppress(RecursionError):  # a damaged file may hold values that are nested too deeply
            self.changed = not _write(self.path, self.scope, self._newest())

    def _newest(self) -> dict[str, Any]:
        space, fitting = MOST, []
        for name, value in reversed(self.values.items()):
            space -= len(name) + len(json.dumps(value))
            if space < 0:
                break
            fitting.append((name, value))
        return dict(reversed(fitting))


def scope_of(place: RepositoryPlace) -> str:
    """The account that answers belong to. Tokens of apps and Actions live an hour and see the same, so they share a
    scope."""
    token = "" if place.of_app else current_token(place.credential)
    account = hashlib.sha256(token.encode()).hexdigest()[:16] if token else "installation"
    return f"{place.api} {place.repository} {account}"


def slim(value: Any) -> Any:
    """GitHub's JSON without self-links and other unused fields: about a tenth of the size."""
    if isinstance(value, list):
        return [slim(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    members = {key: slim(item) for key, item in value.items() if key not in UNUSED_KEYS and not _is_link(key)}
    for name in ("repo", "repository", "head_repository"):
        if (
            isinstance(repo := value.get(name), Mapping) and "full_name" in repo
        ):  # GraphQL uses this name for other things
            members[name] = {key: repo.get(key) for key in ("id", "full_name")}
    if "node_id" in value and {"issue_url", "default_branch", "repository_url", "submitted_at"} & value.keys():
        # GraphQL identifies comments, the repository, issues and reviews by it
        members["node_id"] = value["node_id"]
    return members


def _is_link(key: str) -> bool:
    return key.endswith("_url") and key not in ("html_url", "issue_url")


def _write(path: Path, scope: str, values: Mapping[str, Any], lasting: bool = False) -> bool:
    """Whether the file was replaced; a failed write leaves the old one."""
    with suppress(OSError, ValueError):
        text = json.dumps({"version": VERSION, "scope": scope, "values": values})
        files.write(files.own(path.parent) / path.name, text.encode(), 0o600, lasting=lasting, keep=False)
        return True
    return False


def _load(path: Path, scope: str, cap: int = CAP) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        with open(files.open_regular(files.own(path.parent) / path.name, os.O_RDONLY), "rb") as file:
            known = json.loads(file.read(cap))
        if isinstance(known, dict) and (known.get("version"), known.get("scope")) == (VERSION, scope):
            values = known.get("values")
            return values if isinstance(values, dict) else {}
    return {}


BACK_OFF = (1.0, 2.0, 4.0)  # seconds before a read is retried
PATIENCE = 120.0  # total seconds that a cycle waits for rate limits
LONGEST = 1000  # pages of a list: none of ours is that long
PACE = 1.0  # seconds between two mutations, as GitHub requests
NUMBERED = compile_regex(r"/repositories/(\d+)(/.*)?")


@dataclass(slots=True)
class Counts:
    """Requests so far: all, those answered by 304, and mutations."""

    total: int = 0
    not_modified: int = 0
    mutations: int = 0


class Api:
    """One repository's REST API. Paths begin below the repository ("/issues"), or with "//" below the API ("//user").

    `note` receives progress notes for people. A `staged` one sends no mutation.
    """

    def __init__(
        self,
        place: RepositoryPlace,
        read_cache: ReadCache,
        *,
        note: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
        pace: float = PACE,
        timeout: float = 30,
        staged: bool = False,
    ) -> None:
        self.place, self.read_cache, self.note, self.sleep = place, read_cache, note, sleep
        self.pace, self.staged = pace, staged
        self.counts = Counts()
        self.waited = 0.0
        self._wire = GitHubRequester(place, timeout)
        self._clock = (datetime.now(UTC), time.monotonic())
        self._last_mutation = float("-inf")
        self._no_mutation_before = datetime.min.replace(tzinfo=UTC)
        self._home: int | None = None
        self._read: dict[str, Page] = {}  # since the last mutation: nothing is asked twice

    @property
    def now(self) -> datetime:
        """The present by GitHub's clock, if known."""
        at, then = self._clock
        return at + timedelta(seconds=time.monotonic() - then)

    # --- reading

    def forget(self) -> None:
        """Ask again: others may have changed anything."""
        self._read.clear()

    def get(self, path: str, fresh: bool = False) -> Any:
        """The JSON at a path; `fresh` skips what was read before. Raises Absent, UserError."""
        return self._page(self._below(path), fresh).body

    def pages(self, path: str, fresh: bool = False, key: str = "") -> Iterator[list[Any]]:
        """The pages of a list, loaded lazily; it may be under a key. Raises Absent, UserError."""
        below, addresses = self._below(path), set[str]()
        while below:
            if below in addresses or len(addresses) == LONGEST:
                raise UserError(
                    f"GitHub's list {path.partition('?')[0]} has no end", "check GITHUB_API_URL", who="forge"
                )
            addresses.add(below)
            page = self._page(below, fresh)
            found = page.body.get(key) if key and isinstance(page.body, dict) else page.body
            if not isinstance(found, list):
                raise UserError(
                    f"GitHub's answer to GET {path} is not a list", "the next wake tries again", who="forge"
                )
            yield found
            below = page.next

    def download(self, path: str, most: int) -> bytes:
        """Download a log or an archive that GitHub stores elsewhere: at most `most` bytes, without the token.

        Raises Absent, UserError.
        """
        below = self._below(path)
        answer = self._persist("GET", below)
        there = answer.headers.get("x-location", "")
        if answer.status != 302 or not there:
            raise limits.unreadable(below, answer)
        found = GuardedWeb(allow=(urlsplit(self.place.api).netloc,)).get(there, cap=most)
        if found.status != 200:
            raise Absent(below, found.status)
        return found.content

    def all(self, path: str, fresh: bool = False) -> list[Any]:
        """Everything in a list."""
        return [item for page in self.pages(path, fresh) for item in page]

    def ask(self, query: str) -> Any:
        """The `data` of a read-only GraphQL query. Raises UserError."""
        answer = self._persist("POST", self._wire.graphql, {"query": query})
        body = answer.body
        if not answer.ok or not isinstance(body, dict) or not isinstance(body.get("data"), dict):
            problem = limits.unreadable("/graphql", answer)
            gone = UserError("GitHub has no /graphql", "check GITHUB_API_URL")
            raise problem if isinstance(problem, UserError) else gone
        return body["data"]

    def _page(self, place: str, fresh: bool, moved: bool = False) -> Page:
        if not fresh and (read := self._read.get(place)):
            return read
        known = None if fresh else self.read_cache.page(place)
        known = None if known and _full(place, known) else known
        answer = self._persist("GET", place, etag=known.etag if known else "")
        if answer.status == 304 and known:
            self.counts.not_modified += 1
            self._read[place] = known
            return known
        if 300 <= answer.status < 400 and not moved and (elsewhere := self._same_repository(answer)):
            return self._page(elsewhere, fresh, moved=True)
        if not answer.ok or not answer.readable:
            raise limits.unreadable(place, answer)
        page = Page(answer.headers.get("etag", ""), answer.body, self._next(answer))
        self.read_cache.put_page(place, page)
        self._read[place] = page
        return page

    def _persist(self, method: str, place: str, body: Any = None, etag: str = "") -> ApiAnswer:
        """A read's answer, after due retries. Raises UserError."""
        delays = iter(BACK_OFF)
        while True:
            try:
                answer = self._exchange(method, place, body, etag)
                problem = ""
            except NoAnswer as error:
                if error.final:
                    what = f"{urlsplit(self.place.api).netloc} {error}"
                    raise UserError(what, "check GITHUB_API_URL; the next wake tries again", who="forge") from None
                answer, problem = ApiAnswer(0, {}), str(error)
            pause = limits.wait_for(answer, self.now)
            if pause is not None:
                self._wait(pause)
            elif not problem and answer.status < 500 and answer.readable:
                return answer
            elif (delay := next(delays, None)) is not None:
                self.sleep(delay)
            elif problem:
                what = f"cannot reach {urlsplit(self.place.api).netloc} (it {problem})"
                raise UserError(what, "nothing was lost; the next wake tries again", who="network")
            else:
                return answer

    def _wait(self, seconds: float) -> None:
        if self.waited + seconds > PATIENCE:
            again = self.now + timedelta(seconds=seconds)
            raise UserError("GitHub's rate limit is reached", f"try again after {again:%H:%M} UTC", who="forge")
        self.note(f"GitHub's rate limit: waiting {seconds:.0f} s")
        self.sleep(seconds)
        self.waited += seconds

    def _next(self, answer: ApiAnswer) -> str:
        found = re.search(r'<([^<>]+)>\s*;\s*rel="next"', answer.headers.get("link", ""))
        if found and not self._local(found[1]):  # half a list would look like a whole one
            raise UserError("GitHub continues a list at another address than GITHUB_API_URL", "check it", who="forge")
        return self._local(found[1]) if found else ""

    def _same_repository(self, answer: ApiAnswer) -> str:
        """A read's redirect target, if that is this repository by its number (as after a rename)."""
        place = self._local(answer.headers.get("x-location", ""))
        found = NUMBERED.match(place)
        if not found:
            return ""
        return place if not found[2] or int(found[1]) == self._number() else ""

    def _number(self) -> int | None:
        if self._home is None:
            body = self.get("")
            self._home = body.get("id") if isinstance(body, dict) else None
        return self._home

    def _local(self, url: str) -> str:
        """An API URL as a path below it, "" for other URLs: the token goes nowhere else."""
        base = self.place.api
        return url.removeprefix(base) if url.startswith(f"{base}/") else ""

    # --- doing

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a mutation once and return the JSON of the answer. Raises ForgeRefused or Doubt."""
        answer = self._send(method, self._below(path), body)
        if answer.ok and answer.readable:
            return answer.body
        raise self._no(method, path, answer)

    def change(self, mutation: str, variables: Mapping[str, Any]) -> Any:
        """The `data` of a GraphQL mutation, sent once. Raises ForgeRefused (Stale) or Doubt."""
        answer = self._send("POST", self._wire.graphql, {"query": mutation, "variables": dict(variables)})
        body = answer.body
        if not answer.ok or not isinstance(body, Mapping):
            raise self._no("POST", "/graphql", answer)
        if errors := body.get("errors"):
            raise limits.refused_mutation(errors, answer, mutation)
        return body.get("data")

    def _send(self, method: str, place: str, body: Any) -> ApiAnswer:
        """The answer to a mutation. Raises ForgeRefused if it was certainly not sent, Doubt if it may have been."""
        if self.staged:
            raise RuntimeError(f"a staged cycle must not send {method} {place}")
        self._require_leave()
        self.forget()
        self.counts.mutations += 1
        try:
            return self._exchange(method, place, body)
        except NoAnswer as error:
            if not error.sent:
                raise ForgeRefused(f"cannot reach GitHub (it {error})", reason=FailureReason.NOT_ATTEMPTED) from None
            raise Doubt(f"the answer was lost (it {error})") from None
        except UserError as problem:  # an app without a token sends nothing
            raise ForgeRefused(problem.what, problem.next_step, FailureReason.NOT_ATTEMPTED) from None
        finally:
            self._last_mutation = time.monotonic()

    def _no(self, method: str, path: str, answer: ApiAnswer) -> ForgeRefused | Doubt:
        pause = limits.wait_for(answer, self.now)
        if pause is not None:
            self._no_mutation_before = self.now + timedelta(seconds=pause)
            return self._limit_refusal()
        if answer.ok or answer.status >= 500 or answer.status == 408:
            return Doubt(f"GitHub answered {answer.status}{'' if answer.readable else ', which cannot be read'}")
        return limits.refusal_of(method, path, answer)

    def _require_leave(self) -> None:
        """Keep the pace, and send nothing during an announced rate limit."""
        if self.now < self._no_mutation_before:
            raise self._limit_refusal()
        pause = self._last_mutation + self.pace - time.monotonic()
        if pause > 0:
            self.sleep(pause)

    def _limit_refusal(self) -> ForgeRefused:
        return ForgeRefused(
            f"GitHub's rate limit: try again after {self._no_mutation_before:%H:%M:%S} UTC",
            reason=FailureReason.NOT_ATTEMPTED,
        )

    def _exchange(self, method: str, place: str, body: Any = None, etag: str = "") -> ApiAnswer:
        """One request. Raises NoAnswer, without the token in it."""
        self.counts.total += 1
        status, headers, text = self._wire.request(method, place, body, {"If-None-Match": etag} if etag else {})
        self._look_at_the_clock(headers.get("date", ""))
        try:
            body = slim(json.loads(text)) if text else None
            return ApiAnswer(status, headers, body, bool(text) or status in (204, 302, 304))
        except (ValueError, RecursionError):
            return ApiAnswer(status, headers, readable=False)

    def _look_at_the_clock(self, date: str) -> None:
        try:
            self._clock = (parsedate_to_datetime(date).astimezone(UTC), time.monotonic())
        except (ValueError, OverflowError):
            return

    def _below(self, path: str) -> str:
        return path[1:] if path.startswith("//") else f"/repos/{self.place.repository}{path}"


def _full(place: str, page: Page) -> bool:
    """Whether a list's last page is full: a new next page only shows in its link, which neither ETag nor 304 covers."""
    size = re.search(r"[?&]per_page=(\d+)", place)
    return not page.next and isinstance(page.body, list) and size is not None and len(page.body) >= int(size[1])
