"""`ralph report`: one page in the repository's own folder, or markdown and JSON on standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.loop_world import world
from tests.helpers import cli_here, git, make_repo


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repo = make_repo(tmp_path_factory.mktemp("report") / "repo", {"a.py": "import os\n", "b.py": "# TODO: b\n"})
    cli_here("cycle", "--force", repo=repo)
    return repo


def test_a_page_is_written_where_git_does_not_see_it(lived: Path) -> None:
    result = cli_here("report", repo=lived)
    text = (lived / ".ralph/report.html").read_text()
    assert result.out.strip().endswith(".ralph/report.html")
    assert text.startswith("<!doctype html>") and "Waiting for you" in text
    assert "<script" not in text and "<link" not in text and " src=" not in text


def test_markdown_and_json_go_to_standard_output(lived: Path) -> None:
    assert cli_here("report", "--format", "md", repo=lived).out.startswith("Ralph looks after")
    assert json.loads(cli_here("report", "--json", repo=lived).out)["cycle"] == 1


def test_before_the_first_cycle_each_format_says_so(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.py": "pass\n"})
    told = cli_here("report", "--format", "md", repo=repo)
    assert (told.code, told.err) == (0, "") and told.out.count("\n") == 1
    assert (
        told.out.startswith("no cycle has run here yet; to see what it would do: ")
        and " --staged; to start: " in told.out
    )
    document = cli_here("report", "--format", "json", repo=repo)
    assert document.code == 0 and (document.json["cycle"], document.json["missions"]) == (0, [])
    assert cli_here("report", repo=repo).code == 0
    assert "No cycle has run here yet" in (repo / ".ralph/report.html").read_text()


def test_a_report_of_memory_on_a_server_is_refused_as_status_is(lived: Path, tmp_path: Path) -> None:
    git(lived, "clone", "-q", str(lived), str(tmp_path / "clone"))
    for form in ("html", "md", "json"):
        told = cli_here("report", "--format", form, repo=tmp_path / "clone")
        assert told.code == 2 and "is on its server" in told.err


def test_a_file_is_written_on_demand(lived: Path, tmp_path: Path) -> None:
    for form in ("html", "md", "json"):
        cli_here("report", "--format", form, "--output", str(tmp_path / form), repo=lived)
        assert (tmp_path / form).stat().st_size > 100
    refused = cli_here("report", "--output", str(tmp_path / "no/such/folder"), repo=lived)
    assert refused.code == 1 and "cannot be written" in refused.err


def test_only_a_page_can_be_opened(lived: Path) -> None:
    refused = cli_here("report", "--open", "--json", repo=lived)
    assert refused.code == 2 and "only a page can be opened" in refused.err


def test_what_was_approved_is_not_asked_for_again(lived: Path) -> None:
    (waiting,) = json.loads(cli_here("report", "--json", repo=lived).out)["waiting"]
    assert cli_here("pr", "approve", str(waiting["number"]), repo=lived).code == 0
    told = cli_here("status", repo=lived).out
    assert "approved; the next cycle merges it" in told and "Waiting for you" not in told
    report = json.loads(cli_here("report", "--json", repo=lived).out)
    assert report["waiting"] == [] and report["missions"][0]["next_step"] == "approved; the next cycle merges it"
    assert cli_here("status", "--json", repo=lived).json["waiting"] == []


def test_after_a_loop_alone_the_loop_is_reported(tmp_path: Path) -> None:
    here = world(tmp_path)
    assert here.run("Write it", *here.agent("change()\nprint('LOOP_COMPLETE')")).code == 0
    told = cli_here("report", "--json", repo=here.repo).json
    (loop,) = told["loops"]
    assert (loop["run"], loop["sessions"], told["cycle"], told["cycles"]) == ("run-1", 1, 0, [])
    assert loop["state"].startswith("complete")
    assert cli_here("report", repo=here.repo).code == 0
    text = (here.repo / ".ralph/report.html").read_text()
    assert "No cycle has run here yet" in text and "run-1" in text and "Cycles and their triggers" not in text
