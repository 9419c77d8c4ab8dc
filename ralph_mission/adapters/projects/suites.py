"""Which tool runs a repository's tests, and the command that runs some or all of them and leaves a report.

The tool and its options are those of the repository: of its pytest settings, of the script in package.json. Only what
it prints is another.
"""

from __future__ import annotations

import json
import os
import posixpath
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from ralph_mission.adapters.projects.detection import Read, detect_project
from ralph_mission.values import dataclass

PROBES = Path(__file__).parent
SCRIPTS = ("test:unit", "test-unit", "unit", "test", "tests", "test:node", "mocha", "jest", "vitest")
"""Scripts of package.json that run tests; the smaller ones first, as others may need a browser."""
NODE_TOOLS = ("vitest", "jest", "mocha")
DROPPED = {
    "mocha": (
        "--reporter",
        "-R",
        "--reporter-option",
        "--reporter-options",
        "-O",
        "--watch",
        "-w",
        "--parallel",
        "--bail",
        "-b",
    ),
    "jest": (
        "--reporters",
        "--watch",
        "--watchAll",
        "--coverage",
        "--json",
        "--outputFile",
        "--verbose",
        "--bail",
        "-b",
    ),
    "vitest": ("run", "watch", "dev", "--reporter", "--outputFile", "--watch", "--coverage", "--ui", "--run", "--bail"),
}
VALUED = frozenset(
    """
    --reporter -R --reporter-option --reporter-options -O --reporters --outputFile --require -r --timeout -t --grep -g
    --ui -u --config -c --file --extension --ignore --exclude --retries --slow --loader --import --node-option -n
    --test-reporter --test-reporter-destination
    --project --root --environment --pool --testTimeout --maxWorkers
    --selectProjects --rootDir --preset --dir
    """.split()
)
"""Options whose value is the next word."""


@dataclass(frozen=True, slots=True)
class SuiteTool:
    """What runs the tests in `folder` ("" is the top): "pytest", "mocha", "jest", "vitest", "node", "cargo" or "go".

    `options` are the repository's own, `paths` what it runs when all are run.
    """

    name: str
    folder: str
    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def command(self, files: Sequence[str], report: Path) -> str:
        """For `/bin/sh` in the folder. `files`: paths of the repository; () for all tests."""
        here = [os.path.relpath(path, self.folder or ".") for path in files]
        if self.name == "cargo":
            words = [*self.options, *(f"--test={Path(path).stem}" for path in here)]
            return f"cargo test --offline --no-fail-fast {shlex.join(words)} > {shlex.quote(str(report))}"
        if self.name == "go":
            packages = sorted({f"./{posixpath.dirname(path)}" for path in here}) or ["./..."]
            return f"go test -json {shlex.join(packages)} > {shlex.quote(str(report))}"
        if self.name == "pytest":
            quiet = "-q -p ralph_probe -p no:cacheprovider -p no:randomly"
            return f"python -m pytest {quiet} {shlex.join((*self.options, *here))}".rstrip()
        out = f" > {shlex.quote(str(report))}" if self.name == "mocha" else ""
        return f'PATH="$PWD/node_modules/.bin:$PATH" {shlex.join(self._node(here, report))}{out}'

    def _node(self, files: Sequence[str], report: Path) -> Iterator[str]:
        paths = list(files) or self.paths
        if self.name == "mocha":
            # To its output, in all versions; without the full trace it cuts the paths of a stack.
            yield from ("mocha", *self.options, "--full-trace", "--reporter", "json", *paths)
        elif self.name == "jest":
            yield from ("jest", *self.options, "--ci", "--json", f"--outputFile={report}", "--coverage=false")
            yield from ("--runTestsByPath", *files) if files else self.paths
        elif self.name == "vitest":
            yield from ("vitest", "run", *self.options, "--reporter=json", f"--outputFile={report}", *paths)
        else:
            out = ("--test-reporter=junit", f"--test-reporter-destination={report}")
            yield from ("node", "--test", *out, *self.options, *paths)

    def environment(self, home: Path, root: Path, report: Path, watched: Collection[str]) -> Mapping[str, str]:
        """What the probes in a run's `home` need to know; they are put there. `watched`: files under test."""
        folder = home / "probe"
        folder.mkdir(parents=True, exist_ok=True)
        variables = {"ROOT": str(root), "WATCHED": json.dumps(sorted(watched))}
        if self.name == "pytest":
            (folder / "ralph_probe.py").write_bytes((PROBES / "pytest_probe.py").read_bytes())
            variables |= {"REPORT": str(report)}
            return {"PYTHONPATH": str(folder), **{f"RALPH_PROBE_{name}": value for name, value in variables.items()}}
        if self.name == "go":  # what was compiled, and results of tests, are of one run alone
            return {"GOCACHE": str(home / "go-build")}
        if self.name == "cargo":
            return {}
        probe = folder / "node_probe.cjs"
        probe.write_bytes((PROBES / "node_probe.cjs").read_bytes())
        variables |= {name.upper(): str(notes_file(home, name)) for name in ("hosts", "sources")}
        return {
            "NODE_OPTIONS": f"--require={probe}",
            **{f"RALPH_PROBE_{name}": value for name, value in variables.items()},
        }


