"""Sets a repository up once for each set of its manifests and lock files, and lends the result to every clone.

The set-up runs in a clone of the base commit, with the network and with no credential. What it left beside the files of
the commit (node_modules, .venv, generated types) and in its home (caches of cargo, go, maven) is kept, and copied into
the clones where checks and agents run without a network; copy-on-write where the file system can.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.detection import DetectedProject, Read, SetupStep, detect_project
from ralph_mission.adapters.sandbox.bwrap import rustup_home
from ralph_mission.adapters.sandbox.excerpt import excerpt, find_cause, is_untrusted
from ralph_mission.adapters.sandbox.isolation import Sandbox
from ralph_mission.adapters.sandbox.process import run_foreign, tell_running
from ralph_mission.adapters.workspace.snapshot import remove_any
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

SECONDS = 1_800.0
"""For one step: a first install of a large repository takes minutes."""
AGAIN = 6 * 3600.0
"""Seconds after which a set-up that failed is tried again, though nothing has changed: a registry was away. One in
another environment (`PASSED_ON`) is tried at once, as is any after `forget_failures`."""
KEPT_SETUPS = 3
"""Set-ups that stay on the disk, the last used ones."""
LARGEST = 2_000_000  # bytes of a manifest that is read
REWRITTEN = 1_000_000  # bytes of a script in which a path is put right
NODE = ("npm", "yarn", "pnpm", "bun", "prisma", "next")
REPORT, MARK = "setup.json", "lent"
"""What a set-up came to, and in the folder of lent tools: which set-up they are of."""
PASSED_ON = tuple(
    f"""
    {" ".join(name for each in ("http_proxy", "https_proxy", "no_proxy", "all_proxy") for name in (each, each.upper()))}
    SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO
    PIP_CERT PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_INDEX_URL UV_DEFAULT_INDEX npm_config_registry NPM_CONFIG_REGISTRY
    YARN_NPM_REGISTRY_SERVER GOPROXY GOSUMDB GOFLAGS JAVA_HOME RUSTUP_HOME CARGO_HTTP_CAINFO
    """.split()
)
"""How the runner reaches registries. An address that carries a password is a credential: it is left out."""
QUIET: Mapping[str, str] = MappingProxyType(
    {
        "CI": "1",
        "NO_COLOR": "1",
        "NO_UPDATE_NOTIFIER": "1",
        "NEXT_TELEMETRY_DISABLED": "1",
        "DO_NOT_TRACK": "1",
        "UV_COMPILE_BYTECODE": "1",  # once in the set-up, and not in each clone
        "YARN_ENABLE_GLOBAL_CACHE": "0",  # Plug'n'Play names packages by their place as seen from the project
        "YARN_ENABLE_MIRROR": "0",
    }
)


CACHES = {
    "CARGO_HOME": ".cargo",
    "GOMODCACHE": "go/pkg/mod",
    "GOCACHE": ".cache/go-build",
    "GRADLE_USER_HOME": ".gradle",
    "PRE_COMMIT_HOME": ".cache/pre-commit",
    "PLAYWRIGHT_BROWSERS_PATH": ".cache/ms-playwright",
}
"""Where tools keep what they fetched, below the home of the set-up, by the variable that names the place to them."""
DOWNLOADS = (".npm/_cacache", ".cache/uv", ".cache/pip", ".cache/yarn")
"""What installers keep there for the next install alone, often larger than what they installed: it is not lent."""


class ChangeNotInstalled(UserError):
    """Packages cannot be installed with a change, though they can without it."""


@dataclass(frozen=True, slots=True)
class LentSetup:
    """What a clone was given. `names`: files and folders in it that belong to no change. `environment`: for commands
    there, their PATH with it."""

    names: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: QUIET)


NOTHING = LentSetup(environment=MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class SetupResult:
    """How a set-up ended: why it failed ("" if it is ready; the first line tells all), and when, in seconds."""

    failed: str
    at: float
    environment: str = ""


@dataclass(frozen=True, slots=True)
class ProjectSetup:
    """`place`: where results are kept; None: beside the tools of the clone, for once. `keeps`: whether they may be
    written there; if not, one that is there is used, and another is made for once.

    `commands`: the owner's own; None: those that are detected; () for none. `sandbox_for`: how the set-up is kept
    apart, given the clone in which it runs.
    """

    git: Git
    place: Path | None
    commands: tuple[str, ...] | None = None
    seconds: float = SECONDS
    sandbox_for: Callable[[Git], Sandbox] = lambda _: Sandbox()
    note: Callable[[str], None] = lambda _: None
    keeps: bool = True

    def forget_failures(self) -> None:
        """Let the set-ups that failed be tried again at once."""
        for report in self.place.glob(f"*/{REPORT}") if self.place and self.keeps else ():
            if (result := _read_report(report.parent)) and result.failed:
                report.unlink(missing_ok=True)

    def detect(self, commit: str) -> DetectedProject:
        """What stands in a commit."""
        return detect_project(*self.files(commit))

    def files(self, commit: str) -> tuple[Collection[str], Read]:
        """The paths of a commit, and how to read one of them as text."""
        entries = {entry.path: entry for entry in self.git.listing(commit) if entry.kind == "blob"}

        def read(path: str) -> str:
            found = self.git.blobs([entries[path].oid]) if path in entries else {}
            content = next(iter(found.values()), b"")
            return content.decode("utf-8", "replace") if len(content) <= LARGEST else ""

        return entries, read

    def needed(self, commit: str) -> bool:
        """Whether there is anything to install for a commit ("" for none)."""
        return bool(commit and self._steps(commit))

    def digest(self, commit: str) -> str:
        """Names what the set-up of a commit depends on; "" where there is nothing to install."""
        steps = self._steps(commit)
        return self._digest(commit, steps) if steps else ""

    def last_result(self, commit: str) -> SetupResult | None:
        """How the last set-up of this kind ended; None if the next use of it runs it."""
        digest = self.digest(commit)
        return _read_report(self.place / digest) if self.place and digest else None

    def lend(self, commit: str, folder: Path, tools: Path, changed: Collection[str] = ()) -> LentSetup:
        """Give the clone of `commit` at `folder` what the set-up left, with caches and tools in the folder `tools`.

        The set-up is run first where there is none yet, and once more in the clone where one of the files `changed`
        there decides what is installed. Raises UserError when it fails.
        """
        steps = self._steps(commit)
        if not steps:
            return LentSetup()
        ready = self._ready(commit, steps, self.place or tools.parent / "setup", tools.parent / "setup")
        mark, content = tools / MARK, f"{ready.name} {folder}".encode("utf-8", "surrogateescape")
        names = _list_made(ready / "tree", {entry.path for entry in self.git.listing(commit)})
        if files.content(mark, 10_000) == content and all(os.path.lexists(folder / name) for name in names):
            return LentSetup(names, lent_environment(folder, tools))  # lent before
        _remove_lent(ready / "tree", folder)
        copied = list(copy_entries(ready / "tree", folder))
        remove_any(os.fsencode(tools))
        copy_entries(ready / "home", tools)
        moved = {str(ready / "tree"): str(folder), str(ready / "home"): str(tools)}
        for name in copied:
            _correct_paths(folder / name, moved)
        _correct_links(tools / ".local/bin", moved)
        mark.write_bytes(content)
        if any(path in step.inputs for step in steps for path in changed):
            clone = Git.at(folder)
            failed = next(filter(None, (self._run(step, clone, folder, tools) for step in steps)), "")
            if failed:
                raise ChangeNotInstalled(f"the change cannot be set up: {failed}", "leave it to a person")
        return LentSetup(names, lent_environment(folder, tools))

    def _steps(self, commit: str) -> tuple[SetupStep, ...]:
        if self.commands is None:
            return self.detect(commit).steps
        return tuple(SetupStep("", "", command) for command in self.commands)

    def _ready(self, commit: str, steps: Sequence[SetupStep], place: Path, for_once: Path) -> Path:
        """The folder of a set-up that succeeded."""
        digest = self._digest(commit, steps)
        if self.place and not self.keeps:
            if (known := _read_report(place / digest)) is not None:
                if known.failed:
                    raise _cannot(known.failed)
                return place / digest
            self.note("a staged cycle installs the project's packages in a temporary folder; a cycle keeps them")
            place = for_once
        folder = (files.own(place) if place is self.place else place) / digest
        with files.hold_file(folder.with_suffix(".lock"), wait=None):
            result = _read_report(folder)
            failed = result.failed if result else self._set_up(commit, steps, folder)
            if failed:
                raise _cannot(failed)
            os.utime(folder)
        _forget_old(folder)
        return folder

    def _digest(self, commit: str, steps: Sequence[SetupStep]) -> str:
        """Names what a set-up depends on: its commands, and the files that decide what they do; the owner's own
        commands may read any file."""
        inputs = sorted({path for step in steps for path in step.inputs})
        entries = {entry.path: entry.oid for entry in self.git.listing(commit)}
        known = self.commands is None
        parts = [*(step.command for step in steps), *(f"{path} {entries.get(path)}" for path in inputs if known)]
        return hashlib.sha256(json.dumps([parts, "" if known else commit]).encode()).hexdigest()[:16]

    def _set_up(self, commit: str, steps: Sequence[SetupStep], folder: Path) -> str:
        """Run all steps; why they failed, "" when they did not."""
        from ralph_mission.adapters.workspace.clone import check_out

        remove_any(os.fsencode(folder))
        folder.mkdir(parents=True)
        tree, home = folder / "tree", folder / "home"
        fresh = check_out(self.git, commit, tree)
        home.mkdir()
        tracked = {entry.path for entry in self.git.listing(commit)}
        for step in steps:
            if failed := self._run(step, fresh, tree, home):
                _write_report(folder, failed)
                for name in ("tree", "home"):
                    remove_any(os.fsencode(folder / name))
                return failed
        _remove_tracked(tree, tracked)
        for place in DOWNLOADS:
            remove_any(os.fsencode(home / place))
        _write_report(folder, "")
        return ""

    def _run(self, step: SetupStep, fresh: Git, tree: Path, home: Path) -> str:
        missing = [program for program in step.needs if not shutil.which(program)]
        if missing:
            return f"`{step.tool}` needs {' and '.join(missing)}, which is not installed here"
        self.note(f"setting up: {step.label}")
        done = run_foreign(
            step.command,
            cwd=tree / step.folder,
            home=home,
            timeout=self.seconds,
            extra_env={**QUIET, **_passed_on(), **_rustup(), "PATH": os.pathsep.join(_path_entries(tree, home))},
            running=tell_running("setting up", step.label, self.note),
            sandbox=self.sandbox_for(fresh),
        )
        if done.code == 0:
            return ""
        how = f"not done after {done.seconds:.0f} s" if done.timed_out else f"exit code {done.code}"
        cause = find_cause(done.stdout, done.stderr, tree)
        problem = f"`{step.short}`: {cause or how}"
        if is_untrusted(cause):
            name = "NODE_EXTRA_CA_CERTS" if step.tool in NODE else "SSL_CERT_FILE"
            problem += f" (if your network has its own certificate authority: {name}=/path/to/ca.pem)"
        return f"{problem}\n{how}\n{excerpt(done.stdout, done.stderr, tree)}".rstrip()


def _cannot(failed: str) -> UserError:
    again = "fix that, or give the commands in hands.setup; `ralph run` and `ralph cycle --force` try again at once"
    return UserError(f"the repository cannot be set up: {failed}", again)


def _passed_on() -> dict[str, str]:
    return {name: os.environ[name] for name in PASSED_ON if _is_harmless(os.environ.get(name, ""))}


def _name_environment() -> str:
    return hashlib.sha256(json.dumps(_passed_on(), sort_keys=True).encode()).hexdigest()[:16]


def _forget_old(used: Path) -> None:
    with suppress(OSError):
        others = [one for one in used.parent.iterdir() if one.is_dir() and one != used]
        others.sort(key=lambda one: one.stat().st_mtime, reverse=True)
        for folder in others[KEPT_SETUPS - 1 :]:
            with suppress(OSError):  # one that cannot be removed keeps no other
                _remove_unused(folder)


def _remove_unused(folder: Path) -> None:
    if not files.is_held(folder.with_suffix(".lock")):
        remove_any(os.fsencode(folder))
        folder.with_suffix(".lock").unlink(missing_ok=True)


def _is_harmless(value: str) -> bool:
    return bool(value) and not any(urlsplit(word).password for word in value.replace(",", " ").split() if "://" in word)


def lent_environment(folder: Path, tools: Path) -> dict[str, str]:
    """For commands in the clone at `folder` that was lent a set-up, with caches and tools in the folder `tools`."""
    caches = {name: str(tools / place) for name, place in CACHES.items()}
    caches["MAVEN_OPTS"] = f"-Dmaven.repo.local={tools / '.m2/repository'}"
    return {**QUIET, **caches, **_rustup(), "PATH": os.pathsep.join(_path_entries(folder, tools))}


def _rustup() -> dict[str, str]:
    """Where toolchains are, which rustup looks for below a home that is another one here."""
    return {"RUSTUP_HOME": str(rustup_home())} if rustup_home().is_dir() else {}


def _path_entries(folder: Path, home: Path) -> Iterator[str]:
    """PATH of commands in a clone: the project's own tools first."""
    yield from (str(folder / "node_modules/.bin"), str(folder / ".venv/bin"), str(home / ".local/bin"))
    yield os.environ.get("PATH", os.defpath)


