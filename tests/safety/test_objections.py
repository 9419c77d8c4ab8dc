"""What speaks against a patch, rule by rule."""

from __future__ import annotations

import pytest

from ralph_mission.safety.objections import (
    MAX_BYTES,
    MAX_FILES,
    Objection,
    find_tests,
    inspect,
    lines_of_tests,
    verdict,
)
from ralph_mission.safety.patch import EXECUTABLE, GITLINK, REGULAR, SYMLINK, WIDTH, FileChange, Patch
from tests.safety.making import change, numbered, patch

KNOWN = "canary-" + "Qx7Rt2Lm9ZpW4v"


def rules(*changes: object, **limits: object) -> set[str]:
    return {objection.rule for objection in inspect(patch(*changes), **limits)}  # type: ignore[arg-type]  # names of inspect


@pytest.mark.benign("patch")
def test_an_honest_patch_of_49_lines_to_ordinary_source_passes() -> None:
    old = numbered(500)
    assert inspect(patch(change(old=old, new=old + numbered(49, "new")))) == ()


@pytest.mark.attack(50)
def test_a_patch_of_50_lines_does_not_pass() -> None:
    old = numbered(500)
    assert rules(change(old=old, new=old + numbered(50, "new"))) == {"diff-size"}


@pytest.mark.attack(50)
def test_lines_of_all_files_count_together() -> None:
    assert rules(change("a.py", b"", numbered(25)), change("b.py", b"", numbered(25))) == {"diff-size"}


def test_a_lower_limit_is_obeyed() -> None:
    assert rules(change(new=numbered(3)), max_lines=2) == {"diff-size"}


