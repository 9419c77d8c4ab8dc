"""What installs the action's packages: the machine's uv, else one that pip brings, else pip."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Machine:
    """One without uv: what was run, with which variables; pip's settings; and what fails."""

    def __init__(self, tools: Path) -> None:
        self.folder, self.settings, self.failing = tools / "env.built", "", ""
        self.folder.mkdir(parents=True)
        self.ran: list[tuple[str, dict[str, str]]] = []

    def run(self, *command: str, **more: str) -> None:
        line = " ".join(command)
        self.ran.append((line, more))
        if self.failing and self.failing in line:
            raise subprocess.CalledProcessError(1, command)
        if "--target" in command:
            program = Path(command[command.index("--target") + 1]) / "bin" / "uv"
            program.parent.mkdir()
            program.touch()

    def capture(self, *command: str) -> str:
        return self.settings

    def did(self) -> list[str]:
        """Which of the installers was called, in order."""
        lines = [line for line, _ in self.ran if " install " in line]
        return ["uv" if "/bin/uv pip install" in line else "bring" if "--target" in line else "pip" for line in lines]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "ralph-mission")


@pytest.fixture
def install(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", ROOT / "scripts/action/install.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "run", machine.run)
    monkeypatch.setattr(module, "capture", machine.capture)
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    return module


def test_pip_brings_uv_by_hash_once_and_uv_installs_all_else(install: ModuleType, machine: Machine) -> None:
    install.build(ROOT, machine.folder, ["web"])
    assert machine.did() == ["bring", "uv", "uv"]
    (brought,) = (line for line, _ in machine.ran if "--target" in line)
    assert "--require-hashes --only-binary :all: --no-deps" in brought and brought.endswith("requirements-uv.lock")
    install.build(ROOT, machine.folder, [])
    assert machine.did()[3:] == ["uv", "uv"]


def test_uv_trusts_the_certificates_that_pip_trusts(install: ModuleType, machine: Machine) -> None:
    machine.settings = "global.cert='/etc/ssl/ours.pem'\n"
    install.build(ROOT, machine.folder, [])
    assert {more.get("SSL_CERT_FILE") for line, more in machine.ran if "/bin/uv pip" in line} == {"/etc/ssl/ours.pem"}


@pytest.mark.parametrize("setting", ["global.index-url='https://mirror.example/simple'", ":env:.proxy='http://p:3128'"])
def test_where_the_machine_tells_pip_how_packages_are_reached_pip_installs(
    install: ModuleType, machine: Machine, setting: str
) -> None:
    machine.settings = f"global.no-color='true'\n{setting}\n"
    install.build(ROOT, machine.folder, [])
    assert machine.did() == ["pip", "pip"]
    machine.settings = ""
    install.build(ROOT, machine.folder, [])
    machine.settings = setting
    install.build(ROOT, machine.folder, [])
    assert machine.did()[2:] == ["bring", "uv", "uv", "pip", "pip"]


def test_a_uv_that_nobody_used_for_a_month_goes(install: ModuleType, machine: Machine) -> None:
    install.build(ROOT, machine.folder, [])
    (uv,) = machine.folder.parent.glob("uv-*")
    install.sweep(machine.folder.parent, uv.stat().st_mtime - 1)
    assert uv.exists()
    install.sweep(machine.folder.parent, uv.stat().st_mtime + 1)
    assert not uv.exists()


def test_what_a_killed_job_left_of_uv_is_brought_anew(install: ModuleType, machine: Machine) -> None:
    install.uv_place(ROOT, machine.folder).mkdir()
    install.build(ROOT, machine.folder, [])
    assert machine.did() == ["bring", "uv", "uv"]


@pytest.mark.parametrize(
    ("failing", "did"), [("--target", ["bring", "pip", "pip"]), ("/bin/uv pip", ["bring", "uv", "pip", "pip"])]
)
def test_where_uv_fails_pip_installs(install: ModuleType, machine: Machine, failing: str, did: list[str]) -> None:
    machine.failing = failing
    install.build(ROOT, machine.folder, [])
    assert machine.did() == did