def notes_file(home: Path, of: str) -> Path:
    """Where processes of Node.js note the "hosts" that they look for, and the "sources" that their tests read."""
    return home / "probe" / of


def find_suite(paths: Collection[str], read: Read, near: str) -> SuiteTool | None:
    """What runs the test at the path `near`; None where nobody knows."""
    suffix = near.rpartition(".")[2].lower()
    if suffix == "py":
        checks = [c for c in detect_project(paths, read).checks if c.name == "test" and "pytest" in c.command]
        found = [check.folder for check in checks if _lies_in(near, check.folder)]
        return SuiteTool("pytest", max(found, key=len)) if found else _plain_pytest(paths, near)
    if suffix in ("rs", "go"):
        manifest, name = ("Cargo.toml", "cargo") if suffix == "rs" else ("go.mod", "go")
        folder = next((place for place in _above(near) if posixpath.join(place, manifest) in paths), None)
        return None if folder is None else SuiteTool(name, folder)
    for folder in _above(near):
        manifest = posixpath.join(folder, "package.json")
        if manifest in paths and (tool := _node_tool(read(manifest), folder)):
            return tool
    return None


def _plain_pytest(paths: Collection[str], near: str) -> SuiteTool | None:
    """Where nothing is set up for pytest, but the test is named as pytest wants it."""
    named = posixpath.basename(near).startswith("test_") or near.endswith("_test.py")
    return SuiteTool("pytest", "") if named and any(path.endswith(".py") for path in paths) else None


def _lies_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _above(path: str) -> Iterator[str]:
    """The folders around a file, the nearest first."""
    while path:
        path = posixpath.dirname(path)
        yield path


def _node_tool(manifest: str, folder: str) -> SuiteTool | None:
    try:
        scripts = json.loads(manifest).get("scripts") or {}
    except (ValueError, AttributeError, RecursionError):
        return None
    ordered = [*(name for name in SCRIPTS if name in scripts), *scripts]
    for name in dict.fromkeys(ordered):
        for segment in str(scripts[name]).replace("||", "&&").replace(";", "&&").split("&&"):
            try:
                words = shlex.split(segment)
            except ValueError:
                continue
            if tool := _node_words(words, folder):
                return tool
    return None


def _node_words(words: Sequence[str], folder: str) -> SuiteTool | None:
    for position, word in enumerate(words):
        name = posixpath.basename(word)
        if name in NODE_TOOLS and word != "--runner":
            return SuiteTool(name, folder, *_options(words[position + 1 :], DROPPED[name]))
        if name == "node" and "--test" in words[position + 1 :]:
            rest = [word for word in words[position + 1 :] if word != "--test"]
            return SuiteTool("node", folder, *_options(rest, ("--test-reporter", "--test-reporter-destination")))
    return None


def _options(words: Sequence[str], dropped: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options that stay, and the paths."""
    options: list[str] = []
    paths: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        option = [word, *words[position + 1 : position + 2]] if word in VALUED else [word]
        position += len(option)
        if word.partition("=")[0] in dropped:
            continue
        (options if word.startswith("-") else paths).extend(option)
    return tuple(options), tuple(paths)
