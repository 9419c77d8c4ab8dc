"""Sends requests to GitHub, and explains refusals: a setting to change, a limit, a missing thing, or doubt.

PyGithub's requester sends them over our client, without its own redirects: it follows a 301 even for a POST, which
sends it a second time, so its answers contain nothing to follow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.git.app_token import AppToken
from ralph_mission.adapters.git.remote import RepositoryPlace, current_token
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.values import compile_regex, dataclass

if TYPE_CHECKING:
    import requests

SECONDARY = 60.0  # seconds to wait if GitHub gives no time; its own advice
FURTHEST = 86400.0  # seconds: no GitHub limit lasts longer than a day
LONGEST = 200  # characters of GitHub's words that are passed on


class Doubt(Exception):
    """A mutation was sent, and the answer leaves open whether it happened."""


class Absent(Exception):
    """Nothing exists at this path, any more or ever; `status` is GitHub's."""

    def __init__(self, path: str, status: int) -> None:
        super().__init__(f"{path}: {status}")
        self.path, self.status = path, status


class Forbidden(UserError):
    """The token is valid, but not for this."""


class Violation(ForgeRefused):
    """The rules of a branch forbid a merge; `what`: GitHub's words."""


class Declined(ForgeRefused):
    """The mutation was understood, and is not allowed or not possible."""


class Stale(ForgeRefused):
    """The object changed since it was read."""


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """A reply: header names in lower case; `body` is its JSON; not `readable` if it was not JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any = None
    readable: bool = True

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return 200 <= self.status < 300


PULLS_ALLOWED = "Settings → Actions → General → Allow GitHub Actions to create and approve pull requests"
SETTINGS: tuple[tuple[str, str], ...] = (
    (r"not permitted to (?:create|approve)", PULLS_ALLOWED),
    (r"archived", "Settings → General → Danger Zone → Unarchive this repository"),
    (r"issues (?:are|has been|have been) disabled", "Settings → General → Features → Issues"),
    (
        r"(?:squash|merge) (?:merges|commits) are not allowed|merge method",
        "Settings → General → Pull Requests: allow this merge method, or set forge.merge_method in ralph.yml",
    ),
    (r"SAML|single sign-on", "authorise the token for the organisation's single sign-on"),
    (
        r"IP allow list",
        "the organisation's Settings → Authentication security → IP allow list: add the runner's address",
    ),
    (r"repository access blocked", "GitHub has blocked this repository: its owner must ask GitHub Support"),
    (r"blocked from|user is blocked", "the token's account is blocked here: unblock it, or use another one"),
)
"""GitHub's words for a permanent refusal (regular expression), and the setting behind it."""

DEFINITE = ("FORBIDDEN", "NOT_FOUND", "UNPROCESSABLE", "INSUFFICIENT_SCOPES", "BAD_USER_INPUT")
"""GraphQL's error types that mean nothing was done."""
NO_RIGHTS_KINDS = ("FORBIDDEN", "INSUFFICIENT_SCOPES")
MUTATIONS = {
    "createCommitOnBranch": "contents: write",
    "createPullRequest": "pull-requests: write",
    "dequeuePullRequest": "pull-requests: write, contents: write",
    "enqueuePullRequest": "pull-requests: write, contents: write",
}
"""The permission that a mutation needs; those not named here are about issues."""
VIOLATED = compile_regex(r"repository rule violations found", re.IGNORECASE)
NO_RIGHTS = compile_regex(r"resource not accessible|must have (?:admin|push|write)|permission|forbidden", re.IGNORECASE)


def wait_for(answer: ApiAnswer, now: datetime) -> float | None:
    """Seconds to wait for a rate limit; None if this is not one."""
    if answer.status not in (403, 429):
        return None
    if (retry_after := answer.headers.get("retry-after")) is not None:
        return _bound_wait(retry_after, 0.0)
    if answer.headers.get("x-ratelimit-remaining") == "0" and not NO_RIGHTS.search(error_text(answer)):
        return _bound_wait(answer.headers.get("x-ratelimit-reset", ""), now.timestamp())
    return SECONDARY if answer.status == 429 or "rate limit" in error_text(answer).lower() else None


