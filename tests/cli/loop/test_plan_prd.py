"""`ralph agent prd` as a person and as an agent without a terminal use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import cli_here

DOCUMENT = "# PRD: Due dates\n\n### US-001: Add a due date to the database\nStored.\n\n- [ ] Migration adds `due_on`\n"


def test_new_has_an_agent_write_the_stories(tmp_path: Path) -> None:
    result = cli_here("prd", "new", "--help", repo=tmp_path)
    assert (result.code, "Let an agent write prd.json for TASK" in result.out) == (0, True)


def test_converting_adds_what_every_story_has_and_says_what_is_left_to_mend(tmp_path: Path) -> None:
    (tmp_path / "d.md").write_text(DOCUMENT.replace("`due_on`", "`due_on`\n- [ ] TBD"))
    result = cli_here("agent", "prd", "convert", str(tmp_path / "d.md"), "--json", repo=tmp_path)
    assert result.code == 0
    assert [finding["rule"] for finding in result.json["findings"]] == ["placeholder"]
    stories = json.loads((tmp_path / "prd.json").read_text())["userStories"]
    assert stories[0]["acceptanceCriteria"][-1] == "Typecheck passes"


def test_converting_another_feature_puts_the_list_and_log_of_the_last_one_away(tmp_path: Path) -> None:
    (tmp_path / "d.md").write_text(DOCUMENT)
    old = '{"branchName": "ralph/old", "userStories": [{"id": "US-001", "title": "Old"}]}'
    (tmp_path / "prd.json").write_text(old)
    (tmp_path / "progress.txt").write_text("# Ralph Progress Log\n## 2026-01-01 - US-001\n- x\n---\n")
    result = cli_here(
        "prd", "convert", str(tmp_path / "d.md"), "--now", "2026-05-04T12:00:00Z", "--json", repo=tmp_path
    )
    folder = tmp_path / "archive" / "2026-05-04-old"
    assert (result.code, result.json["archived"]) == (0, str(folder))
    assert (folder / "prd.json").read_text() == old
    assert "US-001" in (folder / "progress.txt").read_text()
    assert "US-001" not in (tmp_path / "progress.txt").read_text()
    assert (tmp_path / ".last-branch").read_text() == "ralph/due-dates\n"


def test_converting_the_same_feature_again_needs_force_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "d.md").write_text(DOCUMENT)
    assert cli_here("agent", "prd", "convert", str(tmp_path / "d.md"), repo=tmp_path).code == 0
    before = (tmp_path / "prd.json").read_text()
    again = cli_here("agent", "prd", "convert", str(tmp_path / "d.md"), repo=tmp_path)
    assert (again.code, "--force" in again.err) == (64, True)
    assert cli_here("agent", "prd", "convert", str(tmp_path / "d.md"), "--force", repo=tmp_path).code == 0
    assert [path.read_text() for path in tmp_path.glob("archive/*/prd.json")] == [before]


@pytest.mark.parametrize("spelling", ["agent prd lint", "agent prd check", "prd check"])
def test_a_list_with_something_to_mend_ends_with_1(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "prd.json").write_text('{"branchName": "b", "userStories": [{"id": "US-001", "title": "Add auth"}]}')
    result = cli_here(*spelling.split(), repo=tmp_path)
    assert result.code == 1
    assert "[criteria-missing]" in result.out
    document = cli_here("agent", "prd", "lint", "--json", repo=tmp_path).json
    assert {finding["rule"] for finding in document["findings"]} == {"criteria-missing"}


def test_a_markdown_file_is_checked_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "d.md").write_text(DOCUMENT.replace("Stored.", "TBD"))
    result = cli_here("agent", "prd", "lint", str(tmp_path / "d.md"), "--json")
    assert [finding["rule"] for finding in result.json["findings"]] == ["placeholder"]


@pytest.mark.parametrize("content", [None, b"{", b"\xff", b"[" * 200_000])
def test_what_cannot_be_read_ends_with_64(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "prd.json").write_bytes(content)
    result = cli_here("agent", "prd", "lint", "--json", repo=tmp_path)
    assert (result.code, result.json["error"]["who"]) == (64, "you")
    assert cli_here("agent", "prd", "lint", str(tmp_path / "prd.json")).code == 64


def test_a_story_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "prd.json").write_text('{"userStories": [{"id": "\\u001b[2J", "title": "Add auth"}]}')
    assert "\x1b" not in cli_here("agent", "prd", "lint", repo=tmp_path).out


def test_the_skills_are_copied_with_a_head_that_agents_read(tmp_path: Path) -> None:
    assert cli_here("agent", "prd", "skills", repo=tmp_path).code == 0
    for name in ("prd", "ralph"):
        head = (tmp_path / "skills" / name / "SKILL.md").read_text().split("---\n")[1]
        assert head.startswith(f'name: {name}\ndescription: "')
    assert cli_here("agent", "prd", "skills", repo=tmp_path).code == 0  # the same again is nothing to refuse
    (tmp_path / "skills/prd/SKILL.md").write_text("mine")
    assert cli_here("agent", "prd", "skills", repo=tmp_path).code == 64


def test_the_example_in_the_skill_is_a_good_list(tmp_path: Path) -> None:
    cli_here("agent", "prd", "skills", repo=tmp_path)
    text = (tmp_path / "skills/ralph/SKILL.md").read_text().split("```json\n")[1].split("```")[0]
    (tmp_path / "prd.json").write_text(text)
    assert cli_here("agent", "prd", "lint", repo=tmp_path).code == 0


def test_the_example_in_the_other_skill_is_a_good_story(tmp_path: Path) -> None:
    cli_here("agent", "prd", "skills", repo=tmp_path)
    text = (tmp_path / "skills/prd/SKILL.md").read_text().split("```markdown\n")[1].split("```")[0]
    (tmp_path / "d.md").write_text(f"# Due dates\n\n{text}")
    assert cli_here("agent", "prd", "lint", str(tmp_path / "d.md")).code == 0


def test_the_skill_asks_a_few_questions_with_lettered_options(tmp_path: Path) -> None:
    cli_here("agent", "prd", "skills", repo=tmp_path)
    asks = (tmp_path / "skills/prd/SKILL.md").read_text().split("## 1. Ask")[1].split("\n## ")[0]
    assert "three to five questions" in asks and "lettered options" in asks and "“1A, 2C, 3B”" in asks
    assert [line[0] for line in asks.splitlines() if line[1:3] == ". "] == list("12345")


def test_a_hint_to_convert_names_what_it_takes(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    take = f"ralph agent prd convert --repo {repo} FILE"
    assert cli_here("agent", "prd", "lint", repo=repo).err.endswith(f"Name the file, or make one: {take}\n")
    (tmp_path / "prd.json").write_text("[")
    found = cli_here("agent", "prd", "lint", str(tmp_path / "prd.json"), repo=repo).err
    assert found.endswith(f"Fix it, or make one from markdown: {take}\n")
    (tmp_path / "prd.md").write_text("# Nothing\n")
    assert cli_here("agent", "prd", "convert", str(tmp_path / "prd.md"), repo=repo).err.endswith("Fix it\n")
