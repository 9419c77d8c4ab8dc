"""What is said of dependencies: signals, and the line of the report.

Where Renovate or Dependabot look after a repository's dependencies, routine updates are theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from ralph_mission.adapters.observers.dependencies.lookup import Against, DependencyFindings, mends, subject
from ralph_mission.adapters.observers.text import block, count_noun, one_line
from ralph_mission.adapters.packages.advisories import Advisory, Subject
from ralph_mission.adapters.packages.lockfiles import DependencyReading
from ralph_mission.adapters.packages.model import Bump, Bumped, Ecosystem, Package
from ralph_mission.mission.model.mission import Severity, Signal
from ralph_mission.safety.bumps import Step
from ralph_mission.safety.front_matter import LOADER, MAX_BYTES

RENOVATE = (
    "renovate.json renovate.json5 .renovaterc .renovaterc.json .renovaterc.json5 .github/renovate.json"
    " .github/renovate.json5 .gitlab/renovate.json .gitlab/renovate.json5"
).split()
DEPENDABOT = (".github/dependabot.yml", ".github/dependabot.yaml")
COVERED: Mapping[str, Ecosystem] = {"npm": "npm", "pip": "PyPI", "uv": "PyPI"}
MANAGERS: Mapping[str, Ecosystem] = {
    "npm": "npm",
    **dict.fromkeys(
        ("pep621", "pip_requirements", "pip_setup", "pip-compile", "pipenv", "poetry", "setup-cfg"), "PyPI"
    ),
}
"""Renovate's, as its `enabledManagers` names them."""
MERGES = 3
"""How deep what is merged into an entry is looked up."""


def is_bot_file(path: str) -> bool:
    """Whether it is a file of theirs."""
    return path in RENOVATE or path in DEPENDABOT


def find_updaters(texts: Mapping[str, str]) -> dict[Ecosystem, str]:
    """Who makes routine updates, by ecosystem. `texts` holds files by path, `package.json` too."""
    for path in RENOVATE:
        if path in texts and _is_enabled(settings := _plain(texts[path])):
            return _renovate_ecosystems(settings)
    if "renovate" in (manifest := _plain(texts.get("package.json", ""))) and _is_enabled(manifest["renovate"]):
        return _renovate_ecosystems(manifest["renovate"])
    found: dict[Ecosystem, str] = {}
    for path in DEPENDABOT:
        found |= dict.fromkeys(_updates(texts.get(path, "")), "Dependabot")
    return found


def _is_enabled(settings: object) -> bool:
    return not isinstance(settings, dict) or settings.get("enabled") is not False


def _renovate_ecosystems(settings: object) -> dict[Ecosystem, str]:
    enabled = settings.get("enabledManagers") if isinstance(settings, dict) else None
    managers = enabled if isinstance(enabled, list) else MANAGERS
    return {MANAGERS[name]: "Renovate" for name in managers if isinstance(name, str) and name in MANAGERS}


def _plain(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # JSON5 is a superset: what it says more is theirs to read
        return {}
    return found if isinstance(found, dict) else {}


def _updates(text: str) -> list[Ecosystem]:
    """The ecosystems with version updates; a limit of 0 pulls means security updates alone."""
    if len(text) > MAX_BYTES:
        return []
    try:
        document = yaml.load(text, _Unmerged)
    except (yaml.YAMLError, ValueError, RecursionError, LookupError, AttributeError, TypeError, ArithmeticError):
        return []
    entries = document.get("updates", []) if isinstance(document, dict) else []
    named = (
        _effective_setting(entry, "package-ecosystem")
        for entry in (entries if isinstance(entries, list) else [])
        if _effective_setting(entry, "open-pull-requests-limit") != 0
    )
    return [COVERED[name] for name in named if isinstance(name, str) and name in COVERED]


def _effective_setting(entry: object, key: str, depth: int = MERGES) -> object:
    """What an entry says itself, or what is merged into it."""
    if not isinstance(entry, dict) or depth < 0:
        return None
    if key in entry:
        return entry[key]
    merged = entry.get("<<")
    sources = merged[:MERGES] if isinstance(merged, list) else [merged]
    return next((found for one in sources if (found := _effective_setting(one, key, depth - 1)) is not None), None)


class _Unmerged(LOADER):  # type: ignore[valid-type, misc]  # which one it is depends on how PyYAML was built
    """Reads anchors, whose cost is bounded by their length, and leaves merges alone, whose cost is not."""


_Unmerged.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":merge")]
    for first, known in LOADER.yaml_implicit_resolvers.items()
}


