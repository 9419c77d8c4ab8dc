"""A second opinion on sizes, modes and protected paths, sharing no code and no algorithm with the package.

It asks git for the raw tree difference, normalises every separator by hand and finds the
longest common subsequence by dynamic programming. What is protected is written out once more, kind by kind.
"""

from __future__ import annotations

import re
import subprocess
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SEPARATORS = re.compile(b"\r\n|\n|\r|\x0b|\x0c|\x1c|\x1d|\x1e|\xc2\x85|\xe2\x80\xa8|\xe2\x80\xa9")

MOST_STEPS = 4_000_000  # what takes longer to compare counts as changed altogether


def lines_of(content: bytes) -> list[bytes]:
    """The lines, ends dropped, a last empty one too."""
    parts = SEPARATORS.split(content)
    return parts[:-1] if parts[-1] == b"" else parts


def fewest_changed_lines(old: bytes, new: bytes) -> int:
    """Added + deleted lines of the smallest possible difference."""
    before, after = lines_of(old), lines_of(new)
    if len(before) * len(after) > MOST_STEPS:
        return len(before) + len(after)
    row = [0] * (len(after) + 1)
    for line in before:
        diagonal = 0
        for index, other in enumerate(after, 1):
            above = row[index]
            row[index] = diagonal + 1 if line == other else max(above, row[index - 1])
            diagonal = above
    return len(before) + len(after) - 2 * row[-1]


def numstat(folder: Path, old: bytes, new: bytes) -> int:
    """What git counts once both sides have ordinary line ends and no attributes."""
    sides = []
    for name, content in (("old", old), ("new", new)):
        path = folder / name
        path.write_bytes(b"".join(line + b"\n" for line in lines_of(content)))
        sides.append(str(path))
    command = ["git", "diff", "--no-index", "--numstat", "--minimal", "--text", *sides]
    out = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stdout
    return sum(int(number) for number in out.split()[:2])


def strange_modes(repo: Path, base: str, head: str) -> list[str]:
    """Paths between two commits that are not an ordinary file on both sides."""
    command = ["git", "-C", str(repo), "diff", "--raw", "-z", "--no-renames", "--no-abbrev", base, head]
    raw = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    rows = [(meta.split(), path) for meta, path in zip(raw[::2], raw[1::2], strict=False)]
    return [path for meta, path in rows if not {meta[0].lstrip(":"), meta[1]} <= {"000000", "100644"}]


# --- what no automatic pull may change -------------------------------------------------

MOST_LINES = 49
MOST_BYTES = 16_384
TOP = ("warp.md", "crush.md")
"""What agents read at the top of a repository."""
HOOKS = """pre-commit pre-push pre-rebase pre-receive post-checkout post-commit post-merge post-receive post-rewrite
    commit-msg prepare-commit-msg update""".split()
