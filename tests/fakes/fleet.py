"""A GitHub of many repositories on loopback: what the gate of a fleet asks, and what a job may do with its token.

    with FakeFleet("acme/control") as fake:
        fake.add("acme/api")                     # without memory: a cycle is due
        token = fake.mint("acme/api")            # good for that repository alone
        fake.run_cycle(token, "acme/api", ...)   # writes its memory; refused with another one's token

Memory is a text of each repository; branches are numbers. `requests` are those received, as (method, path); `points`
what GraphQL would have cost, by GitHub's rule: one for a hundred connections. What is not known here is refused (501)
and stands in `unknown`. `most` repositories of one page are answered, the others left out. `break_at(n, applied)`: the
n-th request from now is answered by a closed connection.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

THREAD = "number title state createdAt updatedAt"
NEWEST = "orderBy: {field: UPDATED_AT, direction: DESC}"
FRAGMENT = (
    "fragment F on Repository { databaseId nameWithOwner isArchived isDisabled isEmpty "
    'memory: object(expression: "refs/heads/ralph-memory:memory/ralph-log.md") { ... on Blob { text } } '
    'head: ref(qualifiedName: "refs/heads/ralph-memory") { target { ... on Commit { committedDate } } } '
    f'issues(first: 5, labels: ["ralph:mission"], {NEWEST}) '
    f"{{ nodes {{ {THREAD} assignees(first: 3) {{ nodes {{ login }} }} }} }} "
    f'pullRequests(first: 10, labels: ["ralph:auto-fix"], {NEWEST}) {{ nodes {{ {THREAD} }} }} '
    f'review: pullRequests(first: 5, states: OPEN, labels: ["ralph:auto-fix"], {NEWEST}) '
    "{ nodes { number assignees(first: 3) { nodes { login } } reviewRequests(first: 3) "
    "{ nodes { requestedReviewer { __typename ... on User { login } ... on Team { login: combinedSlug } } } } } } "
    f"pinnedIssues(first: 3) {{ nodes {{ issue {{ {THREAD} }} }} }} "
    'settings: object(expression: "HEAD:ralph.yml") { id } '
    'onboarding: pullRequests(last: 20, headRefName: "ralph/configure") { nodes { number state isCrossRepository } } }'
)
CONTROL = re.compile(
    r'control: repository\(owner: "([\w.-]+)", name: "([\w.-]+)"\) \{ id '
    r'state: object\(expression: "refs/heads/ralph-fleet:fleet.json"\) \{ \.\.\. on Blob \{ text isTruncated oid \} \} '
    r'branch: ref\(qualifiedName: "refs/heads/ralph-fleet"\) \{ target \{ oid \} \} '
    r"base: defaultBranchRef \{ target \{ oid \} \} "
    r'issues\(first: 5, labels: \["ralph:fleet"\], orderBy: \{field: CREATED_AT, direction: ASC\}\) '
    r"\{ nodes \{ id state body \} \} \}"
)
NAMED = re.compile(r'(r\d+): repository\(owner: "([\w.-]+)", name: "([\w.-]+)"\) \{ \.\.\.F \} ?')
PAGED = r'first: (100|25)(?:, after: "(\d+)")?'
NODES = r"pageInfo \{ hasNextPage endCursor \} nodes \{ \.\.\.F \}"
OWNED = re.compile(
    r'list: repositoryOwner\(login: "([\w-]+)"\) \{ repositories\(ownerAffiliations: OWNER, '
    rf"{PAGED}\) \{{ {NODES} \}} \}} ?"
)
SEARCH = re.compile(
    rf'list: search\(query: "topic:([\w-]+) user:([\w-]+) archived:false fork:true", type: REPOSITORY, {PAGED}\) '
    rf"\{{ {NODES} \}} ?"
)
COMMIT = "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }"
CREATE = "mutation($input: CreateRefInput!) { createRef(input: $input) { ref { name } } }"
SHOW = "updateIssue(input: $page) { issue { number } } }"
UPDATE = f"mutation($page: UpdateIssueInput!) {{ {SHOW}"
COMMIT_AND_SHOW = (
    "mutation($input: CreateCommitOnBranchInput!, $page: UpdateIssueInput!) "
    f"{{ createCommitOnBranch(input: $input) {{ commit {{ oid }} }} {SHOW}"
)
EVERYTHING = "*"


@dataclass
class FleetRepository:
    """One repository, as far as a fleet sees it."""

    name: str
    memory: str | None = None
    moved_at: datetime | None = None
    issues: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    pinned: list[dict[str, Any]] = field(default_factory=list)
    topics: tuple[str, ...] = ()
    settings: bool = False
    onboarding: list[dict[str, Any]] = field(default_factory=list)
    archived: bool = False
    installed: bool = True
    forbidden: bool = False
    cycles: list[datetime] = field(default_factory=list)
    reviewers: dict[int, list[str]] = field(default_factory=dict)  # of pull requests, by number; a team has a slash
    id: int = 0


class Refused(Exception):
    """What GitHub says no to: a status and its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Dropped(Exception):
    """The connection is closed without an answer."""


