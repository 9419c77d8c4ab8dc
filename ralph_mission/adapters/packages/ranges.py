"""Whether a package's requested range admits a version, for the usual notations.

`None` means unknown; then nothing is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import semver
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from ralph_mission.adapters.packages.model import CRATES, Ecosystem, parse
from ralph_mission.values import compile_regex

COMPARATOR = compile_regex(
    r"(?P<sign>\^|~>?|>=|<=|>|<|=)?\s*v?(?P<numbers>\d+(?:\.(?:\d+|[xX*]))*)(?P<rest>[-+][\w.+-]+)?"
)


def admits(ecosystem: Ecosystem, current: str, ranges: Iterable[str], version: str) -> bool | None:
    """Whether all ranges that admit `current` admit `version` too; None if one is unreadable, or there is none."""
    results = [(_holds(ecosystem, range_, current), _holds(ecosystem, range_, version)) for range_ in ranges]
    after = [then for now, then in results if now is not False]
    if not after or None in after:
        return None
    return all(after)


def _holds(ecosystem: Ecosystem, range_: str, version: str) -> bool | None:
    if ecosystem == "Go":  # the minimum version: any later one of the same module will do
        return True
    if ecosystem == "Maven":
        return range_ == version
    if ecosystem == "PyPI":
        try:
            return SpecifierSet(range_).contains(version, prereleases=True)
        except InvalidSpecifier:
            return None
    found = parse(ecosystem, version)
    if not isinstance(found, semver.Version):
        return None
    return _any(ecosystem, range_, found)


def _any(ecosystem: Ecosystem, range_: str, version: semver.Version) -> bool | None:
    """Alternatives by `||`, each of comparators that must all match."""
    results = [_all(ecosystem, one, version) for one in range_.split("||")]
    return True if True in results else None if None in results else False


def _all(ecosystem: Ecosystem, text: str, version: semver.Version) -> bool | None:
    words = re.sub(r"([<>=~^])\s+", r"\1", text.replace(",", " ")).split()
    if words in ([], ["*"], ["x"], ["latest"]):
        return True
    results: list[bool] = []
    for word in words:
        found = COMPARATOR.fullmatch(word)
        if found is None:
            return None  # a range with a dash, a tag, a URL
        results.append(_compare(ecosystem, found, version))
    return all(results)


def _compare(ecosystem: Ecosystem, found: re.Match[str], version: semver.Version) -> bool:
    parts = [int(part) for part in found["numbers"].split(".") if part.isdigit()][:3]
    rest = (found["rest"] or "").partition("+")[0] if len(parts) == 3 else ""
    least = semver.Version.parse(".".join(map(str, (*parts, 0, 0)[:3])) + rest)
    sign = found["sign"] or ("^" if ecosystem == CRATES else "")
    if sign in (">", "<", ">=", "<="):
        after = _next(parts, len(parts) - 1)  # what partial numbers leave open belongs to them
        return {
            ">=": version >= least,
            "<": version < least,
            ">": version >= after if len(parts) < 3 else version > least,
            "<=": version < after if len(parts) < 3 else version <= least,
        }[sign]
    if sign == "^":
        first = next((place for place, part in enumerate(parts) if part), len(parts) - 1)
        return least <= version < _next(parts, first)
    if sign in ("~", "~>"):
        return least <= version < _next(parts, min(1, len(parts) - 1))
    return version == least if len(parts) == 3 else least <= version < _next(parts, len(parts) - 1)


def _next(parts: list[int], place: int) -> semver.Version:
    """The first version after all that agree in the numbers up to a place."""
    raised = [*parts[:place], parts[place] + 1, 0, 0, 0][:3]
    return semver.Version(*raised)