@pytest.mark.attack(50)
def test_e50_too_many_bytes_are_too_much_even_in_few_lines() -> None:
    line = b"word " * (WIDTH // 5 - 1) + b"\n"
    assert rules(change(new=line * (MAX_BYTES // len(line) + 1))) == {"diff-size"}


@pytest.mark.attack(50)
def test_e50_many_tiny_files_are_too_many() -> None:
    assert rules(*(change(f"src/m{n}/__init__.py", None, b"") for n in range(MAX_FILES + 1))) == {"diff-size"}


@pytest.mark.attack(50)
def test_e50_a_binary_change_is_never_automatic() -> None:
    assert rules(change(new=b"a\0b\n")) == {"diff-size"}


@pytest.mark.attack(50)
def test_e50_a_pure_rename_of_a_long_file_is_too_much() -> None:
    body = numbered(30)
    assert rules(change("a.py", body, None), change("b.py", None, body)) == {"diff-size"}


@pytest.mark.attack(51)
def test_e51_salami_is_counted_per_file_over_the_window() -> None:
    piece = change("src/app.py", b"", numbered(20))
    assert rules(piece, recent={"src/app.py": 30}) == {"diff-size"}
    assert rules(piece, recent={"src/app.py": 29}) == set()
    assert rules(piece, recent={"src/other.py": 49}) == set()


@pytest.mark.parametrize("mode", [EXECUTABLE, SYMLINK, GITLINK, "100664", "100600", "010644"])
@pytest.mark.attack(46, 47)
def test_e46_e47_only_ordinary_files_may_be_added(mode: str) -> None:
    assert "file-mode" in rules(change(old=None, new=b"x", new_mode=mode))


@pytest.mark.benign("patch")
def test_an_executable_file_may_stay_one() -> None:
    assert rules(change(old=b"a\n", new=b"b\n", old_mode=EXECUTABLE, new_mode=EXECUTABLE)) == set()


@pytest.mark.parametrize(("before", "after"), [("100644", EXECUTABLE), (EXECUTABLE, "100644"), ("100644", SYMLINK)])
@pytest.mark.attack(50)
def test_a_change_of_mode_is_seen(before: str, after: str) -> None:
    assert "file-mode" in rules(change(old=b"a", new=b"a", old_mode=before, new_mode=after))


@pytest.mark.attack(46)
def test_e46_a_symlink_and_a_file_below_it_are_both_named() -> None:
    found = inspect(patch(change("out", None, b"/etc", new_mode=SYMLINK), change("out/x", None, b"x\n")))
    assert ("file-mode", "out") in {(objection.rule, objection.path) for objection in found}


@pytest.mark.attack(45)
def test_e45_an_unsafe_path_is_out_of_scope_for_good() -> None:
    found = inspect(patch(change("a/../../x", None, b"x\n")))
    assert {objection.rule for objection in found} == {"scope"}
    assert verdict(found) == "deny"


def test_a_path_that_the_change_is_not_about_is_out_of_scope() -> None:
    assert rules(change("b.py"), allowed_paths=frozenset({"a.py"})) == {"scope"}
    assert rules(change("a.py"), allowed_paths=frozenset({"a.py"})) == set()


@pytest.mark.attack(49)
def test_e49_a_protected_path_waits_for_a_person() -> None:
    found = inspect(patch(change(".github/workflows/ci.yml", b"a: 1\n", b"a: 2\n")))
    assert {objection.rule for objection in found} == {"protected-path"}
    assert verdict(found) == "hold"


@pytest.mark.attack(48)
def test_e48_git_attributes_are_protected() -> None:
    assert rules(change("sub/.gitattributes", None, b"* filter=evil\n")) == {"protected-path"}


@pytest.mark.attack(33)
def test_e33_a_known_secret_is_denied() -> None:
    found = inspect(patch(change(new=KNOWN.encode() + b"\n")), secrets=[KNOWN])
    assert verdict(found) == "deny"
    assert KNOWN not in str(found)


@pytest.mark.attack(34)
def test_e34_a_secret_in_a_file_name_is_denied() -> None:
    assert "secret" in rules(change(f"src/{KNOWN}.py", None, b"x\n"), secrets=[KNOWN])


@pytest.mark.benign("patch")
def test_a_token_that_was_there_already_is_not_added() -> None:
    token = b"key = '" + b"gh" + b"p_" + b"a1B2" * 9 + b"'\n"
    assert rules(change(old=token + b"x\n", new=token + b"y\n")) == set()


@pytest.mark.parametrize("character", ["\u202e", "\u200b", "\u2066", "\U000e0041", "\u2060", "\x1b"], ids=ascii)
@pytest.mark.attack(4, 5)
def test_newly_hidden_text_is_denied(character: str) -> None:
    found = inspect(patch(change(old=b"a = 1\n", new=f"a = 1{character}\n".encode())))
    assert verdict(found) == "deny"


@pytest.mark.benign("patch")
def test_hidden_text_that_was_there_already_is_not_added() -> None:
    old = "\ufeffa = '\u200b'\nb = 1\n"
    assert rules(change(old=old.encode(), new=old.replace("b = 1", "b = 2").encode())) == set()


@pytest.mark.benign("patch")
def test_emoji_and_persian_are_no_hidden_text() -> None:
    assert rules(change("README.md", b"", "❤️ 👩‍💻 1️⃣ می‌خواهم\n".encode())) == set()


def test_no_objection_allows() -> None:
    assert verdict(()) == "allow"


def test_one_deny_outweighs_every_hold() -> None:
    assert verdict((Objection("diff-size", "", ""), Objection("secret", "a", ""))) == "deny"


@pytest.mark.attack(33)
def test_a_token_that_nobody_told_us_of_is_not_added() -> None:
    token = f"ghp_{'a1B2' * 9}"
    patch = Patch("0" * 40, (FileChange("a.txt", "", REGULAR, None, f"it is {token}\n".encode()),))
    assert {objection.rule for objection in inspect(patch)} == {"secret"}


@pytest.mark.parametrize(
    ("path", "content", "found"),
    [
        ("tests/test_a.py", "def test_a(): ...", True),
        ("src/a_test.cc", "TEST(A, B) {", True),
        ("Tests/ATests.swift", "func testA() {", True),
        ("tests/run_test.sh", "diff a b", True),
        ("e2e/login.cy.ts", "it('logs in', () => {", True),
        ("src/lib.rs", "pub fn a() {}\n#[cfg(test)]\nmod tests {}", True),
        ("src/lib.rs", "pub fn a() {}", False),
        ("build.rs", "fn main() {}", False),
        ("tests/README.md", "assert that it works", False),
        ("tests/data.json", "{}", False),
        ("tests/__init__.py", "", False),
        ("src/features/login.ts", "export const a = 1", False),
        ("spec/openapi.yaml", "openapi: 3", False),
        ("src/latest.py", "def test(): assert 1", False),
    ],
)
def test_what_of_a_file_is_tests(path: str, content: str, found: bool) -> None:
    assert bool(find_tests(path, content.encode())) == found


def test_comments_blank_lines_and_spacing_are_no_tests() -> None:
    plain = lines_of_tests("tests/test_a.py", b"def test_a():\n    assert f(1)\n")
    assert plain == lines_of_tests("tests/test_a.py", b"# now\n\ndef test_a():\n\tassert f( 1)  \n")
    assert plain != lines_of_tests("tests/test_a.py", b"def test_a():\n    assert f(2)\n")


def test_the_tests_of_a_rust_file_are_what_stands_below_its_code() -> None:
    below = b"#[test]\nfn a() {}\n"
    assert find_tests("src/a.rs", b"fn b() {}\n" + below) == below
