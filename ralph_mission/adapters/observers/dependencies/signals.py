"""Signals for vulnerable packages and ready patches, and the line of the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import semver
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from ralph_mission.adapters.observers.dependencies.lookup import (
    Against,
    DependencyFindings,
    Importers,
    fixed_by,
    subject,
)
from ralph_mission.adapters.observers.dependencies.updates import NAME
from ralph_mission.adapters.observers.looking import block, one_line
from ralph_mission.adapters.packages.advisories import SEVERITIES, Advisory
from ralph_mission.adapters.packages.lockfiles import DependencyReading
from ralph_mission.adapters.packages.model import CRATES, Bump, Bumped, Ecosystem, Package, parse, step
from ralph_mission.mission.model.mission import Severity, Signal
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

LOWER_SEVERITIES = ("low", "moderate", "medium")
QUOTED = 4
"""Advisories of one package that are shown in full."""
Refused = Sequence[tuple[Bump, str]]
COMPARATOR = compile_regex(
    r"(?P<sign>\^|~>?|>=|<=|>|<|=)?\s*v?(?P<numbers>\d+(?:\.(?:\d+|[xX*]))*)(?P<rest>[-+][\w.+-]+)?"
)


def bump_signals(bumped: Bumped, known: Against) -> Iterator[Signal]:
    """The signals for ready changes."""
    if bumped.patch is None or not bumped.done:
        return
    fixed = [advisory for bump in bumped.done for advisory in fixed_by(bump, known)]
    paths = bumped.patch.paths
    lines = [
        f"{bump}" + "".join(f", fixes {one_line(a.id, 60)}" for a in fixed_by(bump, known)) for bump in bumped.done
    ]
    yield Signal(
        observer=NAME,
        kind="dependency-patch",
        title=one_line(f"{count_noun(len(bumped.done), 'patch-level update')} in {' and '.join(paths[:3])}"),
        essence=tuple(sorted(f"{bump.package.ecosystem} {bump.project.path} {bump}" for bump in bumped.done)),
        severity=Severity.HIGH if fixed else Severity.LOW,
        confidence=0.9,
        effort=0.3,
        detail=block("\n".join(lines)),
        path=next((bump.project.path for bump in bumped.done if bump.project.path in paths), paths[0]),
        line=0,
        facts=(("count", len(bumped.done)), *(("file", path) for path in paths)),
        patch=bumped.patch,
    )


@dataclass(frozen=True, slots=True)
class Vulnerable:
    """One package with its advisories: `used` are its affected versions, the most relevant one first."""

    used: tuple[Package, ...]
    advisories: tuple[Advisory, ...]
    refused: Refused

    @property
    def package(self) -> Package:
        """The reported one."""
        return self.used[0]

    @property
    def worst(self) -> str:
        """The highest severity that an advisory states; "" if none does."""
        return max((one.severity for one in self.advisories), key=SEVERITIES_ASCENDING.index)

    @property
    def severity(self) -> Severity:
        """By the worst advisory; a step lower if it is only used in development."""
        found = (
            Severity.LOW
            if self.worst == "low"
            else Severity.MEDIUM
            if self.worst in LOWER_SEVERITIES
            else Severity.HIGH
        )
        return {Severity.HIGH: Severity.MEDIUM}.get(found, Severity.LOW) if self.package.dev else found

    @property
    def target(self) -> str:
        """The lowest version that fixes all advisories with a known fix; "" if there is none."""
        best, ecosystem = "", self.package.ecosystem
        for fixed in (one.fixed for one in self.advisories if one.fixed):
            best = fixed if not best or step(ecosystem, best, fixed) else best
        return best

    @property
    def admitted(self) -> bool | None:
        """Whether the declared range admits the target; None if it is unknown."""
        return admits(self.package.ecosystem, self.package.version, self.package.wanted, self.target)

    @property
    def reachable(self) -> bool:
        """Whether an upgrade is worth a mission: there is one, and this repository can make it."""
        if not self.target or (self.package.dev and not self.package.direct and self.severity is Severity.LOW):
            return False
        return self.package.direct or self.admitted is not False


SEVERITIES_ASCENDING = ("", *SEVERITIES)


def vulnerable(reading: DependencyReading, known: Against, bumped: Bumped, at_work: Iterable[Bump]) -> list[Vulnerable]:
    """Each vulnerable package, except those that a ready bump or an open pull request fixes."""
    fixed = {advisory for bump in (*bumped.done, *at_work) for advisory in fixed_by(bump, known)}
    fixed -= {a for bump, _ in bumped.refused for a in fixed_by(bump, known)}  # the same version in another file
    used: dict[tuple[str, str], list[Package]] = {}
    for package in (package for project in reading.projects for package in project.packages):
        if any(advisory not in fixed for advisory in known.get(subject(package), ())):
            used.setdefault((package.ecosystem, package.name), []).append(package)
    found = []
    for packages in used.values():
        packages.sort(key=lambda one: (not one.direct, one.dev, one.path, one.line))
        subjects = dict.fromkeys(map(subject, packages))
        left = [a for about in subjects for a in known[about] if a not in fixed]
        refused = [(b, why) for b, why in bumped.refused if subject(b.package) in subjects and fixed_by(b, known)]
        advisories = sorted(left, key=lambda one: (-SEVERITIES_ASCENDING.index(one.severity), one.id))
        found.append(Vulnerable(tuple(packages), tuple(advisories), refused))
    return found


def vulnerability_signals(found: Iterable[Vulnerable], importers: Importers) -> Iterator[Signal]:
    """One signal for each package that can be upgraded; all others are lines of one list."""
    for one in found:
        package, ids = one.package, sorted({one_line(advisory.id, 60) for advisory in one.advisories})
        versions = sorted({used.version for used in one.used})
        facts: list[tuple[str, str | int]] = [("package", package.name), ("version", ", ".join(versions[:4]))]
        facts += [("fixed in", one.target)] if one.target else []
        facts += [("severity", one.worst)] if one.worst else []
        facts += [("asked for", "directly" if package.direct else "by another package")]
        facts += [("used in", "development only" if package.dev else "production")]
        yield Signal(
            observer=NAME,
            kind="vulnerability" if one.reachable else "advisory",
            title=one_line(_title(one)),
            essence=("vulnerability", package.ecosystem, package.name, *versions, *ids),
            severity=one.severity,
            confidence=0.95,
            effort=1.0 if package.direct else 2.0,
            detail=block("\n".join(_explain(one, importers))),
            path=package.path,
            line=package.line,
            facts=(*facts, ("advisories", len(ids))),
        )


def _title(one: Vulnerable) -> str:
    number, package = len({advisory.id for advisory in one.advisories}), one.package
    what = f"{number} known vulnerabilities" if number > 1 else "a known vulnerability"
    worst = f" ({'the worst ' if number > 1 else ''}{one.worst})" if one.worst else ""
    fixed = f": {one.target} fixes {'them' if number > 1 else 'it'}" if one.target and _fixes_all(one) else ""
    return f"{package.name} {package.version} has {what}{worst}{fixed}"


def _fixes_all(one: Vulnerable) -> bool:
    return all(advisory.fixed and not advisory.holds(one.target) for advisory in one.advisories)


def _explain(one: Vulnerable, importers: Importers) -> Iterator[str]:
    """The advisories, whether it can be upgraded, and where it is used."""
    package = one.package
    for advisory in one.advisories[:QUOTED]:
        yield from _advisory_lines(advisory)
    if len(one.advisories) > QUOTED:
        yield f"... and {len(one.advisories) - QUOTED} more of them"
    if one.target:
        yield f"Upgrade: {_upgrade(one)}"
    yield from (f"{bump} in {bump.project.path} is left to a person: {why}" for bump, why in one.refused)
    origin = "Direct dependency" if package.direct else "Dependency of another package"
    where = "for development only" if package.dev else "for production"
    yield f"{origin}, {where}. {_imported(package, importers)}".strip()


def _upgrade(one: Vulnerable) -> str:
    package = one.package
    size = step(package.ecosystem, package.version, one.target)
    words = f"{package.version} to {one.target}" + (f", a {size.word} step" if size else "")
    ranges = ", ".join(one_line(range_, 40) for range_ in package.wanted[:3])
    if package.ecosystem == "Go":
        return f"{words}; go.mod names the least version, so any later one will do."
    if one.admitted is None:
        return f"{words}."
    if {range_.lstrip("=v ") for range_ in package.wanted} == {package.version}:
        return f"{words}; it is pinned to {package.version}, so the pin has to change."
    return f"{words}; it is required by {ranges}, which {'allows' if one.admitted else 'does not allow'} it."


def _imported(package: Package, importers: Importers) -> str:
    found = importers.of(package)
    if found is None:
        return ""
    number, files = found
    if not number:
        return "Nothing in this repository imports it by its own name."
    more = f" and {count_noun(number - 3, 'more file')}" if number > 3 else ""
    return f"Imported in {', '.join(files[:3])}{more}."


def detail(findings: DependencyFindings) -> str:
    """The number of packages checked, and everything that could not be."""
    packages = sum(len(project.packages) for project in findings.reading.projects)
    parts = [f"{count_noun(packages, 'package')} in {count_noun(len(findings.reading.projects), 'file')}"]
    nobody = sum(not base for base in findings.registries.values())
    parts += [f"no registry is named for {nobody}: set PIP_INDEX_URL or npm_config_registry"] if nobody else []
    if findings.answers.failed:
        parts.append(
            f"{len(findings.answers.failed)} could not be asked about: {next(iter(findings.answers.failed.values()))}"
        )
    parts += [f"{findings.answers.left} wait for the next look"] if findings.answers.left else []
    parts += [part for part in (findings.problem, unread(findings.reading)) if part]
    return one_line("; ".join(parts), 300)


def unread(reading: DependencyReading) -> str:
    """The unreadable files, and why."""
    return "; ".join(f"{path} {why}" for path, why in reading.unread[:3])


def _advisory_lines(advisory: Advisory) -> Iterator[str]:
    """An advisory in our words, with its author's summary quoted."""
    if advisory.bare:
        yield f"{one_line(advisory.id, 60)}: known by its name alone, for its text could not be had"
        return
    names = ", ".join(one_line(name, 60) for name in (advisory.id, *advisory.aliases[:3]))
    fixed = f"fixed in {one_line(advisory.fixed, 40)}" if advisory.fixed else "no fixed version is known"
    yield f"{names}: {advisory.severity or 'severity unknown'}, {fixed}"
    if advisory.summary:
        yield f"> {one_line(advisory.summary, 300)}"


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
