"""`ralph sanitize` reads a text and writes a harmless one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.judging import CANARY, FILES, NEW, Judge, append, both, by_patch, by_tree, diff, judged
from tests.helpers import cli_here, git, make_repo, name_drivers
from tests.safety.checker import strange_modes


def test_a_text_comes_out_inert() -> None:
    result = cli_here("sanitize", "--sink", "issue", stdin="@bob fixes #3 <!-- x -->\n")
    assert (result.code, result.out) == (0, "@ bob fixes no. 3 \n")


def test_ordinary_text_comes_out_byte_for_byte() -> None:
    text = "# Häding\n\n`@x` and **bold**, no newline at the end"
    assert cli_here("sanitize", "--sink", "pr", stdin=text).out == text


def test_a_sink_is_needed() -> None:
    assert cli_here("sanitize", stdin="x").code == 2


def test_an_unknown_sink_is_wrong_usage() -> None:
    result = cli_here("sanitize", "--sink", "nowhere", stdin="x")
    assert result.code == 2
    assert "nowhere" in result.err


def test_the_sinks_of_the_command_are_those_of_the_library() -> None:
    from ralph_mission.cli.mission.policy import SINKS
    from ralph_mission.safety.text import LIMITS

    assert set(SINKS) == set(LIMITS)


# --- `ralph policy check` as a person or a script meets it. ---


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


@both
def test_an_honest_patch_of_49_lines_is_allowed(repo: Path, judge: Judge) -> None:
    append(repo, "".join(f"more_{n} = {n}\n" for n in range(49)))
    result = judge(repo)
    assert (result.code, result.err) == (0, "")
    assert result.json["verdict"] == "allow"
    assert result.json["tier"] == "low"
    assert result.json["lines"] == 49


@both
def test_a_patch_of_50_lines_is_held(repo: Path, judge: Judge) -> None:
    append(repo, "".join(f"more_{n} = {n}\n" for n in range(50)))
    result = judge(repo)
    assert (result.code, result.json["verdict"], result.json["tier"], result.json["rules"]) == (
        1,
        "hold",
        "high",
        ["diff-size"],
    )


def test_the_document_has_exactly_the_promised_keys(repo: Path) -> None:
    append(repo, "x = 1\n")
    document = by_tree(repo).json
    assert set(document) == {"verdict", "tier", "rules", "files", "lines", "bytes"}
    assert document["files"] == [{"path": "src/app.py", "status": "M", "lines": 1, "bytes": 6, "mode": "100644"}]


HONEST = {
    "src/Panel.tsx": 'export const label_{n} = (props: Props) => <Label for="{n}">{{props.name}}</Label>;\n',
    "pkg/panel.go": 'func (p *Panel) Name{n}() (string, error) {{ return fmt.Sprintf("%s-{n}", p.name), nil }}\n',
    "lib/panel.py": '    "{n}": lambda panel, /, *, width=80: f"{{panel.name:<{{width}}}} has {n} parts",\n',
    "docs/panel.md": "{n}. A **panel** holds [parts](parts.md), and `panel.name` says which; "
    + "and so on, " * 20
    + "\n",
    "data/panel.json": '  "panel-{n}": {{"name": "Größe {n}", "parts": [1, 2, 3], "note": "' + "words " * 25 + '"}},\n',
}


@pytest.mark.parametrize("name", HONEST)
def test_49_honest_lines_of_any_language_pass_and_50_do_not(repo: Path, name: str) -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    for count, rules in ((49, []), (50, ["diff-size"])):
        (repo / name).write_text("".join(HONEST[name].format(n=n) for n in range(count)))
        assert by_patch(repo).json["rules"] == rules


def test_e33_a_secret_of_the_environment_is_denied_and_never_shown(repo: Path) -> None:
    append(repo, f"x = '{CANARY}'\n")
    result = cli_here("policy", "check", "--json", repo=repo, env={"GITHUB_TOKEN": CANARY})
    assert (result.code, result.json["verdict"], result.json["rules"]) == (1, "deny", ["secret"])
    assert CANARY not in result.out + result.err


def test_a_lower_limit_in_the_committed_settings_counts_and_a_changed_file_does_not_loosen_it(repo: Path) -> None:
    (repo / "ralph.yml").write_text("limits: {auto_pr_lines: 2}\n")
    git(repo, "add", "ralph.yml")
    git(repo, "-c", "user.name=x", "-c", "user.email=x@y.z", "commit", "--quiet", "-m", "x")
    append(repo, "a = 1\nb = 2\nc = 3\n")
    (repo / "ralph.yml").write_text("limits: {auto_pr_lines: 49}\n")
    assert by_tree(repo).json["rules"] == ["diff-size", "protected-path"]


@pytest.mark.parametrize(
    "text",
    ["no diff\n", NEW.format("Makefile", "100644"), "diff --git a/q b/q\n--- a/q\n+++ b/q\n@@ -1 +1 @@\n-a\n+b\n"],
)
def test_a_patch_that_cannot_be_evaluated_is_denied_with_the_rule_and_the_reason(repo: Path, text: str) -> None:
    result = judged(repo, text)
    assert (result.code, result.json["verdict"], result.json["rules"]) == (1, "deny", ["diff-size"])
    assert "cannot be evaluated" in result.err


def test_the_human_answer_names_rule_path_reason_and_what_to_do(repo: Path) -> None:
    append(repo, "all: x\n", "Makefile")
    result = cli_here("policy", "check", repo=repo)
    assert result.code == 1
    assert "hold: 1 file, 1 line," in result.out
    assert "protected-path: Makefile" in result.out
    assert "next: " in result.out


def test_an_odd_name_is_written_out(repo: Path) -> None:
    (repo / "new\nline\x1b[31m.py").write_text("x\n")
    result = cli_here("policy", "check", repo=repo)
    assert "\x1b" not in result.out
    assert "\\n" in result.out


def test_a_name_that_is_not_utf8_is_judged(repo: Path) -> None:
    with open(os.fsencode(repo) + b"/caf\xe9.py", "wb") as file:
        file.write(b"x\n")
    assert by_tree(repo).code == 0


def test_a_clean_work_tree_is_allowed(repo: Path) -> None:
    assert by_tree(repo).json["verdict"] == "allow"


def test_a_patch_file_that_is_not_there_is_wrong_usage(repo: Path) -> None:
    result = cli_here("policy", "check", "--patch", str(repo / "nowhere"), repo=repo)
    assert result.code == 2
    assert "no such file" in result.err


def test_a_patch_comes_through_a_pipe_byte_for_byte(repo: Path) -> None:
    append(repo, "naïve = 1\n")
    result = cli_here("policy", "check", "--patch", "-", "--json", repo=repo, stdin=diff(repo))
    assert (result.code, result.json["lines"]) == (0, 1)


# --- `ralph policy check`: no way around it that is known leads anywhere. ---


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


@pytest.mark.long  # the measure has its tests on the same patches
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
    name_drivers(repo, witness)
    assert "protected-path" in by_tree(repo).json["rules"]
    assert (
        "protected-path" in judged(repo, NEW.format(".gitattributes", "100644")).json["rules"] or not witness.exists()
    )
    assert not witness.exists()


@pytest.mark.parametrize("path", [".github/workflows/x.yml", "sub/conftest.py", "ralph.yml"])
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


# --- config show: the settings that count, and where each was set ---


def test_what_is_set_is_shown_with_its_file_and_the_rest_has_its_default(tmp_path: Path) -> None:
    settings = "limits: {active_missions: 2}\nowners: [mara]\n"
    repo = make_repo(tmp_path / "repo", {"ralph.yml": settings})
    lines = cli_here("config", "show", repo=repo).out.splitlines()
    assert [line.split("  # ") for line in lines[:1]] == [["limits.active_missions: 2", "ralph.yml"]]
    assert "mara" in lines[1] and len(lines) == 3
    assert lines[-1] == "# everything else has its default: docs/configuration.md"
    found = cli_here("config", "show", "--json", repo=repo).json
    assert {"key": "limits.active_missions", "value": 2, "file": "ralph.yml"} in found["set"]
    assert found["settings"]["memory"]["branch"] == "ralph-memory"
    bare = make_repo(tmp_path / "bare")
    assert cli_here("config", "show", repo=bare).out == "# everything has its default: docs/configuration.md\n"
