"""Markers that are overdue: what was to be undone before it got here, and conditions that have come true since.

Precision first. A date counts once the last day that it can mean is over. A version counts by what the repository's own
manifests say, and not while a workflow still runs an older one. What merely sounds bad is no finding.

The versions that a repository still supports, and its own, are read from manifests of the commit: `requires-python` and
dependencies of pyproject.toml, engines and dependencies of package.json, the go directive, `rust-version`, the Java
release of pom.xml. Of several that name one thing the lowest counts; one that names it without a lower bound, or a
workflow that still runs an older one, makes it unknown.
"""

from __future__ import annotations

import calendar
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.looking import split_lines
from ralph_mission.adapters.observers.markers import PROSE, Hit, is_test_data
from ralph_mission.adapters.projects.manifests import read_json, read_toml, table
from ralph_mission.mission.model.mission import Quote
from ralph_mission.values import compile_regex, dataclass

Numbers = tuple[int, ...]

MANIFESTS = ("pyproject.toml", "package.json", "go.mod", "Cargo.toml", "pom.xml")
MOST, LARGEST = 200, 500_000  # manifests read, and bytes of one
RUNTIMES = frozenset({"python", "node", "go", "rust", "java"})
ALIASES = {"py": "python", "nodejs": "node", "node.js": "node", "golang": "go", "msrv": "rust", "jdk": "java"}
_VERSION = compile_regex(r"v?(\d+(?:\.\d+)*)")
_LOWER = compile_regex(r"(>=|\^|~|>|=)?\s*v?(\d+(?:\.\d+)*)(?:\.[x*])?")
_SET_UP = compile_regex(r"^\s*(?:-\s|[\w-]*(?:node|python|java|go|rust|version)[\w-]*\s*:)")
_NUMBER = compile_regex(r"(?<![\w.])\d{1,4}(?:\.\d{1,4}){0,2}(?![\w-])")
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


def numbers(text: str) -> Numbers:
    """`v2.12.3` as (2, 12, 3); () when it is no version."""
    found = _VERSION.match(text.strip())
    return tuple(int(part[:9]) for part in found[1].split(".")) if found else ()


def canonical(name: str) -> str:
    """A runtime or package by the name under which its version is kept."""
    name = name.lower().strip("`'\"")
    return ALIASES.get(name, name.replace("_", "-"))


@dataclass(frozen=True, slots=True)
class VersionFloor:
    """The lowest version of something that is supported, and the line of a manifest that says so."""

    version: Numbers
    quote: Quote


@dataclass(frozen=True, slots=True)
class DeclaredVersions:
    """What one commit says. `own`: by the manifest's folder its version, and whether that is released."""

    floors: Mapping[str, VersionFloor]
    own: Mapping[str, tuple[Numbers, bool, Quote]]
    workflows: tuple[str, ...] = ()

    def floor(self, name: str) -> VersionFloor | None:
        """The lowest supported version by any name; None where that is not known for sure."""
        return self.floors.get(canonical(name))

    def is_run_below(self, name: str, version: Numbers) -> bool:
        """Whether a workflow that has to do with this runtime still names an older one."""
        word = {"node": "node", "python": "python", "go": "go-version", "java": "java", "rust": "rust|toolchain"}[name]
        texts = (text for text in self.workflows if re.search(word, text, re.IGNORECASE))
        lines = (line for text in texts for line in text.split("\n") if _SET_UP.match(line))
        named = (numbers(found) for line in lines for found in _NUMBER.findall(line))
        same_kind = (one for one in named if one and (name != "python" or one[0] in (2, 3)))
        return any(one[: len(version)] < version for one in same_kind)

    def own_version(self, path: str) -> tuple[Numbers, bool, Quote] | None:
        """That of the package a file belongs to."""
        folder = posixpath.dirname(path)
        while True:
            if folder in self.own:
                return self.own[folder]
            if not folder:
                return None
            folder = posixpath.dirname(folder)


