"""`ralph policy check`: no way around it that is known leads anywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.judging import FILES, NEW, Judge, append, both, by_tree, judged
from tests.helpers import cli_here, git, make_repo
from tests.safety.checker import strange_modes


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


def make_attributes(repo: Path) -> None:
    (repo / ".gitattributes").write_text("* -diff\n")
    append(repo, "x = 1\n" * 500)


def make_executable(repo: Path) -> None:
    (repo / "run.sh").chmod(0o755)


def make_rename(repo: Path) -> None:
    git(repo, "mv", "src/app.py", "src/other.py")


def make_symlink(repo: Path) -> None:
    (repo / "link").symlink_to("/etc/passwd")


def make_empty_conftest(repo: Path) -> None:
    (repo / "conftest.py").write_text("")


def make_gitlink(repo: Path) -> None:
    make_repo(repo / "nested")


EVASIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "attributes that hide 500 lines": (make_attributes, "diff-size"),
    "one NUL byte": (lambda repo: append(repo, "\0" + "x = 1\n" * 500), "diff-size"),
    "a pure rename": (make_rename, "diff-size"),
    "chmod +x": (make_executable, "file-mode"),
    "an empty conftest": (make_empty_conftest, "protected-path"),
    "a line of 800 kB": (lambda repo: append(repo, "x" * 800_000 + "\n"), "diff-size"),
    "500 lines by CR": (lambda repo: append(repo, "x = 1\r" * 500), "diff-size"),
    "300 lines by U+2028": (lambda repo: append(repo, "x = 1\u2028" * 300), "diff-size"),
    "300 lines by U+2029": (lambda repo: append(repo, "x = 1\u2029" * 300), "diff-size"),
    "300 lines by form feed": (lambda repo: append(repo, "x = 1\f" * 300), "diff-size"),
    "300 lines by vertical tab": (lambda repo: append(repo, "x = 1\v" * 300), "diff-size"),
    "300 lines by U+0085": (lambda repo: append(repo, "x = 1\x85" * 300), "diff-size"),
    "a symlink": (make_symlink, "file-mode"),
}


@both
@pytest.mark.parametrize("evasion", EVASIONS)
@pytest.mark.attack(50)
def test_e50_no_way_around_the_measure(repo: Path, judge: Judge, evasion: str) -> None:
    make, rule = EVASIONS[evasion]
    make(repo)
    result = judge(repo)
    assert result.code == 1
    assert rule in result.json["rules"]


@pytest.mark.attack(47, 50)
def test_e47_e50_a_gitlink_is_held(repo: Path) -> None:
    make_gitlink(repo)
    assert "file-mode" in by_tree(repo).json["rules"]
    git(repo, "add", "nested")
    patch = git(repo, "diff", "--cached") + "\n"
    assert "file-mode" in cli_here("policy", "check", "--json", "--patch", "-", repo=repo, stdin=patch).json["rules"]


@pytest.mark.attack(50)
def test_e50_the_independent_checker_agrees_on_modes(repo: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    make_executable(repo)
    make_symlink(repo)
    append(repo, "x = 1\n")
    held = [line for line in cli_here("policy", "check", repo=repo).out.splitlines() if "file-mode" in line]
    git(repo, "add", "--all")
    git(repo, "-c", "user.name=x", "-c", "user.email=x@y.z", "commit", "--quiet", "-m", "x")
    assert sorted(strange_modes(repo, base, "HEAD")) == sorted(line.split()[1] for line in held)


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        ".git/config",
        ".GIT/config",
        "git~1/config",
        ".g\u200cit/config",
        "/etc/x",
        "a/../../x",
        ".git./x",
        "a/.git/x",
    ],
)
@pytest.mark.attack(45)
def test_e45_an_unsafe_path_is_denied_by_scope(repo: Path, path: str) -> None:
    result = judged(repo, NEW.format(path, "100644"))
    assert (result.code, result.json["verdict"]) == (1, "deny")
    assert "scope" in result.json["rules"]


@pytest.mark.attack(46)
def test_e46_a_symlink_and_a_write_through_it_are_denied(repo: Path) -> None:
    result = judged(repo, NEW.format("out", "120000") + NEW.format("out/x", "100644"))
    assert (result.code, result.json["verdict"]) == (1, "deny")


@pytest.mark.parametrize("mode", ["040000", "100664", "100600", "107777"])
@pytest.mark.attack(50)
def test_e50_a_mode_that_git_would_quietly_change_is_named(repo: Path, mode: str) -> None:
    assert "file-mode" in judged(repo, NEW.format("odd", mode)).json["rules"]


@pytest.mark.attack(50)
def test_e50_a_rename_and_a_copy_as_git_writes_them_are_measured_whole(repo: Path) -> None:
    rename = "diff --git a/src/app.py b/src/b.py\nsimilarity index 100%\nrename from src/app.py\nrename to src/b.py\n"
    for text, lines in ((rename, 400), (rename.replace("rename", "copy"), 200)):
        result = judged(repo, text)
        assert (result.json["rules"], result.json["lines"]) == (["diff-size"], lines)


@pytest.mark.parametrize("path", [".gitmodules", "sub/.gitmodules"])
@pytest.mark.attack(47)
def test_e47_submodule_settings_are_held(repo: Path, path: str) -> None:
    text = (
        NEW.format(path, "100644").replace("+hi", '+[submodule "x"]').replace("@@ -0,0 +1 @@", "@@ -0,0 +1,2 @@")
        + "+url = ext::sh\n"
    )
    assert "protected-path" in judged(repo, text).json["rules"]


@pytest.mark.attack(48)
def test_e48_attributes_are_held_and_no_driver_runs(repo: Path, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    for key in (
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.textconv",
        "diff.evil.command",
        "merge.evil.driver",
    ):
        git(repo, "config", key, f"touch {witness}; cat")
    (repo / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    assert "protected-path" in by_tree(repo).json["rules"]
    assert (
        "protected-path" in judged(repo, NEW.format(".gitattributes", "100644")).json["rules"] or not witness.exists()
    )
    assert not witness.exists()


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/x.yml",
        ".GitHub/x.yml",
        "CODEOWNERS",
        ".husky/x",
        ".claude/settings.json",
        ".mcp.json",
        "AGENTS.md",
        "sub/conftest.py",
        "x.pth",
        "setup.py",
        "package.json",
        "poetry.lock",
        "ralph.yml",
        "action.yml",
        ".ralph/x",
    ],
)
@pytest.mark.attack(49)
def test_e49_a_protected_path_is_held(repo: Path, path: str) -> None:
    result = judged(repo, NEW.format(path, "100644"))
    assert (result.code, result.json["verdict"], result.json["rules"]) == (1, "hold", ["protected-path"])


@both
@pytest.mark.attack(54)
def test_e54_a_deleted_test_is_pointed_out(repo: Path, judge: Judge) -> None:
    (repo / "tests/test_app.py").unlink()
    result = judge(repo)
    assert result.json["verdict"] == "allow" and "look at this first: it deletes a test file" in result.err
