"""Detects how a repository installs its dependencies and which checks it has, by its files. Runs nothing.

A tool is chosen by its lock file; `packageManager` of package.json, which Corepack insists on, comes first
(https://nodejs.org/api/packages.html#packagemanager). A Node.js tool that is not on PATH, or in another major version,
is installed into the home of the set-up in the version that the repository names.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ralph_mission.adapters.projects.manifests import (
    locked_packages,
    read_json,
    read_toml,
    required_packages,
    run_script,
    table,
    workspaces,
)
from ralph_mission.values import compile_regex, dataclass

Read = Callable[[str], str]
"""The text of a file of the repository; "" if it is missing or not text."""

DEEPEST, MOST_FOLDERS = 2, 6
"""How deep a nested project may be, and how many are set up."""
ASIDE = frozenset(
    """
    node_modules vendor third_party fixtures fixture testdata test tests __tests__ examples example samples sample demo
    demos e2e benchmarks benchmark playground templates template docs website
    """.split()
)
"""Folders whose projects are test data and the like: not set up."""
NODE_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.lockfile",
          "libs.versions.toml")  # fmt: skip  # one list
MANIFESTS = ("package.json", "pyproject.toml", "requirements.txt", "setup.py", "Cargo.toml", "go.mod", "pom.xml",
             "build.gradle", "build.gradle.kts", "Gemfile", "composer.json")  # fmt: skip  # one list
LISTED = 50  # test files that are read to tell how they are run
NO_CHECK = compile_regex(r"no test specified|\s--(?:fix|write)(?![\w-])")
"""The script that `npm init` writes for a project without tests, or one that changes files."""
SCRIPTS = {
    "lint": ("lint", "eslint", "lint:check"),
    "types": ("typecheck", "type-check", "check-types", "check:types", "types", "tsc", "lint:typecheck"),
    "test": ("test", "test:unit", "test-unit", "unit"),
    "build": ("build",),
}
"""Scripts of package.json by what they check; the first existing one is used."""
TEST_EXTRAS = ("test", "tests", "testing", "dev", "develop", "development")
_MYPY_FILES = compile_regex(r"^\[mypy\][^\[]*^(?:files|packages|modules)\s*=", re.MULTILINE)
_PLAIN_MYPY = compile_regex(  # of tox, of make, of nox
    r"""^commands[ ]*=[ ]*(?:.*\n[ \t]+)*mypy[ ]*$|^\t@?mypy[ ]*$|\.run\([ \n]*["']mypy["'][ \n,]*\)""", re.MULTILINE
)
_MAKE_TARGET = compile_regex(r"^(test|check|lint)\s*:(?!=)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A set-up command, run by `/bin/sh -c` in `folder` ("" is the top).

    `needs`: required programs. `inputs`: files whose contents decide what it installs.
    """

    tool: str
    folder: str
    command: str
    needs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The command as a person names it: what decides, of the first of its alternatives."""
        if self._brings:
            return f"install {self.tool}"
        return self.command.partition(" || ")[0].rpartition(" && ")[2][:60] if self.tool else self.command[:60]

    @property
    def label(self) -> str:
        """What it does, for progress."""
        if self._brings:
            return f"installing {self.tool}"
        packages = self.inputs and self.tool != "prisma"
        return f"installing the project's packages ({self.tool})" if packages else self.short

    @property
    def _brings(self) -> bool:
        """Whether it installs the package manager itself, where there is none."""
        return not self.inputs and "exit 0;" in self.command


@dataclass(frozen=True, slots=True)
class ProjectCheck:
    """A check the repository defines: "lint", "types", "test" or "build".

    `needs`: programs that the project's packages do not bring.
    """

    name: str
    folder: str
    command: str
    needs: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The command as typed at the top of the repository."""
        return f"cd {shlex.quote(self.folder)} && {self.command}" if self.folder else self.command


@dataclass(frozen=True, slots=True)
class DetectedProject:
    """The result; `notes`: a line for each project without a known set-up."""

    steps: tuple[SetupStep, ...]
    checks: tuple[ProjectCheck, ...]
    notes: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        """The package managers used here, each once."""
        return tuple(dict.fromkeys(step.tool for step in self.steps))


def detect_project(paths: Collection[str], read: Read) -> DetectedProject:
    """Detect the projects in a repository with the files `paths`."""
    steps: list[SetupStep] = []
    checks: list[ProjectCheck] = []
    folders = _project_folders(paths)
    for folder in folders[:MOST_FOLDERS]:
        files = {posixpath.relpath(path, folder) if folder else path: path for path in paths if lies_in(path, folder)}
        for detect in (_node, _python, _rust, _go, _java, _ruby, _php):
            found_steps, found_checks = detect(Folder(folder, files, read))
            steps += found_steps
            checks += found_checks
    if not any(check.name == "test" for check in checks):
        checks += _make(paths, read) or _unittest(Folder("", {path: path for path in paths}, read))
    notes = [f"{len(folders) - MOST_FOLDERS} more folders with packages are not set up"] * (len(folders) > MOST_FOLDERS)
    if not steps:
        notes.append("no packages to install: no known manifest or lock file")
    return DetectedProject(tuple(steps), tuple(checks), tuple(notes))


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the repository: its files by name, and how to read one."""

    path: str
    files: Mapping[str, str]
    reader: Read

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def text(self, name: str) -> str:
        """The text of a file in it, or ""."""
        return self.reader(self.files[name]) if name in self.files else ""

    def any_of(self, *names: str) -> tuple[str, ...]:
        """Full paths of those that exist."""
        return tuple(self.files[name] for name in names if name in self.files)

    def step(self, tool: str, command: str, *inputs: str, needs: tuple[str, ...] = ()) -> SetupStep:
        """A set-up step that depends on the files `inputs`."""
        return SetupStep(tool, self.path, command, needs, self.any_of(*inputs))

    def check(self, name: str, command: str, *needs: str) -> ProjectCheck:
        """A check that runs in this folder."""
        return ProjectCheck(name, self.path, command, needs)


Detected = tuple[list[SetupStep], list[ProjectCheck]]
NOTHING: Detected = ([], [])


def lies_in(path: str, folder: str) -> bool:
    """Whether a file is in a folder, or below it; "" is the top."""
    return not folder or path.startswith(f"{folder}/")


def _project_folders(paths: Collection[str]) -> list[str]:
    """The top, and folders with their own lock file; folders below a workspace belong to it."""
    locks = (*NODE_LOCKS, "uv.lock", "poetry.lock", "Cargo.lock", "go.mod", "Gemfile.lock", "composer.lock", "pom.xml")
    found = {posixpath.dirname(path) for path in paths if posixpath.basename(path) in locks}
    top = {posixpath.basename(path) for path in paths if "/" not in path}
    near = (folder for folder in found if folder and _is_own_project(folder, found, top))
    return ["", *sorted(near, key=lambda folder: (folder.count("/"), folder))]


def _is_own_project(folder: str, found: set[str], top: set[str]) -> bool:
    parts = folder.split("/")
    if len(parts) > DEEPEST or any(part.lower() in ASIDE or part.startswith(".") for part in parts):
        return False
    # A Maven module is built by its parent pom, a Go or Cargo workspace by its own file.
    above = ("", *("/".join(parts[:depth]) for depth in range(1, len(parts))))
    return not ({"pom.xml", "go.work"} & top and any(place in found or not place for place in above))


# --- Node.js --------------------------------------------------------------------------


def _node(folder: Folder) -> Detected:
    manifest = read_json(folder.text("package.json"))
    if not isinstance(manifest, dict):
        return NOTHING
    tool, version = _package_manager(folder, manifest)
    rc = (".npmrc", ".yarnrc", ".yarnrc.yml", "pnpm-workspace.yaml", "bunfig.toml", ".pnpmfile.cjs")
    manifests = [name for name in folder.files if posixpath.basename(name) == "package.json"]
    inputs = (*manifests, *NODE_LOCKS, *rc)
    steps = [*_bring(tool, version), folder.step(tool, _node_install(folder, tool, version), *inputs, needs=("node",))]
    steps += _generated(folder, manifest)
    run = {"npm": "npm run --silent", "yarn": "yarn run", "pnpm": "pnpm run", "bun": "bun run"}[tool]
    places = workspaces(folder.files, manifest, folder.text("pnpm-workspace.yaml"))
    members = {place: table(read_json(folder.text(f"{place}/package.json"))) for place in places}
    if tool == "yarn":  # which knows a workspace by its name alone
        members = {place: each for place, each in members.items() if each.get("name")}
    checks = []
    for name, names in SCRIPTS.items():
        if script := next((one for one in names if _has_check(manifest, one)), ""):
            checks.append(folder.check(name, f"{run} {script}"))
        elif script := next((one for one in names if any(_has_check(each, one) for each in members.values())), ""):
            having = {place: each for place, each in members.items() if _has_check(each, script)}
            checks.append(folder.check(name, run_script(tool, script, having)))
    if (
        "tsconfig.json" in folder
        and "typescript" in _list_dependencies(manifest)
        and not any(c.name == "types" for c in checks)
    ):
        checks.append(folder.check("types", "tsc --noEmit --pretty false"))
    return steps, checks


def _has_check(manifest: Mapping[str, Any], script: str) -> bool:
    line = table(manifest, "scripts").get(script)
    return line is not None and not NO_CHECK.search(str(line))


def _package_manager(folder: Folder, manifest: Mapping[str, Any]) -> tuple[str, str]:
    """(tool, required version, "" for any)."""
    named, _, required = str(manifest.get("packageManager") or "").partition("@")
    version = required.partition("+")[0]
    if named in ("npm", "yarn", "pnpm", "bun"):
        return named, version
    tool = next((tool for lock, tool in NODE_LOCKS.items() if lock in folder), "npm")
    if tool == "yarn" and _is_berry(folder):
        found = re.search(r"^__metadata:\s+version: (\d+)", folder.text("yarn.lock"), re.MULTILINE)
        return tool, {"4": "2", "5": "3", "6": "3"}.get(found[1], "4") if found else "4"
    if tool == "pnpm":
        found = re.search(r"^lockfileVersion: '?(\d+)", folder.text("pnpm-lock.yaml"), re.MULTILINE)
        return tool, {"5": "7", "6": "8", "9": "9"}.get(found[1], "") if found else ""
    return tool, "1" if tool == "yarn" else ""


def _is_berry(folder: Folder) -> bool:
    return bool(re.search(r"^__metadata:", folder.text("yarn.lock"), re.MULTILINE)) or ".yarnrc.yml" in folder


def _bring(tool: str, version: str) -> Iterator[SetupStep]:
    """Install the tool into the home of the set-up, unless one of the same major version is on PATH."""
    if tool == "npm":
        return
    package = "@yarnpkg/cli-dist" if tool == "yarn" and not version.startswith(("0", "1")) else tool
    major = version.partition(".")[0]
    here = f'case "$({tool} --version 2>/dev/null)" in {major}.*|v{major}.*) exit 0;; esac; ' if major else ""
    here = here or f"command -v {tool} >/dev/null && exit 0; "
    target = shlex.quote(f"{package}@{version}" if version else package)
    install = f'npm install --global --prefix "$HOME/.local" --no-audit --no-fund {target}'
    yield SetupStep(tool, "", here + install, ("npm",))


def _node_install(folder: Folder, tool: str, version: str) -> str:
    if tool == "npm":
        locked = "package-lock.json" in folder or "npm-shrinkwrap.json" in folder
        return f"npm {'ci' if locked else 'install --no-package-lock'} --no-audit --no-fund"
    if tool == "yarn" and not version.startswith(("0", "1")):
        return "yarn install --immutable"
    if tool == "yarn":
        return "yarn install --frozen-lockfile --non-interactive"
    return f"{tool} install --frozen-lockfile"


def _generated(folder: Folder, manifest: Mapping[str, Any]) -> Iterator[SetupStep]:
    """Steps that generate code which checks need."""
    required = _list_dependencies(manifest)
    schemas = [name for name in sorted(folder.files) if name.endswith(".prisma") and "node_modules/" not in name]
    schemas = [name for name in schemas if re.search(r"^generator\s", folder.text(name), re.MULTILINE)]
    if "prisma" in required:
        for name in schemas:
            command = f"npx --no-install prisma generate --schema {shlex.quote(name)}"
            # Checks only need the types, not the engine, which is downloaded separately.
            yield folder.step("prisma", f"{command} || {command} --no-engine", name)
    if "next" in required and "tsconfig.json" in folder and "next-env.d.ts" not in folder:
        types = r'/// <reference types="next" />\n/// <reference types="next/image-types/global" />\n'
        yield folder.step("next", f"printf '{types}' > next-env.d.ts")


def _list_dependencies(manifest: Mapping[str, Any]) -> set[str]:
    return {name for section in ("dependencies", "devDependencies") for name in table(manifest, section)}


# --- Python ---------------------------------------------------------------------------


def _python(folder: Folder) -> Detected:
    project = read_toml(folder.text("pyproject.toml"))
    inputs = ("pyproject.toml", "uv.lock", "poetry.lock", "setup.py", "setup.cfg", *_requirements(folder))
    if "uv.lock" in folder:
        command = "uv sync --frozen --all-groups --all-extras || uv sync --frozen --all-groups || uv sync --frozen"
        steps = [_own_python("uv"), folder.step("uv", command, *inputs)]
    elif "poetry.lock" in folder:
        command = "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction --all-extras"
        steps = [_own_python("poetry"), folder.step("poetry", command, *inputs)]
    elif commands := _pip_wanted(folder, project):
        pip = ".venv/bin/python -m pip install --quiet --disable-pip-version-check"
        command = " && ".join(
            ("python3 -m venv .venv", f"{pip} --upgrade pip", *(f"{pip} {words}" for words in commands))
        )
        steps = [folder.step("pip", command, *inputs, needs=("python3",))]
    else:
        return NOTHING
    return steps, list(_python_checks(folder, project, _python_packages(folder, project)))


def _own_python(tool: str) -> SetupStep:
    """Install uv or poetry into an environment in the home of the set-up, if it is not on PATH."""
    place = f'"$HOME/.local/{tool}"'
    command = (
        f"command -v {tool} >/dev/null && exit 0; python3 -m venv {place} && {place}/bin/pip install --quiet {tool} && "
        f'mkdir -p "$HOME/.local/bin" && ln -sf ../{tool}/bin/{tool} "$HOME/.local/bin/{tool}"'
    )
    return SetupStep(tool, "", command, ("python3",))


def _requirements(folder: Folder) -> tuple[str, ...]:
    names = ("requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements_dev.txt",
             "requirements-test.txt", "test-requirements.txt", "requirements/dev.txt", "requirements/test.txt",
             "requirements/tests.txt")  # fmt: skip  # one list
    return tuple(name for name in names if name in folder)


def _pip_wanted(folder: Folder, project: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments for pip, one call after another: lists may pin a release of the project itself, which is overridden."""
    lists = " ".join(f"-r {name}" for name in _requirements(folder))
    words: list[str] = []
    declared = table(project, "project", "optional-dependencies")
    groups = [name for name in TEST_EXTRAS if name in table(project, "dependency-groups")]
    if ("project" in project and "build-system" in project) or "setup.py" in folder:
        extras = ",".join(name for name in TEST_EXTRAS if name in declared)
        words.append(f"-e '.[{extras}]'" if extras else "-e .")
    words += [f"--group {name}" for name in groups]
    if (lists or words) and _has_pytests(folder):
        words.append("pytest")  # which many leave to tox or hatch
    return tuple(filter(None, (lists, " ".join(words))))


def _python_packages(folder: Folder, project: Mapping[str, Any]) -> frozenset[str]:
    for lock in ("uv.lock", "poetry.lock"):
        if lock in folder:
            return locked_packages(folder.text(lock))
    return required_packages(project, TEST_EXTRAS, _requirements(folder), folder.text)


def _python_checks(folder: Folder, project: Mapping[str, Any], packages: Collection[str]) -> Iterator[ProjectCheck]:
    def check(name: str, command: str, tool: str) -> ProjectCheck:
        return folder.check(name, command, *(() if tool in packages else (tool,)))

    tools, setup = table(project, "tool"), folder.text("setup.cfg")
    if "ruff" in tools or folder.any_of("ruff.toml", ".ruff.toml"):
        yield check("lint", "ruff check .", "ruff")
    if "mypy" in tools or "[mypy]" in setup or folder.any_of("mypy.ini", ".mypy.ini"):
        yield check("types", "mypy" if _names_mypys_files(folder, table(tools, "mypy")) else "mypy .", "mypy")
    settings = "pytest" in tools or "[tool:pytest]" in setup or folder.any_of("pytest.ini", "tox.ini", "conftest.py")
    if (settings or "pytest" in packages) and _has_pytests(folder):
        yield folder.check("test", "python -m pytest -q")
    elif "noxfile.py" in folder:
        yield check("test", "nox", "nox")


def _names_mypys_files(folder: Folder, section: Mapping[str, Any]) -> bool:
    """Whether plain `mypy` knows what to check: by its settings, or because the project itself runs it so."""
    settings = "\n".join(folder.text(name) for name in ("mypy.ini", ".mypy.ini", "setup.cfg"))
    listed = any(name in section for name in ("files", "packages", "modules")) or _MYPY_FILES.search(settings)
    runners = "\n".join(folder.text(name) for name in ("tox.ini", "noxfile.py", "Makefile"))
    return bool(listed or _PLAIN_MYPY.search(runners))


def _has_pytests(folder: Folder) -> bool:
    return any(re.search(r"(^|/)test_[^/]+\.py$|_test\.py$", name) for name in folder.files)


def _unittest(folder: Folder) -> list[ProjectCheck]:
    """The tests of a project that uses nothing but `unittest`: all in one folder, which it can discover."""
    tests = [name for name in folder.files if re.search(r"(^|/)test_[^/]+\.py$", name)][:LISTED]
    texts = [folder.text(name) for name in tests]
    tops = {posixpath.dirname(name) for name in tests}
    others = any(re.search(r"\b(?:pytest|django|twisted)\b|^def test_", text, re.MULTILINE) for text in texts)
    if len(tops) != 1 or others or not all(re.search(r"\bunittest\b", text) and "TestCase" in text for text in texts):
        return []
    (top,) = tops
    if posixpath.basename(top) not in ("", "test", "tests"):
        return []
    packages = [top.rsplit("/", depth)[0] for depth in range(top.count("/") + 1)]
    whole = all(f"{package}/__init__.py" in folder for package in packages)  # with what they are below the top
    place = f" -s {shlex.quote(top)}{' -t .' if whole else ''}" if top else ""
    return [ProjectCheck("test", "", f"python3 -m unittest discover -q{place}", ("python3",))]


# --- other languages ------------------------------------------------------------------


def _rust(folder: Folder) -> Detected:
    if "Cargo.toml" not in folder:
        return NOTHING
    locked = " --locked" if "Cargo.lock" in folder else ""
    manifests = [name for name in folder.files if posixpath.basename(name) == "Cargo.toml"]
    step = folder.step(
        "cargo", f"cargo fetch{locked}", *manifests, "Cargo.lock", "rust-toolchain.toml", needs=("cargo",)
    )
    return [step], [
        folder.check("lint", "cargo clippy --workspace --quiet"),
        folder.check("test", "cargo test --workspace --quiet"),
    ]


def _go(folder: Folder) -> Detected:
    if "go.mod" not in folder:
        return NOTHING
    command = "go mod download && { go test -exec true ./... || true; }"  # compiled, not run
    step = folder.step("go", command, "go.mod", "go.sum", "go.work", needs=("go",))
    lint = (
        [folder.check("lint", "golangci-lint run", "golangci-lint")]
        if folder.any_of(".golangci.yml", ".golangci.yaml")
        else []
    )
    return [step], [folder.check("types", "go vet ./..."), *lint, folder.check("test", "go test ./...")]


def _java(folder: Folder) -> Detected:
    if "pom.xml" in folder:
        maven = "./mvnw" if "mvnw" in folder else "mvn"
        needs = ("java",) if "mvnw" in folder else ("java", "mvn")
        command = f"{maven} -B -q -DskipTests package dependency:resolve-plugins"
        return [folder.step("maven", command, "pom.xml", needs=needs)], [folder.check("test", f"{maven} -o -B -q test")]
    if folder.any_of("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"):
        gradle = "./gradlew" if "gradlew" in folder else "gradle"
        names = [name for name in folder.files if posixpath.basename(name) in GRADLE]
        step = folder.step("gradle", f"{gradle} --no-daemon -q testClasses", *names, needs=("java",))
        return [step], [folder.check("test", f"{gradle} --no-daemon --offline -q test")]
    return NOTHING


def _ruby(folder: Folder) -> Detected:
    if "Gemfile" not in folder:
        return NOTHING
    command = "bundle config set --local path vendor/bundle && bundle install --quiet"
    step = folder.step("bundler", command, "Gemfile", "Gemfile.lock", needs=("bundle",))
    checks = [folder.check("lint", "bundle exec rubocop")] if ".rubocop.yml" in folder else []
    if any(name.startswith("spec/") for name in folder.files):
        return [step], [*checks, folder.check("test", "bundle exec rspec")]
    return [step], [*checks, *([folder.check("test", "bundle exec rake test")] if "Rakefile" in folder else [])]


def _php(folder: Folder) -> Detected:
    manifest = read_json(folder.text("composer.json"))
    if not isinstance(manifest, dict):
        return NOTHING
    command = "composer install --no-interaction --no-progress --quiet"
    step = folder.step("composer", command, "composer.json", "composer.lock", needs=("composer", "php"))
    scripts = table(manifest, "scripts")
    checks = [folder.check(name, f"composer run-script {name}") for name in ("lint", "test") if name in scripts]
    if "test" not in scripts and folder.any_of("phpunit.xml", "phpunit.xml.dist"):
        checks.append(folder.check("test", "vendor/bin/phpunit"))
    return [step], checks


def _make(paths: Collection[str], read: Read) -> list[ProjectCheck]:
    """`make test` or `make check`, if no language's tool defines the tests."""
    if "Makefile" not in paths:
        return []
    targets = set(_MAKE_TARGET.findall(read("Makefile")))
    return [ProjectCheck("test", "", f"make {name}") for name in ("test", "check") if name in targets][:1]