def _bound_wait(value: str, since: float) -> float:
    """The seconds from `since` until a header's time, if that makes sense."""
    return min(max(1.0, float(value) - since), FURTHEST) if re.fullmatch(r"[0-9]{1,15}", value) else SECONDARY


def refusal_of(method: str, path: str, answer: ApiAnswer) -> ForgeRefused:
    """A definite refusal of a mutation, with the setting or permission to change, if any."""
    words = error_text(answer)
    if 300 <= answer.status < 400:
        return ForgeRefused("GitHub has moved it elsewhere, and nothing is sent on", "check GITHUB_REPOSITORY")
    if answer.status == 409 and path.endswith("/merge"):
        return ForgeRefused("approval-head")
    if answer.status == 401 and not NO_RIGHTS.search(words):  # one that stays wrong ends the next cycle's first read
        what = f"GitHub does not accept the token now ({words})"
        return ForgeRefused(what, reason=FailureReason.NOT_ATTEMPTED)
    if setting := _find_setting(words):
        return ForgeRefused(setting, reason=FailureReason.NEEDS_PERSON)
    if path.endswith("/merge") and (VIOLATED.search(words) or "in the merge queue" in words):
        return Violation(VIOLATED.sub("", words).strip(" .;"))
    if answer.status in (401, 403) and NO_RIGHTS.search(words):
        what = f"give the job `permissions: {permission(method, path)}` ({words})"
        return ForgeRefused(what, reason=FailureReason.NEEDS_PERSON)
    if answer.status in (404, 410):
        return ForgeRefused(
            f"there is no such thing on GitHub, or the token may not write to it ({answer.status} {words})"
        )
    return ForgeRefused(f"GitHub refused: {words or answer.status}")


def refused_mutation(errors: Any, answer: ApiAnswer, mutation: str = "") -> ForgeRefused | Doubt:
    """The meaning of a GraphQL mutation's errors. Only a known kind is a definite refusal.

    Where rights are missing it names the permission that this mutation needs, as `refusal_of` does for a path.
    """
    first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], Mapping) else {}
    words, kind = " ".join(str(first.get("message") or "").split())[:LONGEST], str(first.get("type") or "")
    if kind == "STALE_DATA":
        return Stale(words)
    if kind == "RATE_LIMITED":
        return ForgeRefused(f"GitHub's rate limit: {words}", reason=FailureReason.NOT_ATTEMPTED)
    if kind in DEFINITE:
        setting = _find_setting(words)
        if not setting and kind in NO_RIGHTS_KINDS and NO_RIGHTS.search(words):
            setting = f"give the job `permissions: {permission_of_mutation(mutation)}` ({words})"
        return Declined(setting or f"GitHub refused: {words}", reason=FailureReason.NEEDS_PERSON if setting else None)
    return Doubt(f"GitHub answered {answer.status} with an error: {words}")


def _find_setting(words: str) -> str:
    """The setting behind GitHub's words, or ""."""
    return next((setting for pattern, setting in SETTINGS if re.search(pattern, words, re.IGNORECASE)), "")


def unreadable(path: str, answer: ApiAnswer) -> UserError | Absent:
    """The error for a failed GET."""
    words = error_text(answer)
    if answer.status in (404, 410) or 300 <= answer.status < 400:
        return Absent(path, answer.status)
    if answer.status == 401:
        return UserError(f"GitHub does not accept the token ({words})", "set GITHUB_TOKEN to a valid one")
    if answer.status < 500 and (setting := _find_setting(words)):
        return UserError(f"GitHub refuses to show {path.partition('?')[0]} ({words})", setting)
    if answer.status == 403:
        what = f"the token may not read {path.partition('?')[0]} ({words})"
        return Forbidden(what, f"give the job `permissions: {permission('GET', path)}`")
    if answer.status >= 500 or not answer.readable:
        what = f"GitHub answers {answer.status} to GET {path.partition('?')[0]}"
        return UserError(what, "nothing was lost; the next wake tries again", who="forge")
    return UserError(
        f"GitHub refused GET {path.partition('?')[0]}: {answer.status} {words}",
        "look at GITHUB_REPOSITORY and the token's permissions",
        who="forge",
    )


