"""The files of a commit that import packages, by `git grep`, once per commit.

Packages are identified by their import names. For Python these may differ from the package's own: `OTHER_NAMES` has the
usual ones.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.packages.model import CRATES, Ecosystem, Package
from ralph_mission.values import compile_regex, dataclass

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
