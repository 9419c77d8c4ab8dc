"""A cycle on the page of its job: markdown for the step summary of GitHub Actions. Pure.

Well below the runner's limit of 1 MiB whatever happened: every section has so many lines, every
line so many characters. What came from elsewhere is made harmless; links lead only below the
addresses that the caller names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ralph_mission.mission.account import CycleReport, CycleSummary, EffectLine, MissionLine, PostLine
from ralph_mission.mission.rules import LIFTED_BY
from ralph_mission.report.lines import RequestCounts, count_noun, drift, spell, stamp
from ralph_mission.report.summary import SAYINGS, SHOWN
from ralph_mission.safety.text import inline_words

LINES = 30  # in one section
PART = 5_000  # characters of a post
WORDS = 300  # characters of one line
WHO = {
    "you": "**You** must act",
    "forge": "**Whoever may change the repository's settings on GitHub** must act",
    "network": "**Nobody** must act unless it stays like this",
    "bug": "**The authors of ralph** must act; the log of this step has the report",
}
_RULES = re.compile(r"\((?P<ids>[a-z-]+(?:, [a-z-]+)*)\)\Z")
_PATH = re.compile(r"/(?:issues|pull)/\d+(?:/\w+)?(?:[?#][\w=&#-]*)?", re.ASCII)
_NUMBER = re.compile(r"/(?:issues|pull)/(\d+)")


@dataclass(frozen=True, slots=True)
class Places:
    """Where links lead: the repository's page and the document that explains the rules; "" makes no links."""

    repository: str = ""
    rules: str = ""


def step_summary(
    report: CycleReport, telling: CycleSummary, places: Places = Places(), asked: RequestCounts | None = None
) -> str:
    """The page of one cycle; `asked` where somebody counted."""
    done = "Would be done" if report.staged else "Done"
    parts = (
        [f"## Ralph, cycle {report.cycle}: {_outcome(report)}"],
        _missions(report.missions, places),
        section(done, (_effect(effect, places) for effect in report.effects if _is_shown(effect))),
        section("Would be said" if report.staged else "Said", (_post(post) for post in telling.posts)),
        section("Why", map(harmless, telling.why)),
        section("Held back", (_held_line(line, places) for line in telling.held)),
        section("Waiting for you", (_links(line, places) for line in telling.waiting)),
        section("Worth knowing", (_links(line, places) for line in (*_unavailable(report), *telling.remarks))),
        [_next(report, telling), "", _spend(report, asked)],
    )
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def trouble_summary(error: Mapping[str, str]) -> str:
    """The page of a command that failed: `error` has who, what and next, as `--json` prints them."""
    who = WHO.get(error["who"], WHO["you"])
    return f"## Ralph could not finish\n\n{harmless(error['what'])}\n\n{who}. Next: {harmless(error['next'])}\n"


def _outcome(report: CycleReport) -> str:
    staged = " (staged: nothing was changed)" if report.staged else ""
    return f"{SAYINGS[report.outcome]}{staged}, {spell(report.finished_at - report.started_at)}"


def _missions(missions: Sequence[MissionLine], places: Places) -> list[str]:
    if not missions:
        return []
    shown = [f"| {_cell(m.title)} | {m.status.value} | {_threads(m, places)} | {m.started_cycle} |" for m in missions]
    return ["| Mission | Status | On | Since cycle |", "| --- | --- | --- | --- |", *shown[:LINES]]


def _threads(mission: MissionLine, places: Places) -> str:
    threads = (("issues", mission.issue), ("pull", mission.pull_request))
    return ", ".join(thread_link(f"/{where}/{number}", places) for where, number in threads if number)


def thread_link(path: str, places: Places) -> str:
    """A thread by its number, such as `/issues/7`; a link where we know where it leads."""
    number = f"#{path.rpartition('/')[2]}"
    return f"[{number}]({places.repository}{path})" if places.repository else number


def section(heading: str, lines: Iterable[str]) -> list[str]:
    """A list below a heading; nothing without lines."""
    every = [f"- {line}" for line in lines]
    more = [f"- … and {len(every) - LINES} more"] if len(every) > LINES else []
    return [f"### {heading}", "", *every[:LINES], *more] if every else []


def _post(post: PostLine) -> str:
    """A post with all its parts, so that the exact text can be read before it is sent."""
    lengths = ", ".join(map(str, post.lengths))
    words = " / ".join(inline_words(part, PART) for part in post.parts)
    return f"{harmless(post.network)} {post.status} ({lengths} of {post.limit}): {words}"


def _is_shown(effect: EffectLine) -> bool:
    return effect.kind in SHOWN or effect.status in ("failed", "unknown")


def _effect(effect: EffectLine, places: Places) -> str:
    doubt = f" **{effect.status}**" if effect.status in ("failed", "unknown") else ""
    return f"{SHOWN.get(effect.kind, effect.kind.replace('_', ' '))}{doubt} {_links(effect.url or effect.key, places)}"


def _held_line(line: str, places: Places) -> str:
    """What is held; the rules that it ends with lead to where they are explained."""
    found = _RULES.search(line)
    rules = found["ids"].split(", ") if found else []
    if not found or not places.rules or not set(rules) <= LIFTED_BY.keys():
        return harmless(line)
    return f"{harmless(line[: found.start()])} ({', '.join(f'[{rule}]({places.rules}#{rule})' for rule in rules)})"


def _unavailable(report: CycleReport) -> Iterator[str]:
    for line in report.observers:
        if line.status == "unavailable":
            yield f"{line.name} could not be observed: {line.detail or 'no reason given'}"


def _next(report: CycleReport, telling: CycleSummary) -> str:
    started = f"; {drift(telling.late)}" if telling.late is not None else ""
    if report.next_due_at is None:
        return f"**Next**: at the next wake{started}"
    return f"**Next**: {stamp(report.next_due_at)} (urgency {report.urgency.value}){started}"


def _spend(report: CycleReport, asked: RequestCounts | None) -> str:
    usage = report.usage
    tokens = usage.input_tokens + usage.output_tokens
    models = f"{count_noun(usage.model_calls, 'model call')}, {tokens} tokens, ${usage.cost_usd:.2f}"
    return f"Spent: {models}" + (f"; {asked}" if asked else "")


def _links(text: str, places: Places) -> str:
    """A line with the addresses of the repository's own threads as links, and nothing else live."""
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
    """Anybody's text as words and no more: nothing of it is markup, a link or a command."""
    return inline_words(text, WORDS)


def _cell(text: str) -> str:
    return harmless(text).replace("|", "&#124;")