KINDS = {
    "owners and terms": "codeowners owners maintainers license copying dependabot.yml renovate.json action.yml",
    "ours": "ralph.yml ralph.yaml action.yaml ralph-log.md prd.json",
    "a CI": "jenkinsfile+ azure-pipelines+ bitbucket-pipelines.yml appveyor.yml cloudbuild.yaml buildspec.yml",
    "a host": "procfile netlify.toml vercel.json fly.toml wrangler.toml",
    "agents": "agent.md agents+.md claude+.md gemini+.md qwen.md +.mdc skill.md mcp.json",
    "tests": "jest.setup.+ vitest.setup.+ spec_helper.rb rails_helper.rb test_helper.rb",
    "Python": "conftest.py sitecustomize.py usercustomize.py +.pth setup.py setup.cfg pyproject.toml pipfile+ tox.ini "
    "pytest.ini pytest.toml noxfile.py +requirements.txt requirements+.txt +requirements.in requirements+.in "
    "requirements/+.txt requirements/+.in requirements.yml constraints.txt environment.yml environment-+.yml "
    "manifest.in docs/conf.py doc/conf.py source/conf.py",
    "JavaScript": "package.json bower.json pnpm-workspace.yaml +.config.js +.config.ts deno.json karma.conf.js "
    "tslint.json tsconfig.json webpack.+.js webpack.+.cjs webpack.+.mjs",
    "Java": "pom.xml +.gradle +.gradle.kts gradle.properties gradlew libs.versions.toml +.sbt build.xml",
    "C": "makefile makefile.+ gnumakefile bsdmakefile +.mk cmakelists.txt +.cmake configure configure.ac makefile+.am "
    "meson.build meson.options +.wrap build.ninja conanfile.txt conanfile.py vcpkg.json +.gyp +.gypi",
    "Bazel": "+.bazel workspace +.bzl",
    "others": "cargo.toml build.rs go.mod go.sum go.work gemfile+ +.gemspec rakefile podfile composer.json cpanfile "
    "+.nimble elm.json +.csproj +.props +.sln package.swift mix.exs pubspec.yaml pubspec_overrides.yaml flake.nix "
    "+.nix +.opam +.cabal",
    "containers": "dockerfile+ docker-compose+ compose.yml compose.+.yml containerfile vagrantfile",
    "machines": "chart.yaml +.tf +.hcl",
    "what was locked": "package-lock.json packages-lock.json pnpm-lock.yaml +.lock +.lockb +.lockfile +.locked",
}
"""Ends of paths in lower case, where a + is anything. What is hidden is protected, too."""
IGNORED = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a raw difference."""

    path: str
    old_mode: str
    new_mode: str
    old: str
    new: str


def between(repo: Path, base: str, head: str) -> list[Entry]:
    """What differs between two commits, as git tells it without looking for renames."""
    command = ["git", "-C", str(repo), "diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", base, head]
    raw = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "surrogateescape")
    fields = raw.split("\0")
    rows = zip(fields[::2], fields[1::2], strict=False)
    return [Entry(path, *meta.lstrip(":").split()[:4]) for meta, path in rows]


def breaches(repo: Path, base: str, head: str) -> list[str]:
    """Everything between two commits that no automatic pull may hold."""
    entries = between(repo, base, head)
    return [*(what for entry in entries for what in _of_one(entry)), *_of_all(repo, entries)]


def _of_one(entry: Entry) -> Iterator[str]:
    modes = {entry.old_mode, entry.new_mode}
    if not (modes <= {"000000", "100644"} or modes == {"100755"}):
        yield f"mode: {entry.path!r} goes from {entry.old_mode} to {entry.new_mode}"
    parts = [_as_windows_sees_it(part) for part in re.split(r"[/\\\\]", entry.path)]
    told = entry.path.rpartition("/")[2] == "BUILD" or "/".join(parts) in TOP
    if any(part.startswith(".") and part.strip(".") for part in parts) or _decides(parts) or told:
        yield f"protected: {entry.path!r}"
    if any(part in ("", "..", ".git", "git~1") for part in parts):
        yield f"unsafe: {entry.path!r}"


def _decides(parts: list[str]) -> bool:
    """Whether a path is one of those that say what is run, installed or told."""
    if parts[-1] in HOOKS and re.search(r"(?:^|/)(?:git[_-]?)?hooks/[^/]+$", "/".join(parts)):
        return True
    if "node_modules" in parts[:-1]:
        return True
    return any(
        _fits("/".join(parts[-1 - word.count("/") :]), word) for words in KINDS.values() for word in words.split()
    )


def _fits(name: str, word: str) -> bool:
    begin, anything, end = word.partition("+")
    return name.startswith(begin) and name.endswith(end) if anything else name == word


def _as_windows_sees_it(part: str) -> str:
    return IGNORED.sub("", unicodedata.normalize("NFKC", part)).split(":")[0].rstrip(" .").lower()


def _of_all(repo: Path, entries: list[Entry]) -> Iterator[str]:
    sides = [(_blob(repo, entry.old, entry.old_mode), _blob(repo, entry.new, entry.new_mode)) for entry in entries]
    lines = sum(max(1, fewest_changed_lines(*_without_what_is_the_same(*both))) for both in sides)
    if lines > MOST_LINES:
        yield f"size: {lines} lines"
    grown = sum(len(new) - len(old) for old, new in sides if len(new) > len(old))
    if grown > MOST_BYTES:
        yield f"size: {grown} bytes more"
    yield from (f"binary: {entry.path!r}" for entry, both in zip(entries, sides, strict=True) if b"\0" in both[1])


def _blob(repo: Path, oid: str, mode: str) -> bytes:
    if mode not in ("100644", "100755", "120000"):
        return b""
    return subprocess.run(["git", "-C", str(repo), "cat-file", "blob", oid], capture_output=True, check=True).stdout


def _without_what_is_the_same(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Both without the lines that they begin and end with together, which keeps the subsequence short."""
    before, after = lines_of(old), lines_of(new)
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return b"".join(line + b"\n" for line in before), b"".join(line + b"\n" for line in after)
