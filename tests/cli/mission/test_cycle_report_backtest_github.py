"""`ralph backtest` on a repository of GitHub whose issues, pull requests and builds have a past."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.forges.github.alerts import code_alert, secret_alert
from tests.fakes.github import FakeGitHub
from tests.fakes.github.nouns import START
from tests.helpers import Result, cli_here, copy_bare, git, make_repo

CI = ".github/workflows/ci.yml"


class Past:
    """Two months, told by `at(day)`."""

    def __init__(self, fake: FakeGitHub, folder: Path) -> None:
        self.fake, self.folder, self.runs = fake, folder, 0
        self.mara, self.ann = fake.person("mara"), fake.person("ann", "read")
        self.token = fake.token()

    def at(self, day: float) -> Past:
        self.fake.clock.now = START + timedelta(days=day)
        return self

    def push(self, conclusion: str = "success") -> None:
        sha = self.mara.push("main", {"a.py": f"x = {self.runs}\n".encode()})
        self.runs += 1
        self.fake.workflow_run(100 + self.runs, "completed", conclusion, "push", path=CI, head_sha=sha)
        if conclusion == "failure":
            self.fake.workflow_job(100 + self.runs, "test", steps=(("pytest", "failure"),))

    def backtest(self, *options: str, **env: str) -> Result:
        place = self.folder / "clone"
        if not place.exists():
            git(self.folder, "clone", "--quiet", str(self.fake.bare), "clone")
        told = {"GITHUB_TOKEN": self.token, "GITHUB_REPOSITORY": self.fake.repository}
        told |= {"GITHUB_API_URL": self.fake.api_url, **env}
        return cli_here("backtest", "--json", "--since", "2026-05-04", "--every", "2w", *options, repo=place, env=told)


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    """Two issues, of which one is answered; a pull request; a build that is mended in two days, and one that is not."""
    start = make_repo(tmp_path / "start", {"a.py": "x = 0\n", CI: "on:\n  push:\njobs: {}\n"}, date=START)
    with FakeGitHub(copy_bare(start, tmp_path / "server.git")) as fake:
        made = Past(fake, tmp_path)
        made.at(1).push()
        answered = made.ann.create_issue("The tide table is an hour late")
        made.ann.create_issue("Charts would be nice in the harbour view")
        made.at(2).mara.push("fix", {"b.py": b"y = 1\n"}, base="main")
        waiting = made.ann.open_pull("fix", "main", "Add b")
        made.at(13).push("failure")
        made.at(15).push()
        made.at(20).mara.merge(waiting)
        made.at(30).mara.comment(answered, "It is the summer time. Fixed soon.")
        made.at(41).push("failure")
        made.at(60).push("failure")
        yield made


def fates(told: Result) -> list[tuple[str, str, str]]:
    """Of each thing the kind with its number, since when it was told, and what became of it."""
    assert told.code == 0, told.err
    items = told.json["items"]
    return sorted((f"{one['kind']} {one['what'].split(' ')[0]}", one["since"][5:10], one["fate"]) for one in items)


def test_what_people_did_later_is_told_of_issues_pull_requests_and_builds(past: Past) -> None:
    first = past.backtest()
    assert fates(first) == [
        ("broken-build main", "05-18", "fixed"),
        ("broken-build main", "06-15", "stayed"),
        ("pull-waiting #3", "05-18", "fixed"),
        ("stale-issue #1", "06-01", "fixed"),
        ("stale-issue #1", "06-29", "too young"),
        ("stale-issue #2", "06-01", "stayed"),
    ]
    assert any(one["kind"] == "broken-build" and one["verdict"] == "fixed" for one in first.json["threads"])
    asked = len(past.fake.journal)
    again = past.backtest()
    assert again.json["items"] == first.json["items"] and again.json["threads"] == first.json["threads"]
    second: list[Any] = past.fake.journal[asked:]
    assert len(second) == asked
    lists = [one for one in second if not one.below.endswith("-scanning/alerts")]  # switched off, and asked for again
    assert {(one.method, one.conditional, one.status) for one in lists} == {("GET", True, 304)}


def test_an_alert_is_found_while_it_was_open_and_closed_by_a_fix_or_by_who_dismissed_it(past: Past) -> None:
    def on(day: float) -> str:
        return (START + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")

    past.fake.world.alerts["code-scanning"] = [
        code_alert(3, "open", "high", created_at=on(10)),
        code_alert(2, "sql", "high", created_at=on(10), fixed_at=on(30), state="fixed"),
        code_alert(1, "weak", "medium", created_at=on(10), dismissed_at=on(30), state="dismissed"),
    ]
    revoked = {"state": "resolved", "resolved_at": on(30), "resolution": "revoked"}
    past.fake.world.alerts["secret-scanning"] = [secret_alert(1, "sesame", created_at=on(10), **revoked)]
    readable = ("issues", "pull_requests", "actions", "security_events", "secret_scanning_alerts")
    past.token = past.fake.token(permissions=dict.fromkeys(readable, "read"))
    told = past.backtest()
    found = {one["what"]: (one["kind"], one["fate"]) for one in told.json["items"] if "alert" in one["kind"]}
    assert found == {
        "Code scanning: What open looks for, 1 alert": ("security-alert", "stayed"),
        "Code scanning: What sql looks for, 1 alert": ("security-alert", "fixed"),
        "Code scanning: What weak looks for, 1 alert": ("code-alert", "withdrawn"),
        "Secret scanning found a secret of the kind Harbour API key": ("security-alert", "fixed"),
    }
    kept = (past.folder / "clone/.git/ralph").rglob("*.json")
    assert not any("sesame" in path.read_text() for path in kept)


def test_where_runs_may_not_be_read_the_rest_is_looked_at(past: Past) -> None:
    past.token = past.fake.token(permissions={"issues": "read", "pull_requests": "read"})
    page = past.folder / "page.html"
    told = past.backtest("--every", "4w", "--output", str(page))
    assert told.code == 0 and any("permissions: actions: read" in one for one in told.json["remarks"])
    assert [kind["kind"] for kind in told.json["kinds"]] == ["stale-issue"]
    assert "stale-issue" in page.read_text()
