"""A fleet on its server: every memory's header by one request for a hundred repositories, and the fleet's own state.

With the standard library and PyYAML only, for a workflow's gate without an installation. The state is a file on a
branch of the control repository, which only moves from the commit that was read: of two gates one is first.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any

from ralph_mission.adapters.git.remote import RepositoryPlace
from ralph_mission.adapters.http.files import ask_graphql, get_json, post_json
from ralph_mission.adapters.storage.memory.due import written_fields
from ralph_mission.config.fleet import FleetConfig
from ralph_mission.errors import UserError
from ralph_mission.mission import memory as layout
from ralph_mission.mission.fleet.model import CONFIGURE, FleetThread, RateLimit, RepositoryHeader
from ralph_mission.mission.memory.front_matter import read
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Urgency
from ralph_mission.values import dataclass
from ralph_mission.words import stamp

PAGE, FEW = 100, 25  # repositories per request: GitHub's limit for a list; and a lower one if that is too many
SECONDS, SIZE = 60.0, 64 * 1024 * 1024  # of one answer: a hundred memories
BRANCH, STATE = "ralph-fleet", "fleet.json"
MOST_PAGES = 1000  # of a list
LABEL, TITLE, MARKER = "ralph:fleet", "Ralph's fleet", "<!-- ralph:fleet -->"
DASHBOARD = "Ralph"  # the title of the issue that people tick
UNREADABLE = "its memory cannot be read: run `ralph memory recover` there"
_REASON = {
    "NOT_FOUND": "it does not exist, or the app is not installed there",
    "FORBIDDEN": "the token may not read it",
}
TOO_MUCH = "RESOURCE_LIMITS_EXCEEDED"  # of a part: a smaller request brings it
_THREAD = "number title state createdAt updatedAt"
_ASSIGNEES = "assignees(first: 3) { nodes { login } }"
_TEAM = " ... on Team { login: combinedSlug }"  # GitHub refuses the whole query to a token without read:org
_REVIEWER = f"requestedReviewer {{ __typename ... on User {{ login }}{_TEAM} }}"
_NEWEST = "orderBy: {field: UPDATED_AT, direction: DESC}"
FIELDS = (
    "fragment F on Repository { databaseId nameWithOwner isArchived isDisabled isEmpty "
    f'memory: object(expression: "refs/heads/{layout.BRANCH}:{layout.MEMORY}") {{ ... on Blob {{ text }} }} '
    f'head: ref(qualifiedName: "refs/heads/{layout.BRANCH}") {{ target {{ ... on Commit {{ committedDate }} }} }} '
    f'issues(first: 5, labels: ["ralph:mission"], {_NEWEST}) '
    f"{{ nodes {{ {_THREAD} {_ASSIGNEES} }} }} "
    f'pullRequests(first: 10, labels: ["ralph:auto-fix"], {_NEWEST}) {{ nodes {{ {_THREAD} }} }} '
    f'review: pullRequests(first: 5, states: OPEN, labels: ["ralph:auto-fix"], {_NEWEST}) '
    f"{{ nodes {{ number {_ASSIGNEES} reviewRequests(first: 3) {{ nodes {{ {_REVIEWER} }} }} }} }} "
    f"pinnedIssues(first: 3) {{ nodes {{ issue {{ {_THREAD} }} }} }} "
    'settings: object(expression: "HEAD:ralph.yml") { id } '
    f'onboarding: pullRequests(last: 20, headRefName: "{CONFIGURE}") '
    "{ nodes { number state isCrossRepository } } }"
)
"""The query for a repository; a hundred of them cost 20 points at GitHub."""
COMMIT = "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }"
CREATE = "mutation($input: CreateRefInput!) { createRef(input: $input) { ref { name } } }"
CONTROL = (
    "control: repository(owner: %s, name: %s) { id "
    f'state: object(expression: "refs/heads/{BRANCH}:{STATE}") {{ ... on Blob {{ text isTruncated oid }} }} '
    f'branch: ref(qualifiedName: "refs/heads/{BRANCH}") {{ target {{ oid }} }} '
    "base: defaultBranchRef { target { oid } } "
    f'issues(first: 5, labels: ["{LABEL}"], orderBy: {{field: CREATED_AT, direction: ASC}}) '
    "{ nodes { id state body } } }"
)
_SHOW = "updateIssue(input: $page) { issue { number } }"
UPDATE = f"mutation($page: UpdateIssueInput!) {{ {_SHOW} }}"
COMMIT_AND_SHOW = COMMIT.replace(") {", ", $page: UpdateIssueInput!) {", 1).removesuffix(" }") + f" {_SHOW} }}"


@dataclass(frozen=True, slots=True)
class ControlBranch:
    """The state's branch: `head`: its commit, or "" if it has to be created at `base`."""

    repository_id: str = ""
    head: str = ""
    base: str = ""
    state: str | None = None
    issue_id: str = ""  # of the issue that is the fleet's page; "" while there is none
    issue_open: bool = True
    issue_body: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class FleetScan:
    """A scan's result. `requests`: the number of requests sent."""

    headers: tuple[RepositoryHeader, ...]
    control: ControlBranch
    rate: RateLimit | None
    requests: int


