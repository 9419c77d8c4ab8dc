"""A check's requests about dependencies, and their results; and which files of a commit import packages.

Packages are found in code by their import names, with `git grep`, once per commit. For Python these may differ from the
package's own: `OTHER_NAMES` has the usual ones. Results of bumps are also converted to plain JSON and back: deriving
lock files is expensive, so they are cached.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.packages import registries as indexes
from ralph_mission.adapters.packages.advisories import (
    Advisories,
    Advisory,
    Affected,
    Known,
    Subject,
    nearest,
)
from ralph_mission.adapters.packages.lockfiles import DependencyReading
from ralph_mission.adapters.packages.model import (
    CRATES,
    Bump,
    Bumped,
    Ecosystem,
    Package,
    Project,
    Release,
    ahead,
    patches,
)
from ralph_mission.adapters.packages.registries import (
    AnswerCache,
    CachedAnswer,
    Registries,
    RegistryQuestion,
    ReleaseAnswers,
)
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import SecurityAlert
from ralph_mission.safety.bumps import Step
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.values import compile_regex, dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.http.guard import Web


MAGIC = {"GIT_LITERAL_PATHSPECS": "0"}  # else a pattern for paths would be a name
SECONDS = 60.0
SHOWN = 20
"""Files kept per name; their total is counted."""
OTHER_NAMES: Mapping[str, str] = {
    "attrs": "attr",
    "beautifulsoup4": "bs4",
    "dnspython": "dns",
    "gitpython": "git",
    "grpcio": "grpc",
    "msgpack-python": "msgpack",
    "opencv-python": "cv2",
    "pillow": "pil",
    "protobuf": "google",
    "pycryptodome": "crypto",
    "pygithub": "github",
    "pyjwt": "jwt",
    "pymongo": "pymongo",
    "pyopenssl": "openssl",
    "pyserial": "serial",
    "python-dateutil": "dateutil",
    "python-dotenv": "dotenv",
    "python-multipart": "multipart",
    "pyyaml": "yaml",
    "ruamel-yaml": "ruamel",
    "scikit-learn": "sklearn",
    "setuptools": "pkg_resources",
}


@dataclass(frozen=True, slots=True)
class ImportSyntax:
    """Files to search, git's pattern, and the pattern of the name within a match."""

    globs: tuple[str, ...]
    expression: str
    name: re.Pattern[str]


SYNTAX: Mapping[Ecosystem, ImportSyntax] = {
    "npm": ImportSyntax(
        tuple(f"*.{ending}" for ending in "ts tsx mts cts js jsx mjs cjs vue svelte astro".split()),
        r"(from|import|require|resolve)[[:space:]]*\(?[[:space:]]*['\"][@A-Za-z0-9_][^'\"]*['\"]",
        compile_regex(r"['\"]((?:@[^/'\"]+/)?[^/'\"]+)"),
    ),
    "PyPI": ImportSyntax(
        ("*.py", "*.pyi", "*.pyx", "*.ipynb"),
        r"(^|\")[[:space:]]*(import|from)[[:space:]]+[A-Za-z_][A-Za-z0-9_]*",
        compile_regex(r"(?:import|from)\s+(\w+)$"),
    ),
    CRATES: ImportSyntax(("*.rs",), r"(^|[^A-Za-z0-9_:.])[a-z][a-z0-9_]*::", compile_regex(r"([a-z][a-z0-9_]*)::$")),
    "Go": ImportSyntax(
        ("*.go",), r"^[[:space:]]*(import )?([A-Za-z_.][A-Za-z0-9_]* )?\"[^\"]+/[^\"]+\"", compile_regex(r'"([^"]+)"')
    ),
}


@dataclass(frozen=True, slots=True)
class Importers:
    """The importing files, by ecosystem and import name."""

    by_name: Mapping[str, Mapping[str, tuple[int, tuple[str, ...]]]]

    def of(self, package: Package) -> tuple[int, tuple[str, ...]] | None:
        """The number of files that import a package, and the first of them; None if unknown."""
        found = self.by_name.get(package.ecosystem)
        if found is None:
            return None
        name = package.name
        if package.ecosystem == "Go":
            inside = [one for path, one in found.items() if path == name or path.startswith(f"{name}/")]
            files = sorted({file for _, files in inside for file in files})
            return max([len(files), *(number for number, _ in inside)]), tuple(files)[:SHOWN]
        if package.ecosystem != "npm":
            name = OTHER_NAMES.get(name, name).replace("-", "_").lower()
        return found.get(name, (0, ()))