def declared_versions(git: Git, commit: str, wanted: Callable[[str], bool]) -> DeclaredVersions:
    """Of the manifests whose path is `wanted`. One that cannot be read says nothing. Raises GitError."""
    entries = {entry.path: entry for entry in git.listing(commit)}
    paths = sorted(path for path in entries if posixpath.basename(path) in MANIFESTS and wanted(path))[:MOST]
    workflows = sorted(path for path in entries if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", path))[:MOST]
    blobs = git.blobs(entries[path].oid for path in (*paths, *workflows))
    texts = {
        path: blobs[entries[path].oid].decode("utf-8", "replace")
        for path in (*paths, *workflows)
        if len(blobs.get(entries[path].oid, b"")) <= LARGEST
    }
    floors: dict[str, VersionFloor | None] = {}
    own = {}
    for path in paths:
        own_floors = list(_floors(path, texts.get(path, "")))
        for name, text, needle in own_floors:
            lowest = lower_bound(text)
            quote = _quote(path, texts[path], needle, commit)
            found = VersionFloor(lowest, quote) if lowest else None
            floors[name] = _lower(floors[name], found) if name in floors else found
        if version := _own_version(path, texts.get(path, "")):
            quote = _quote(path, texts[path], version, commit)
            own[posixpath.dirname(path)] = (numbers(version), not re.search(r"[-a-z]", version.lstrip("v")), quote)
    known = {name: floor for name, floor in floors.items() if floor is not None}
    return DeclaredVersions(known, own, tuple(texts[path] for path in workflows if path in texts))


def _lower(before: VersionFloor | None, now: VersionFloor | None) -> VersionFloor | None:
    """The lower of two; unknown where either is."""
    return min(before, now, key=lambda floor: floor.version) if before and now else None


def lower_bound(text: str) -> Numbers:
    """The lowest version that a constraint allows; () where it has no lower bound, or none that can be read."""
    alternatives = [_lowest_of(one) for one in text.split("||")]
    return min(alternatives) if all(alternatives) else ()


def _lowest_of(text: str) -> Numbers:
    if " - " in text:
        text = ">=" + text.strip()
    bounds = []
    for part in re.split(r",|\s+(?=[<>=^~!])", re.sub(r"([<>=^~!])\s+", r"\1", text.strip())):
        part = part.strip().replace("~=", "~").replace("===", "=").replace("==", "=")
        if found := _LOWER.match(part):
            bounds.append(tuple(int(number[:9]) for number in found[2].split(".")))
    return max(bounds, default=())


# --- what each manifest says: (name, constraint, words to find its line by) -----------


def _floors(path: str, text: str) -> Iterator[tuple[str, str, str]]:
    match posixpath.basename(path):
        case "pyproject.toml":
            yield from _of_pyproject(read_toml(text))
        case "package.json":
            yield from _of_package(table(read_json(text)))
        case "go.mod":
            if found := re.search(r"^go\s+(\d+\.\d+)", text, re.MULTILINE):
                yield "go", f">={found[1]}", found[0]
        case "Cargo.toml":
            package = table(read_toml(text), "package") or table(read_toml(text), "workspace", "package")
            if isinstance(minimum := package.get("rust-version"), str):
                yield "rust", f">={minimum}", "rust-version"
        case _:
            if found := re.search(r"<(java\.version|maven\.compiler\.(?:release|target))>\s*(?:1\.)?(\d+)\s*<", text):
                yield "java", f">={found[2]}", found[0]


def _of_pyproject(tables: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    from packaging.requirements import InvalidRequirement, Requirement

    project, poetry = table(tables, "project"), table(tables, "tool", "poetry")
    if isinstance(minimum := project.get("requires-python"), str):
        yield "python", minimum, "requires-python"
    listed = project.get("dependencies")
    for line in listed if isinstance(listed, list) else ():
        try:
            requirement = Requirement(str(line))
        except InvalidRequirement:
            continue
        yield canonical(requirement.name), str(requirement.specifier), str(line)
    for name, constraint in table(poetry, "dependencies").items():
        constraint = table(constraint).get("version", "") if isinstance(constraint, dict) else constraint
        yield canonical(name), str(constraint), f"{name} ="


def _of_package(tables: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    if isinstance(minimum := table(tables, "engines").get("node"), str):
        yield "node", minimum, '"node"'
    for section in ("dependencies", "peerDependencies"):
        for name, constraint in table(tables, section).items():
            if isinstance(constraint, str) and not constraint.startswith(("workspace:", "file:", "link:", "npm:")):
                yield canonical(name), constraint, f'"{name}"'


def _own_version(path: str, text: str) -> str:
    """The version of the package itself; "" where it has none, or leaves it to a tool."""
    match posixpath.basename(path):
        case "pyproject.toml":
            tables = read_toml(text)
            poetry = table(tables, "tool", "poetry")
            version = table(tables, "project").get("version") or poetry.get("version")
        case "package.json":
            version = table(read_json(text)).get("version")
        case "Cargo.toml":
            version = table(read_toml(text), "package").get("version")
        case _:
            version = None
    return version if isinstance(version, str) and any(numbers(version)) else ""


def _quote(path: str, text: str, needle: str, commit: str) -> Quote:
    lines = split_lines(text.encode())
    at = next((number for number, line in enumerate(lines, 1) if needle in line), 0)
    return Quote(lines[at - 1].strip() if at else needle, path, at, commit)


@dataclass(frozen=True, slots=True)
class OverdueMarker:
    """A marker that is overdue. `cause` is what several may share, "" for what stands alone; `why` is for people;
    `proof` the line that says so."""

    hit: Hit
    cause: str
    why: str
    proof: Quote | None = None


def may_wait(hit: Hit) -> bool:
    """Whether a marker can tell of something to be done: its word does, and it stands in code, not in test data."""
    return hit.word in WORDS and not is_test_data(hit.path) and not hit.path.lower().endswith(PROSE)


def overdue(hits: Iterable[Hit], declared: Callable[[], DeclaredVersions], today: date) -> Iterator[OverdueMarker]:
    """Those of `hits` that are overdue; what the repository says of versions is asked for only where one is named."""
    for hit in hits:
        if not may_wait(hit):
            continue
        text = hit.text.partition(hit.word)[2][:LONGEST].rstrip("*/->} ").strip()
        if found := _left(hit, text) or _dated(hit, text, today) or _by_version(hit, text, declared):
            yield found


def _left(hit: Hit, text: str) -> OverdueMarker | None:
    if not (_TAGGED.search(text) or _LEFT.search(text)):
        return None
    return OverdueMarker(hit, "", "It says that it should be gone by now")


def _dated(hit: Hit, text: str, today: date) -> OverdueMarker | None:
    found = _DUE.search(text) or _DATED.search(text)
    last = last_day(found["date"]) if found else None
    if found is None or last is None or last >= today or last.year < 2000:
        return None
    return OverdueMarker(hit, "", f"The date that it names is over: {found['date']}")


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
    version, below = numbers(found["version"]), (found["below"] or "").lower()
    first = version if below and below != "<=" else _after(version)  # the lowest one that may be required still
    what = f"{found['name']} {'below ' if below else ''}{found['version']} is no longer supported here"
    return _by_floor(hit, found, first, declared, "dropped", what)


def _required(hit: Hit, found: re.Match[str], declared: DeclaredVersions) -> OverdueMarker | None:
    what = f"{found['name']} {found['version']} is the minimum here by now"
    return _by_floor(hit, found, numbers(found["version"]), declared, "required", what)


def _by_floor(
    hit: Hit, found: re.Match[str], first: Numbers, declared: DeclaredVersions, cause: str, what: str
) -> OverdueMarker | None:
    """The marker if the lowest supported version is `first` or later; None if that is not known for sure."""
    name = canonical(found["name"])
    floor = declared.floor(name)
    if floor is None or not reaches(floor.version, first):
        return None
    if name in RUNTIMES and declared.is_run_below(name, first):
        return None
    why = f"{what}: {floor.quote.text.rstrip(chr(44))}"
    return OverdueMarker(hit, f"{name} {found['version']} {cause}", why, floor.quote)


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