class FleetReader:
    """A scan of the repositories that `fleet.yml` names; `place`: the control repository, with a token that reads all
    of them."""

    def __init__(self, place: RepositoryPlace, config: FleetConfig, now: datetime) -> None:
        self._place, self._config, self._now = place, config, now
        self._requests, self._page = 0, PAGE
        self._control: ControlBranch | None = None
        self._rate: RateLimit | None = None
        self._listing: tuple[bool, list[str]] | None = None
        self._fields = FIELDS

    def scan(self) -> FleetScan:
        """Every repository once, by name. Raises UserError if the server gives no answer or refuses."""
        found: dict[str, RepositoryHeader] = {}
        is_ours = self._installed()
        for header in self._headers():
            if not header.failure and not is_ours(header.name):  # a public one can be read, and nothing done there
                header = RepositoryHeader(header.name, "the app is not installed there")
            if not (self._config.excludes(header.name) or self._is_control(header.name)):
                found.setdefault(header.name.lower(), header)
        if self._rate is None:
            _, headers = self._get("/rate_limit")
            self._rate = _rate_of(headers)
        control = self._control or self._ask([])[1]
        return FleetScan(tuple(found.values()), control, self._rate, self._requests)

    def _is_control(self, name: str) -> bool:
        """Whether it is in the list only because the app is installed there too, to keep the fleet's state."""
        control, named = self._place.repository.lower(), (one.lower() for one in self._config.names)
        return self._config.installation and name.lower() == control and control not in named

    def _headers(self) -> Iterator[RepositoryHeader]:
        names, owners = list(self._config.names), list(self._config.owners)
        if self._config.installation:
            everything, listed = self._installation()
            (owners if everything else names).extend(listed)
        for owner in dict.fromkeys(owners):
            below = "repositories(ownerAffiliations: OWNER, %s) { %s }"
            query = f"list: repositoryOwner(login: {json.dumps(owner)}) {{ {below} }}"
            yield from self._listed(f"org:{owner}", query)
        home = self._place.repository.partition("/")[0]
        for topic in self._config.topics:
            words = json.dumps(f"topic:{topic} user:{home} archived:false fork:true")
            yield from self._listed(f"topic:{topic}", f"list: search(query: {words}, type: REPOSITORY, %s) {{ %s }}")
        names = list(dict.fromkeys(names))
        while names:
            try:
                found = list(self._named(names[: self._page]))
            except UserError as problem:
                self._ask_for_fewer(problem)
                continue
            yield from found
            names = names[len(found) :]

    def _installed(self) -> Callable[[str], bool]:
        """Whether the app is in a repository. A token that is none of an app cannot tell: then every one counts."""
        try:
            everything, listed = self._installation()
        except UserError as problem:
            if problem.who == "network" or self._config.installation:
                raise
            return lambda name: True
        known = {one.lower() for one in listed}
        return lambda name: (name.partition("/")[0] if everything else name).lower() in known

    def _installation(self) -> tuple[bool, list[str]]:
        """Whether the app is installed in all of an owner's repositories, and its name; else the names of its
        repositories."""
        if self._listing:
            return self._listing
        names: list[str] = []
        for page in range(1, MOST_PAGES + 1):
            answer, headers = self._get(f"/installation/repositories?per_page={PAGE}&page={page}")
            self._rate = _rate_of(headers)
            listed = answer.get("repositories") if isinstance(answer, dict) else None
            if not isinstance(listed, list):
                raise UserError(
                    "GitHub's list of the installation cannot be read", "the next scan tries again", who="forge"
                )
            owners = {str(one["owner"]["login"]) for one in listed}
            if answer.get("repository_selection") == "all" and len(owners) == 1:
                self._listing = True, sorted(owners)
                return self._listing
            names += [str(one["full_name"]) for one in listed]
            if len(listed) < PAGE or len(names) == answer.get("total_count"):
                break
        self._listing = False, names
        return self._listing

    def _named(self, names: Sequence[str]) -> Iterator[RepositoryHeader]:
        parts = []
        for at, name in enumerate(names):
            owner, _, short = name.partition("/")
            parts.append(f"r{at}: repository(owner: {json.dumps(owner)}, name: {json.dumps(short)}) {{ ...F }}")
        answer, _ = self._ask(parts)
        reasons = _reasons(answer)
        data = answer.get("data") or {}
        for at, name in enumerate(names):
            place, one = f"r{at}", data.get(f"r{at}")
            if isinstance(one, dict) and reasons.get(place, "") in ("", *_REASON.values()):
                header = read_header(one, self._now)
                moved = RepositoryHeader(name, f"it is {header.name} now: write that in fleet.yml")
                yield header if header.name.lower() == name.lower() else moved
            else:
                yield RepositoryHeader(name, reasons.get(place, _REASON["NOT_FOUND"]))

    def _listed(self, name: str, query: str) -> Iterator[RepositoryHeader]:
        """The repositories of a list; `name` is how fleet.yml calls it, and what is wrong with it one line."""
        after, owned = "", name.startswith("org:")
        for _ in range(MOST_PAGES):
            place = f"first: {self._page}{f', after: {json.dumps(after)}' if after else ''}"
            try:
                answer, _ = self._ask([query % (place, "pageInfo { hasNextPage endCursor } nodes { ...F }")])
            except UserError as problem:
                self._ask_for_fewer(problem)
                continue
            found = (answer.get("data") or {}).get("list")
            listed = found.get("repositories") if isinstance(found, dict) and owned else found
            if not isinstance(listed, dict):
                yield RepositoryHeader(name, "GitHub knows no such owner" if owned else "GitHub refuses the search")
                return
            reasons = _reasons(answer)
            for at, one in enumerate(listed["nodes"]):
                if isinstance(one, dict):
                    reason = reasons.get(str(at), "")
                    header = read_header(one, self._now)
                    yield header if reason in ("", *_REASON.values()) else RepositoryHeader(header.name, reason)
                else:
                    yield RepositoryHeader(name, "one of its repositories or more cannot be read")
            if not listed["pageInfo"]["hasNextPage"]:
                return
            after = listed["pageInfo"]["endCursor"]

    def _ask_for_fewer(self, problem: UserError) -> None:
        """Request fewer at once from now on, as GitHub may have given up. Raises the problem if that does not help."""
        if problem.who != "network" or self._page == FEW:
            raise problem
        self._page = FEW

    def _ask(self, parts: Iterable[str]) -> tuple[Mapping[str, Any], ControlBranch]:
        """One request; the first brings the fleet's own state as well."""
        queries = list(parts)
        parts, fields = [*queries], f" {self._fields}" if queries else ""
        if self._control is None:
            owner, _, name = self._place.repository.partition("/")
            parts.append(CONTROL % (json.dumps(owner), json.dumps(name)))
        self._requests += 1
        answer = ask_graphql(self._place, f"{{ {' '.join(parts)} }}{fields}", seconds=SECONDS, size=SIZE)
        data = answer.get("data")
        unscoped = any(one.get("type") == "INSUFFICIENT_SCOPES" for one in _errors(answer))
        if unscoped and queries and self._fields == FIELDS:
            self._fields = FIELDS.replace(_TEAM, "")
            return self._ask(queries)
        if not isinstance(data, dict):
            messages = "; ".join(str(one.get("message")) for one in _errors(answer))
            what = f"GitHub does not answer the scan ({messages[:160]})"
            if unscoped:
                raise UserError(what, "give the token the scopes repo and read:org")
            raise UserError(what, "the next scan tries again", who="network")
        unplaced = (one for one in _errors(answer) if not _spot(one) or one.get("type") == TOO_MUCH)
        if left_out := sorted({str(one.get("type")) for one in unplaced} - _REASON.keys()):
            what = f"GitHub answers a part of the scan only ({', '.join(left_out)[:160]})"
            raise UserError(what, "the next scan tries again", who="network")
        self._control = self._control or self._whole(_control_of(data.get("control"), self._place), data["control"])
        return answer, self._control

    def _whole(self, control: ControlBranch, answer: Mapping[str, Any]) -> ControlBranch:
        """With all of the state: GraphQL cuts a file after 512,000 bytes, that of about 5,000 repositories."""
        state = answer.get("state")
        if not (isinstance(state, dict) and state.get("isTruncated")):
            return control
        blob, _ = self._get(f"/repos/{self._place.repository}/git/blobs/{state['oid']}")
        return replace(control, state=base64.b64decode(blob["content"]).decode("utf-8", "replace"))

    def _get(self, path: str) -> tuple[Any, Mapping[str, str]]:
        self._requests += 1
        return get_json(self._place, path)


