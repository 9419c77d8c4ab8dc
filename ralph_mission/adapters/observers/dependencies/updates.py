"""Routine updates without a bot: one list, and a change that configures Dependabot.

If Renovate or Dependabot is configured, in whatever way, routine updates are theirs and not reported.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence

import yaml

from ralph_mission.adapters.files import cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.dependencies.lookup import Importers
from ralph_mission.adapters.observers.looking import one_line
from ralph_mission.adapters.packages.lockfiles import DependencyReading
from ralph_mission.adapters.packages.model import CRATES, Ecosystem, Package, Project
from ralph_mission.adapters.projects.manifests import read_json, table
from ralph_mission.mission.model.mission import Severity, Signal
from ralph_mission.safety.bumps import Step
from ralph_mission.safety.front_matter import LOADER, MAX_BYTES
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

NAME = "dependencies"
RENOVATE = (
    "renovate.json renovate.json5 .renovaterc .renovaterc.json .renovaterc.json5 .github/renovate.json"
    " .github/renovate.json5 .gitlab/renovate.json .gitlab/renovate.json5"
).split()
DEPENDABOT = (".github/dependabot.yml", ".github/dependabot.yaml")
COVERED: Mapping[str, Ecosystem] = {
    "npm": "npm",
    "pip": "PyPI",
    "uv": "PyPI",
    "cargo": CRATES,
    "gomod": "Go",
    "maven": "Maven",
}
"""Dependabot's names of ecosystems."""
MANAGERS: Mapping[str, Ecosystem] = {
    "npm": "npm",
    "cargo": CRATES,
    "gomod": "Go",
    "maven": "Maven",
    **dict.fromkeys(
        ("pep621", "pip_requirements", "pip_setup", "pip-compile", "pipenv", "poetry", "setup-cfg"), "PyPI"
    ),
}
"""Renovate's names of ecosystems, as in its `enabledManagers`."""
MERGES = 3
"""The maximum depth of merged YAML entries."""


def is_bot_file(path: str) -> bool:
    """Whether it is a bot's settings file."""
    return path in RENOVATE or path in DEPENDABOT


def find_updaters(texts: Mapping[str, str]) -> dict[Ecosystem, str]:
    """The bots that make routine updates, by ecosystem. `texts` holds files by path, including `package.json`."""
    for path in RENOVATE:  # a JSON5 file that is not plain JSON is not read
        if path in texts and _is_enabled(settings := table(read_json(texts[path]))):
            return _renovate_ecosystems(settings)
    manifest = table(read_json(texts.get("package.json", "")))
    if "renovate" in manifest and _is_enabled(manifest["renovate"]):
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


def _updates(text: str) -> list[Ecosystem]:
    """The ecosystems with version updates; a limit of 0 pull requests means security updates only."""
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
    """An entry's own setting, or one merged into it."""
    if not isinstance(entry, dict) or depth < 0:
        return None
    if key in entry:
        return entry[key]
    merged = entry.get("<<")
    sources = merged[:MERGES] if isinstance(merged, list) else [merged]
    return next((found for one in sources if (found := _effective_setting(one, key, depth - 1)) is not None), None)


class _Unmerged(LOADER):  # type: ignore[valid-type, misc]  # which one it is depends on how PyYAML was built
    """Resolves anchors, whose cost is bounded by their length, but not merges, whose cost is not."""


_Unmerged.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":merge")]
    for first, known in LOADER.yaml_implicit_resolvers.items()
}


# --- one list -------------------------------------------------------------------------

HEADINGS = ("package", "from", "to", "step", "asked for by", "imported in")
ROOM = 1_600
"""Characters of the table: a quotation in an issue is cut at 2,000."""


@dataclass(frozen=True, slots=True)
class RoutineUpdate:
    """A newer release of a direct dependency. `why_not`: why Ralph does not make a patch-level one."""

    package: Package
    to: str
    step: Step
    why_not: str = ""


def routine_signal(
    updates: Sequence[RoutineUpdate],
    reading: DependencyReading,
    importers: Importers,
    commit: str,
    propose: Sequence[str] | None = None,
) -> Signal | None:
    """All routine updates as one finding; None if there are none.

    With `propose`, the build files of Gradle, its change configures Dependabot.
    """
    direct = [package for project in reading.projects for package in project.packages if package.direct]
    if not updates:
        return None
    table = "\n".join(update_table(updates, importers))
    files = ", ".join(project.path for project in reading.projects[:4])
    more = f" and {len(reading.projects) - 4} more" if len(reading.projects) > 4 else ""
    summary = f"{count_noun(len(direct), 'package')} asked for directly in {files}{more}."
    if propose is None:
        return Signal(
            observer=NAME,
            kind="dependency",
            title="Newer releases of direct dependencies",
            essence=("updates",),
            occurrence=cache_key(*sorted({f"{one.package.name} {_series(one.to)}" for one in updates}))[:16],
            confidence=0.9,
            effort=2.0,
            detail=f"{summary}\n\n{table}",
            path=updates[0].package.path,
            facts=(("updates", len(updates)),),
        )
    text = dependabot_settings(reading.projects, propose)
    behind = f"{count_noun(len(updates), 'newer release')} known today:\n\n{table}"
    return Signal(
        observer=NAME,
        kind="update-bot",
        title=f"Let Dependabot propose updates: {count_noun(len(updates), 'package')} behind",
        essence=("update-bot",),
        severity=Severity.LOW,
        confidence=0.9,
        effort=0.5,
        detail=f"{summary} Neither Renovate nor Dependabot is configured. {behind}".strip(),
        path=DEPENDABOT[0],
        facts=(("packages", len(direct)), ("updates", len(updates))),
        patch=Patch(commit, (FileChange(DEPENDABOT[0], "", REGULAR, None, text.encode()),)),
    )


