"""Names that git or a file system would misread: unsafe paths, protected paths, branch names.

Names are compared as the most forgiving file system would: case, compatibility forms,
ignorable code points, trailing dots and NTFS short names make no difference.
Sources: git's `verify_path`, `is_ntfs_dotgit`, `is_hfs_dotgit`, and git-check-ref-format(1).
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ralph_mission.safety.hidden import INVISIBLE

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

AGENT_FOLDERS = frozenset(
    """
    .claude .codex .gemini .cursor .continue .windsurf .aider .roo .clinerules .kiro .amazonq .opencode .agents .junie
    .amp
    """.split()
)
AGENT_NAMES = tuple(
    """
    .mcp.json mcp.json agents*.md claude*.md gemini*.md copilot-instructions* *.instructions.md .cursorrules
    .windsurfrules .clinerules .goosehints .aider* .roomodes skill.md opencode.json* .env
    """.split()
)
"""Folders and file names, as globs, that coding agents read by themselves in a repository they work in."""
AGENT_GUIDES = ("agents*.md", "claude*.md", "gemini*.md")
"""Those that say in prose how work is done: part of what is worked on, unlike hooks, servers and permissions."""

FOLDERS = AGENT_FOLDERS | frozenset(
    """
    .github .gitlab .gitea .forgejo .circleci .buildkite .woodpecker .teamcity .azure-pipelines .semaphore .harness .ci
    .husky .githooks .git-hooks .hooks .lefthook
    .vscode .idea .fleet .zed .devcontainer .ralph .omc
    .cargo .mvn .yarn .bundle node_modules site-packages
    """.split()
)
"""Folders whose content is configuration of a forge, a CI, a hook, an agent, an editor or a package manager."""

NAMES = AGENT_NAMES + tuple(
    """
    action.yml action.yaml codeowners ralph.yml ralph.yaml ralph-log.md prd.json prompt.md .last-branch
    .gitattributes .gitmodules .gitignore .gitconfig .mailmap .env.* .envrc *.env .pre-commit-config*
    .pre-commit-hooks* lefthook* .lefthook* *simple-git-hooks.* .huskyrc* .lintstagedrc* lint-staged.config.*
    conftest.py sitecustomize.py usercustomize.py *.pth setup.py
    setup.cfg tox.ini noxfile.py fabfile.py pytest.ini makefile makefile.* gnumakefile *.mk justfile .justfile
    taskfile.y*ml rakefile gruntfile.* gulpfile.* jakefile* dockerfile* *.dockerfile containerfile* docker-compose*
    compose.y*ml configure configure.ac configure.in sconstruct sconscript wscript .dockerignore tiltfile
    skaffold.y*ml vagrantfile procfile cmakelists.txt *.cmake meson.build meson_options.txt build.bazel workspace
    workspace.* module.bazel* *.bzl .bazelrc build.rs build.zig* *.gradle *.gradle.kts gradle.properties gradlew*
    gradle-wrapper.* pom.xml mvnw* package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml
    pnpm-workspace.yaml bun.lock* bunfig.toml deno.json* .npmrc .yarnrc* .pnpmfile.* .nvmrc .node-version
    .tool-versions mise.toml .mise.toml pyproject.toml poetry.toml uv.toml pipfile* pylock*.toml pixi.toml
    hatch.toml hatch_build.py manifest.in *.lock *.lockb .python-version pip.conf *requirements*.txt
    *requirements*.in constraints*.txt environment.y*ml conda-lock* .condarc cargo.toml rust-toolchain* clippy.toml
    .clippy.toml go.mod go.sum go.work* gemfile* *.gemspec composer.json mix.exs rebar.* package.swift
    package.resolved podfile* cartfile* pubspec.* *.csproj *.fsproj *.vbproj *.sln packages.lock.json
    packages.config nuget.config directory.*.props directory.*.targets global.json *.cabal cabal.project*
    stack.yaml* project.clj deps.edn build.sbt flake.nix *.nix *.opam dune-project chart.yaml *.tf *.tfvars
    .terraform.lock.hcl vcpkg*.json conanfile.* manifest.toml project.toml shard.yml lerna.json nx.json turbo.json
    rush.json dependabot.y*ml owners maintainers .readthedocs.y*ml renovate.json* .renovaterc* .dependabot*
    .releaserc* release-please-config.json .gitlab-ci* .travis.yml appveyor.yml .appveyor.yml azure-pipelines*
    bitbucket-pipelines.yml jenkinsfile* .drone.yml .woodpecker* cloudbuild.y*ml buildspec.y*ml codemagic.yaml
    .cirrus.* wercker.yml netlify.toml vercel.json fly.toml render.yaml railway.* codecov.y*ml .codecov.y*ml
    .coveragerc sonar-project.properties .snyk .gitleaks* *.config.js *.config.cjs *.config.mjs *.config.ts
    *.config.mts *.config.json .commitlintrc* .babelrc* .eslintrc* .eslintignore .prettierrc* .mocharc* wdio.conf.*
    cypress.json webpack.mix.* .swcrc karma.conf.* tslint*.json tsconfig*.json jsconfig*.json biome.json*
    mkdocs.y*ml mypy.ini .mypy.ini pyrightconfig.json ruff.toml .ruff.toml .flake8 .pylintrc pylintrc .bandit
    .golangci* .rubocop* phpstan.neon* phpunit.xml* .importlinter license license.* licence licence.* copying
    copying.*
    """.split()
)
"""File names, as globs, that decide what is run, installed, checked, ignored or told to an agent.

