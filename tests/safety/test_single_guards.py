"""What one guard alone holds back: inputs that slip past every other one."""

from __future__ import annotations

import pytest

from ralph_mission.safety import text
from ralph_mission.safety.bumps import follows, only_patches
from ralph_mission.safety.detect import closing_keywords
from ralph_mission.safety.markdown import code_spans
from ralph_mission.safety.objections import inspect
from ralph_mission.safety.patch import REGULAR, FileChange, Patch

DIGEST, OTHER = "ab" * 32, "cd" * 32
ENTRY = f"""\
[[package]]
name = "buoy"
version = "1.4.2"
sdist = {{ url = "https://files.example.org/buoy-1.4.2.tar.gz", hash = "sha256:{DIGEST}", size = 100 }}
"""
RISEN = ENTRY.replace("1.4.2", "1.4.3").replace(DIGEST, OTHER)


def change(path: str, old: str, new: str) -> FileChange:
    return FileChange(path, REGULAR, REGULAR, old.encode(), new.encode())


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


@pytest.mark.attack(49)
def test_no_word_of_a_manifest_changes_beside_a_version() -> None:
    old = '[project]\ndependencies = ["buoy==1.4.2"]  # said by people\n'
    assert only_patches(change("pyproject.toml", old, old.replace("1.4.2", "1.4.3")))
    assert not only_patches(change("pyproject.toml", old, old.replace("1.4.2", "1.4.3").replace("people", "nobody")))


@pytest.mark.attack(49)
def test_a_version_is_written_as_it_was() -> None:
    old = '{"dependencies": {"buoy": "1.4.2"}}\n'
    assert only_patches(change("package.json", old, old.replace("1.4.2", "1.4.3")))
    assert not only_patches(change("package.json", old, old.replace("1.4.2", "v1.4.3")))


@pytest.mark.attack(49)
def test_an_entry_of_another_name_comes_in_with_no_version_of_another() -> None:
    assert follows(lines(ENTRY), lines(RISEN))
    assert not follows(lines(ENTRY), lines(f"{RISEN}\n{RISEN.replace('buoy', 'moon')}"))


@pytest.mark.attack(49)
def test_no_second_version_comes_beside_the_one_that_stays() -> None:
    assert not follows(lines(ENTRY), lines(f"{ENTRY}\n{RISEN}"))


@pytest.mark.attack(57)
def test_a_manifest_with_a_line_that_is_too_long_is_not_read() -> None:
    old = f'[project]\ndependencies = ["buoy==1.4.2"]  # {"x" * 4_000}\n'
    assert not only_patches(change("pyproject.toml", old, old.replace("1.4.2", "1.4.3")))


@pytest.mark.attack(33)
def test_a_token_that_nobody_told_us_of_is_not_added() -> None:
    token = f"ghp_{'a1B2' * 9}"
    patch = Patch("0" * 40, (FileChange("a.txt", "", REGULAR, None, f"it is {token}\n".encode()),))
    assert {objection.rule for objection in inspect(patch)} == {"secret"}


@pytest.mark.attack(32)
def test_a_host_with_a_user_before_it_is_no_known_host() -> None:
    assert "hxxps://" in text.sanitise("look at https://github.com@github.com/x", "issue")


@pytest.mark.parametrize("sink", ["issue", "commit", "post", "summary", "log", "prompt"])
@pytest.mark.attack(38)
def test_control_characters_go(sink: str) -> None:
    assert text.sanitise("a\x00b\x07c\x08d\x7fe", sink) == "abcde"


@pytest.mark.attack(27)
def test_a_text_that_never_comes_to_rest_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "ROUNDS", 1)
    assert text.sanitise("nothing said before: this fixes #3", "issue") == text.WITHHELD


@pytest.mark.attack(28)
def test_code_whose_place_is_in_doubt_hides_nothing() -> None:
    """The first cell's name is live, and the second cell's code looks as if it stood there."""
    assert code_spans("| a | b |\n|---|---|\n| \\`@b` | `@b` |\n") == ()


@pytest.mark.attack(27)
def test_words_within_a_markdown_text_are_read_as_markdown_too() -> None:
    assert closing_keywords("fixes o\\-x/r#4", markdown=True)
    assert not closing_keywords(text.said("fixes o\\-x/r#4"), markdown=True)