def keep_state(place: RepositoryPlace, control: ControlBranch, text: str, now: datetime, page: str = "") -> bool:
    """Move the fleet's state from the commit that was read, and show its page in the same request; False if another
    gate was first.

    `place` has a token that may write the control repository. Raises UserError if the outcome is unknown: then nothing
    may be started, and possible bookings are retried after their time.
    """
    head = control.head
    if not head:
        branch = {"repositoryId": control.repository_id, "name": f"refs/heads/{BRANCH}", "oid": control.base}
        if not _change(place, CREATE, {"input": branch}, "createRef"):
            return False
        head = control.base
    additions = [{"path": STATE, "contents": base64.b64encode(text.encode()).decode()}]
    order = {
        "branch": {"repositoryNameWithOwner": place.repository, "branchName": BRANCH},
        "message": {"headline": f"Book what is started at {stamp(now)} [skip ci]"},
        "fileChanges": {"additions": additions},
        "expectedHeadOid": head,
    }
    edit = _edit_of_page(control, page)
    if not edit:
        return _change(place, COMMIT, {"input": order}, "createCommitOnBranch")
    return _change(place, COMMIT_AND_SHOW, {"input": order, "page": edit}, "createCommitOnBranch")


def show_page(place: RepositoryPlace, control: ControlBranch, page: str) -> None:
    """Keep the fleet's page in an issue of the control repository; one that a person closed stays as it is.

    `place` has a token that may write issues there. Raises UserError.
    """
    if not control.issue_id:
        order = {"title": TITLE, "body": f"{MARKER}\n{page.rstrip()}", "labels": [LABEL]}
        post_json(place, f"/repos/{place.repository}/issues", order)
    elif edit := _edit_of_page(control, page):
        _change(place, UPDATE, {"page": edit}, "updateIssue")