NAME = "dependencies"
ASKED = 200
"""Larger steps told in one look, the most urgent first; how many of them are asked about is the cycle's to say."""
MILD = ("low", "moderate", "medium")
Refused = Sequence[tuple[Bump, str]]


def bump_signals(bumped: Bumped, known: Against) -> Iterator[Signal]:
    """The change that is ready."""
    if bumped.patch is None or not bumped.done:
        return
    mended = [advisory for bump in bumped.done for advisory in mends(bump, known)]
    paths = bumped.patch.paths
    lines = [f"{bump}" + "".join(f", fixes {one_line(a.id, 60)}" for a in mends(bump, known)) for bump in bumped.done]
    yield Signal(
        observer=NAME,
        kind="dependency-patch",
        title=one_line(f"{count_noun(len(bumped.done), 'patch-level update')} in {' and '.join(paths[:3])}"),
        essence=tuple(sorted(f"{bump.package.ecosystem} {bump.project.path} {bump}" for bump in bumped.done)),
        severity=Severity.HIGH if mended else Severity.LOW,
        confidence=0.9,
        effort=0.3,
        detail=block("\n".join(lines)),
        path=next((bump.project.path for bump in bumped.done if bump.project.path in paths), paths[0]),
        line=0,
        facts=(("count", len(bumped.done)), *(("file", path) for path in paths)),
        patch=bumped.patch,
    )


def waiting(refused: Refused, known: Against) -> Iterator[Signal]:
    """What a person has to do; what would fix an advisory is told with that."""
    left = [(bump, why) for bump, why in refused if not mends(bump, known)]
    if not left:
        return
    lines = [f"{bump} in {bump.project.path}: {why}" for bump, why in left]
    yield Signal(
        observer=NAME,
        kind="dependency",
        title=one_line(f"{count_noun(len(left), 'patch-level update')} left to a person: {left[0][0]}"),
        essence=("waiting", *sorted(f"{bump.package.ecosystem} {bump.project.path} {bump}" for bump, _ in left)),
        confidence=0.9,
        effort=1.0,
        detail=block("\n".join(lines)),
        path=left[0][0].project.path,
        line=left[0][0].package.line,
    )


def vulnerable(reading: DependencyReading, known: Against, bumped: Bumped, at_work: Iterable[Bump]) -> Iterator[Signal]:
    """One per vulnerable version, but for what a ready bump or an open pull fixes."""
    mended = {advisory for bump in (*bumped.done, *at_work) for advisory in mends(bump, known)}
    mended -= {a for bump, _ in bumped.refused for a in mends(bump, known)}  # the same version in another file
    first: dict[Subject, Package] = {}
    for package in (package for project in reading.projects for package in project.packages):
        first.setdefault(subject(package), package)
    for about, advisories in known.items():
        left = [advisory for advisory in advisories if advisory not in mended]
        if left and about in first:
            refused = [(b, why) for b, why in bumped.refused if subject(b.package) == about and mends(b, known)]
            yield _vulnerability(refused[0][0].package if refused else first[about], left, refused)


