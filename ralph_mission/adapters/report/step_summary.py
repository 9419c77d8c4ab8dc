"""A command's output for GitHub Actions: the job's page (for a cycle, an agent's work or review) and its outputs.

Pages stay well below the runner's limit of 1 MiB: the lines of a section and the characters of a line are limited.
Foreign text is made harmless; links only lead below the URLs that the caller names. An agent's page is made from the
document that `ralph work --json` and `ralph review --json` print, so that the two cannot differ.

The runner names two files in the environment; otherwise nothing is written. The runner reads them as commands, so every
value is fenced by an unguessable word.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralph_mission.adapters.report.progress import RequestCounts, drift
from ralph_mission.adapters.report.summary import OUTCOMES, is_done, looked_at, name_effect
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary, EffectLine, MissionLine, PostLine
from ralph_mission.mission.model.mission import WaitingLine
from ralph_mission.mission.policy import LIFTED_BY
from ralph_mission.safety.text import inline_words, sanitise
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import capitalise, count_noun, spell, stamp

LINES = 30  # in one section
PART = 5_000  # characters of a post
WORDS = 300  # characters of one line
WHO = {
    "you": "**You** must act",
    "forge": "**Somebody who may change the repository's settings on GitHub** must act",
    "network": "**Nothing to do** unless it stays like this",
    "bug": "**The authors of ralph** must act; the log of this step has the report",
}
_RULES = compile_regex(r"\((?P<ids>[a-z-]+(?:, [a-z-]+)*)\)\Z")
_PATH = compile_regex(r"/(?:issues|pull)/\d+(?:/\w+)?(?:[?#][\w=&#-]*)?", re.ASCII)
_NUMBER = compile_regex(r"/(?:issues|pull)/(\d+)")


@dataclass(frozen=True, slots=True)
class Places:
    """Link targets: the repository's page and the document that explains the rules; "" for no links."""

    repository: str = ""
    rules: str = ""


def step_summary(
    report: CycleReport, cycle_summary: CycleSummary, places: Places = Places(), requests: RequestCounts | None = None
) -> str:
    """A cycle's page; `requests` if requests were counted."""
    done = "Would be done" if report.staged else "Done"
    titles = {thread.key: thread.title for thread in cycle_summary.threads}
    return _page(
        [f"## Ralph, cycle {report.cycle}: {_outcome(report)}"],
        _missions(report.missions, places),
        section(done, (_effect(effect, titles, places) for effect in report.effects if is_done(effect))),
        section("Would be posted" if report.staged else "Posted", (_post(post) for post in cycle_summary.posts)),
        section("Watched", map(harmless, cycle_summary.watched)),
        section("Looked at", map(harmless, filter(None, [looked_at(report)]))),
        section("Waiting for you", (_waiting_line(line, places) for line in cycle_summary.waiting)),
        section("Worth knowing", (_links(line, places) for line in (*_unavailable(report), *cycle_summary.remarks))),
        section("Held back", (harmless(_split_rules(line)[0]) for line in cycle_summary.held)),
        [] if report.staged else [_next(report, cycle_summary)],
        ["<details><summary>Details</summary>"],
        section("Why", map(harmless, cycle_summary.why)),
        section("Held back by", (_rules_line(line, places) for line in cycle_summary.held if _split_rules(line)[1])),
        [_spend(report, requests), "", "</details>"],
    )


def _waiting_line(line: WaitingLine, places: Places) -> str:
    """A mission's title and its possible actions."""
    thread = thread_link(f"/{'pull' if line.pull else 'issues'}/{line.number}", places)
    ways = "; ".join(f"{word}: {_links(command, places)}" for word, command in line.ways)
    note = f" {harmless(capitalise(line.note))}." if line.note else ""
    return f"{thread} {harmless(line.title)}.{note} {ways}"


def problem_summary(error: Mapping[str, str]) -> str:
    """A failed command's page: `error` has who, what and next, as `--json` prints them."""
    who = WHO.get(error["who"], WHO["you"])
    try:
        what, next_step = harmless(error["what"]), harmless(error["next"])
    except ImportError:  # the gate has no Markdown parser to find live markup: code has none
        lines = (" ".join(sanitise(error[key], "log").split())[:WORDS] for key in ("what", "next"))
        what, next_step = ("`" + line.replace("`", "'") + "`" for line in lines)
    return f"## Ralph could not finish\n\n{what}\n\n{who}. Next: {next_step}\n"


def _outcome(report: CycleReport) -> str:
    staged = " (staged: nothing was changed)" if report.staged else ""
    return f"{OUTCOMES[report.outcome]}{staged}, {spell(report.finished_at - report.started_at)}"


def _missions(missions: Sequence[MissionLine], places: Places) -> list[str]:
    if not missions:
        return []
    rows = [f"| {_cell(m.title)} | {m.status.value} | {_threads(m, places)} | {m.started_cycle} |" for m in missions]
    return ["| Mission | Status | On | Since cycle |", "| --- | --- | --- | --- |", *rows[:LINES]]


