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
FOLDERS = """.github .gitlab .gitea .ci .circleci .buildkite .tekton .builds .husky .githooks .claude .codex .gemini
    .cursor .qwen .kiro .kilocode .vscode .idea .vs .zed .devcontainer .config .cargo .yarn .mvn .ralph
    node_modules .hg .gitlab-ci .jenkins .claude-plugin .devin .serena .codebuddy .rovodev .emacs.d""".split()
TOP = ("agent.md", "warp.md", "crush.md", "cross.toml")
"""What is read at the top of a repository, and elsewhere where it is written with a capital."""
TESTS = r"(?:^|/)(?:test(?:s|ing)?|specs?|__tests__|e2e|cypress)/"
DATA = re.compile(rf"(?:^|/)(?:fixtures?|__fixtures__|test[_-]?data)/|{TESTS}(?:.*/)?data/")
"""Where data of tests are, of which hidden settings but for those of a program (`rc`) are some."""
WITHIN_TESTS = re.compile(rf"(?:^|/)(?:__fixtures__|test[_-]?data)/|{TESTS}(?:.*/)?(?:data/|fixtures?/|auth[.]json$)")
"""Where what describes a package of a workspace describes none."""
HOOKS = """pre-commit pre-push pre-rebase pre-receive post-checkout post-commit post-merge post-receive post-rewrite
    commit-msg prepare-commit-msg update""".split()
RUN_ANYWHERE = (".pre-commit-config", ".pre-commit-hooks", ".lefthook")
"""How hidden names begin that are no data of tests wherever they stand."""
KINDS = {
    "owners and terms": "codeowners owners maintainers license copying dependabot.yml renovate.json action.yml",
    "ours": "ralph.yml ralph.yaml action.yaml ralph-log.md prd.json",
    "git": ".gitattributes .gitmodules .gitignore .gitconfig .mailmap",
    "a CI": "jenkinsfile+ azure-pipelines+ bitbucket-pipelines.yml appveyor.yml cloudbuild.yaml buildspec.yml",
    "a host": "procfile netlify.toml vercel.json fly.toml wrangler.toml heroku.yml .htaccess web.config",
    "agents": "agents+.md claude+.md gemini+.md qwen.md +.mdc skill.md mcp.json .cursorrules .clinerules",
    "editors": "+.code-workspace +.sublime-project +.iml +.pbxproj .project .classpath .dir-locals.el .gdbinit .clangd "
    ".editorconfig .replit hie.yaml devcontainer.json .emacs .bash_login",
    "documents": "docs/conf.py doc/conf.py source/conf.py book.toml _config.yml",
    "tests": "jest.setup.+ vitest.setup.+ setuptests.+ spec_helper.rb rails_helper.rb test_helper.rb",
    "distributions": "debian/rules pkgbuild +.spec snapcraft.yaml renv/activate.r",
    "what builds besides": "+.gyp +.gypi +.rsp webpack.+.js webpack.+.cjs webpack.+.mjs config-overrides.js config.ru "
    "pluginfile",
    "Python": "conftest.py sitecustomize.py usercustomize.py +.pth setup.py setup.cfg pyproject.toml pipfile+ tox.ini "
    "pytest.ini pytest.toml noxfile.py +requirements.txt requirements+.txt +requirements.in requirements+.in "
    "requirements/+.txt requirements/+.in requirements.yml constraints.txt environment.yml environment-+.yml "
    "pants.toml hatch.toml manifest.in mkdocs.yml",
    "JavaScript": "package.json bower.json .pnp.cjs .pnp.loader.mjs pnpm-workspace.yaml +.config.js +.config.ts "
    "nx.json deno.json karma.conf.js tslint.json tsconfig.json",
    "Java": "pom.xml +.gradle +.gradle.kts gradle.properties gradlew libs.versions.toml +.sbt build.xml "
    "build.properties",
    "C": "makefile makefile.+ gnumakefile bsdmakefile +.mk cmakelists.txt +.cmake cmakepresets.json configure "
    "configure.ac makefile+.am aminclude+.am common.am common-+.am common_+.am meson.build meson.options "
    "+.wrap build.ninja conanfile.txt conanfile.py vcpkg.json",
    "Bazel": "+.bazel workspace +.bzl",
    "others": "cargo.toml build.rs go.mod go.sum go.work gemfile+ +.gemspec rakefile podfile composer.json cpanfile "
    "+.nimble elm.json dub.json dub.sdl paket.dependencies +.csproj +.props +.sln package.swift package@+.swift "
    "mix.exs pubspec.yaml pubspec_overrides.yaml flake.nix +.nix +.opam dune dune-project +.cabal "
    "shard.yml",
    "containers": "dockerfile+ docker-compose+ compose.yml compose.+.yml containerfile vagrantfile",
    "machines": "chart.yaml +.tf +.hcl",
    "what was locked": "package-lock.json packages-lock.json pnpm-lock.yaml +.lock +.lockb +.lockfile +.locked",
}
"""Ends of paths in lower case, where a + is anything."""
CAPITALS = ("BUILD", "DESCRIPTION", "DEPS")
"""Names that are words of anybody in small letters."""
SETTINGS = (".yml", ".yaml", ".toml", ".json", ".ini", ".cfg", "rc", "rc.js", "rc.cjs", "ignore", "-version")
"""How a hidden file ends that is somebody's setting; one that begins with `.env` is one, too."""
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
    name = entry.path.rpartition("/")[2]
    told = name in CAPITALS or (parts[-1] in TOP and any(letter.isupper() for letter in name))
    if any(part in FOLDERS for part in parts) or _decides(parts) or told:
        yield f"protected: {entry.path!r}"
    if any(part in ("", "..", ".git", "git~1") for part in parts):
        yield f"unsafe: {entry.path!r}"


def _decides(parts: list[str]) -> bool:
    """Whether a path is one of those that say what is run, installed or told."""
    name, path = parts[-1], "/".join(parts)
    if name.startswith(".env") or (name.startswith(".") and name.endswith(SETTINGS) and not _is_data(name, path)):
        return True
    if path in TOP or (name in HOOKS and re.search(r"(?:^|/)(?:git[_-]?)?hooks/[^/]+$", path)):
        return True
    if name in ("auth.json", "app.json", "project.json"):
        return not WITHIN_TESTS.search(path)
    return any(
        _fits("/".join(parts[-1 - word.count("/") :]), word) for words in KINDS.values() for word in words.split()
    )


def _is_data(name: str, path: str) -> bool:
    obeyed = name.startswith(RUN_ANYWHERE) or re.search(r"rc(?:\.|$)|ignore$|-version$", name)
    return bool(DATA.search(path)) and not obeyed


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
