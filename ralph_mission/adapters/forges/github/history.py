"""A repository's past on GitHub, for `ralph backtest`: lists of a time span, each page cached in a file with its ETag.

Reading the same span again only revalidates each page, which GitHub does not count. The cache holds only the fields
that are read, and the beginning and end of long texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlencode

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.forges import mark
from ralph_mission.adapters.forges.github import findings, reading
from ralph_mission.adapters.forges.github.api import Api, ReadCache, scope_of
from ralph_mission.adapters.forges.github.limits import Absent
from ralph_mission.adapters.forges.github.reading import CommentWire, EventWire, IssueWire, ReviewWire, read
from ralph_mission.adapters.git.remote import RepositoryPlace
from ralph_mission.errors import UserError
from ralph_mission.mission.backtest.past import ForgeHistory, ThreadEvent
from ralph_mission.mission.model.forge import (
    AlertKind,
    FailedJob,
    Pull,
    Review,
    SecurityAlert,
    ThreadComment,
    WorkflowRun,
)

PAGES = 200  # of a hundred, per list: longer ones are not read
FILES = 2_000  # cached pages
DETAILS = 800  # requests for single threads and runs per backtest; a job's token has 1,000 an hour
BEFORE = timedelta(days=30)  # comments so long before the span show whether a thread was quiet at its start
WINDOW = 28  # days of runs per request
MOST_RUNS = 1_000  # that GitHub returns for one query
LONGEST, END = 4_000, 500  # characters of a text, and those of its end
WRITERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
FIELDS = frozenset(
    "id number title body state user login type assignees created_at updated_at closed_at html_url comments draft"
    " pull_request merged_at author_association issue_url event actor submitted_at commit_id workflow_runs workflow_id"
    " name path head_sha head_branch status conclusion run_attempt run_started_at repository head_repository jobs steps"
    " default_branch rule description severity security_severity_level secret_type secret_type_display_name fixed_at"
    " dismissed_at resolved_at resolution".split()
)

T = TypeVar("T")


def compact(value: Any) -> Any:
    """The fields of an answer that are read; idempotent."""
    if isinstance(value, list):
        return [compact(item) for item in value]
    if isinstance(value, Mapping):
        return {key: compact(item) for key, item in value.items() if key in FIELDS}
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[: LONGEST - END - 1]}\n{value[-END:]}"
    return value


class HistoryPages(ReadCache):
    """Pages in separate files: a year of them would crowd out the cache of cycles."""

    def __init__(self, place: RepositoryPlace, files: FileCache) -> None:
        super().__init__(None, scope_of(place))
        self.files = files

    def get(self, name: str) -> Any:
        """The cached answer."""
        return self.files.get(cache_key(self.scope, name))

    def put(self, name: str, value: Any) -> None:
        """Cache an answer that a server can revalidate later."""
        self.files.put(cache_key(self.scope, name), {**value, "body": compact(value["body"])})


class GitHubHistory:
    """Reads lists at once, and details (as `HistoryDetails`) on demand, each once and up to a limit."""

    def __init__(self, place: RepositoryPlace, files: FileCache, since: datetime, note: Callable[[str], None]) -> None:
        self.api = Api(place, HistoryPages(place, replace(files, most=FILES)), note=note)
        self.begin = (since.astimezone(UTC) - BEFORE).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        self.left, self.missed = DETAILS, 0
        self._known: dict[str, Any] = {}

    def read_threads(self) -> ForgeHistory:
        """Every issue and pull request that was open since then, with its comments. Raises UserError."""
        since = self.begin.strftime("%Y-%m-%dT%H:%M:%SZ")
        changed = self._list("issues", state="all", since=since, sort="created", direction="asc")
        quiet = self._list("issues", state="open", sort="updated", direction="asc")
        rows = self._list("issues/comments", since=since, sort="created", direction="asc")
        threads = {wire.number: wire for wire in read(tuple[IssueWire, ...], [*quiet, *changed])}
        threads = {number: wire for number, wire in sorted(threads.items()) if not mark(wire.body or "")}
        comments: dict[int, list[CommentWire]] = {}
        for comment in read(tuple[CommentWire, ...], rows):
            comments.setdefault(comment.thread, []).append(comment)
        remarks = {number: reading.remarks(comments.get(number, ())) for number in threads}
        both: list[IssueWire | CommentWire] = [*threads.values(), *(one for many in comments.values() for one in many)]
        return ForgeHistory(
            self.begin,
            {
                n: reading.issue(wire, _of_people(remarks[n]))
                for n, wire in threads.items()
                if wire.pull_request is None
            },
            {n: _pull(wire, _of_people(remarks[n])) for n, wire in threads.items() if wire.pull_request is not None},
            whole=frozenset(n for n, wire in threads.items() if wire.comments == len(remarks[n])),
            writers=frozenset(one.user.id for one in both if one.user and one.author_association in WRITERS),
        )

    def read_runs(self) -> tuple[WorkflowRun, ...]:
        """Runs on the default branch, newest first. Raises UserError."""
        repository = self.api.get("")
        branch = str(repository.get("default_branch", "")) if isinstance(repository, dict) else ""
        first = self.begin.date()
        first -= timedelta(days=first.toordinal() % WINDOW)  # the same requests from week to week
        runs: dict[int, WorkflowRun] = {}
        while first <= self.api.now.date():
            last = first + timedelta(days=WINDOW - 1)
            runs |= {run.id: run for run in self._runs(branch, first, last)}
            first = last + timedelta(days=1)
        return tuple(sorted(runs.values(), key=lambda run: (run.created_at, run.id), reverse=True))

    def read_alerts(self) -> dict[AlertKind, tuple[SecurityAlert, ...]]:
        """Alerts about code and secrets with their ends, of the kinds that are readable. Raises UserError."""
        kinds: tuple[AlertKind, ...] = ("code", "secret")
        found = ((kind, findings.past_alerts(self.api, kind)) for kind in kinds)
        return {kind: those for kind, those in found if those is not None}

    def _runs(self, branch: str, first: date, last: date) -> list[WorkflowRun]:
        query = {"branch": branch, "created": f"{first}..{last}", "exclude_pull_requests": "true", "per_page": "100"}
        try:
            pages = list(self.api.pages(f"/actions/runs?{urlencode(query)}", key="workflow_runs"))
        except Absent:
            raise UserError(*findings.OVER) from None
        if sum(map(len, pages)) < MOST_RUNS or first == last:
            return [run for page in pages for run in findings.own_runs(page, branch)]
        middle = first + (last - first) // 2
        return [*self._runs(branch, first, middle), *self._runs(branch, middle + timedelta(days=1), last)]

    def _list(self, name: str, **query: str) -> list[Any]:
        try:
            pages = self.api.pages(f"/{name}?{urlencode({**query, 'per_page': '100'})}")
            found: list[Any] = []
            for place, page in enumerate(pages):
                if place == PAGES:
                    what = (
                        f"GitHub lists more than {PAGES * 100:,} {name.rpartition('/')[2]} since {self.begin:%Y-%m-%d}"
                    )
                    raise UserError(what, "choose a later --since", usage=True)
                found += compact(page)
                if place % 10 == 9:
                    self.api.note(f"{len(found):,} {name.rpartition('/')[2]} so far")
        except Absent as absent:
            what = f"GitHub shows no {name.rpartition('/')[2]} of {self.api.place.repository} ({absent.status})"
            raise UserError(what, "check GITHUB_REPOSITORY and what the token may read") from None
        return found

    # --- details

    def comments(self, number: int) -> tuple[ThreadComment, ...] | None:
        """As in the port."""
        wires = self._detail(f"/issues/{number}/comments", tuple[CommentWire, ...])
        return None if wires is None else _of_people(reading.remarks(wires))

    def reviews(self, number: int) -> tuple[Review, ...] | None:
        """As in the port."""
        wires = self._detail(f"/pulls/{number}/reviews", tuple[ReviewWire, ...])
        return None if wires is None else reading.reviews(wires)

    def events(self, number: int) -> tuple[ThreadEvent, ...] | None:
        """As in the port."""
        wires = self._detail(f"/issues/{number}/events", tuple[EventWire, ...])
        if wires is None:
            return None
        ordered = sorted(wires, key=lambda wire: (wire.created_at, wire.id))
        return tuple(ThreadEvent(wire.event, reading.actor(wire.actor), wire.created_at) for wire in ordered)

    def failed_jobs(self, run: WorkflowRun) -> tuple[FailedJob, ...] | None:
        """As in the port."""
        return self._once(f"jobs {run.id}.{run.attempt}", lambda: findings.failed_jobs(self.api, run, log=False))

    def _detail(self, path: str, kind: type[T]) -> T | None:
        return self._once(path, lambda: read(kind, compact(self.api.all(f"{path}?per_page=100"))))

    def _once(self, name: str, ask: Callable[[], T]) -> T | None:
        """Request unavailable details once; after a problem with GitHub itself, stop requesting."""
        if name not in self._known:
            self._known[name] = None
            self.left -= 1
            if self.left < 0:
                self.missed += 1
                return None
            try:
                self._known[name] = ask()
            except Absent:
                return None
            except UserError as problem:
                self.left, self.missed = 0, self.missed + 1
                self.api.note(problem.what)
        found: T | None = self._known[name]
        return found

    # --- what it came to

    def remarks(self, history: ForgeHistory) -> Iterator[str]:
        """A summary of what was read and the requests it took."""
        alerts = f", {sum(map(len, history.alerts.values()))} alerts" if history.alerts else ""
        yield (
            f"Read from GitHub since {self.begin:%Y-%m-%d}: {len(history.issues)} issues, "
            f"{len(history.pulls)} pull requests, {len(history.runs)} workflow runs{alerts}; "
            f"{self.api.counts.total} requests, of which {self.api.counts.not_modified} only asked whether what was "
            "kept still holds."
        )
        if self.missed:
            yield f"{self.missed} threads or runs were not looked at closely: that would have been too many requests."


def _of_people(remarks: Iterable[ThreadComment]) -> tuple[ThreadComment, ...]:
    """Without Ralph's own comments."""
    return tuple(one for one in remarks if not mark(one.body))


def _pull(wire: IssueWire, remarks: tuple[ThreadComment, ...]) -> Pull:
    """A pull request from the list of issues, which has all that is known of that time, except its head."""
    merged = reading.moment((wire.pull_request or {}).get("merged_at"))
    return Pull(
        number=wire.number,
        title=wire.title,
        body=wire.body or "",
        state="merged" if merged else wire.state,
        author=reading.actor(wire.user),
        head="",
        head_sha="",
        base="",
        created_at=wire.created_at,
        updated_at=wire.updated_at,
        url=wire.html_url,
        closed_at=merged or wire.closed_at,
        draft=wire.draft,
        newcomer=wire.author_association in reading.NEWCOMERS,
        remarks=remarks,
    )
