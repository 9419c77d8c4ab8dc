"""Claims are judged by runs of a real pytest in a clone."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.prover import ProofOutcome, Prover
from ralph_mission.adapters.projects.setup import ProjectSetup
from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.errors import UserError
from ralph_mission.mission.proof.claim import CodeClaim, CodeQuote
from ralph_mission.safety.patch import REGULAR, FileChange
from tests.helpers import git, make_repo

CODE = "def half(n):\n    return n // 2\n"
MENDED = "def half(n):\n    return n / 2\n"
OTHER = "from app import half\n\n\ndef test_two():\n    assert half(2) == 1\n"
Prove = Callable[..., ProofOutcome]


INI = """\
[pytest]
pythonpath = .
addopts = -p no:hypothesispytest -p no:cov -p no:anyio -p no:xdist -p no:xdist.looponfail
"""
"""Without the plugins beside our own pytest: importing them takes three times as long as the rest of a run."""


def without_a_sandbox(_: Sequence[Path]) -> Sandbox:
    return OPEN


@pytest.fixture
def prove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prove:
    monkeypatch.setenv("PATH", os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])))
    repo = make_repo(tmp_path / "repo", {"app.py": CODE, "pytest.ini": INI, "tests/test_a.py": OTHER})
    opened = Git.open(repo)
    setup = ProjectSetup(opened, tmp_path / "setups", ())
    prover = Prover(opened, setup, FileCache(tmp_path / "cache"), sandbox_for=without_a_sandbox, short=60.0)

    def call(test: str, *, mended: str = MENDED, expected: str = "assertion") -> ProofOutcome:
        claim = CodeClaim(
            "bug", "half drops the rest", "app.py", (CodeQuote("app.py", "    return n // 2"),), expected,
            (FileChange("tests/test_b.py", "", REGULAR, None, test.encode()),),
            (FileChange("app.py", REGULAR, REGULAR, CODE.encode(), mended.encode()),),
        )  # fmt: skip  # one value
        return prover.prove(claim, git(repo, "rev-parse", "HEAD"))

    return call


def body(*lines: str) -> str:
    return "\n".join(
        ["import os, pathlib, random, socket, time", "import app", "def test_b():", *(f"    {x}" for x in lines), ""]
    )


def test_a_bug_that_its_test_shows_is_proven(prove: Prove) -> None:
    outcome = prove(body("assert app.half(3) == 1.5"))
    assert outcome.verdict.refusal is None
    (case,) = outcome.verdict.cases
    assert (case.error, case.frames) == ("AssertionError", (("tests/test_b.py", 4),))
    assert len(outcome.runs) == 9


def test_a_machine_without_the_tests_program_refuses_no_claim(
    prove: Prove, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("cp", "git", "sh"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(UserError, match=r"the tests cannot be started here: .*python"):
        prove(body("assert app.half(3) == 1.5"))


def rule_of(outcome: ProofOutcome) -> str:
    return outcome.verdict.refusal.rule if outcome.verdict.refusal else ""


@pytest.mark.long  # each a dozen runs of a pytest of its own
def test_an_exception_has_to_come_from_the_named_code(prove: Prove) -> None:
    assert rule_of(prove(body("assert app.half('3') == 1.5"), expected="TypeError")) == "still-fails"
    test = body("raise TypeError if app.half(3) == 1 else SystemExit")
    assert rule_of(prove(test, expected="TypeError")) == "wrong-reason"


@pytest.mark.parametrize(
    ("rule", "test"),
    [
        ("passes-on-base", body("app.half(3)")),
        *(pytest.param(*row, marks=pytest.mark.long) for row in (
        ("import", "import nothing_of_this_name\n" + body("assert app.half(3) == 1.5")),
        ("syntax", "def test_b(:\n    assert 1 + 1 == 3\n"),
        ("reads-source", body("source = pathlib.Path(app.__file__).read_text()", "assert source.count('//') == 0")),
        ("still-fails", body("assert app.half(3) == 2")),
        ("network", body("try:", "    socket.create_connection(('example.org', 80), 1)", "except OSError: pass",
                         "assert app.half(3) == 1.5")),
        )),  # the verdict's own tests have each of them
    ],
)  # fmt: skip  # one table
def test_what_does_not_prove_it(prove: Prove, rule: str, test: str) -> None:
    assert rule_of(prove(test)) == rule


def test_nothing_that_a_run_leaves_behind_reaches_the_next(prove: Prove) -> None:
    """A test that counts its runs in the clone and in its home fails in each of them."""
    places = "[pathlib.Path('runs'), pathlib.Path.home() / 'runs']"
    counting = [
        f"for place in {places}:",
        "    place.open('a').write('x')",
        f"assert any(len(p.read_text()) > 1 for p in {places})",
    ]
    assert rule_of(prove(body(*counting))) == "still-fails"


@pytest.mark.long  # each a dozen runs of a pytest of its own
def test_a_change_that_breaks_another_test_is_refused(prove: Prove) -> None:
    outcome = prove(body("assert app.half(3) == 1.5"), mended="def half(n):\n    return 1.5\n")
    assert rule_of(outcome) == "breaks-tests"
    assert outcome.verdict.refusal and "test_two" in outcome.verdict.refusal.why
