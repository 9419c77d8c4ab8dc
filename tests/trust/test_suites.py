"""Figures are of one commit and of runs that came to their end; one that did not keeps nobody from being measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import make_repo
from tests.trust import __main__ as trust
from tests.trust import suites

GOOD = ("-c", "import sys; open(sys.argv[2], 'w').write('{}')")
BAD = ("-c", "import sys; open(sys.argv[2], 'w').write('{}'); sys.exit(3)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where figures go, of three suites of which the second one fails."""
    monkeypatch.setattr(suites, "FOLDER", tmp_path)
    monkeypatch.setattr(trust, "FILE", tmp_path / "trust.md")
    for module in (suites, trust):
        monkeypatch.setattr(module, "SUITES", {"load": GOOD, "soak": BAD, "guards": GOOD})
    monkeypatch.setattr(trust, "document", lambda kept: " ".join(kept))
    monkeypatch.setattr(suites, "commit", lambda root: "0123456789")
    return tmp_path


def test_the_suites_after_one_that_fails_are_measured_and_its_figures_are_not_kept(folder, capfd):
    (folder / "soak.json").write_text(json.dumps(vars(suites.Measured("soak", "as once", "old", "", 1.0, {}))))
    assert trust.main(["all"]) == 1
    assert {name: one.commit for name, one in suites.kept().items()} == {
        "load": "0123456789",
        "soak": "old",
        "guards": "0123456789",
    }
    assert capfd.readouterr().err.strip().endswith("their figures are as they were: soak")
    assert (folder / "trust.md").read_text() == "load soak guards"


def test_suites_that_come_to_their_end_are_a_success(folder):
    assert trust.main(["load", "guards"]) == 0
    assert list(suites.kept()) == ["load", "guards"]


def test_what_changes_while_it_is_measured_is_no_commit(folder, monkeypatch):
    heads = iter(["0123456789", "0123456789-dirty", "0123456789", "9876543210"])
    monkeypatch.setattr(suites, "commit", lambda root: next(heads))
    assert [suites.measure(name).commit for name in ("load", "guards")] == ["0123456789-dirty"] * 2


def test_what_a_measurement_writes_does_not_make_the_commit_another_one(tmp_path):
    files = {"docs/trust.md": "old\n", "tests/trust/figures/load.json": "{}\n", "product.py": "x = 1\n"}
    repo = make_repo(tmp_path / "repo", files)
    for name in ("docs/trust.md", "tests/trust/figures/load.json", "tests/trust/figures/soak.json"):
        (repo / name).write_text("new\n")
    clean = suites.commit(repo)
    assert len(clean) == 10
    (repo / "product.py").write_text("x = 2\n")
    assert suites.commit(repo) == f"{clean}-dirty"


def test_a_file_that_nobody_committed_makes_it_another_one(tmp_path):
    repo = make_repo(tmp_path / "repo", {"product.py": "x = 1\n"})
    (repo / "more.py").write_text("y = 1\n")
    assert suites.commit(repo).endswith("-dirty")