def _edit_of_page(control: ControlBranch, page: str) -> dict[str, str]:
    """None if the issue is up to date, missing, or closed by a person."""
    body = f"{MARKER}\n{page.rstrip()}"
    current = control.issue_body.replace("\r\n", "\n").rstrip()
    return {"id": control.issue_id, "body": body} if control.issue_id and control.issue_open and current != body else {}


def read_header(node: Mapping[str, Any], now: datetime) -> RepositoryHeader:
    """A repository from GraphQL; problems are its `failure`, never an error."""
    name = str(node.get("nameWithOwner"))
    for key, reason in (
        ("isArchived", "it is archived"),
        ("isDisabled", "GitHub has disabled it"),
        ("isEmpty", "it has no commits"),
    ):
        if node.get(key):
            return RepositoryHeader(name, reason)
    try:
        threads = tuple(_threads(node))
        moved = (node.get("head") or {}).get("target") or {}
        pull = next((one for one in node["onboarding"]["nodes"] if not one["isCrossRepository"]), None)
        empty = RepositoryHeader(
            name,
            id=int(node.get("databaseId") or 0),
            has_settings=bool(node.get("settings")),
            onboarding=str(pull["state"]).lower() if pull else "",
            onboarding_pull=int(pull["number"]) if pull else 0,
            moved_at=_moment(moved.get("committedDate")),
            threads=threads,
        )
        blob = node.get("memory")
        if not isinstance(blob, dict):
            return empty
        if not isinstance(blob.get("text"), str):
            return RepositoryHeader(name, UNREADABLE)
        return with_memory(empty, blob["text"], now)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        return RepositoryHeader(name, "GitHub's answer about it cannot be read")


