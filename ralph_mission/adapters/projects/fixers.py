"""Detects the formatters and linters a repository uses, with their commands to check and to fix. Runs nothing.

A tool counts as used if the repository configures it, or names it in a script, a workflow or its hooks. If one of these
runs it as a check, the repository enforces it; a configuration alone may be for people's editors.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping

from ralph_mission.adapters.projects.detection import Read
from ralph_mission.values import compile_regex, dataclass

ESLINT = (
    *(f"eslint.config.{suffix}" for suffix in ("js", "mjs", "cjs", "ts", "mts", "cts")),
    *(f".eslintrc{suffix}" for suffix in ("", ".js", ".cjs", ".json", ".yml", ".yaml")),
)
PRETTIER = (
    *(f".prettierrc{suffix}" for suffix in ("", ".json", ".yml", ".yaml", ".json5", ".js", ".mjs", ".cjs", ".toml")),
    *(f"prettier.config.{suffix}" for suffix in ("js", "mjs", "cjs", "ts", "mts", "cts")),
)
NAMING = (".pre-commit-config.yaml", "Makefile", "makefile", "justfile", "tox.ini", "noxfile.py", "lefthook.yml")
FOLDERS = ("scripts", "script", ".github/workflows", ".husky")
"""Files and folders that say what is run here."""
RUNNERS = frozenset({"npx", "pnpm", "yarn", "bunx", "exec", "dlx", "run", "-s", "--silent"})
WRITES = frozenset({"--fix", "--write", "-w", "--check", "-c", "--list-different", "-l"})
CACHES = ("--cache", "--format", "-f", "--output-file", "-o", "--watch")
_PARTS = compile_regex(r"&&|\|\||[;|]")


@dataclass(frozen=True, slots=True)
class ProjectFixer:
    """A tool. `check` reports, and exits with `found` (0: any code but 0) if there is something to fix; "" if the owner
    named no such command. `run` fixes it. `kind`: of its findings.

    `lent`: its program must come with the project's packages, in their version. `enforced`: whether the repository
    itself checks with it.
    """

    name: str
    kind: str
    run: str
    check: str = ""
    program: str = ""
    found: int = 1
    lent: bool = False
    enforced: bool = True


def project_fixers(paths: Collection[str], read: Read) -> tuple[ProjectFixer, ...]:
    """The fixers of a repository with the files `paths`, only at its top."""
    scripts = (path for path in paths if posixpath.dirname(path) in FOLDERS)
    text = "\n".join(map(read, sorted({*scripts, *(name for name in NAMING if name in paths)})))
    return (*_node(paths, read, text), *_python(read, text), *_rust(paths, text), *_go(paths, text))


def _node(paths: Collection[str], read: Read, text: str) -> Iterator[ProjectFixer]:
    try:
        manifest = json.loads(read("package.json"))
        packages = {**manifest.get("dependencies", {}), **manifest.get("devDependencies", {})}
        scripts = sorted(manifest.get("scripts", {}).items(), key=lambda row: not row[0].startswith(("lint", "format")))
        lines = [str(line) for _, line in scripts]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return
    if "eslint" in packages and (_any(ESLINT, paths) or "eslintConfig" in manifest):
        words, named = _arguments("eslint", lines)
        call = shlex.join(["eslint", *(words or ["."])])
        yield ProjectFixer("eslint", "lint-fix", f"{call} --fix", call, "eslint", lent=True, enforced=named)
    if "prettier" in packages and (_any(PRETTIER, paths) or "prettier" in manifest):
        words, named = _arguments("prettier", lines)
        call, checks = shlex.join(["prettier", *(words or ["."])]), re.compile(r"prettier\b.*\s(--check|-c|-l|--list)")
        has_check = named and any(checks.search(line) for line in (*lines, *text.splitlines()))
        yield ProjectFixer(
            "prettier", "formatting", f"{call} --write", f"{call} --check", "prettier", lent=True, enforced=has_check
        )


def _arguments(program: str, lines: Iterable[str]) -> tuple[list[str], bool]:
    """The arguments a script passes to `program`, without those that say whether it writes; and whether there is such a
    script."""
    for part in (part for line in lines for part in _PARTS.split(line)):
        try:
            words = shlex.split(part)
        except ValueError:
            continue
        while words and words[0] in RUNNERS:
            words = words[1:]
        if words and words[0] == program and "$" not in part and "`" not in part:
            return [word for word in words[1:] if word not in WRITES and not word.startswith(CACHES)], True
    return [], any(re.search(rf"\b{program}\b", line) for line in lines)


def _python(read: Read, text: str) -> Iterator[ProjectFixer]:
    named = f"{text}\n{read('pyproject.toml')}"
    if re.search(r"\bruff format\b|\bid: ruff-format\b", named):
        yield ProjectFixer("ruff format", "formatting", "ruff format .", "ruff format --check .", "ruff", lent=True)
    if re.search(r"\bblack (?:--|\.|\w+/)|\bid: black\b", named):
        yield ProjectFixer("black", "formatting", "black -q .", "black --check .", "black", lent=True)


def _rust(paths: Collection[str], text: str) -> Iterator[ProjectFixer]:
    if "Cargo.toml" not in paths:
        return
    checked = bool(re.search(r"\bcargo fmt\b|\brustfmt\b", text))
    if checked or _any(("rustfmt.toml", ".rustfmt.toml"), paths):
        yield ProjectFixer(
            "rustfmt", "formatting", "cargo fmt --all", "cargo fmt --all -- --check", "cargo-fmt", enforced=checked
        )
    checked = "clippy" in text
    if checked or _any(("clippy.toml", ".clippy.toml"), paths):
        which = "--workspace --all-targets --offline --quiet"
        yield ProjectFixer(
            "clippy", "lint-fix", f"cargo clippy --fix --allow-dirty --allow-no-vcs {which}",
            f"cargo clippy {which} -- -D warnings", "cargo-clippy", found=101, enforced=checked,
        )  # fmt: skip  # one value


def _go(paths: Collection[str], text: str) -> Iterator[ProjectFixer]:
    if "go.mod" in paths:
        check = 'found="$(gofmt -l .)"; echo "$found"; test -z "$found"'
        yield ProjectFixer("gofmt", "formatting", "gofmt -w .", check, "gofmt", enforced="gofmt" in text)


def _any(names: Iterable[str], paths: Collection[str]) -> bool:
    return any(name in paths for name in names)


def owners_fixer(name: str, run: str, checks: Mapping[str, str]) -> ProjectFixer:
    """The fixer of an owner's command; `checks`: commands that report, by the name of their observer."""
    return ProjectFixer(name, "lint-fix", run, checks.get(name, ""), found=0)