def _series(version: str) -> str:
    return ".".join(version.split(".")[:2])


def update_table(updates: Sequence[RoutineUpdate], importers: Importers) -> Iterator[str]:
    """Lines of a plain text table, the most imported first; those without room are counted."""
    rows = sorted(((_imported_in(one.package, importers), one) for one in updates), key=_by_use)
    cells = [HEADINGS, *(_cells(number, one) for number, one in rows)]
    widths = [max(len(row[place]) for row in cells[:60]) for place in range(len(HEADINGS))]
    room = ROOM
    for place, row in enumerate(cells):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        room -= len(line) + 1
        if room < 0:
            yield f"... and {len(cells) - place} more"
            return
        yield line


def _by_use(row: tuple[int | None, RoutineUpdate]) -> tuple[bool, int, int, str]:
    number, one = row
    return one.package.dev, -(number or 0), -one.step, one.package.name


def _imported_in(package: Package, importers: Importers) -> int | None:
    found = importers.of(package)
    return None if found is None else found[0]


def _cells(imported: int | None, one: RoutineUpdate) -> tuple[str, ...]:
    kind = f"{one.step.word}{', not made: ' + one.why_not if one.why_not else ''}"
    where = "?" if imported is None else count_noun(imported, "file")
    purpose = "development" if one.package.dev else "production"
    return one_line(one.package.name, 60), one_line(one.package.version, 20), one_line(one.to, 20), kind, purpose, where


# --- the change that sets somebody up -------------------------------------------------

PROPOSED: Mapping[Ecosystem, str] = {"npm": "npm", "PyPI": "pip", CRATES: "cargo", "Go": "gomod", "Maven": "maven"}
"""Dependabot's names; uv's lock file is an ecosystem of its own."""
DAYS = 7
"""The minimum age of a proposed release: most malicious ones are discovered within a week."""


BEHIND = 2
"""Outdated packages before a bot is proposed: without any there is no reason to."""
BY_HAND = (
    r"pip-compile|uv lock --upgrade|npm-check-updates|taze|gha-update|pre-commit autoupdate|pre-commit\.ci"
    r"|cargo update|cargo upgrade|versions:use-|dependencyUpdates|update-requirements|bundle update|go get -u"
)
"""Commands of projects with their own way of updating."""
TOOLS = compile_regex(r".*\.(?:toml|cfg|ini|ya?ml|mk|gradle)|Makefile|noxfile\.py|package\.json")
MOST_TOOLS = 500  # files that are searched


def is_wanted(git: Git, commit: str) -> bool:
    """Whether Dependabot would read a file here, no bot is configured, none was removed and nothing else does its work.
    A shallow clone cannot tell what was removed."""
    known = [*RENOVATE, *DEPENDABOT]
    paths = git.paths(commit)
    if set(known).intersection(paths) or not any(path.startswith(".github/") for path in paths):
        return False
    if git.try_text("log", "-1", "--format=%h", "--diff-filter=D", commit, "--", *known):
        return False
    tools = [path for path in paths if TOOLS.fullmatch(posixpath.basename(path))][:MOST_TOOLS]
    return not (tools and git.try_text("grep", "-l", "-I", "-E", BY_HAND, commit, "--", *tools))


def is_gradle(path: str) -> bool:
    """Whether it is a build file of Gradle, which Dependabot reads and Ralph does not."""
    return posixpath.basename(path) in ("build.gradle", "build.gradle.kts")


def dependabot_settings(projects: Iterable[Project], gradle: Iterable[str] = ()) -> str:
    """A dependabot.yml for all projects: weekly, and minor and patch steps in one pull request."""
    places: dict[str, set[str]] = {}
    for path in gradle:
        places.setdefault("gradle", set()).add("/" + posixpath.dirname(path))
    for project in projects:
        name = "uv" if project.tool == "uv" else PROPOSED[project.ecosystem]
        places.setdefault(name, set()).add("/" + posixpath.dirname(project.path))
    places.setdefault("github-actions", set()).add("/")
    lines = ["version: 2", "updates:"]
    for name in sorted(places):
        folders = sorted(places[name])
        lines.append(f"  - package-ecosystem: {name}")
        if len(folders) == 1:
            lines.append(f"    directory: {json.dumps(folders[0])}")
        else:
            lines += ["    directories:", *(f"      - {json.dumps(folder)}" for folder in folders)]
        lines += ["    schedule:", "      interval: weekly", "    cooldown:", f"      default-days: {DAYS}"]
        lines += ["    groups:", "      minor-and-patch:", "        update-types: [minor, patch]"]
    return "\n".join(lines) + "\n"
