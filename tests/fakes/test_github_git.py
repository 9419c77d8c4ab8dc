"""The fake GitHub: git over smart HTTP, tokens, and what GitHub refuses on its side of a push."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.nouns import Request
from tests.fakes.github.server import FakeGitHub
from tests.helpers import commit, git


@pytest.fixture
def clone(fake: FakeGitHub, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", str(fake.bare), "clone")
    return tmp_path / "clone"


def pushed(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0


def test_lease_is_a_compare_and_swap(fake: FakeGitHub, api: Client, clone: Path) -> None:
    sha = commit(clone, {"ours": "x\n"})
    assert pushed(api.git(clone, "push", "--force-with-lease=refs/heads/new:", "URL", "HEAD:refs/heads/new"))
    moved = fake.push("new", {"theirs": b"x\n"})
    assert not pushed(
        api.git(clone, "push", f"--force-with-lease=refs/heads/new:{sha}", "URL", "HEAD~1:refs/heads/new")
    )
    assert fake.branch("new") == moved


def test_ref_that_moves_under_a_push_is_refused(fake: FakeGitHub, api: Client, clone: Path) -> None:
    commit(clone, {"ours": "x\n"})

    def race(request: Request) -> None:
        if request.below == "/git-receive-pack":
            fake.push("main", {"theirs": b"x\n"})

    fake.before(race)
    done = api.git(clone, "push", "URL", "HEAD:main")
    assert not pushed(done) and "[remote rejected]" in done.stderr


# --- who may


@pytest.mark.parametrize(
    ("login", "scopes", "words"),
    [
        (
            "github-actions[bot]",
            ("repo",),
            "refusing to allow a GitHub App to create or update workflow "
            "`.github/workflows/ci.yml` without `workflows` permission",
        ),
        (
            "mara",
            ("repo",),
            "refusing to allow a Personal Access Token to create or update workflow "
            "`.github/workflows/ci.yml` without `workflow` scope",
        ),
    ],
)
def test_workflows_are_not_pushed_without_leave(
    fake: FakeGitHub, clone: Path, login: str, scopes: tuple[str, ...], words: str
) -> None:
    client = Client(fake, fake.token(login, scopes=scopes))
    commit(clone, {".github/workflows/ci.yml": "on: push\n"})
    done = client.git(clone, "push", "URL", "HEAD:refs/heads/x")
    assert not pushed(done) and words in done.stderr
    assert fake.branch("x") == ""
    assert pushed(Client(fake, fake.token("mara")).git(clone, "push", "URL", "HEAD:refs/heads/x"))
    commit(clone, {"a": "a\n"})
    assert pushed(client.git(clone, "push", "URL", "HEAD:refs/heads/y"))  # the workflow is known by now


# --- protection


# --- faults


def test_push_is_applied_although_the_answer_is_lost(fake: FakeGitHub, api: Client, clone: Path) -> None:
    for kind, applied in (
        ("502_not_applied", False),
        ("reset_not_applied", False),
        ("502_applied", True),
        ("reset_applied", True),
    ):
        fake.fail(kind, ("POST", "/git-receive-pack"))
        sha = commit(clone, {"a": kind})
        assert not pushed(api.git(clone, "push", "URL", f"HEAD:refs/heads/{kind}"))
        assert fake.branch(kind) == (sha if applied else "")
    assert not fake.faults