def with_memory(header: RepositoryHeader, text: str, now: datetime) -> RepositoryHeader:
    """The header with a memory file's data; an unreadable one is a `failure`."""
    try:
        memory = _read_memory(text)
        if not (math.isfinite(memory.spend_usd) and memory.spend_usd >= 0):
            raise ValueError(memory.spend_usd)
    except (UserError, ValueError, OverflowError, RecursionError):  # one hostile file is not the others' trouble
        return replace(header, failure=UNREADABLE)
    return replace(
        header,
        has_memory=True,
        next_due_at=memory.next_due_at,
        urgency=memory.urgency,
        paused=memory.paused,
        cycle=memory.cycle,
        last_cycle_at=memory.last_cycle_at,
        spent_usd=memory.spend_usd if memory.today == now.date().isoformat() else 0.0,
        text=text,
    )


def _read_memory(text: str) -> Header:
    """The header of a memory file. Raises UserError, ValueError, OverflowError or RecursionError."""
    fields = written_fields(text.encode())
    try:
        return Header(
            next_due_at=_moment(fields["next_due_at"]),
            urgency=Urgency(fields["urgency"]),
            paused={"true": True, "false": False}[fields["paused"]],
            cycle=int(fields["cycle"]),
            last_cycle_at=_moment(fields["last_cycle_at"]),
            today=json.loads(fields["today"]),
            spend_usd=float(fields["spend_usd"]),
        )
    except (KeyError, ValueError, OverflowError, RecursionError):  # a person wrote it differently
        from ralph_mission.safety.front_matter import BOUNDARY, FrontMatter, parse

        # Not by `parse_front_matter`: the gate of a fleet runs with no package but PyYAML.
        _, front, _ = BOUNDARY.split(text, 2) if BOUNDARY.match(text) else ("", "", "")
        return read(FrontMatter(parse(front).value, {}, "", 1))


def _threads(node: Mapping[str, Any]) -> Iterator[FleetThread]:
    pinned = [one.get("issue") or {} for one in node["pinnedIssues"]["nodes"]]
    lists = ((node["issues"]["nodes"], False), (node["pullRequests"]["nodes"], True))
    reviewers = {one["number"]: _people(one) for one in node["review"]["nodes"]}
    ours = [one for one in pinned if one.get("title") == DASHBOARD]
    for listed, pull in (*lists, (ours, False)):
        for one in listed:
            at, created = _moment(one["updatedAt"]), _moment(one["createdAt"])
            waits_for = reviewers.get(one["number"], ()) if pull else _people(one)
            if at and created:
                title, is_open = str(one["title"]), one["state"] == "OPEN"
                yield FleetThread(int(one["number"]), title, at, created, pull, is_open, waits_for)


