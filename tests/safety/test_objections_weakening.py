"""What a reviewer is told to look at first: weaker checks, and what decides what is run. It holds nothing back."""

from __future__ import annotations

import pytest

from ralph_mission.mission.coder import tasks
from ralph_mission.mission.proposals.wording import reviewer_note
from ralph_mission.safety.objections import describe_touched, describe_weakening, inspect
from tests.mission.build import mission
from tests.safety.making import change, patch

REMOVED = "removes or rewords an assertion"
SKIPPED = "skips tests in one place"
WEAKER: list[tuple[str, str, str, str]] = [
    ("tests/a.py", "def test_a():\n    f()\n\ndef test_b():\n    g()\n", "def test_a():\n    f()\n", "removes a test"),
    ("tests/test_a.py", "def test_a():\n    assert f() == 1\n", "def test_a():\n    f()\n", REMOVED),
    ("tests/test_a.py", "def test_a():\n    assert f() == 1\n", "def test_a():\n    assert f() == 2\n", REMOVED),
    (
        "tests/test_a.py",
        "def test_a():\n    x = f()\n",
        "def test_a():\n    x = f()\n    assert True\n",
        "adds an assertion that always holds",
    ),
    ("tests/test_a.py", "def test_a():\n    f()\n", "@pytest.mark.skip\ndef test_a():\n    f()\n", SKIPPED),
    ("tests/test_a.py", "def test_a():\n    f()\n", "def test_a():\n    pytest.skip('no')\n    f()\n", SKIPPED),
    ("src/a.test.ts", "it('adds', () => { f(); });\n", "it.skip('adds', () => { f(); });\n", SKIPPED),
    ("src/a.test.ts", "it('adds', () => { f(); });\n", "xit('adds', () => { f(); });\n", SKIPPED),
    ("src/a.spec.js", "test('a', () => {\n  expect(f()).toBe(1);\n});\n", "test('a', () => {\n});\n", REMOVED),
    ("a_test.go", "func TestA(t *T) {\n\tgo()\n}\n", "func TestA(t *T) {\n\tt.Skip()\n\tgo()\n}\n", SKIPPED),
    ("src/lib.rs", "#[test]\nfn a() { f(); }\n", "#[test]\n#[ignore]\nfn a() { f(); }\n", SKIPPED),
    ("src/a.py", "import os\n", "import os  # noqa: F401\n", "silences a check in one place"),
    ("src/a.py", "x = f()\n", "x = f()  # type: ignore\n", "silences a check in one place"),
    ("src/a.ts", "f(x)\n", "// eslint-disable-next-line\nf(x)\n", "silences a check in one place"),
    ("ci/run.sh", "make test\n", "make test || true\n", "silences a check in one place"),
]
HONEST: list[tuple[str, str, str]] = [
    ("src/a.py", "# recieve the data\nx = 1\n", "# receive the data\nx = 1\n"),
    ("README.md", "It recieves.\n", "It receives. Use `# noqa` to mute a line, or `|| true`.\n"),
    (
        "tests/test_a.py",
        "def test_a():\n    # recieve\n    assert f() == 1\n",
        "def test_a():\n    # receive\n    assert f() == 1\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert f() == 1\n",
        "def test_a():\n    assert f() == 1\n\ndef test_b():\n    assert g()\n",
    ),
    ("tests/test_a.py", "def test_a():\n  assert f( ) == 'x'\n", 'def test_a():\n    assert f() == "x"\n'),
    ("src/a.py", "import os\nimport sys\nprint(sys)\n", "import sys\nprint(sys)\n"),
    ("src/a.py", "x = f()  # noqa: E501\n", "x = f()\n"),
    ("src/a.ts", "// @ts-ignore\nf(x)\n", "f(x as string)\n"),
    ("docs/a.rst", "skip the test\n", "skip the tests\n"),
    ("src/expect.py", "expected = 1\n", "expected = 2\n"),
]


@pytest.mark.attack(54)
@pytest.mark.parametrize(("path", "old", "new", "what"), WEAKER)
def test_e54_a_weakened_check_is_described(path: str, old: str, new: str, what: str) -> None:
    made = patch(change(path, old.encode(), new.encode()))
    assert describe_weakening(made) == (what,)
    assert f"**Weaker checks?** This change {what}." in reviewer_note(made)
    assert inspect(made) == ()


@pytest.mark.benign("patch")
@pytest.mark.parametrize(("path", "old", "new"), HONEST)
def test_an_honest_change_is_described_by_nothing(path: str, old: str, new: str) -> None:
    made = patch(change(path, old.encode(), new.encode()))
    assert describe_weakening(made) == ()
    assert reviewer_note(made) == ""


@pytest.mark.attack(54)
def test_e54_a_deleted_test_suite_is_counted() -> None:
    body = b"def test_a():\n    assert f()\n"
    gone = [change(f"tests/test_{n}.py", body, None) for n in range(9)]
    said = describe_weakening(patch(*gone, change("tests/test_all.py", None, b"def test():\n    assert True\n")))
    assert said[:3] == ("deletes 9 test files", "removes 8 tests", "removes or rewords 9 assertions")
    assert said[3:] == ("adds an assertion that always holds",)


@pytest.mark.benign("patch")
def test_moving_tests_is_no_alarm() -> None:
    one, two = b"def test_a():\n    assert f()\n", b"def test_b():\n    assert g()\n"
    assert describe_weakening(patch(change("tests/test_a.py", one + two, two + one))) == ()
    assert describe_weakening(patch(change("tests/a.py", one, None), change("tests/sub/a.py", None, one))) == ()


def test_a_mute_far_out_on_a_long_line_is_noticed() -> None:
    assert describe_weakening(patch(change("src/a.py", b"x\n", b"x = '" + b"y" * 7_000 + b"'  # noqa\n")))


@pytest.mark.attack(49)
def test_what_a_change_touches_is_told_by_kind() -> None:
    paths = [".github/workflows/x.yml", "package.json", "yarn.lock", "CLAUDE.md", "src/a.py"]
    made = patch(*(change(path, b"a\n", b"b\n") for path in paths))
    assert list(describe_touched(made).values()) == [(paths[0],), (paths[1], paths[2]), (paths[3],)]
    assert "> **It touches packages or a lock file:** `package.json`, `yarn.lock`." in reviewer_note(made)


@pytest.mark.attack(28)
def test_a_path_in_the_note_pings_nobody() -> None:
    from ralph_mission.safety.detect import closing_keywords, mentions

    note = reviewer_note(patch(change(".github/@mara fixes #3`@bob.yml", None, b"x\n")))
    assert note and mentions(note) == closing_keywords(note) == ()


@pytest.mark.attack(54)
def test_e54_every_pull_of_an_agent_tells_its_reviewer() -> None:
    gone = patch(change("tests/test_a.py", b"def test_a():\n    assert f()\n", None))
    for body in (
        tasks.pull_text(7, "a person requested it", gone, "Made all tests green.", (), "0" * 16, {}),
        tasks.answer_commit(mission(issue=7, pull=8), gone),
    ):
        assert "deletes a test file, removes a test, removes or rewords an assertion" in body
