"""Markers that are overdue: what was to be undone before it got here, and conditions that have come true since.

Precision first. A date counts once the last day that it can mean is over. A version counts by what the repository's own
manifests say (`versions`), and not while a workflow still runs an older one. What merely sounds bad is no finding.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date

from ralph_mission.adapters.observers.markers import PROSE, Hit, is_test_data
from ralph_mission.adapters.observers.overdue.versions import RUNTIMES, DeclaredVersions, Numbers, canonical, numbers
from ralph_mission.mission.model.mission import Quote
from ralph_mission.values import compile_regex, dataclass

LONGEST = 300  # characters behind a marker that are read
WORDS = frozenset({"TODO", "FIXME", "HACK", "XXX", "BUG"})

UNDO = r"(?:remov|delet|drop|revert|undo|restor|reset|disabl)\w*|(?:switch|chang)\w*\s+(?:\w+\s+)?back"
DO = (
    rf"{UNDO}|(?:(?:re-?)?enabl|uncomment|clean|adjust|deprecat|expir|document|simplif|switch|replac|stop|mak|mov|renam|"
    r"chang|export|unify|inlin)\w*|us(?:e|ing)"
)
WHEN = r"\b(?:when|once|after|if|until|as soon as)\b[^.;]*?"
VERSION = r"v?(?P<version>\d+(?:\.\d+){0,2})(?![\w.]*\d)"
BELOW = r"(?P<below><=?|(?:older|lower|less)\s+than|below|before)?\s*"
NAME = r"(?P<name>@?[A-Za-z][\w./-]*?)(?:\s+versions?)?\s*"
MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
DATE = (
    r"\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?|\d{1,2}[/.]\d{1,2}[/.]\d{4}|Q[1-4]\s+\d{4}|20\d\d"
    rf"|(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?{MONTH}\s+(?:\d{{1,2}}(?:st|nd|rd|th)?,?\s+)?\d{{4}}"
)

_TAGGED = compile_regex(rf"^\((?:TEMP|TMP|DEBUG)\)|^\(TEST(?:ING)?\)(?=.*\b(?i:{UNDO})\b)")
_LEFT = compile_regex(
    rf"^\W*(?:\([^()]*\)\W*)?(?:{UNDO})\b[^.;]*?\b(?:"
    r"(?:before|prior to)\s+(?:\w+\s+){0,2}?(?:merg|commit|push|review)\w*"
    r"|(?:after|when|once)\s+(?:\w+\s+){0,2}?(?:testing|debugging|the demo)\b)"
    r"|\b(?:do not|don't|never)\s+(?:merge|commit|ship)(?:\s+(?:this|it))?\s*(?:$|[.!,;:)])",
    re.IGNORECASE,
)
_DATED = compile_regex(
    rf"\b(?:{DO})\b[^.;]*?\b(?:after|until|till|before|by|on|end of)\s+(?:the\s+)?(?:end of\s+)?"
    rf"(?P<date>{DATE})\b(?![-/.]?\d)",
    re.IGNORECASE,
)
_DUE = compile_regex(r"^\s*[(\[](?P<date>\d{4}-\d{2}-\d{2})(?:\]|\):)")
"""As linters of expiring comments read it: `TODO [2026-01-31]`, `TODO(2026-01-31): …`."""
_DROPPED = compile_regex(
    rf"{WHEN}\b(?:drop|deprecat|remov|stop|end|no longer)\w*(?:\s+support(?:ing)?)?(?:\s+(?:for|of))?"
    rf"\s+{NAME}{BELOW}{VERSION}",
    re.IGNORECASE,
)
_REQUIRED = compile_regex(
    rf"{WHEN}\b(?:requir\w*|min(?:imum)?|support\w*\s+only|only\s+support\w*)\s+(?:version\s+(?:of\s+)?)?"
    rf"{NAME}(?:\s+(?:to|is)\s+)?(?:>=\s*)?{VERSION}",
    re.IGNORECASE,
)
_WORKAROUND = compile_regex(
    r"\b(?:for|in|on|under|with)\s+(?P<name>python|py|node(?:\.?js)?|go|golang|rust|java)(?:\s+versions?)?\s*"
    rf"(?P<below><=?|(?:older|lower)\s+than|below)\s*{VERSION}",
    re.IGNORECASE,
)
_OWN = compile_regex(
    rf"\b(?:{DO})\b(?:\s+[\w`'.()-]+){{0,6}}?\s+(?:in|for|after(?:\s+releas\w+)?|with(?:\s+releas\w+)?)\s+"
    r"(?:v(?P<major>\d+)|v?(?P<version>\d+\.\d+(?:\.\d+)?))(?![\w.]*\d)(?=\s*(?:$|[.,;:)*/#-]))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class OverdueMarker:
    """A marker that is overdue. `cause` is a fact outside it that several may share, "" if there is none; `why` is for
    people; `proof` the line that says so; `like` what markers without a cause have in common: a day, or their words."""

    hit: Hit
    cause: str
    why: str
    proof: Quote | None = None
    like: str = ""


def overdue(hits: Iterable[Hit], declared: Callable[[], DeclaredVersions], today: date) -> Iterator[OverdueMarker]:
    """Those of `hits` that are overdue; what the repository says of versions is asked for only where one is named."""
    for hit in hits:
        if hit.word not in WORDS or is_test_data(hit.path) or hit.path.lower().endswith(PROSE):
            continue
        text = hit.text.partition(hit.word)[2][:LONGEST].rstrip("*/->} ").strip()
        if found := _left(hit, text) or _dated(hit, text, today) or _by_version(hit, text, declared):
            yield found


def _left(hit: Hit, text: str) -> OverdueMarker | None:
    if not (_TAGGED.search(text) or _LEFT.search(text)):
        return None
    return OverdueMarker(hit, "", "It says that it should be gone by now", like=" ".join(text.lower().split()))


def _dated(hit: Hit, text: str, today: date) -> OverdueMarker | None:
    found = _DUE.search(text) or _DATED.search(text)
    last = last_day(found["date"]) if found else None
    if found is None or last is None or last >= today or last.year < 2000:
        return None
    return OverdueMarker(hit, "", f"The date that it names is over: {found['date']}", like=last.isoformat())


def _by_version(hit: Hit, text: str, declared: Callable[[], DeclaredVersions]) -> OverdueMarker | None:
    if found := _DROPPED.search(text):
        return _dropped(hit, found, declared())
    if found := _REQUIRED.search(text):
        return _required(hit, found, declared())
    if found := _WORKAROUND.search(text):
        return _dropped(hit, found, declared())
    if found := _OWN.search(text):
        return _own(hit, numbers(found["version"] or found["major"]), declared())
    return None


def _dropped(hit: Hit, found: re.Match[str], declared: DeclaredVersions) -> OverdueMarker | None:
    """Whether the version, or all below it, cannot be used with this repository any more."""
    version, name = numbers(found["version"]), canonical(found["name"])
    below = (found["below"] or "").lower()
    first = version if below and below != "<=" else _after(version)  # the lowest one that may be required still
    floor = declared.floor(name)
    if floor is None or not reaches(floor.version, first):
        return None
    if name in RUNTIMES and declared.is_run_below(name, first):
        return None
    what = f"{found['name']} {'below ' if below else ''}{found['version']}"
    why = f"{what} is no longer supported here: {floor.quote.text.rstrip(chr(44))}"
    return OverdueMarker(hit, f"{name} {found['version']} dropped", why, floor.quote)


def _required(hit: Hit, found: re.Match[str], declared: DeclaredVersions) -> OverdueMarker | None:
    version, name = numbers(found["version"]), canonical(found["name"])
    floor = declared.floor(name)
    if floor is None or not reaches(floor.version, version):
        return None
    if name in RUNTIMES and declared.is_run_below(name, version):
        return None
    why = f"{found['name']} {found['version']} is the minimum here by now: {floor.quote.text.rstrip(chr(44))}"
    return OverdueMarker(hit, f"{name} {found['version']} required", why, floor.quote)


def _own(hit: Hit, version: Numbers, declared: DeclaredVersions) -> OverdueMarker | None:
    """Whether the package that the file belongs to has reached that version."""
    own = declared.own_version(hit.path)
    if own is None or not any(version):
        return None
    now, final, quote = own
    if not reaches(now, version) or (not final and now[: len(version)] == version):
        return None
    why = f"Version {'.'.join(map(str, version))} is out: {quote.text.rstrip(chr(44))}"
    return OverdueMarker(hit, f"version {'.'.join(map(str, version))}", why, quote)


def _after(version: Numbers) -> Numbers:
    """The first version that is none of those any more: 3 after 2, 3.9 after 3.8."""
    return (*version[:-1], version[-1] + 1)


def reaches(version: Numbers, other: Numbers) -> bool:
    """Whether a version is at least another one."""
    length = max(len(version), len(other))
    return (*version, *(0,) * (length - len(version))) >= (*other, *(0,) * (length - len(other)))


def last_day(text: str) -> date | None:
    """The last day that a date in words can mean; None where there is none."""
    text = text.strip().lower()
    if found := re.fullmatch(r"q([1-4])\s+(\d{4})", text):
        return _end(int(found[2]), int(found[1]) * 3)
    if found := re.fullmatch(r"(\d{4})(?:[-/](\d{1,2}))?(?:[-/](\d{1,2}))?", text):
        return _end(int(found[1]), int(found[2] or 12), int(found[3] or 0))
    if found := re.fullmatch(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})", text):  # who knows which of them is the month
        orders = ((found[1], found[2]), (found[2], found[1]))
        both = (_end(int(found[3]), int(month), int(day)) for month, day in orders)
        return max((one for one in both if one), default=None)
    month = next((at for at, name in enumerate(calendar.month_abbr) if name and name.lower() in text), 0)
    year, day = re.search(r"\d{4}", text), re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", text)
    return _end(int(year[0]), month, int(day[1]) if day else 0) if year and month else None


def _end(year: int, month: int, day: int = 0) -> date | None:
    """The day, or the last one of the month; None where the calendar has none."""
    try:
        return date(year, month, day or calendar.monthrange(year, month)[1])
    except (ValueError, calendar.IllegalMonthError):
        return None
