"""`ralph publish`: a text from a row of a real database to the folder of a person, through the command line."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.helpers import Result, cli_here, make_repo

CONFIG = """\
observers:
  code: {markers: {}}
  database:
    backend: sqlalchemy
    watches:
      - {name: harbours, table: harbour, top: {order_by: berths, take: 3}, include: [name], kind: content}
hands: {fixers: []}
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose database holds something worth telling."""
    data = tmp_path / "data.db"
    with sqlite3.connect(data) as connection:
        connection.execute("create table harbour (id integer primary key, name text, berths integer)")
        connection.executemany("insert into harbour (name, berths) values (?, ?)", [("Oban", 12), ("Mallaig", 7)])
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{data}")
    for name in ("DISCORD_WEBHOOK_URL", "TELEGRAM_BOT_TOKEN", "TWITTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return make_repo(tmp_path / "repo", {"README.md": "# Harbour\n", "ralph.yml": CONFIG})


def done(*arguments: str, repo: Path) -> Result:
    told = cli_here(*arguments, repo=repo)
    assert told.code == 0, told.err + told.out
    return told


def outbox(repo: Path) -> list[Path]:
    return sorted((repo / ".ralph" / "outbox").glob("*.md"))


def test_from_a_row_to_the_outbox(repo: Path) -> None:
    done("cycle", repo=repo)
    shown = done("issue", "show", "1", repo=repo).out
    assert "### outbox" in shown and "\n1. " in shown and "content:review" in shown, shown
    waits = done("publish", "--issue", "1", "--json", repo=repo).json
    assert (waits["outcome"], waits["posts"], outbox(repo)) == ("nothing", [], [])
    done("issue", "label", "1", "content:approved", repo=repo)
    told = done("publish", "--issue", "1", "--json", repo=repo).json
    assert (told["outcome"], told["code"], told["issue"]) == ("published", 0, 1)
    assert [(post["network"], post["status"]) for post in told["posts"]] == [("outbox", "done")]
    (file,) = outbox(repo)
    text = shown.split("```text\n")[1].split("\n```")[0]
    assert text in file.read_text() and "Oban" in text
    issue = done("issue", "show", "1", repo=repo).out
    assert "content:published" in issue and "content:review" not in issue
    again = done("publish", "--issue", "1", "--json", repo=repo).json
    assert (again["outcome"], again["reason"], len(outbox(repo))) == ("nothing", "it was published already", 1)


@pytest.mark.parametrize(
    ("arguments", "code"), [(("--issue", "99"), 1), ((), 2), (("--issue", "none"), 2), (("--issue", "0"), 2)]
)
def test_what_cannot_be_meant_is_one_line(repo: Path, arguments: tuple[str, ...], code: int) -> None:
    told = cli_here("publish", *arguments, repo=repo)
    assert told.code == code and "Traceback" not in told.err


def test_a_person_is_told_what_it_came_to(repo: Path) -> None:
    done("cycle", repo=repo)
    told = done("publish", "--issue", "1", repo=repo)
    assert told.out == "" and "#1: nothing: A person says yes or no to the texts." in told.err