def _read_report(folder: Path) -> SetupResult | None:
    """How the set-up kept here ended; None when it has to be run."""
    try:
        found = files.read_json(folder / REPORT, 100_000)
        result = SetupResult(str(found["failed"]), float(found["at"]), str(found.get("environment", "")))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    fresh = 0 <= time.time() - result.at < AGAIN and result.environment in ("", _name_environment())
    return result if fresh or not result.failed else None


def _write_report(folder: Path, failed: str) -> None:
    result = SetupResult(failed, time.time(), _name_environment())
    files.write(folder / REPORT, json.dumps(asdict(result)).encode())


def entries_below(top: Path, folders: Collection[str]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The files and folders in `top` and in those of its `folders` that are there, by their path relative to it."""
    waiting = [""]
    while waiting:
        place = waiting.pop()
        for entry in list(os.scandir(top / place)):
            path = f"{place}/{entry.name}" if place else entry.name
            if path in folders and entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                yield path, entry


def folders_of(paths: Iterable[str]) -> set[str]:
    """All folders above these paths."""
    return {str(parent) for path in paths for parent in Path(path).parents} - {"."}


def _remove_tracked(tree: Path, tracked: set[str]) -> None:
    """Leave what the set-up made: files of the commit stand in every clone already, as the commit has them."""
    folders = folders_of(tracked)

    def visit(place: str) -> None:
        for entry in list(os.scandir(tree / place)):
            path = f"{place}/{entry.name}" if place else entry.name
            if path in tracked or path == ".git":
                remove_any(os.fsencode(entry.path))
            elif path in folders and entry.is_dir(follow_symlinks=False):
                visit(path)
                with suppress(OSError):
                    os.rmdir(entry.path)

    visit("")


def _list_made(tree: Path, tracked: set[str]) -> tuple[str, ...]:
    """The topmost files and folders of a set-up's tree that are not the commit's: in no place that a session writes."""
    folders = folders_of(tracked)
    known = tracked | folders
    return tuple(sorted(path for path, _ in entries_below(tree, folders) if path not in known))


def _remove_lent(source: Path, target: Path) -> None:
    """What an earlier set-up left in a clone, where this one has a folder of the same name."""
    for entry in os.scandir(source):
        there = target / entry.name
        if entry.name in (".venv", "node_modules", "vendor") and there.is_dir() and not there.is_symlink():
            remove_any(os.fsencode(there))


def copy_entries(source: Path, target: Path) -> Iterator[str]:
    """Copy what stands in `source` beside what stands in `target`; gives the topmost new names, relative to it."""
    new: list[str] = []

    def visit(place: str) -> None:
        for entry in sorted(os.scandir(source / place), key=lambda entry: entry.name):
            path = f"{place}/{entry.name}" if place else entry.name
            there = target / path
            if entry.is_dir(follow_symlinks=False) and there.is_dir() and not there.is_symlink():
                visit(path)
            elif not os.path.lexists(there):
                _copy(entry.path, there)
                new.append(path)

    target.mkdir(parents=True, exist_ok=True)
    visit("")
    return iter(new)


def _copy(source: str, target: Path) -> None:
    done = subprocess.run(["cp", "-a", "--reflink=auto", "--", source, str(target)], capture_output=True)
    if done.returncode != 0:  # a `cp` that knows no reflinks
        remove_any(os.fsencode(target))
        if os.path.isdir(source) and not os.path.islink(source):
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)


def _correct_paths(entry: Path, moved: Mapping[str, str]) -> None:
    """Virtual environments name their own place in scripts, and the project's in what makes it importable."""
    if not (entry / "pyvenv.cfg").is_file():
        return
    named = [entry / "pyvenv.cfg", *entry.glob("bin/*")]
    for place in entry.glob("lib/python*/site-packages"):
        named += [*place.glob("*.pth"), *place.glob("__editable__*"), *place.glob("*.dist-info/direct_url.json")]
    for file in named:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > REWRITTEN:
            continue
        content = before = file.read_bytes()
        for old, new in moved.items():
            content = content.replace(old.encode(), new.encode())
        if content != before and b"\0" not in content[:1024]:
            file.write_bytes(content)
    _correct_links(entry / "bin", moved)


def _correct_links(folder: Path, moved: Mapping[str, str]) -> None:
    """Links to programs that the set-up itself installed."""
    for link in folder.glob("*") if folder.is_dir() else ():
        target = os.readlink(link) if link.is_symlink() else ""
        for old, new in moved.items():
            if target.startswith(f"{old}/"):
                link.unlink()
                link.symlink_to(new + target.removeprefix(old))