def permission(method: str, path: str) -> str:
    """The line of a job's `permissions:` that a request needs."""
    name = "contents" if path.endswith("/merge") or "/branches/" in path else "issues"
    name = "pull-requests" if name == "issues" and "/pulls" in path else name
    name = "actions" if "/actions/" in path else name
    name = "metadata" if path.endswith("/permission") else name
    return f"{name}: {'read' if method == 'GET' else 'write'}"


def permission_of_mutation(mutation: str) -> str:
    """The same for a GraphQL mutation, by the field that it asks for."""
    found = re.search(r"\{\s*(\w+)\(", mutation)
    return MUTATIONS.get(found[1] if found else "", "issues: write")


def error_text(answer: ApiAnswer) -> str:
    """GitHub's message and the errors it names, on one line."""
    if not isinstance(answer.body, Mapping):
        return ""
    errors = answer.body.get("errors")
    details = [_detail(error) for error in errors] if isinstance(errors, list) else []
    parts = [str(answer.body.get("message") or ""), *details]
    return " ".join("; ".join(part for part in parts if part).split())[:LONGEST]


def _detail(error: Any) -> str:
    if not isinstance(error, Mapping):
        return str(error)
    return str(error.get("message") or " ".join(str(error.get(key) or "") for key in ("resource", "field", "code")))


AGENT = "ralph_mission"
VERSION = "2022-11-28"
IDLE = 15.0  # seconds after which a connection is not reused
LARGEST = 32 * 1024 * 1024  # bytes of a reply, unpacked: a page of 100 bodies of 65,536 characters of 4 bytes fits
SLOWEST = 60.0  # seconds from a request to the end of its reply; GitHub itself gives up after 10


class GitHubRequester:
    """A connection to one API, signed in by a token that never appears in an error, URL or log."""

    def __init__(self, place: RepositoryPlace, timeout: float) -> None:
        self.place, self.timeout = place, timeout

    def request(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, dict[str, str], str]:
        """Status, headers (lower case; a redirect's target is `x-location`) and text.

        Raises NoAnswer, and UserError if an app gets no token: nothing was sent then.
        """
        from github import Auth

        from ralph_mission.adapters.http.client import NoAnswer

        # Signed in again for each request: an app's token is renewed before it, and not in the middle of a mutation.
        requester = self._requester.withAuth(Auth.Token(current_token(self.place.credential)))
        accepted = {"Accept": "application/vnd.github+json", **headers}
        try:
            status, found, text = requester.requestJson(method, path, None, accepted, body, self._line)
        except ValueError as error:  # a header that must be a number is not one
            raise NoAnswer(f"sent an answer that cannot be read ({type(error).__name__})") from None
        if status == 401 and isinstance(self.place.credential, AppToken):
            self.place.credential.forget()
        return status, found, text

    @property
    def graphql(self) -> str:
        """The URL of the GraphQL API."""
        return str(self._requester.graphql_url)

    @cached_property
    def _requester(self) -> Any:
        from github import Github

        return Github(
            base_url=self.place.api,
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            user_agent=AGENT,
            timeout=max(1, int(self.timeout)),
            per_page=100,
            api_version=VERSION,
        ).requester

    @cached_property
    def _line(self) -> Any:
        from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass

        from ralph_mission.adapters.http.client import HttpLimits, HttpSession

        place = urlsplit(self.place.api)
        kind: Any = HTTPRequestsConnectionClass if place.scheme == "http" else HTTPSRequestsConnectionClass
        line = kind(place.hostname, place.port)
        line.session = HttpSession(HttpLimits(SLOWEST, self.timeout, LARGEST), idle=IDLE)
        line.session.hooks["response"] = [_make_plain]
        return line


def _make_plain(response: requests.Response, **_: Any) -> None:
    """Remove redirects, and fix the encoding."""
    response.encoding = "utf-8"
    if "location" in response.headers:
        response.headers["x-location"] = response.headers.pop("location")