def dump_importers(found: Importers) -> dict[str, dict[str, list[object]]]:
    """As plain JSON."""
    return {eco: {name: [n, list(files)] for name, (n, files) in names.items()} for eco, names in found.by_name.items()}


def load_importers(facts: Mapping[str, Mapping[str, tuple[int, list[str]]]]) -> Importers:
    """The inverse of `dump_importers`. Raises TypeError, ValueError or AttributeError if invalid."""
    return Importers(
        {eco: {name: (n, tuple(files)) for name, (n, files) in names.items()} for eco, names in facts.items()}
    )


def read_importers(git: Git, commit: str, ecosystems: frozenset[Ecosystem]) -> Importers:
    """The imports of a commit. Raises GitError."""
    return Importers({one: _importers(git, commit, SYNTAX[one]) for one in sorted(ecosystems) if one in SYNTAX})


def _importers(git: Git, commit: str, syntax: ImportSyntax) -> dict[str, tuple[int, tuple[str, ...]]]:
    flags = ("-I", "-z", "-o", "-E", "--no-color", "--full-name", "--no-textconv")
    try:
        arguments = ("grep", *flags, "-e", syntax.expression, commit, "--", *syntax.globs)
        raw = git.run(*arguments, env=MAGIC, timeout=SECONDS)
    except GitError as error:
        if error.code != 1:
            raise
        raw = b""  # no imports
    found: dict[str, set[str]] = {}
    for line in raw.decode("utf-8", "replace").split("\n"):
        place, _, text = line.partition("\0")
        path = place.partition(":")[2]
        if not path or "node_modules" in posixpath.dirname(path).split("/"):
            continue
        if name := syntax.name.search(text.strip()):
            key = name[1] if syntax.globs[0] != "*.py" else name[1].lower()
            found.setdefault(key, set()).add(path)
    return {name: (len(files), tuple(sorted(files))[:SHOWN]) for name, files in found.items()}


PATIENCE = timedelta(hours=1)
"""The pause after OSV was unreachable, so that offline users only wait once."""
Alerts = Callable[[], "Sequence[SecurityAlert] | None"]
Against = Mapping[Subject, Sequence[Advisory]]


NO_ADVISORIES = "no advisories of OSV: "


@dataclass(frozen=True, slots=True)
class DependencyFindings:
    """A check's results, before reporting."""

    reading: DependencyReading
    answers: ReleaseAnswers
    registries: Mapping[Package, str]  # the requested URL
    advisories: tuple[Advisory, ...] = ()
    problem: str = ""  # why OSV's advisories are missing or incomplete

    @property
    def complete(self) -> bool:
        """Whether a finding that is missing now is certainly gone."""
        return not (self.answers.failed or self.answers.left or self.problem)

    def known(self) -> Against:
        """Advisories by subject."""
        found: dict[Subject, tuple[Advisory, ...]] = {}
        for advisory in self.advisories:
            found[advisory.subject] = (*found.get(advisory.subject, ()), advisory)
        return found

    def steps(self) -> Iterator[tuple[Project, Package, Mapping[Step, str]]]:
        """Each outdated package, with the newest release for each size of step."""
        for project in self.reading.projects:
            for package in project.packages:
                if best := ahead(package.ecosystem, package.version, self._releases(package)):
                    yield project, package, best

    def patches(self) -> tuple[Bump, ...]:
        """Every patch-level bump, once: a lock file may hold one version of a package in several places."""
        known = self.known()
        found: dict[tuple[str, str], Bump] = {}
        for project, package, best in self.steps():
            if Step.PATCH in best:
                to = self._safest(package, known.get(subject(package), ())) or best[Step.PATCH]
                bump = Bump(project, replace(package, registry=self.registries[package]), to)
                before = found.setdefault((project.path, str(bump)), bump)
                if package.direct and not before.package.direct:
                    found[project.path, str(bump)] = bump
        return tuple(found.values())

    def _safest(self, package: Package, against: Sequence[Advisory]) -> str:
        """The newest patch release with the fewest advisories; "" if none fixes any."""
        left = {
            version: sum(advisory.holds(version) for advisory in against)
            for version in patches(package.ecosystem, package.version, self._releases(package))
        }
        fixing = [version for version, number in left.items() if number < len(against)]
        return min(reversed(fixing), key=left.__getitem__, default="")

    def _releases(self, package: Package) -> Sequence[Release]:
        return self.answers.releases.get(question(package, self.registries.get(package, "")), ())


