"""`make install`: what it says on a machine that lacks something, and when it builds anew."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
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
    for name in ("pyproject.toml", "requirements.lock", "requirements-web.lock"):
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / "requirements-dev.lock").write_text("-r requirements.lock\n-r requirements-web.lock\n")
    venv = tmp_path / ".venv"
    places = {"ROOT": tmp_path, "VENV": venv, "STAMP": venv / "installed.json", "PYTHON": venv / "bin" / "python"}
    for name, place in places.items():
        monkeypatch.setattr(module, name, str(place))
    monkeypatch.setattr(module, "run", lambda *command: pytest.fail(f"started {command}"))
    return module


def _made(script: ModuleType, locks: Sequence[str] = ("requirements.lock",), **changes: object) -> None:
    """An environment as a finished run left it, but for `changes` of its stamp."""
    (Path(script.VENV) / "bin").mkdir(parents=True)
    Path(script.PYTHON).symlink_to(sys.executable)
    stamp = {"digest": script.digest(), "python": list(sys.version_info[:2]), "place": script.ROOT, "locks": [*locks]}
    script.write_stamp(stamp | changes)


@pytest.fixture
def commands(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that are run, on a machine without uv; all of them succeed."""
    started: list[tuple[str, ...]] = []

    def run(*command: str) -> int:
        started.append(command)
        Path(script.PYTHON).parent.mkdir(parents=True, exist_ok=True)
        Path(script.PYTHON).touch()
        return 0

    monkeypatch.setattr(script, "run", run)
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    return started


def _locks(command: tuple[str, ...]) -> list[str]:
    return [Path(word).name for word in command if word.endswith(".lock")]


def test_a_second_call_does_nothing(script: ModuleType) -> None:
    _made(script, ["requirements-dev.lock", "requirements.lock", "requirements-web.lock"])
    assert [script.main("dev"), script.main("runtime"), script.main("runtime", "web")] == [0, 0, 0]


def test_what_development_includes_need_not_be_installed_for_use(
    script: ModuleType, commands: list[tuple[str, ...]]
) -> None:
    assert script.main("dev") == 0
    started = len(commands)
    assert script.main("runtime", "web") == 0 and len(commands) == started


def test_an_extra_is_added_to_what_is_there(script: ModuleType, commands: list[tuple[str, ...]]) -> None:
    _made(script)
    assert script.main("runtime", "web") == 0
    packages, itself = (command for command in commands if "pip" in command)
    assert _locks(packages) == ["requirements-web.lock", "requirements.lock"]
    assert "--require-hashes" in packages and "--no-deps" in packages and itself[-2:] == ("-e", script.ROOT)
    started = len(commands)
    assert script.main("runtime") == 0 and len(commands) == started


def test_an_extra_that_nobody_knows_is_refused(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main("runtime", "moon") == 1
    assert "there is no requirements-moon.lock" in capsys.readouterr().err


@pytest.mark.parametrize("uv_fails", [False, True])
def test_uv_installs_where_it_is_there_and_pip_where_it_fails(
    script: ModuleType, commands: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, uv_fails: bool
) -> None:
    started = script.run
    monkeypatch.setattr(script.shutil, "which", lambda name: "/bin/uv")
    monkeypatch.setattr(script, "run", lambda *words: started(*words) or int(uv_fails and words[0] == "/bin/uv"))
    assert script.main("runtime") == 0
    assert any(command[0] == "/bin/uv" for command in commands)
    assert any("pip" in command[:4] and command[0] != "/bin/uv" for command in commands) is uv_fails


@pytest.mark.parametrize(("version", "starts"), [((23, 0), sys.executable), ((22, 2), ".venv"), ((), ".venv")])
def test_an_old_pip_is_not_asked_to_install_elsewhere(
    script: ModuleType,
    commands: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, ...],
    starts: str,
) -> None:
    monkeypatch.setattr(script, "pip_version", lambda: version)
    assert script.main("runtime") == 0
    used = {command[0] for command in commands if "pip" in command}
    assert used == ({sys.executable} if starts == sys.executable else {script.PYTHON})


@pytest.mark.parametrize(
    "changes", [{"place": "/elsewhere"}, {"python": [3, 10]}, {"kind": "dev"}], ids=["moved", "Python", "older stamp"]
)
def test_what_cannot_be_built_upon_is_built_anew(
    script: ModuleType, commands: list[tuple[str, ...]], changes: dict[str, object]
) -> None:
    _made(script, **changes)
    if "kind" in changes:
        script.write_stamp({"kind": "dev", "digest": script.digest(), "place": script.ROOT, "complete": True})
    (Path(script.VENV) / "left-over").touch()
    assert script.main("runtime") == 0
    assert not (Path(script.VENV) / "left-over").exists()


def test_a_failed_installation_is_built_anew(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    _made(script)
    (Path(script.ROOT) / "requirements.lock").write_text("something else")
    monkeypatch.setattr(script, "run", lambda *command: int("pip" in command))
    assert script.main("runtime") == 1
    assert script.read_stamp() == {}


def test_a_changed_lock_file_is_installed(script: ModuleType, commands: list[tuple[str, ...]]) -> None:
    _made(script)
    (Path(script.VENV) / "left-over").touch()
    (Path(script.ROOT) / "requirements.lock").write_text("something else")
    assert script.main("runtime") == 0 and commands
    assert (Path(script.VENV) / "left-over").exists()  # such as what `make test-real` downloads


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