def _threads(mission: MissionLine, places: Places) -> str:
    threads = (("issues", mission.issue), ("pull", mission.pull_request))
    return ", ".join(thread_link(f"/{where}/{number}", places) for where, number in threads if number)


def thread_link(path: str, places: Places) -> str:
    """A thread by its number, such as `/issues/7`; a link if its target is known."""
    number = f"#{path.rpartition('/')[2]}"
    return f"[{number}]({places.repository}{path})" if places.repository else number


def section(heading: str, lines: Iterable[str]) -> list[str]:
    """A list below a heading; empty without lines."""
    every = [f"- {line}" for line in lines]
    more = [f"- … and {len(every) - LINES} more"] if len(every) > LINES else []
    return [f"### {heading}", "", *every[:LINES], *more] if every else []


def _post(post: PostLine) -> str:
    """A post with all its parts, to show the exact text before it is sent."""
    lengths = ", ".join(map(str, post.lengths))
    words = " / ".join(inline_words(part, PART) for part in post.parts)
    return f"{harmless(post.network)} {post.status} ({lengths} of {post.limit}): {words}"


def _effect(effect: EffectLine, titles: Mapping[str, str], places: Places) -> str:
    title = titles.get(effect.key, "")
    place = _links(effect.url or ("" if title else effect.key), places)
    return ": ".join(filter(None, (f"{name_effect(effect)} {place}".rstrip(), harmless(title) if title else "")))


def _split_rules(line: str) -> tuple[str, list[str]]:
    """A held item, and the ids of the rules at its end."""
    found = _RULES.search(line)
    rules = found["ids"].split(", ") if found else []
    return (line[: found.start()], rules) if found and set(rules) <= LIFTED_BY.keys() else (line, [])


def _rules_line(line: str, places: Places) -> str:
    """What holds an item: rules that link to their explanation."""
    words, rules = _split_rules(line)
    links = (f"[{rule}]({places.rules}#{rule})" if places.rules else rule for rule in rules)
    return f"{harmless(words)} ({', '.join(links)})"


def _unavailable(report: CycleReport) -> Iterator[str]:
    for line in report.observers:
        if line.status == "unavailable":
            yield f"{line.name} could not be observed: {line.detail or 'no reason given'}"
        yield from (f"not checked: {one}" for one in line.unchecked)


def _next(report: CycleReport, cycle_summary: CycleSummary) -> str:
    started = f"; {drift(cycle_summary.late)}" if cycle_summary.late is not None else ""
    if report.next_due_at is None:
        return f"**Next**: at the next wake{started}"
    return f"**Next**: {stamp(report.next_due_at)} (urgency {report.urgency.value}){started}"


def _spend(report: CycleReport, requests: RequestCounts | None) -> str:
    usage = report.usage
    tokens = usage.input_tokens + usage.output_tokens
    models = f"{count_noun(usage.model_calls, 'model call')}, {tokens} tokens, ${usage.cost_usd:.2f}"
    return f"Spent: {models}" + (f"; {requests}" if requests else "")


def _links(text: str, places: Places) -> str:
    """A line with only the URLs of the repository's own threads as links."""
    words = [_link(word, places) or word for word in text.split()] if places.repository else []
    links = [word for word in words if word.startswith("[#")]
    if not links:
        return harmless(text)
    plain = harmless(" ".join("" if word in links else word for word in words))
    return " ".join([plain, *links]).strip()


def _link(word: str, places: Places) -> str:
    path = word.removeprefix(places.repository)
    number = _NUMBER.match(path)
    return f"[#{number[1]}]({places.repository}{path})" if number and path != word and _PATH.fullmatch(path) else ""


def harmless(text: str) -> str:
    """Untrusted text without markup, links or commands."""
    return inline_words(text, WORDS)


def _cell(text: str) -> str:
    return harmless(text).replace("|", "&#124;")


Document = Mapping[str, Any]


def work_page(result: Document, places: Places) -> str:
    """The page of `ralph work --once`."""
    what = f"issue {_issue(result, places)}" if result["issue"] else "no issue"
    return _page(
        [f"## Ralph, {what}: {harmless(result['outcome'])}", *_title(result)],
        section("Result", _result(result, places)),
        section("Not taken", _agent_threads(result["skipped"], "why", places)),
        section("Left behind by a runner that died", _agent_threads(result["settled"], "outcome", places)),
    )


def review_page(result: Document, places: Places) -> str:
    """The page of `ralph review`."""
    return _page(
        [f"## Ralph, review of {_pull(result, places)}: {harmless(result['outcome'])}"],
        section("Result", (*_points(result), *_cost_lines(result))),
    )


def publish_page(result: Document, places: Places) -> str:
    """The page of `ralph publish`."""
    return _page(
        [f"## Ralph, texts of issue {_issue(result, places)}: {harmless(result['outcome'])}"],
        section("Result", (*_posts(result), *_cost_lines(result))),
    )


