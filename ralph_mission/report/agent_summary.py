"""An agent's work or review on the page of its job: markdown for the step summary of GitHub Actions. Pure.

Made of the document that `ralph work --json` and `ralph review --json` print, so that page and document cannot differ.
What came from elsewhere is made harmless, as on the page of a cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ralph_mission.report.lines import count_noun
from ralph_mission.report.step_summary import Places, harmless, section, thread_link

Document = Mapping[str, Any]


def work_page(told: Document, places: Places) -> str:
    """The page of `ralph work --once`."""
    what = f"issue {_issue(told, places)}" if told["issue"] else "no issue"
    return _page(
        [f"## Ralph, {what}: {harmless(told['outcome'])}", *_title(told)],
        section("What came of it", _result(told, places)),
        section("Not taken", _agent_threads(told["skipped"], "why", places)),
        section("Left behind by a runner that died", _agent_threads(told["settled"], "outcome", places)),
    )


def review_page(told: Document, places: Places) -> str:
    """The page of `ralph review`."""
    return _page(
        [f"## Ralph, review of {_pull(told, places)}: {harmless(told['outcome'])}"],
        section("What came of it", (*_points(told), *_cost_lines(told))),
    )


def publish_page(told: Document, places: Places) -> str:
    """The page of `ralph publish`."""
    return _page(
        [f"## Ralph, texts of issue {_issue(told, places)}: {harmless(told['outcome'])}"],
        section("What came of it", (*_posts(told), *_cost_lines(told))),
    )


def agent_outputs(told: Document) -> dict[str, str]:
    """The outputs of the action, by name."""
    return {
        "outcome": str(told["outcome"]),
        "issue": str(told.get("issue") or ""),
        "pull-request": str(told.get("pull_request") or ""),
    }


def _page(*parts: Sequence[str]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _issue(told: Document, places: Places) -> str:
    return thread_link(f"/issues/{told['issue']}", places)


def _pull(told: Document, places: Places) -> str:
    return thread_link(f"/pull/{told['pull_request']}", places)


def _title(told: Document) -> list[str]:
    return ["", harmless(told["title"])] if told.get("title") else []


def _result(told: Document, places: Places) -> Iterator[str]:
    if told["pull_request"]:
        yield f"pull request {_pull(told, places)}"
    yield from _cost_lines(told)


def _points(told: Document) -> Iterator[str]:
    if told["points"] is not None:
        found = Counter(point["gravity"] for point in told["points"])
        each = ", ".join(f"{count} {harmless(gravity)}" for gravity, count in sorted(found.items()))
        yield f"{count_noun(len(told['points']), 'point')}{f' ({each})' if each else ''}; they stand in the review"


def _posts(told: Document) -> Iterator[str]:
    for post in told["posts"]:
        where = harmless(post["url"] or post["detail"])
        yield f"{harmless(post['network'])}: {harmless(post['status'])} {where}".strip()


def _cost_lines(told: Document) -> Iterator[str]:
    if told.get("reason"):
        yield harmless(told["reason"])
    if told.get("code"):
        yield f"exit code {told['code']}"
    if told.get("sessions"):
        yield f"{count_noun(told['sessions'], 'session')} in {told['seconds']:.0f} s, ${told['cost_usd']:.2f}"


def _agent_threads(every: Iterable[Document], said: str, places: Places) -> Iterator[str]:
    for one in every:
        yield f"{_issue(one, places)}: {harmless(one[said])}"
