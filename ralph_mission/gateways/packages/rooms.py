"""A folder apart in which a package manager works on one project of a commit: its data files, and an empty home.

Before anything runs, what the files say is judged: places of the web that are not public, and paths that lead out of
the repository, keep the manager out (`handed`, and the guard of the web).
"""

from __future__ import annotations

import math
import posixpath
import re
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ralph_mission.gateways.git import Git
from ralph_mission.gateways.http.address import parse_address
from ralph_mission.gateways.http.guard import GuardedWeb
from ralph_mission.gateways.packages.handed import addresses, files_for_manager
from ralph_mission.gateways.packages.model import Project
from ralph_mission.gateways.packages.reading import LARGEST, sizes
from ralph_mission.gateways.packages.registries import apart
from ralph_mission.gateways.process import FinishedProcess, run_foreign
from ralph_mission.gateways.wire import TreeEntry
from ralph_mission.trouble import UserError

Contents = dict[str, bytes]
DATA = frozenset(
    "package.json pyproject.toml uv.toml uv.lock package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml"
    " pnpm-workspace.yaml .npmrc .yarnrc .yarnrc.yml".split()
)
"""What is read for a package manager; the settings among them are not handed on."""
OUTPUT = 4_000_000
NAMES = 5.0  # seconds for one name to be found
PLACES = 40  # that the files of one project may name


@dataclass(frozen=True, slots=True)
class Room:
    """A folder with one project in it, and a manager to work there for `seconds` at most in each step."""

    folder: Path
    lock: str
    home: Path
    program: str
    environment: Mapping[str, str]
    seconds: float
    until: float = math.inf  # of `time.monotonic`; no step lasts longer

    def run(self, arguments: Sequence[str]) -> None:
        """Raises Trouble when it fails, with the last line that it said."""
        done = self.ask(arguments)
        if done.code != 0:
            said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            how = "took too long" if done.timed_out else (said[-1].strip() if said else f"exit code {done.code}")
            raise UserError(f"{Path(self.program).name} refuses: {without_credentials(how)}", "run it there to see why")

    def ask(self, arguments: Sequence[str]) -> FinishedProcess:
        """What came of it, for those who read more than its exit code."""
        return run_foreign(
            (self.program, *arguments),
            cwd=(self.folder / self.lock).parent,
            home=self.home,
            timeout=max(0.0, min(self.seconds, self.until - time.monotonic())),
            output_cap=OUTPUT,
            extra_env=self.environment,
        )

    def read(self, path: str) -> str:
        """A file's text, line ends as they are."""
        return (self.folder / path).read_bytes().decode()

    def write(self, path: str, text: str) -> None:
        """Replace a file's text."""
        (self.folder / path).write_bytes(text.encode())


@contextmanager
def scratch_project(
    project: Project,
    files: Contents,
    program: str,
    environment: Mapping[str, str],
    scratch: Path,
    seconds: float,
    until: float,
) -> Iterator[Room]:
    """A room with these files, gone afterwards. Raises Trouble for what `handed` refuses."""
    with tempfile.TemporaryDirectory(prefix="packages-", dir=scratch) as own:
        folder = Path(own) / "files"
        for path, content in files_for_manager(files).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        yield Room(folder, project.path, Path(own) / "home", program, environment, seconds, until)


def contents(git: Git, entries: Mapping[str, TreeEntry], project: Project) -> Contents:
    """Manifests, settings and the lock file: those in the folder of the lock file, and manifests below it.

    Raises Trouble for one that is too large, which nobody could read instead.
    """
    folder = posixpath.dirname(project.path)
    wanted = {*project.manifests, project.path}
    wanted |= {p for p in entries if posixpath.dirname(p) == folder and posixpath.basename(p) in DATA}
    held = {path: entries[path].oid for path in sorted(wanted) if path in entries}
    found = sizes(git, list(held.values()))
    if large := [path for path, oid in held.items() if found.get(oid, 0) > LARGEST]:
        raise UserError(f"{large[0]} is too large", "update it yourself")
    blobs = git.blobs(held.values())
    return {path: blobs[oid] for path, oid in held.items()}


def astray(files: Contents, base: str, allow: Collection[str], until: float) -> str:
    """Why a package manager must not read these files, or ask `base`; "" when it may. Nothing was asked but names."""
    try:
        files_for_manager(files)
        named = (*addresses(files), *([apart(base)[0]] if base else []))
        asked = {parse_address(url).origin: url for url in named}
        if len(asked) > PLACES:
            raise UserError(f"its files name more than {PLACES} places of the web", "update it yourself")
        for url in asked.values():
            GuardedWeb(allow, min(NAMES, until - time.monotonic())).admit(url)
    except UserError as trouble:
        return f"{trouble.what}; {trouble.next_step}"
    return ""


def without_credentials(said: str) -> str:
    """A text without what opens a registry: whoever does is named in its address."""
    return re.sub(r"(?<=://)[^/\s]+@", "", said)
