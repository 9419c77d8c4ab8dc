"""`ralph policy check` as a person or a script meets it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.judging import CANARY, FILES, NEW, Judge, append, both, by_patch, by_tree, diff, judged
from tests.helpers import cli_here, git, make_repo


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


@both
def test_hidden_text_is_denied(repo: Path, judge: Judge) -> None:
    append(repo, "x = '\u202e'\n")
    assert judge(repo).json["verdict"] == "deny"


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


def test_a_folder_without_a_repository_is_wrong_usage(tmp_path: Path) -> None:
    assert cli_here("policy", "check", repo=tmp_path).code == 2


def test_a_patch_comes_through_a_pipe_byte_for_byte(repo: Path) -> None:
    append(repo, "naïve = 1\n")
    result = cli_here("policy", "check", "--patch", "-", "--json", repo=repo, stdin=diff(repo))
    assert (result.code, result.json["lines"]) == (0, 1)