@dataclass(frozen=True, slots=True)
class DependencyLookup:
    """The sources, and their limits; see `Settings` of the observer."""

    web: Web
    cache: AnswerCache
    endpoint: str
    environment: Mapping[str, str] = field(repr=False)
    now: datetime
    scratch: Path
    advisories: bool
    every: timedelta
    seconds: float
    most: int
    updates: bool = True

    def all(self, reading: DependencyReading, alerts: Sequence[SecurityAlert] | None = None) -> DependencyFindings:
        """Advisories about every package; releases of direct dependencies and vulnerable packages.

        OSV is not asked if the forge has security alerts, which people can dismiss there.
        """
        bases = self._bases(reading) if self.updates else {}
        known, problem = of_alerts(alerts, reading), ""
        if alerts is None:
            known, problem = self._osv(map(subject, _packages(reading)))
        vulnerable = {advisory.subject for advisory in known}
        packages = {p: base for p, base in bases.items() if p.direct or subject(p) in vulnerable}
        answers = self._registries(self.most).tell(question(p, base) for p, base in packages.items() if base)
        return DependencyFindings(reading, answers, packages, known, problem)

    def a_little(self, reading: DependencyReading) -> DependencyFindings:
        """Look up one package at each registry, and one at OSV. Raises UserError if one of them cannot be reached."""
        every = self._bases(reading) if self.updates else dict.fromkeys(_packages(reading), self.endpoint)
        bases = {base: package for package, base in every.items() if package.direct}
        if "" in bases:
            what = f"it is unknown which registry has {bases[''].name}"
            raise UserError(what, f"set {' or '.join(names[0] for names in indexes.NAMES.values())}")
        questions = bases.items() if self.updates else ()
        answers = self._registries(len(bases)).tell(question(package, base) for base, package in questions)
        for why in answers.failed.values():
            raise UserError(why, "look at the network and the registry", "network")
        if self.advisories and bases:
            self._about([subject(next(iter(bases.values())))])
        return DependencyFindings(reading, answers, {})

    def _registries(self, most: int) -> Registries:
        return Registries(self.web, self.cache, self.now, self.every, self.seconds, most)

    def _about(self, subjects: Iterable[Subject]) -> Known:
        return Advisories(self.web, self.endpoint, self.cache, self.now, self.every).about(subjects)

    def _osv(self, subjects: Iterable[Subject]) -> tuple[tuple[Advisory, ...], str]:
        if not self.advisories:
            return (), ""
        failed = f"no answer {self.endpoint}"
        answer = self.cache.get(failed)
        if answer and timedelta(0) <= self.now - answer.asked < PATIENCE:
            return (), str(answer.facts)
        try:
            known = self._about(subjects)
        except UserError as problem:
            what = f"{NO_ADVISORIES}{problem.what}"
            self.cache.put(failed, CachedAnswer(what, self.now))
            return (), what
        return known.advisories, str(known)

    def _bases(self, reading: DependencyReading) -> dict[Package, str]:
        """The registry of each package; "" if unknown."""
        found: dict[Package, str] = {}
        own: dict[Ecosystem, str] = {}
        for package in (one for one in _packages(reading) if one.ecosystem in indexes.NAMES):
            base = indexes.registry(package, reading.texts, self.environment)
            if not base and package.ecosystem not in own:
                own[package.ecosystem] = self._built_in(package.ecosystem)
            found[package] = base or own[package.ecosystem]
        return found

    def _built_in(self, ecosystem: Ecosystem) -> str:
        key = f"built-in {ecosystem}"
        answer = self.cache.get(key)
        if answer and answer.facts and timedelta(0) <= self.now - answer.asked < self.every:
            return str(answer.facts)
        base = indexes.built_in(ecosystem, self.scratch)
        self.cache.put(key, CachedAnswer(base, self.now))
        return base


