"""Open issues that are likely duplicates: by the same rare error line, or by titles with the same meaning.

Precision first. Two issues that name different versions, platforms, numbers or code in their titles are two issues.
Template text proves nothing, so a line counts only if at most two issues have it. Issues that mention each other are
known to be related.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from ralph_mission.adapters.observers.looking import block, one_line
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.values import compile_regex, dataclass

ISSUES = 1_000  # the newest ones are compared
BODY = 20_000  # characters of one text that are read
FEWEST = 4  # distinctive words of a title
LENGTH = 24  # characters of a distinctive error
LINES = 2  # quoted of each issue

_WORD = compile_regex(r"[a-z0-9][\w.+#-]*[\w+#]|[a-z0-9]")
_STOP = frozenset(
    (
        "a an and are as at be been but by can could do does for get gets getting had has have how i if in into is"
        " issue it its me my of on or our please so some that the their them then there this to up us use used using"
        " was we when where which while why will would you your bug feature request question"
    ).split()
)
_ORDERED = compile_regex(r"\b(?:to|from|into|before|after|than|instead|over)\b", re.IGNORECASE)
_APART = compile_regex(
    r"\b(?:v?\d[\w.]*|windows|win\d*|linux|ubuntu|debian|fedora|alpine|mac(?:os)?|osx|darwin|ios|ipad\w*|android|safari|chrome|"
    r"chromium|firefox|edge|arm(?:64)?|aarch64|x86\w*|amd64|m[1-4]|docker|wsl\d?|pypy|cpython|nodejs|node|deno|bun|"
    r"postgres\w*|mysql|mariadb|sqlite|redis|mongo\w*|npm|yarn|pnpm|webpack|vite|rollup|esbuild)\b|`[^`]+`|[\"'][^\"']+[\"']"
    r"|\b[^\W_]+(?:[._]+[^\W_]+)+\b|\b[a-z]+[A-Z]\w*|--?[a-z][\w-]+"
)
_ERROR = compile_regex(
    r"^\W{0,4}(?:(?:Uncaught|Unhandled|Caused by:|thread '[^']{1,60}' panicked at|panic:|fatal:|error(?:\[\w+\])?:)"
    r"\s*)?"
    r"(?:[\w.$]+(?:Error|Exception|Panic|Warning|Failure)\b|\w*[Ee]rror\b|panic\b|fatal\b|TS\d+\b|E[A-Z]{4,}\b).{8,300}$"
)
_VARIABLE = compile_regex(
    r"0x[0-9a-f]+|\b[0-9a-f]{12,}\b|(?:[A-Za-z]:)?[\\/][^\s:\"']+|\b\d{1,2}:\d{2}(?::\d{2})?\b|line \d+"
)


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two issues, the older one first, and the matching text of each."""

    older: Issue
    newer: Issue
    quotes: tuple[str, str]
    sure: float

    def read_in_full(self, issues: Mapping[int, Issue]) -> DuplicatePair | None:
        """The pair with their comments; None if one was not read, or somebody has already related them."""
        older, newer = issues.get(self.older.number), issues.get(self.newer.number)
        if older is None or newer is None or names(older, newer.number) or names(newer, older.number):
            return None
        return replace(self, older=older, newer=newer)

    def signal(self) -> Signal:
        """The finding."""
        newer, older = self.newer, self.older
        return Signal(
            observer="forge",
            kind="triage",
            title=one_line(f"#{newer.number} is likely the same as #{older.number}: {newer.title}"),
            essence=("duplicate", str(newer.number)),
            occurrence=f"of-{older.number}",
            severity=Severity.MEDIUM,
            confidence=self.sure,
            effort=0.5,
            detail=block(f"#{older.number} {one_line(older.title)}\n#{newer.number} {one_line(newer.title)}"),
            author=one_line(newer.author.login),
            reference=newer.number,
            quotes=(
                Quote(one_line(self.quotes[1], 200), reference=newer.number),
                Quote(one_line(self.quotes[0], 200), reference=older.number),
            ),
        )