`.gitignore` is among them: what it hides is not reviewed. So are licences: no machine changes terms.
"""

SHORT_NAME = re.compile(r"[^.]{1,6}~[0-9]+(?:\.[^.]{0,3})?")
"""NTFS gives every long name one like GIT~1 or CLAUDE~1.MD; nobody writes such names by hand."""
BRANCH = re.compile(r"ralph/[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
"""Narrower than git: no shell, URL or option character, no component that starts with a dot or a dash."""


def unsafe_path(path: str) -> str:
    """Why no change may touch `path` at all, "" when it may. Bytes that are not UTF-8 are harmless by themselves."""
    if not path or path.startswith(("/", "~")):
        return "is not relative to the repository"
    if "\\" in path or ":" in path:
        return "holds a backslash or a colon (a drive, a stream, a separator on Windows)"
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in path):
        return "holds a control character"
    if INVISIBLE.search(path):
        return "holds invisible characters"
    return next((why for part in path.split("/") if (why := _unsafe_part(part))), "")


def protected_path(path: str, extra: Sequence[str] = ()) -> str:
    """Which protection covers `path`, "" when none does. `extra` holds globs as in `.gitignore`."""
    *folders, name = [fold(part) for part in path.split("/")]
    for folder in (*folders, name):
        if folder in FOLDERS:
            return f"{folder}/ configures what is run or trusted"
    if _names().fullmatch(name) or (folders[-1:] == ["requirements"] and name.endswith((".txt", ".in"))):
        return f"{name} decides what is run, installed, checked or told to an agent"
    return "is protected by configuration" if extra and _spec(tuple(extra)).match_file(path.casefold()) else ""


def steers_agents(path: str) -> bool:
    """Whether a coding agent that works in a repository may take `path` for orders, hooks or servers of its own."""
    parts = [fold(part) for part in path.split("/")]
    return any(part in AGENT_FOLDERS for part in parts) or bool(_agent_names().fullmatch(parts[-1]))


def configures_agents(path: str) -> bool:
    """The same without the guides: what gives an agent hooks, servers, permissions or commands of its own."""
    *folders, name = [fold(part) for part in path.split("/")]
    if any(part in AGENT_FOLDERS for part in (*folders, name)):
        return True
    return bool(_agent_names().fullmatch(name)) and not any(fnmatch.fnmatchcase(name, one) for one in AGENT_GUIDES)


def branch_name_ok(name: str, existing: Iterable[str] = ()) -> bool:
    """Whether we may create branch `name` beside `existing`; the very same name is no collision."""
    if not BRANCH.fullmatch(name) or len(name) > 200 or ".." in name:
        return False
    if any(part.endswith((".", ".lock")) for part in name.split("/")):
        return False
    return not any(_collides(name, other) for other in existing)


def fold(part: str) -> str:
    """One path component as the most forgiving file system compares it."""
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


@lru_cache(maxsize=1)
def _names() -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(glob) for glob in NAMES))


@lru_cache(maxsize=1)
def _agent_names() -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(glob) for glob in AGENT_NAMES))


@lru_cache(maxsize=4)
def _spec(globs: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(glob.casefold() for glob in globs)
