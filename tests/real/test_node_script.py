"""`scripts/node.py`: what `make test-real` downloads, once and whole. Nothing is downloaded here."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, at work in an empty folder; `script.commands` tells what it ran."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    spec = importlib.util.spec_from_file_location("node_script", ROOT / "scripts" / "node.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PLACE", tmp_path / "node")
    monkeypatch.setattr(module, "STAMP", tmp_path / "node" / "installed")
    answers(module, 0)
    return module


def answers(script: ModuleType, *codes: int) -> None:
    """The next commands end like this, and those after them like the last."""
    script.commands, left = [], list(codes)

    def run(*command: str) -> int:
        script.PLACE.mkdir(exist_ok=True)
        script.commands.append(command)
        return left.pop(0) if len(left) > 1 else left[0]

    script.run = run
    script.install_locked = lambda locks, *options: run("--require-hashes", *locks, *options)


def test_a_second_call_does_nothing(script: ModuleType) -> None:
    assert [script.main(), script.main()] == [0, 0]
    packages, npm = script.commands
    assert str(script.PLACE) in packages and {"ci", "--ignore-scripts"} < set(npm)


@pytest.mark.parametrize(
    ("codes", "who"), [((1,), "Claude Code could not be installed"), ((0, 1), "npm could not install")]
)
def test_what_failed_is_said_and_made_anew(
    script: ModuleType, capsys: pytest.CaptureFixture[str], codes: tuple[int, ...], who: str
) -> None:
    answers(script, *codes)
    assert script.main() == 1
    assert who in capsys.readouterr().err.splitlines()[-1]
    (script.PLACE / "left-over").touch()
    answers(script, 0)
    assert script.main() == 0 and not (script.PLACE / "left-over").exists()
    assert len(script.commands) == 2


def test_a_changed_lock_is_installed(script: ModuleType, tmp_path: Path) -> None:
    assert script.main() == 0
    (tmp_path / "other.lock").write_text("something else\n")
    script.LOCKS = (tmp_path / "other.lock",)
    assert script.main() == 0
    assert len(script.commands) == 4