def larger(steps: Iterable[tuple[Package, Mapping[Step, str]]], known: Against) -> tuple[Signal, ...]:
    """A question for each series that is ahead: of vulnerable packages first, then of major steps."""
    told: dict[tuple[str, ...], Signal] = {}
    urgent: set[tuple[str, ...]] = set()
    for package, best in steps:
        size = Step.MAJOR if Step.MAJOR in best else Step.MINOR
        if package.direct and size in best:
            signal = _update(package, size, best[size])
            told.setdefault(signal.essence, signal)
            urgent |= {signal.essence} if subject(package) in known else set()
    return tuple(sorted(told.values(), key=lambda signal: (signal.essence not in urgent, signal.kind, signal.essence)))


def detail(seen: DependencyFindings, beyond: int = 0) -> str:
    """Packages looked at, and all that could not be; `beyond`: larger steps that are too many for one look."""
    packages = sum(len(project.packages) for project in seen.reading.projects)
    parts = [f"{count_noun(packages, 'package')} in {count_noun(len(seen.reading.projects), 'file')}"]
    nobody = sum(not base for base in seen.registries.values())
    parts += [f"no registry is named for {nobody}: set PIP_INDEX_URL or npm_config_registry"] if nobody else []
    if seen.told.failed:
        parts.append(f"{len(seen.told.failed)} could not be asked about: {next(iter(seen.told.failed.values()))}")
    parts += [f"{seen.told.left} wait for the next look"] if seen.told.left else []
    parts += [f"{count_noun(beyond, 'larger step')} beyond the {ASKED} of one look"] if beyond > 0 else []
    parts += [part for part in (seen.problem, unread(seen.reading)) if part]
    return one_line("; ".join(parts), 300)


def unread(reading: DependencyReading) -> str:
    """The files that could not be read, and why."""
    return "; ".join(f"{path} {why}" for path, why in reading.unread[:3])


def _vulnerability(package: Package, advisories: Sequence[Advisory], refused: Refused) -> Signal:
    ids = sorted(one_line(advisory.id, 60) for advisory in advisories)
    grave = any(advisory.severity not in MILD for advisory in advisories)
    lines = [line for advisory in advisories for line in _advisory_lines(advisory)]
    lines += [f"{bump} in {bump.project.path} is left to a person: {why}" for bump, why in refused]
    return Signal(
        observer=NAME,
        kind="vulnerability",
        title=one_line(f"{package.name} {package.version} has known vulnerabilities: {', '.join(ids)}"),
        essence=("vulnerability", package.ecosystem, package.name, package.version, *ids),
        severity=Severity.HIGH if grave else Severity.MEDIUM,
        confidence=0.95,
        effort=1.0,
        detail=block("\n".join(lines)),
        path=package.path,
        line=package.line,
        facts=(("package", package.name), ("version", package.version), ("advisories", len(ids))),
    )


def _advisory_lines(advisory: Advisory) -> Iterator[str]:
    """What is known, in our words; what its author says of it, quoted."""
    if advisory.bare:
        yield f"{one_line(advisory.id, 60)}: known by its name alone, for its text could not be had"
        return
    names = ", ".join(one_line(name, 60) for name in (advisory.id, *advisory.aliases[:3]))
    fixed = f"fixed in {one_line(advisory.fixed, 40)}" if advisory.fixed else "no fixed version is known"
    yield f"{names}: {advisory.severity or 'severity unknown'}, {fixed}"
    if advisory.summary:
        yield f"> {one_line(advisory.summary, 300)}"


def _update(package: Package, size: Step, to: str) -> Signal:
    series = ".".join(to.split(".")[: 1 if size is Step.MAJOR and not to.startswith("0.") else 2])
    return Signal(
        observer=NAME,
        kind=f"dependency-{size.word}",
        title=one_line(f"Update {package.name} from {package.version} to {to}, a {size.word} step"),
        essence=(f"dependency-{size.word}", package.ecosystem, package.name, series),
        confidence=0.8,
        effort=2.0 if size is Step.MINOR else 6.0,
        detail=block(f"{package.path} has {package.name} {package.version}; {to} is out."),
        path=package.path,
        line=package.line,
        facts=(("package", package.name), ("version", package.version), ("newer", to), ("step", size.word)),
    )
