"""What may be written where: unsafe paths, protected paths, what our own fixers may touch, branch names.

Names are compared as the most forgiving file system would: case, compatibility forms,
ignorable code points, trailing dots and NTFS short names make no difference.
Sources: git's `verify_path`, `is_ntfs_dotgit`, `is_hfs_dotgit`, and git-check-ref-format(1).
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from ralph_mission.safety.markdown import INVISIBLE
from ralph_mission.values import compile_regex

SHORT_NAME = compile_regex(r"[^.]{1,6}~[0-9]+(?:\.[^.]{0,3})?")
"""NTFS short names such as GIT~1 or CLAUDE~1.MD; nobody writes them by hand."""
BRANCH = compile_regex(r"ralph/[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
"""Narrower than git: no shell, URL or option characters, no component that starts with a dot or a dash."""

FIXABLE = frozenset(
    """
    .md .markdown .mdx .mkd .rst .adoc .asciidoc .txt .text .py .pyi .pyx .js .mjs .cjs .jsx .ts .mts .cts .tsx .go .rs
    .java .kt .kts .c .h .cc .cpp .cxx .hh .hpp .hxx .m .cs .rb .php .swift .scala .sh .bash .zsh .lua .ex .exs .erl
    .hs .ml .dart .sql .css .scss .less .zig
    """.split()
)
"""Suffixes of prose and source code: the only files our own fixers change unasked."""

AGENT_FOLDERS = frozenset(
    """
    .claude .codex .gemini .cursor .continue .windsurf .aider .roo .clinerules .kiro .amazonq .opencode .agents .junie
    .amp .qwen .kilocode .augment .trae .goose .factory .crush .qodo .tabnine .openhands .copilot .claude-plugin .devin
    .serena .codebuddy .rovodev
    """.split()
)
AGENT_GUIDES = ("agent.md", "agents*.md", "claude*.md", "gemini*.md", "qwen.md")
"""Guides in prose: part of what is worked on, unlike hooks, servers and permissions."""
TOP_GUIDES = frozenset({"warp.md", "crush.md"})
"""The same at the top of a repository, or in capitals anywhere; elsewhere they are ordinary words."""
AGENT_SETTINGS = tuple(
    """
    .mcp.json mcp.json copilot-instructions* *.instructions.md .cursorrules .windsurfrules .clinerules .goosehints
    .aider* .roomodes .roorules* .kilocodemodes .kilocoderules* .augment-guidelines .openhands_instructions .rules
    .crush.json crush.json skill.md opencode.json* .env *.mdc
    .cursorignore .cursorindexingignore .geminiignore .aiexclude .aiignore .codeiumignore .clineignore .rooignore
    """.split()
)
"""Folders and file names that coding agents read on their own."""

CI, AGENTS = "CI, a release or a deployment", "instructions of an agent"
CI_FOLDERS = frozenset(".github .gitlab .gitea .forgejo .circleci .buildkite .woodpecker .tekton".split())
KINDS: dict[str, tuple[str, ...]] = {
    kind: tuple(names.split())
    for kind, names in {
        "ownership, a licence or Ralph's own settings": """
            codeowners owners maintainers license license.* licence licence.* copying copying.* ralph.y*ml
            ralph-log.md prd.json
            """,
        CI: """
            action.y*ml jenkinsfile* *.jenkinsfile *.gitlab-ci.y*ml *pipelines.y*ml azure-pipeline* appveyor.y*ml
            cloudbuild* buildspec* dependabot.y*ml renovate.json* procfile netlify.toml vercel.json fly.toml
            wrangler.toml *.tf *.hcl chart.yaml docker-compose* compose.y*ml compose.*.y*ml dockerfile* *.dockerfile
            containerfile* vagrantfile
            """,
        "packages or a lock file": """
            *.lock *.lockb *.locked *.lockfile *lock.json *lock.y*ml npm-shrinkwrap.json package.json
            pnpm-workspace.y*ml bower.json deno.json* pyproject.toml setup.py setup.cfg pipfile* *requirements*.txt
            *requirements*.in *constraints*.txt environment*.y*ml manifest.in cargo.toml go.mod go.sum go.work*
            gemfile* *.gemspec composer.json podfile* package.swift pubspec*.y*ml mix.exs pom.xml *.gradle
            *.gradle.kts gradle.properties gradlew* *.sbt *.versions.toml *.csproj *.fsproj *.vbproj *.props
            *.targets *.sln nuget.config *.nix *.cabal *.opam conanfile* vcpkg*.json cpanfile *.nimble elm.json
            """,
        "the build": """
            makefile makefile.* makefile*.am gnumakefile bsdmakefile *.mk justfile taskfile.* rakefile *.rake
            gulpfile.* gruntfile.* cmakelists.txt *.cmake configure configure.* meson.build meson.options *.ninja
            *.gyp* *.bazel *.bzl workspace build.rs build.zig* build.xml build.sc *.m4 *.wrap
            """,
        "what tests and checkers look at": """
            conftest.py sitecustomize.py usercustomize.py *.pth tox.ini noxfile.py pytest.ini pytest.toml mypy.ini
            ruff.toml *.config.js *.config.cjs *.config.mjs *.config.ts *.config.mts webpack.*.*js webpack.*.ts
            karma.conf.* tsconfig*.json tslint*.json jest.setup.* vitest.setup.* spec_helper.rb rails_helper.rb
            test_helper.rb
            """,
        AGENTS: " ".join((*AGENT_GUIDES, *AGENT_SETTINGS)),
    }.items()
}
"""Files that decide what is run, installed, checked, released or told to an agent: lower-case globs for names.