def agent_outputs(result: Document) -> dict[str, str]:
    """The outputs of the action, by name."""
    return {
        "outcome": str(result["outcome"]),
        "issue": str(result.get("issue") or ""),
        "pull-request": str(result.get("pull_request") or ""),
    }


def _page(*parts: Sequence[str]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _issue(result: Document, places: Places) -> str:
    return thread_link(f"/issues/{result['issue']}", places)


def _pull(result: Document, places: Places) -> str:
    return thread_link(f"/pull/{result['pull_request']}", places)


def _title(result: Document) -> list[str]:
    return ["", harmless(result["title"])] if result.get("title") else []


def _result(result: Document, places: Places) -> Iterator[str]:
    if result["pull_request"]:
        yield f"pull request {_pull(result, places)}"
    yield from _cost_lines(result)


def _points(result: Document) -> Iterator[str]:
    if result["points"] is not None:
        found = Counter(point["gravity"] for point in result["points"])
        each = ", ".join(f"{count} {harmless(gravity)}" for gravity, count in sorted(found.items()))
        yield f"{count_noun(len(result['points']), 'point')}{f' ({each})' if each else ''}; they stand in the review"


def _posts(result: Document) -> Iterator[str]:
    for post in result["posts"]:
        where = harmless(post["url"] or post["detail"])
        yield f"{harmless(post['network'])}: {harmless(post['status'])} {where}".strip()


def _cost_lines(result: Document) -> Iterator[str]:
    if result.get("reason"):
        yield harmless(result["reason"])
    if result.get("code"):
        yield f"exit code {result['code']}"
    if result.get("sessions"):
        yield f"{count_noun(result['sessions'], 'session')} in {result['seconds']:.0f} s, ${result['cost_usd']:.2f}"


def _agent_threads(every: Iterable[Document], field: str, places: Places) -> Iterator[str]:
    for one in every:
        yield f"{_issue(one, places)}: {harmless(one[field])}"


SUMMARY, OUTPUT, TEMP = "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "RUNNER_TEMP"
Page = Callable[[Document, Places], str]


def tell_runner(
    report: CycleReport, cycle_summary: CycleSummary, environ: Mapping[str, str], requests: RequestCounts | None = None
) -> None:
    """Report a cycle's result. Raises OSError if the runner's files cannot be written."""
    if environ.get(SUMMARY) or environ.get(OUTPUT):
        page = step_summary(report, cycle_summary, places(environ), requests)
        _tell(page, outputs(report, cycle_summary), environ)


def tell_agent(result: Document, environ: Mapping[str, str], page: Page) -> None:
    """Report the result of an agent's work or review: `result` as `--json` prints it. Raises OSError."""
    if environ.get(SUMMARY) or environ.get(OUTPUT):
        _tell(page(result, places(environ)), agent_outputs(result), environ)


def _tell(page: str, results: Mapping[str, str], environ: Mapping[str, str]) -> None:
    _append(environ.get(SUMMARY), page)
    _append(environ.get(OUTPUT), _heredoc({**results, "summary-path": _copy_page(page, environ)}))


def tell_problem(error: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Report a problem, who must act and what next: `error` as `--json` prints it."""
    with suppress(OSError):  # the error also goes to stderr, and another one must not hide it
        _append(environ.get(SUMMARY), problem_summary(error))


def outputs(report: CycleReport, cycle_summary: CycleSummary) -> dict[str, str]:
    """The outputs of the action, by name. A staged or incomplete cycle has no urgency."""
    return {
        "cycle": str(report.cycle),
        "urgency": report.urgency.value if report.outcome == "done" and not report.staged else "",
        "next-due-at": f"{report.next_due_at:%Y-%m-%dT%H:%M:%SZ}" if report.next_due_at else "",
        "missions-active": str(sum(mission.status.active for mission in report.missions)),
        "actions-taken": str(cycle_summary.taken),
    }


def places(environ: Mapping[str, str]) -> Places:
    """Link targets, from the runner's variables for the repository and the action's repository."""
    server, own = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
    action, ref = environ.get("RALPH_ACTION_REPOSITORY", ""), environ.get("RALPH_ACTION_REF", "")
    return Places(
        repository=f"{server}/{own}" if server and own else "",
        rules=f"{server}/{action}/blob/{ref}/docs/rules.md" if server and action and ref else "",
    )


def _heredoc(values: Mapping[str, str]) -> str:
    fence = f"ralph-{secrets.token_hex(16)}"
    return "".join(f"{name}<<{fence}\n{value}\n{fence}\n" for name, value in values.items())


def _append(path: str | None, text: str) -> None:
    if path:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)


def _copy_page(page: str, environ: Mapping[str, str]) -> str:
    """A copy for later steps, which the runner removes with its job: they never see the summary's own file."""
    if not environ.get(TEMP):
        return ""
    handle, path = tempfile.mkstemp(prefix="ralph-summary-", suffix=".md", dir=environ[TEMP])
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(page)
    return path
