"""`make install`: what it says on a machine that lacks something, and when it builds anew."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, at work in an empty project; starting a process is an error."""
    spec = importlib.util.spec_from_file_location("environment_script", ROOT / "scripts" / "environment.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        (tmp_path / name).write_text(name)
    venv = tmp_path / ".venv"
    places = {"ROOT": tmp_path, "VENV": venv, "STAMP": venv / "installed.json", "PYTHON": venv / "bin" / "python"}
    for name, place in places.items():
        monkeypatch.setattr(module, name, str(place))
    monkeypatch.setattr(module, "run", lambda *command: pytest.fail(f"started {command}"))
    return module


def _made(script: ModuleType, kind: str = "runtime", **changes: object) -> None:
    (Path(script.VENV) / "bin").mkdir(parents=True)
    Path(script.PYTHON).symlink_to(sys.executable)
    stamp = {"kind": kind, "digest": script.digest(), "place": script.ROOT, "complete": True}
    script.write_stamp(stamp | changes)


@pytest.mark.parametrize(("made", "wanted"), [("runtime", "runtime"), ("dev", "dev"), ("dev", "runtime")])
def test_a_second_call_does_nothing(script: ModuleType, made: str, wanted: str) -> None:
    _made(script, made)
    assert script.main(wanted) == 0


def test_an_environment_for_use_is_not_enough_for_work(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    _made(script, "runtime")
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(script, "run", lambda *command: commands.append(command) or 0)
    assert script.main("dev") == 0
    assert commands[0][-1].endswith("requirements-dev.lock")
    assert script.main("dev") == 0 and len(commands) == 2


@pytest.mark.parametrize("changes", [{"complete": False}, {"place": "/elsewhere"}], ids=["half made", "moved"])
def test_what_cannot_be_trusted_is_built_anew(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
) -> None:
    _made(script, **changes)
    (Path(script.VENV) / "left-over").touch()
    monkeypatch.setattr(script, "run", lambda *command: 0)
    assert script.main("runtime") == 0
    assert not (Path(script.VENV) / "left-over").exists()


def test_a_failed_installation_is_not_stamped(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "run", lambda *command: int("-m" in command and "pip" in command))
    assert script.main("runtime") == 1
    assert script.read_stamp()["complete"] is False


def test_a_changed_lock_file_is_installed(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    _made(script)
    (Path(script.ROOT) / "requirements.lock").write_text("something else")
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(script, "run", lambda *command: commands.append(command) or 0)
    assert script.main("runtime") == 0 and commands


@pytest.mark.parametrize(
    ("name", "value", "line"), [("MIN_PYTHON", (99,), "too old"), ("MIN_GIT", (99,), "git 2.38 or newer")]
)
def test_what_is_missing_is_said_in_one_line(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: object,
    line: str,
) -> None:
    monkeypatch.setattr(script, name, value)
    assert script.main("runtime") == 1
    said = capsys.readouterr().err
    assert line in said and len(said.splitlines()) == 1
