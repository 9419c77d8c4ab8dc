"""What holds for every job by how it is written: ports, groups, folders, installers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

from tests.action.runner import ROOT
from tests.supply.workflows import FLOWS, jobs

INSIDE = "adapters/sandbox/inside.py"  # in a network of its own, where nobody else has ports
SERVERS = {"bind", "HTTPServer", "ThreadingHTTPServer", "create_server", "start_server", "TCPServer"}


def _addresses() -> list[tuple[str, ast.expr]]:
    """What every call in the package that opens a server is given first."""
    found = []
    for path in sorted((ROOT / "ralph_mission").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if any(name in text for name in SERVERS) else ():
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in SERVERS or (name == "__init__" and isinstance(node.args[0], ast.Tuple)):
                    found.append((path.relative_to(ROOT / "ralph_mission").as_posix(), node.args[0]))
    return found


def test_no_port_is_fixed() -> None:
    found = [(name, address) for name, address in _addresses() if name != INSIDE]
    assert any(isinstance(address, ast.Tuple) for _, address in found)
    for name, address in found:
        assert not isinstance(address, ast.Tuple) or ast.unparse(address.elts[1]) == "0", name


@pytest.mark.parametrize("name", ["ralph-loop", "ralph-publish", "ralph-review", "ralph-work"])
def test_whoever_writes_memory_has_a_group_and_is_never_cut_off(name: str) -> None:
    (job,) = FLOWS[name]["jobs"].values()
    assert job["concurrency"]["cancel-in-progress"] == "false"
    assert job["concurrency"]["group"].startswith(name)


def test_every_job_has_an_end() -> None:
    assert not [name for name, job in jobs() if not re.fullmatch(r"[1-9]\d{0,2}", job.get("timeout-minutes", ""))]


def _installer() -> ModuleType:
    import importlib.util

    spec = importlib.util.spec_from_file_location("action_install", ROOT / "scripts" / "action" / "install.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which an earlier job told pip and uv where to get packages, and Python what to start with."""
    for name, text in {
        "home/.config/pip/pip.conf": "[global]\nindex-url = http://127.0.0.1:9/evil\nno-binary = :all:\n",
        "home/.config/uv/uv.toml": "this is no setting",
        "workspace/uv.toml": "this is no setting",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "nowhere").mkdir()
    return tmp_path


CARED = pytest.mark.parametrize("cared", [pytest.param(True, marks=pytest.mark.attack(41)), False])
"""As we install, and as anybody would: what lies there is heard then, or it would be no attack."""


def _said(home: Path, cared: bool, *command: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"], "HOME": str(home / "home"), "PYTHONPATH": str(home / "evil")}
    if cared:
        with mock.patch.dict(os.environ, given, clear=True):
            given = _installer().clean(home / "nowhere")
    here = home / ("nowhere" if cared else "workspace")
    return subprocess.run(command, cwd=here, env=given, text=True, capture_output=True, check=False)


@CARED
def test_settings_for_pip_in_the_home_are_not_heard(home: Path, cared: bool) -> None:
    said = _said(home, cared, sys.executable, "-I", "-m", "pip", "config", "list").stdout
    assert ("evil" not in said and ":all:" not in said) is cared


@CARED
def test_settings_for_uv_in_the_home_and_in_the_workspace_are_not_heard(home: Path, cared: bool) -> None:
    done = _said(home, cared, str(Path(sys.executable).with_name("uv")), "pip", "list", "--python", sys.executable)
    assert (done.returncode == 0) is cared, done.stderr


@pytest.mark.attack(41)
def test_an_installation_runs_in_no_folder_of_anybody_elses_and_hears_no_variable_of_pythons(home: Path) -> None:
    with mock.patch.dict(os.environ, {"PYTHONPATH": "/evil", "PYTHONSTARTUP": "/evil"}):
        show = "import os; open(os.environ['SEEN'], 'w').write(repr((os.getcwd(), sorted(os.environ))))"
        with mock.patch.dict(os.environ, {"SEEN": str(home / "seen")}):
            _installer().run(sys.executable, "-c", show)
    folder, names = ast.literal_eval((home / "seen").read_text())
    assert not Path(folder).exists() and not Path(folder).is_relative_to(ROOT)
    assert not [name for name in names if name.startswith("PYTHON")]
