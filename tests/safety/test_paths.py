"""Names that a file system, git or a shell would take for something else."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.safety.objections import inspect
from ralph_mission.safety.paths import (
    branch_name_ok,
    configures_agents,
    fixer_may_write,
    protected_path,
    steers_agents,
    unsafe_path,
)
from tests.safety.making import change, patch

UNSAFE = [
    "",
    "/etc/passwd",
    "~/x",
    "../x",
    "a/../b",
    "a/./b",
    "a//b",
    "a/",
    ".git/config",
    "a/.git/hooks/x",
    ".GIT/config",
    ".Git",
    "git~1/config",
    "GIT~1",
    "GIT~2/x",
    ".git./x",
    ".git /x",
    ".git. . /x",
    ".g\u200cit/config",
    ".gi\u200dt",
    "\ufeff.git/x",
    ".git\u206f/x",
    "\uff0egit/x",
    ".\uff47\uff49\uff54/x",
    "a\\..\\b",
    "..\\x",
    ".git\\config",
    "C:/x",
    "c:x",
    ".git::$INDEX_ALLOCATION/x",
    "file.txt:stream",
    ".git:x",
    "a\nb",
    "a\tb",
    "a\x00b",
    "a\x7f",
    "a\x85b",
    "a\u2028b",
    "GITHUB~1/workflows/x.yml",
    "CLAUDE~1.MD",
    "GITMOD~1",
    "a\u202eb.py",
    "con. ",
    "dir./x",
    "x" * 256,
    ".git\u00ad/x",
    "\U000e0041x",
]
PROTECTED = [
    ".github/workflows/ci.yml",
    ".github",
    "sub/.husky",
    ".GitHub/x",
    "sub/.github/x",
    "CODEOWNERS",
    "docs/CODEOWNERS",
    ".husky/pre-commit",
    ".githooks/x",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".claude/settings.json",
    ".mcp.json",
    "AGENTS.md",
    "agents.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".vscode/tasks.json",
    ".devcontainer/devcontainer.json",
    "conftest.py",
    "tests/conftest.py",
    "sitecustomize.py",
    "x.pth",
    "setup.py",
    "Makefile",
    "makefile",
    "sub/Makefile",
    "package.json",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "pyproject.toml",
    "poetry.lock",
    "uv.lock",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements/dev.txt",
    "requirements/base.in",
    "pixi.lock",
    "bun.lockb",
    "MANIFEST.in",
    "configure.ac",
    "karma.conf.js",
    "tslint.json",
    "dependabot.yml",
    ".readthedocs.yaml",
    ".simple-git-hooks.json",
    "MAINTAINERS",
    "dev-requirements.in",
    "Pipfile.lock",
    "Cargo.toml",
    "Cargo.lock",
    "go.mod",
    "go.sum",
    "Gemfile",
    "Gemfile.lock",
    "composer.json",
    "pom.xml",
    "build.gradle.kts",
    "flake.nix",
    "Package.swift",
    "App.csproj",
    "mix.lock",
    "pubspec.yaml",
    ".npmrc",
    ".gitattributes",
    "sub/.gitattributes",
    ".gitmodules",
    ".gitignore",
    "ralph.yml",
    "Ralph.yml",
    ".ralph/run/x",
    "action.yml",
    "action.yaml",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".circleci/config.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Dockerfile",
    "tox.ini",
    "jest.config.js",
    ".eslintrc.json",
    ".env",
    ".cursorrules",
    "LICENSE",
    ".ci/run",
    "node_modules/x/index.js",
    "memory/ralph-log.md",
    "prd.json",
    *"""
    .devcontainer.json gradle.lockfile buildscript-gradle.lockfile gradle/libs.versions.toml .pytest.ini pytest.toml
    BSDmakefile .pnp.cjs .pnp.loader.mjs .gitpod.yml project/plugins.sbt bower.json elm.json cpanfile app.nimble
    AGENT.md WARP.md .builds/test.yml .tekton/push.yaml .build.yml .config/mise.toml .editorconfig .vimrc
    .dir-locals.el .gdbinit .clangd .replit .idea/x.xml .vs/launch.vs.json compose.override.yml meson.options
    subprojects/zlib.wrap BUILD MODULE.bazel x.opam.locked gems.locked packages-lock.json pubspec_overrides.yaml
    requirements.yml environment-dev.yml Directory.Build.props .unheard-of.toml .unheardofrc .unheard-of.yaml
    .someignore .eslintrc.cjs .ruby-version .htaccess wrangler.toml docker-bake.hcl .qwen/settings.json
    .kilocode/rules/x.md .cursorignore sub/.Gitpod.YML binding.gyp tides.gypi webpack.prod.js webpack.common.cjs
    jest.setup.ts vitest.setup.mts spec/spec_helper.rb spec/rails_helper.rb test/test_helper.rb docs/conf.py
    docs/source/conf.py hooks/pre-commit sub/Hooks/post-checkout git-hooks/pre-push .hg/hgrc .gitlab-ci/build.sh
    .jenkins/build.groovy .claude-plugin/plugin.json .devin/x .serena/project.yml .codebuddy/x .rovodev/x
    docs/tides.mdc .emacs .emacs.d/init.el .bash_login CRUSH.md sub/Makefile.am tests/.rubocop.yml
    tests/data/.eslintrc.json tests/fixtures/.npmrc tests/fixtures/package.json .foo.json
    .idea/runConfigurations/x.launch sub/AGENT.md packages/a/Agent.md src/Makefile-lib.am
    fixtures/.pre-commit-config.yaml tests/data/.pre-commit-hooks.yaml tests/fixtures/.lefthook.yml
    spec/.rubocop.yml cypress/fixtures/package.json cypress/fixtures/.eslintrc.json
    """.split(),
    "src/.hidden.py",
    "docs/agent.md",
    "tests/data/.foo.json",
]
ORDINARY = [
    "src/app.py",
    "README.md",
    "docs/guide.md",
    "lib/make.py",
    "src/package.ts",
    "tests/test_app.py",
    "a b.txt",
    "ünï/cödé.py",
    "agents.py",
    "src/workspace_view.ts",
    "caf\udce9.py",
    "github/x.py",
    "x~1y.txt",
    "setup_page.py",
    "my.gitignored.py",
    "src/licenses_view.py",
    "requirements/intro.md",
    "a-b_c.d/e.f",
    "docs/makefiles.md",
    *"""
    src/workspace.py src/config.py app/tasks.py src/lock.py src/locks/file_lock.go docs/devcontainer.md
    docs/gitpod.md src/editorconfig.ts lib/versions.rb data/tides.json data/harbours.toml i18n/de.yml
    config/harbours.yaml src/build_view.py src/build/index.ts docs/building.md agency.md docs/agent-tides.md
    lib/gradle_reader.kt src/pytest_helper.py web/manifest.json web/bower_view.js src/description.py assets/icon.svg
    db/schema.sql src/targets.rs scripts/build po/description docs/description.md docs/nimble.md
    test/fixture.lock.txt docs/warp.md docs/crush.md tests/auth.json tests/fixtures/app.json testdata/project.json
    data/cross.toml tests/data/project.json tests/fixtures/project.json __fixtures__/app.json src/commons.amber
    docs/common.am.md spec/fixtures/project.json spec/fixtures/auth.json cypress/fixtures/app.json
    cypress/fixtures/auth.json e2e/fixtures/project.json src/__tests__/fixtures/app.json i18n/commonplace.am
    src/language.am locale/am.am nodes/tides.launch src/tides.spec.ts src/app/conf.py docs/webpack.md src/webpack.ts
    webhooks/update src/hooks/update.ts hooks/useTides.ts docs/rules src/activate.R src/rules tests/helper.rb
    docs/specification.md src/setup_tests_view.py src/_configuration.yml
    """.split(),
    "packages/a/warp.md",
    "app.json",
]


@pytest.mark.parametrize("path", UNSAFE, ids=ascii)
@pytest.mark.attack(45)
def test_e45_an_unsafe_path_is_named_so(path: str) -> None:
    assert unsafe_path(path)


@pytest.mark.parametrize("path", PROTECTED)
@pytest.mark.attack(49)
def test_e49_a_protected_path_is_named_so(path: str) -> None:
    assert protected_path(path)


@pytest.mark.parametrize("path", ORDINARY, ids=ascii)
@pytest.mark.benign("path")
def test_an_ordinary_path_is_neither_unsafe_nor_protected(path: str) -> None:
    assert (unsafe_path(path), protected_path(path)) == ("", "")


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md", "docs/Claude.md", "CLAUDE.local.md", ".claude/settings.json", ".claude", "sub/.CLAUDE./x",
        ".mcp.json", ".gemini/settings.json", "a/.cursor/rules/x.mdc", ".github/copilot-instructions.md",
        "x.instructions.md", "skills/x/SKILL.md", ".opencode/agent/x.md", "opencode.json", ".agents/x", ".amp/x",
        "a/.env", "AGENT.md", "sub/QWEN.md", ".qwen/settings.json", ".kilocode/mcp.json", ".crush.json",
        ".roorules-code", "WARP.md", "crush.md", "docs/tides.mdc", ".claude-plugin/plugin.json", ".devin/x",
        "sub/AGENT.md", "sub/WARP.md", "a/Crush.md",
    ],
)  # fmt: skip  # one list
@pytest.mark.attack(49)
def test_what_an_agent_takes_for_orders_is_known_and_protected(path: str) -> None:
    assert steers_agents(path) and protected_path(path)


@pytest.mark.parametrize(
    "path",
    ["src/agents.py", "Makefile", "docs/agency.md", ".github/workflows/x.yml", "docs/warp.md", "Cross.toml"],
)
def test_what_no_agent_takes_for_orders_is_as_it_is_in_a_change(path: str) -> None:
    assert not steers_agents(path)


@pytest.mark.parametrize(
    "path", [".claude/settings.json", ".Claude/CLAUDE.md", "a/.mcp.json", ".cursorrules", "opencode.jsonc", ".env"]
)
@pytest.mark.attack(49, 60)
def test_hooks_servers_and_permissions_configure_agents(path: str) -> None:
    assert configures_agents(path) and steers_agents(path)


@pytest.mark.parametrize(
    "path", ["CLAUDE.md", "docs/AGENTS.md", "agents.override.md", "GEMINI.md", "AGENT.md", "WARP.md", "README.md"]
)
def test_a_guide_in_prose_configures_nobody(path: str) -> None:
    assert not configures_agents(path)


@pytest.mark.attack(49)
@pytest.mark.parametrize(
    "path", ["data/tides.json", "i18n/de.yml", "assets/icon.svg", "scripts/build", "a.md/b", "k8s/x.yaml"]
)
def test_fixers_write_nothing_but_prose_and_source_code(path: str) -> None:
    assert not fixer_may_write(path)
    assert {one.rule for one in inspect(patch(change(path, b"a\n", b"b\n")), by_fixer=True)} == {"protected-path"}
    assert inspect(patch(change(path, b"a\n", b"b\n"))) == ()


@pytest.mark.benign("path")
@pytest.mark.parametrize("path", ["README.md", "docs/guide.rst", "src/app.py", "src/a.TS", "notes.txt"])
def test_fixers_write_prose_and_source_code(path: str) -> None:
    assert fixer_may_write(path) and inspect(patch(change(path, b"a\n", b"b\n")), by_fixer=True) == ()


@pytest.mark.attack(49)
@pytest.mark.parametrize("path", PROTECTED)
def test_fixers_write_nothing_that_is_protected(path: str) -> None:
    assert not fixer_may_write(path)


@given(st.text(max_size=6), st.sampled_from([".git", "GIT~1", ".GIT. ", "..", ".g\u200bit"]), st.text(max_size=6))
@pytest.mark.attack(45)
def test_no_surrounding_makes_a_bad_component_good(before: str, part: str, after: str) -> None:
    assert unsafe_path(f"{before}/{part}/{after}")


@pytest.mark.parametrize(
    "name",
    [
        "-x",
        "ralph/-x",
        "ralph/$(id)",
        "ralph/a..b",
        "ralph/a@{b",
        "ralph/x.lock",
        "ralph/x.lock/y",
        "main",
        "ralph",
        "ralph/",
        "ralph//x",
        "/ralph/x",
        "ralph/.x",
        "ralph/x.",
        "ralph/a b",
        "ralph/a~b",
        "ralph/a^b",
        "ralph/a:b",
        "ralph/a?b",
        "ralph/*",
        "ralph/[a",
        "ralph/a\\b",
        "ralph/a\nb",
        "ralph/é",
        "Ralph/x",
        "ralph/`id`",
        "ralph/a;b",
        "ralph/" + "x" * 250,
        "ralph/x\n",
        "refs/heads/ralph/x",
    ],
    ids=ascii,
)
@pytest.mark.attack(44)
def test_e44_a_branch_name_that_means_something_else_is_refused(name: str) -> None:
    assert not branch_name_ok(name)


@pytest.mark.attack(44)
def test_e44_a_branch_name_that_differs_only_in_case_is_refused() -> None:
    assert not branch_name_ok("ralph/fix-a", ["ralph/Fix-A"])


@pytest.mark.attack(44)
def test_e44_a_branch_below_or_above_an_existing_one_is_refused() -> None:
    assert not branch_name_ok("ralph/fix/a", ["ralph/fix"])
    assert not branch_name_ok("ralph/fix", ["ralph/fix/a"])


def test_our_own_branch_that_is_there_already_is_no_collision() -> None:
    assert branch_name_ok("ralph/fix-3f2a", ["ralph/fix-3f2a", "main"])


@given(st.from_regex(r"ralph/[A-Za-z0-9._@{}~^:/-]{1,20}", fullmatch=True))
@pytest.mark.attack(44)
def test_every_accepted_branch_name_is_one_for_git_too(name: str) -> None:
    accepted = (
        subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True, check=False).returncode == 0
    )
    assert accepted or not branch_name_ok(name)