def likely_duplicates(issues: Iterable[Issue]) -> tuple[DuplicatePair, ...]:
    """The pairs among open issues, the most certain and newest first; an issue is in at most one."""
    newest = sorted(issues, key=lambda issue: issue.number)[-ISSUES:]
    pairs = {(pair.older.number, pair.newer.number): pair for pair in (*_by_title(newest), *_by_error(newest))}
    chosen, taken = [], set[int]()
    for pair in sorted(pairs.values(), key=lambda pair: (-pair.sure, -pair.newer.number, -pair.older.number)):
        if not {pair.older.number, pair.newer.number} & taken:
            taken |= {pair.older.number, pair.newer.number}
            chosen.append(pair)
    return tuple(chosen)


def names(issue: Issue, number: int) -> bool:
    """Whether an issue or its comments mention another one."""
    texts = (issue.title, issue.body, *(remark.body for remark in issue.remarks))
    expression = re.compile(rf"(?:#|/issues/|/pull/){number}(?!\d)")
    return any(expression.search(text) for text in texts)


# --- titles ---------------------------------------------------------------------------


def _by_title(issues: Sequence[Issue]) -> Iterator[DuplicatePair]:
    """Pairs whose titles have the same distinctive words; those of one author only if the texts are equal too."""
    alike: dict[frozenset[str], list[Issue]] = {}
    for issue in issues:
        words = telling_words(issue.title)
        if len(words) >= FEWEST:
            alike.setdefault(words, []).append(issue)
    for group in alike.values():
        if len(group) > 2:
            continue  # a title used again and again is a template, such as that of a release
        for older, newer in combinations(group, 2):
            repeated = older.author.id == newer.author.id and _squeeze(older.body) != _squeeze(newer.body)
            if not repeated and _same_order(older.title, newer.title) and _may_be_one(older, newer):
                yield DuplicatePair(older, newer, (older.title, newer.title), 0.85)


def _same_order(one: str, other: str) -> bool:
    """Whether the words' order is the same or makes no difference: "from A to B" is not "from B to A"."""
    return _words(one) == _words(other) or not (_ORDERED.search(one) or _ORDERED.search(other))


def telling_words(title: str) -> frozenset[str]:
    """A title's distinctive words, without their endings."""
    return frozenset(_words(title))


def _words(title: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(title.lower()) if word not in _STOP]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if len(word) > len(ending) + 3 and word.endswith(ending) and word.isalpha():
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if word.isalpha() and len(word) > 4 else word


def _may_be_one(one: Issue, other: Issue) -> bool:
    """Whether neither mentions the other, and their titles do not name different versions, platforms, numbers or
    code."""
    if names(one, other.number) or names(other, one.number):
        return False
    return _particulars(one.title) == _particulars(other.title)


def _particulars(title: str) -> frozenset[str]:
    lower = {found.lower().strip("`\"'").removeprefix("v") for found in _APART.findall(title.lower())}
    return frozenset(lower | {found.lower().strip("`\"'") for found in _APART.findall(title)})


def _squeeze(text: str) -> str:
    return " ".join(text.split())[:BODY]


# --- errors ---------------------------------------------------------------------------


def _by_error(issues: Sequence[Issue]) -> Iterator[DuplicatePair]:
    """Pairs that alone have the same error line, and share two words of their titles or another such line."""
    errors = {issue.number: error_lines(issue.body) for issue in issues}
    having: dict[str, list[Issue]] = {}
    for issue in issues:
        for line in errors[issue.number]:
            having.setdefault(line, []).append(issue)
    shared: dict[tuple[int, int], list[str]] = {}
    for line, group in having.items():
        if len(group) == 2:
            shared.setdefault((group[0].number, group[1].number), []).append(line)
    by_number = {issue.number: issue for issue in issues}
    for (first, second), lines in shared.items():
        older, newer = by_number[first], by_number[second]
        related = len(telling_words(older.title) & telling_words(newer.title)) >= 2 or len(lines) >= LINES
        if related and older.author.id != newer.author.id and _may_be_one(older, newer):
            yield DuplicatePair(older, newer, (_quoted(errors[first], lines), _quoted(errors[second], lines)), 0.8)


def error_lines(body: str) -> dict[str, str]:
    """The error lines in a text, by their part that is the same on every machine."""
    lines = (line.strip(" \t>") for line in body[:BODY].splitlines())
    found = {_VARIABLE.sub("…", line): line for line in lines if len(line) <= 400 and _ERROR.match(line)}
    return {key: line for key, line in found.items() if len(key) >= LENGTH and len(key.split()) >= 4}


def _quoted(bodies: Mapping[str, str], lines: Sequence[str]) -> str:
    return bodies[max(lines, key=len)]