ECOSYSTEMS: Mapping[str, Ecosystem] = {
    "npm": "npm",
    "pip": "PyPI",
    "rust": CRATES,
    "go": "Go",
    "maven": "Maven",
}
"""As GitHub names them."""
EDGE = re.compile(r"(<=|>=|<|>|=)\s*([0-9A-Za-z.!+_-]{1,100})")


def nobody_alerts() -> None:
    """For a forge without security alerts."""


def of_alerts(alerts: Iterable[SecurityAlert] | None, reading: DependencyReading) -> tuple[Advisory, ...]:
    """The forge's alerts as advisories about the versions in this commit: an alert may be older than the commit."""
    used: dict[tuple[str, str], list[Package]] = {}
    for package in _packages(reading):
        used.setdefault((package.ecosystem, package.name.lower()), []).append(package)
    found: dict[tuple[str, Subject], Advisory] = {}
    for alert in alerts or ():
        ecosystem = ECOSYSTEMS.get(alert.ecosystem)
        name = canonicalize_name(alert.package) if ecosystem == "PyPI" else alert.package.lower()
        affected = _affected(alert.affected)
        for package in used.get((ecosystem or "", name), ()):
            about = subject(package)
            if affected.holds(package.ecosystem, package.version):
                fixed = nearest(about, [alert.fixed] if alert.fixed else [], affected)
                found[alert.advisory, about] = Advisory(
                    alert.advisory, about, alert.aliases, alert.title, alert.severity, fixed, affected=affected
                )
    return tuple(found.values())


def _affected(range_: str) -> Affected:
    """GitHub's version range (`>= 1.0, < 1.2.3`, `= 1.0`) in OSV's form."""
    edges = EDGE.findall(range_)
    single = tuple(version for sign, version in edges if sign == "=")
    since = next((version for sign, version in edges if sign in (">=", ">")), "0")
    until = [("fixed" if sign == "<" else "last_affected", version) for sign, version in edges if sign in ("<", "<=")]
    return Affected((), single) if single else Affected(((("introduced", since), *until),))


def _packages(reading: DependencyReading) -> Iterator[Package]:
    return (package for project in reading.projects for package in project.packages)


def subject(package: Package) -> Subject:
    """An advisory's subject."""
    return package.ecosystem, package.name, package.version


def question(package: Package, base: str) -> RegistryQuestion:
    """A registry's query."""
    return RegistryQuestion(package.ecosystem, base, package.name)


def fixed_by(bump: Bump, known: Against) -> tuple[Advisory, ...]:
    """The advisories that no longer hold after a bump."""
    return tuple(advisory for advisory in known.get(subject(bump.package), ()) if not advisory.holds(bump.to))


def dump_bumps(bumped: Bumped, bumps: Sequence[Bump]) -> dict[str, object]:
    """The facts to store; bumps by their index in `bumps`."""
    changes = bumped.patch.changes if bumped.patch else ()
    return {
        "changes": [[c.path, (c.old or b"").decode(), (c.new or b"").decode()] for c in changes],
        "done": [bumps.index(bump) for bump in bumped.done],
        "refused": [[bumps.index(bump), why] for bump, why in bumped.refused],
    }


def load_bumps(answer: CachedAnswer, commit: str, bumps: Sequence[Bump]) -> Bumped:
    """Read stored bumps for `commit`, which has the same files."""
    changes = tuple(
        FileChange(path, REGULAR, REGULAR, old.encode(), new.encode()) for path, old, new in answer.facts["changes"]
    )
    refused = tuple((bumps[place], why) for place, why in answer.facts["refused"])
    return Bumped(Patch(commit, changes) if changes else None, tuple(bumps[i] for i in answer.facts["done"]), refused)