class FakeFleet:
    """Many repositories of one installation, and a control repository with a branch for the fleet's state."""

    def __init__(self, control: str = "acme/control", *, selection: str = "all", limit: int = 12_500) -> None:
        self.control, self.selection, self.limit, self.left = control, selection, limit, limit
        self.repositories: dict[str, FleetRepository] = {}
        self.renamed: dict[str, str] = {}
        self.ids = 0
        self.longest = 512_000  # bytes of a file that GraphQL tells
        self.control_has: dict[str, Any] = {  # by paths below the control repository; None: the token may not see it
            "": {"has_issues": True},
            "/labels/ralph:fleet": {},
            "/actions/variables/RALPH_APP_CLIENT_ID": {},
            "/actions/secrets/RALPH_APP_PRIVATE_KEY": {},
            "/actions/organization-variables?per_page=100": {"variables": []},
            "/actions/organization-secrets?per_page=100": {"secrets": []},
            "/actions/workflows?per_page=100": {
                "workflows": [
                    {"path": f".github/workflows/{name}.yml", "state": "active"}
                    for name in ("ralph-fleet", "ralph-fleet-cycle")
                ]
            },
        }
        self.known = set(self.control_has)
        self.state: list[str] = []  # of the branch, one for each commit
        self.pages = [{"id": "I_0", "state": "OPEN", "body": "<!-- ralph:fleet -->"}]  # issues with the page's label
        self.has_branch = False
        self.tokens: dict[str, str] = {"scan": EVERYTHING, "control": control}
        self.requests: list[tuple[str, str]] = []
        self.points = 0
        self.unknown: list[str] = []
        self.reads_teams = True  # whether the scan's token has read:org
        self.most = 100  # repositories of a request that it gets done; the others are left out
        self._break: tuple[int, bool] | None = None
        self._lock = threading.Lock()

    # --- what a test sets up, and what a job does

    def add(self, name: str, **more: Any) -> FleetRepository:
        self.ids += 1
        self.repositories[name] = FleetRepository(name, id=self.ids, **more)
        return self.repositories[name]

    def rename(self, old: str, new: str) -> None:
        """It keeps its number, and GitHub leads from the old name to it."""
        repository = self.repositories.pop(old)
        self.repositories[new], self.renamed[old], repository.name = repository, new, new

    def mint(self, name: str) -> str:
        """As an app's installation token for one repository."""
        if name not in self.repositories or self.repositories[name].forbidden:
            raise Refused(422, "There is at least one repository that does not exist or is not accessible")
        self.tokens[f"ghs_{name}"] = name
        return f"ghs_{name}"

    def run_cycle(self, token: str, name: str, memory: str, at: datetime, requests: int = 0) -> None:
        """A cycle writes its memory, and sends so many requests with its token."""
        self._may(token, name)
        repository = self.repositories[name]
        if repository.archived:
            raise Refused(403, "Repository was archived so is read-only.")
        repository.memory, repository.moved_at = memory, at
        repository.cycles.append(at)
        self.left -= requests

    def break_at(self, number: int, applied: bool = False) -> None:
        self._break = (number, applied)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": self.control,
            "GITHUB_API_URL": f"{self.url}/api/v3",
            "GITHUB_TOKEN": "scan",
            "RALPH_CONTROL_TOKEN": "control",
        }

    # --- serving

    def __enter__(self) -> Self:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                fake.answer(self)

            do_POST = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        assert self.unknown == []

    def answer(self, call: BaseHTTPRequestHandler) -> None:
        raw = call.rfile.read(int(call.headers.get("Content-Length") or 0))
        path = call.path.removeprefix("/api/v3").replace("/api/graphql", "/graphql")
        try:
            with self._lock:
                status, told = self._serve(call.command, path, call.headers.get("Authorization", ""), raw)
        except Dropped:
            call.close_connection = True
            return
        content = json.dumps(told).encode()
        call.send_response(status)
        call.send_header("Content-Type", "application/json")
        call.send_header("Content-Length", str(len(content)))
        call.send_header("x-ratelimit-limit", str(self.limit))
        call.send_header("x-ratelimit-remaining", str(self.left))
        call.end_headers()
        call.wfile.write(content)

    def _serve(self, method: str, path: str, signed: str, raw: bytes) -> tuple[int, Any]:
        self.requests.append((method, path))
        applied = None
        if self._break:
            number, applied = self._break
            self._break = (number - 1, applied) if number > 1 else None
            applied = applied if number == 1 else None
        if applied is False:
            raise Dropped
        try:
            answer = 200, self._tell(method, path, signed.rpartition(" ")[2], json.loads(raw) if raw else {})
        except Refused as refused:
            answer = refused.status, {"message": refused.message}
        if applied:
            raise Dropped
        return answer

    def _tell(self, method: str, path: str, token: str, body: dict[str, Any]) -> Any:
        if token not in self.tokens:
            raise Refused(401, "Bad credentials")
        if (method, path) == ("POST", "/graphql"):
            return self.answer_query(token, body["query"], body.get("variables") or {})
        if (method, path) == ("GET", "/rate_limit"):
            return {"resources": {}}
        if path.startswith("/installation/") and self.selection == "none":
            raise Refused(403, "You must authenticate with an installation access token")
        if found := re.fullmatch(r"/installation/repositories\?per_page=100&page=(\d+)", path):
            self.left -= 1
            names = [one.name for one in self.repositories.values() if one.installed]
            page = names[(int(found[1]) - 1) * 100 : int(found[1]) * 100]
            listed = [{"full_name": name, "owner": {"login": name.partition("/")[0]}} for name in page]
            return {"total_count": len(names), "repository_selection": self.selection, "repositories": listed}
        below = path.removeprefix(f"/repos/{self.control}")
        if method == "GET" and below == f"/git/blobs/{'f' * 40}":
            return {"encoding": "base64", "content": base64.encodebytes(self.state[-1].encode()).decode()}
        if method == "GET" and below in self.known:
            if below not in self.control_has:
                raise Refused(404, "Not Found")
            if self.control_has[below] is None:
                raise Refused(403, "Resource not accessible by integration")
            return self.control_has[below]
        if (method, path) == ("POST", f"/repos/{self.control}/issues"):
            self._may(token, self.control)
            assert body["labels"] == ["ralph:fleet"]
            self.pages.append({"id": f"I_{len(self.pages)}", "state": "OPEN", "body": body["body"]})
            return {"number": len(self.pages)}
        self.unknown.append(f"{method} {path}")
        raise Refused(501, "unknown")

    def _may(self, token: str, name: str) -> None:
        if self.tokens.get(token) not in (EVERYTHING, name):
            raise Refused(404, "Not Found")  # as GitHub: another's repository is not even there

    def answer_query(self, token: str, query: str, variables: dict[str, Any]) -> Any:
        if query == COMMIT_AND_SHOW:
            booked = self._change(token, COMMIT, variables["input"])
            shown = self._change(token, UPDATE, variables["page"])
            return {"data": booked["data"] | shown["data"]} | {
                "errors": [one | {"path": ["createCommitOnBranch"]} for one in booked.get("errors", ())]
            }
        if query in (COMMIT, CREATE, UPDATE):
            return self._change(token, query, variables["page" if query == UPDATE else "input"])
        self._may(token, EVERYTHING)
        if "... on Team" in query and not self.reads_teams:
            return {"errors": [{"type": "INSUFFICIENT_SCOPES", "message": "'combinedSlug' requires read:org"}]}
        fragment = FRAGMENT if self.reads_teams else FRAGMENT.replace(" ... on Team { login: combinedSlug }", "")
        text, data, errors = query.removesuffix(f" {fragment}"), {}, []
        text = text.removeprefix("{ ").removesuffix(" }")
        if control := CONTROL.search(text):
            data["control"] = self._control_branch()
            text = text.replace(control[0], "")
        connections = 0
        while text:
            if found := NAMED.match(text):
                name = f"{found[2]}/{found[3]}"
                repository = self.repositories.get(self.renamed.get(name, name))
                data[found[1]] = (
                    self.describe_repository(repository) if repository and not repository.forbidden else None
                )
                if not data[found[1]]:
                    kind = "FORBIDDEN" if repository else "NOT_FOUND"
                    errors.append({"type": kind, "path": [found[1]], "message": "no"})
                connections += 20
            elif found := OWNED.match(text) or SEARCH.match(text):
                owned = found.re is OWNED
                names = [one for one in self.repositories.values() if owned or found[1] in one.topics]
                begin = int(found[found.re.groups] or 0)
                size = int(found[found.re.groups - 1])
                page = names[begin : begin + size]
                more = begin + size < len(names)
                info = {"hasNextPage": more, "endCursor": str(begin + size)}
                listed = {"pageInfo": info, "nodes": [self.describe_repository(one) for one in page]}
                if len(page) > self.most:
                    listed["nodes"] = [*listed["nodes"][: self.most], *[None] * (len(page) - self.most)]
                    errors.append({"type": "RESOURCE_LIMITS_EXCEEDED", "path": ["list"], "message": "too much"})
                data["list"] = {"repositories": listed} if owned else listed
                connections += 1 + 20 * len(page)
            else:
                self.unknown.append(text)
                raise Refused(501, "unknown")
            text = text[found.end() :]
        self.points += max(1, connections // 100)
        return {"data": data} | ({"errors": errors} if errors else {})

    def describe_repository(self, one: FleetRepository) -> dict[str, Any]:
        at = one.moved_at and one.moved_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "databaseId": one.id,
            "nameWithOwner": one.name,
            "isArchived": one.archived,
            "isDisabled": False,
            "isEmpty": False,
            "memory": None if one.memory is None else {"text": one.memory},
            "head": {"target": {"committedDate": at}} if at else None,
            "issues": {"nodes": [{"assignees": {"nodes": []}} | each for each in one.issues]},
            "pullRequests": {"nodes": one.pulls},
            "review": {
                "nodes": [
                    _review(one, each["number"], self.reads_teams) for each in one.pulls if each["state"] == "OPEN"
                ][:5]
            },
            "pinnedIssues": {"nodes": [{"issue": each} for each in one.pinned]},
            "settings": {"id": "B_1"} if one.settings else None,
            "onboarding": {"nodes": one.onboarding[-20:]},
        }

    # --- the branch of the fleet's state

    def _control_branch(self) -> dict[str, Any]:
        whole = self.state[-1].encode() if self.state else b""
        text = whole[: self.longest].decode()
        state = {"text": text, "isTruncated": len(whole) > self.longest, "oid": "f" * 40} if whole else None
        branch = {"target": {"oid": self._oid()}} if self.has_branch else None
        base = {"target": {"oid": f"{0:040x}"}}
        return {"id": "R_1", "state": state, "branch": branch, "base": base, "issues": {"nodes": self.pages[:5]}}

    def _oid(self) -> str:
        return f"{len(self.state):040x}"

    def _change(self, token: str, query: str, order: dict[str, Any]) -> Any:
        if self.tokens[token] != self.control:
            error = {"type": "FORBIDDEN", "message": "Resource not accessible by integration"}
            return {"data": {}, "errors": [error]}
        if query == UPDATE:
            next(one for one in self.pages if one["id"] == order["id"])["body"] = order["body"]
            return {"data": {"updateIssue": {"issue": {"number": 1}}}}
        if query == CREATE:
            if self.has_branch:
                return {"data": {}, "errors": [{"type": "UNPROCESSABLE", "message": "A ref already exists"}]}
            self.has_branch = True
            return {"data": {"createRef": {"ref": {"name": "ralph-fleet"}}}}
        if order["expectedHeadOid"] != self._oid() or not self.has_branch:
            return {"data": {}, "errors": [{"type": "STALE_DATA", "message": "Expected branch to point elsewhere"}]}
        self.state.append(base64.b64decode(order["fileChanges"]["additions"][0]["contents"]).decode())
        return {"data": {"createCommitOnBranch": {"commit": {"oid": self._oid()}}}}


def _review(one: FleetRepository, number: int, teams: bool) -> dict[str, Any]:
    named = [
        {"__typename": "Team" if "/" in who else "User"} | ({"login": who} if teams or "/" not in who else {})
        for who in one.reviewers.get(number, ())
    ]
    asked = [{"requestedReviewer": who if who.get("login") != "" else None} for who in named]
    return {"number": number, "assignees": {"nodes": []}, "reviewRequests": {"nodes": asked}}


def thread(number: int, title: str, at: datetime, state: str = "OPEN") -> dict[str, Any]:
    """An issue or pull request as GraphQL tells it."""
    told = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"number": number, "title": title, "state": state, "createdAt": told, "updatedAt": told}