Hidden files and folders (a leading dot) always count and need not be listed.
"""
SPELLED = {"BUILD": "the build"}
"""The same, for names that are ordinary words in lower case."""
INSTALLED = frozenset({"node_modules", "site-packages", "__pycache__"})
HOOK = compile_regex(
    r"(?:pre|post|applypatch|commit|prepare|sendemail|fsmonitor|reference|proc|push|update)(?:-[a-z-]+)?"
)
"""A git hook in a folder of hooks."""


def unsafe_path(path: str) -> str:
    """Why no change may touch `path` at all, or "". Bytes that are not UTF-8 are harmless by themselves."""
    if not path or path.startswith(("/", "~")):
        return "is not relative to the repository"
    if "\\" in path or ":" in path:
        return "holds a backslash or a colon (a drive, a stream, a separator on Windows)"
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in path):
        return "holds a control character"
    if INVISIBLE.search(path):
        return "holds invisible characters"
    return next((why for part in path.split("/") if (why := _unsafe_part(part))), "")


def protected_path(path: str) -> str:
    """What protects `path`, or ""."""
    *folders, name = [fold(part) for part in path.split("/")]
    if dot_name := next((part for part in (*folders, name) if part.startswith(".") and part.strip(".")), ""):
        return CI if dot_name in CI_FOLDERS else AGENTS if dot_name in AGENT_FOLDERS else f"settings ({dot_name})"
    if INSTALLED.intersection(folders):
        return "packages or a lock file"
    if folders and folders[-1] in ("hooks", "githooks", "git-hooks") and HOOK.fullmatch(name):
        return "a hook"
    if (folders and folders[-1] == "requirements" and name.endswith((".txt", ".in"))) or name == "requirements.yml":
        return "packages or a lock file"
    if _is_top_guide(path):
        return AGENTS
    if folders and folders[-1] in ("doc", "docs", "source") and name == "conf.py":
        return "the build"
    return SPELLED.get(path.rpartition("/")[2]) or _kind_of(name)


def fixer_may_write(path: str) -> bool:
    """Whether our own fixers may change `path` unasked: only unprotected prose and source code."""
    suffix = "." + path.lower().rpartition("/")[2].rpartition(".")[2]
    return suffix in FIXABLE and not protected_path(path)


def steers_agents(path: str) -> bool:
    """Whether a coding agent may read `path` as instructions, hooks or servers.

    A manual named docs/agent.md counts: reviewers are told what was kept from an agent.
    """
    parts = [fold(part) for part in path.split("/")]
    return _is_top_guide(path) or configures_agents(path) or _fits(parts[-1], AGENT_GUIDES)


def configures_agents(path: str) -> bool:
    """Whether `path` gives an agent hooks, servers, permissions or commands; guides do not count."""
    parts = [fold(part) for part in path.split("/")]
    return not AGENT_FOLDERS.isdisjoint(parts) or _fits(parts[-1], AGENT_SETTINGS)


def branch_name_ok(name: str, existing: Iterable[str] = ()) -> bool:
    """Whether we may create branch `name` beside `existing`; the same name is no collision."""
    if not BRANCH.fullmatch(name) or len(name) > 200 or ".." in name:
        return False
    if any(part.endswith((".", ".lock")) for part in name.split("/")):
        return False
    return not any(_collides(name, other) for other in existing)


def fold(part: str) -> str:
    """A path component as the most forgiving file system compares it."""
    plain = INVISIBLE.sub("", unicodedata.normalize("NFKC", part))
    return plain.split(":")[0].rstrip(". ").casefold() or part


def _unsafe_part(part: str) -> str:
    if part in ("", ".", ".."):
        return "has an empty, . or .. component"
    if fold(part) == ".git":
        return "names git's own folder"
    if SHORT_NAME.fullmatch(fold(part)):
        return "holds an NTFS short name"
    if part != part.rstrip(". "):
        return "has a component that ends with a dot or a space"
    return "" if len(part.encode("utf-8", "surrogateescape")) <= 255 else "has a component of more than 255 bytes"


def _collides(name: str, other: str) -> bool:
    mine, theirs = name.casefold(), other.casefold()
    if mine == theirs:
        return name != other
    return mine.startswith(theirs + "/") or theirs.startswith(mine + "/")


def _is_top_guide(path: str) -> bool:
    *folders, written = path.split("/")
    return fold(written) in TOP_GUIDES and (not folders or written != written.lower())


def _kind_of(name: str) -> str:
    return next((kind for kind, globs in KINDS.items() if _fits(name, globs)), "")


def _fits(name: str, globs: tuple[str, ...]) -> bool:
    return bool(_among(globs).fullmatch(name))


@lru_cache(maxsize=8)
def _among(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, names)))
