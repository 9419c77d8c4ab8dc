"""GitHub with the standard library alone: files of a repository in one request, and other GraphQL.

The gate runs before anything is installed or checked out. GraphQL returns files of several branches at once, where
`git fetch` would transfer whole commits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ralph_mission.adapters.git.remote import RepositoryPlace, current_token
from ralph_mission.errors import UserError

SECONDS = 10.0  # seconds without a byte
SIZE = 4 * 1024 * 1024  # bytes of an answer
TRIES = 2  # read-only


def read_files(place: RepositoryPlace, *names: str) -> list[str | None]:
    """Texts by name, such as `HEAD:ralph.yml`; None if there is no such file, "" if it is not text.

    Raises UserError if the server does not answer or refuses.
    """
    owner, _, name = place.repository.partition("/")
    files = " ".join(
        f"f{number}: object(expression: {json.dumps(each)}) {{ ... on Blob {{ text }} }}"
        for number, each in enumerate(names)
    )
    query = f"{{ repository(owner: {json.dumps(owner)}, name: {json.dumps(name)}) {{ {files} }} }}"
    answer = ask_graphql(place, query)
    data = answer.get("data")
    repository = data.get("repository") if isinstance(data, dict) else None
    if not isinstance(repository, dict):
        if "RATE_LIMITED" in json.dumps(answer.get("errors")):
            raise _rate_limit(urlsplit(place.api).netloc)
        raise _refused(place, json.dumps(answer.get("errors"))[:160])
    return [_text(repository.get(f"f{number}")) for number in range(len(names))]


def _text(blob: Any) -> str | None:
    if not isinstance(blob, dict) or "text" not in blob:
        return None
    return str(blob["text"] or "")


def ask_graphql(
    place: RepositoryPlace,
    query: str,
    variables: Mapping[str, Any] | None = None,
    *,
    tries: int = TRIES,
    seconds: float = SECONDS,
    size: int = SIZE,
) -> Mapping[str, Any]:
    """The whole answer, its `errors` too. Whoever changes something asks with one try. Raises UserError."""
    body = {"query": query, "variables": dict(variables)} if variables else {"query": query}
    address = f"{place.api.removesuffix('/v3')}/graphql"
    answer, _ = _ask(place, Request(address, json.dumps(body).encode(), method="POST"), tries, seconds, size)
    return answer if isinstance(answer, dict) else {}


def get_json(place: RepositoryPlace, path: str) -> tuple[Any, Mapping[str, str]]:
    """What the REST API says at a path, and the headers by names in lower case. Raises UserError."""
    return _ask(place, Request(place.api + path), TRIES, SECONDS, SIZE)


def post_json(place: RepositoryPlace, path: str, body: Mapping[str, Any]) -> Any:
    """Send it once to the REST API, and return the answer. Raises UserError; then it may have arrived all the same."""
    request = Request(place.api + path, json.dumps(body).encode(), method="POST")
    return _ask(place, request, 1, SECONDS, SIZE)[0]


def _ask(
    place: RepositoryPlace, request: Request, tries: int, seconds: float, size: int
) -> tuple[Any, Mapping[str, str]]:
    server = urlsplit(place.api).netloc
    for tried in range(1, tries + 1):
        try:
            with build_opener(_Nowhere).open(_signed(place, request), timeout=seconds) as answer:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return json.loads(answer.read(size)), headers
        except HTTPError as error:
            limited = _is_limit(error)
            error.close()
            if limited:
                raise _rate_limit(server) from None
            if error.code < 500 or tried == tries:
                raise _refused(place, f"HTTP {error.code}", lasting=error.code in (401, 403, 404)) from None
        except (OSError, HTTPException, ValueError) as error:
            if tried == tries:
                what = f"cannot reach {server} ({getattr(error, 'reason', None) or error})"
                raise UserError(what, "nothing was lost; the next wake tries again", who="network") from None
    raise AssertionError


def _is_limit(error: HTTPError) -> bool:
    """Whether it is a rate limit, which GitHub also reports as 403."""
    headers = error.headers
    if error.code not in (403, 429):
        return False
    return error.code == 429 or "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"


def _rate_limit(server: str) -> UserError:
    return UserError(
        f"the rate limit of {server} is reached", "nothing was lost; a later wake tries again", who="forge"
    )


def _signed(place: RepositoryPlace, request: Request) -> Request:
    headers = {
        "Authorization": f"Bearer {current_token(place.credential)}",
        "Accept": "application/vnd.github+json",
        "Content-Type": "application/json",
        "User-Agent": "ralph-mission",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    for name, value in headers.items():
        request.add_header(name, value)
    return request


def _refused(place: RepositoryPlace, why: str, lasting: bool = True) -> UserError:
    server = urlsplit(place.api).netloc
    if not lasting:
        return UserError(f"{server} did not answer ({why})", "the next wake tries again", who="network")
    return UserError(
        f"{server} does not let this token read {place.repository} ({why})",
        "give GITHUB_TOKEN `contents: read` for it (and check GITHUB_REPOSITORY)",
        who="forge",
    )


class _Nowhere(HTTPRedirectHandler):
    """Follows no redirects, as the token would be sent along."""

    def redirect_request(self, *_: Any) -> None:
        return None