def _people(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Those who are assigned, and those whose review is requested: people and teams. A token that may not read an
    organization's members gets a team without its name, or null."""
    unnamed = {"__typename": "Team"}
    requested = [
        one.get("requestedReviewer") or unnamed for one in (node.get("reviewRequests") or {"nodes": ()})["nodes"]
    ]
    assigned = (node.get("assignees") or {"nodes": ()})["nodes"]
    names = (who.get("login") or ("a team" if who == unnamed else "") for who in (*requested, *assigned))
    return tuple(dict.fromkeys(str(name) for name in names if name))


def _moment(text: str | None) -> datetime | None:
    if text is None or text == "null":
        return None
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError(text)
    return when.astimezone(UTC)  # one that overflows is no time


def _errors(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in answer.get("errors") or [] if isinstance(one, dict)]


def _reasons(answer: Mapping[str, Any]) -> dict[str, str]:
    """Why a repository got no answer, or none of all its fields, by its `_spot`."""
    return {
        spot: _REASON.get(str(one.get("type")), "GitHub could not answer for it; the next scan asks again")
        for one in _errors(answer)
        if (spot := _spot(one)) and "requestedReviewer" not in one["path"]  # a team that it may not name
    }


def _spot(error: Mapping[str, Any]) -> str:
    """Which repository an error is about: its alias, or its index in a list; "" for none, so that it is everybody's."""
    path = error.get("path")
    first, *rest = path if isinstance(path, list) and path else [""]
    if first == "list":
        return next((str(one) for one in rest if isinstance(one, int)), "")
    return first if isinstance(first, str) and first[:1] == "r" and first[1:].isdecimal() else ""


def _rate_of(headers: Mapping[str, str]) -> RateLimit | None:
    try:
        return RateLimit(int(headers["x-ratelimit-limit"]), int(headers["x-ratelimit-remaining"]))
    except (KeyError, ValueError):
        return None


def _control_of(node: Any, place: RepositoryPlace) -> ControlBranch:
    if not isinstance(node, dict) or not isinstance(node.get("base"), dict):
        what = f"the token may not read the control repository {place.repository}, or it has no commits"
        raise UserError(what, "install the app there too, with contents: read", who="forge")
    branch, state = node.get("branch"), node.get("state")
    ours = [one for one in node["issues"]["nodes"] if str(one.get("body")).startswith(MARKER)]
    issue = ours[0] if ours else {"id": "", "state": "OPEN", "body": ""}
    return ControlBranch(
        repository_id=str(node["id"]),
        head=str(branch["target"]["oid"]) if isinstance(branch, dict) else "",
        base=str(node["base"]["target"]["oid"]),
        state=str(state.get("text")) if isinstance(state, dict) and "text" in state else None,
        issue_id=str(issue["id"]),
        issue_open=issue["state"] == "OPEN",
        issue_body=str(issue["body"]),
    )


def _change(place: RepositoryPlace, mutation: str, variables: Mapping[str, Any], name: str) -> bool:
    """Whether its part `name` was done. Raises UserError."""
    answer = ask_graphql(place, mutation, variables, tries=1)
    if isinstance((answer.get("data") or {}).get(name), dict):
        return True
    first = next((one for one in _errors(answer) if one.get("path", [name]) == [name]), {})
    words = str(first.get("message") or "no answer")[:160]
    if first.get("type") == "STALE_DATA" or "already exists" in words:
        return False
    raise UserError(
        f"the fleet's {'page' if name == 'updateIssue' else f'state on {BRANCH}'} cannot be written ({words})",
        f"give the gate's job contents and issues: write in {place.repository}, and exempt {BRANCH} from rules",
        who="forge",
    )
