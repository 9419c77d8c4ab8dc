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


def test_a_second_call_does_nothing(script: ModuleType) -> None:
    assert [script.main(), script.main()] == [0, 0]
    pip, npm = script.commands
    assert "--require-hashes" in pip and {"ci", "--ignore-scripts"} < set(npm)


@pytest.mark.parametrize(("codes", "who"), [((1,), "pip"), ((0, 1), "npm")])
def test_what_failed_is_said_and_made_anew(
    script: ModuleType, capsys: pytest.CaptureFixture[str], codes: tuple[int, ...], who: str
) -> None:
    answers(script, *codes)
    assert script.main() == 1
    assert f"{who} could not install" in capsys.readouterr().err.splitlines()[-1]
    (script.PLACE / "left-over").touch()
    answers(script, 0)
    assert script.main() == 0 and not (script.PLACE / "left-over").exists()
    assert len(script.commands) == 2


def test_a_changed_lock_is_installed(script: ModuleType, tmp_path: Path) -> None:
    assert script.main() == 0
    (tmp_path / "other.lock").write_text("something else\n")
    script.LOCK = tmp_path / "other.lock"
    assert script.main() == 0
    assert len(script.commands) == 4
