"""The fake GitHub: git over smart HTTP, tokens, and what GitHub refuses on its side of a push."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.faults import Crash
from tests.fakes.github.nouns import Request
from tests.fakes.github.server import FakeGitHub
from tests.helpers import commit, git


@pytest.fixture
def clone(fake: FakeGitHub, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", str(fake.bare), "clone")
    return tmp_path / "clone"


def pushed(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0


def test_push_by_token_arrives_and_is_in_the_journal(fake: FakeGitHub, api: Client, clone: Path) -> None:
    sha = commit(clone, {"a.txt": "a\n"})
    assert pushed(api.git(clone, "push", "URL", "HEAD:refs/heads/ralph/fix"))
    assert fake.branch("ralph/fix") == sha
    wire = [(request.method, request.below) for request in fake.journal if request.status == 200]
    assert wire == [("GET", "/info/refs?service=git-receive-pack"), ("POST", "/git-receive-pack")]
    assert fake.count("git") == 3 and fake.count("git", status=401) == 1  # git asks first without the token
    assert fake.journal[-1].login == "github-actions[bot]"


def test_fetch_by_token_and_by_header(fake: FakeGitHub, api: Client, clone: Path) -> None:
    sha = fake.push("topic", {"a": b"a\n"})
    assert pushed(api.git(clone, "fetch", "URL", "topic"))
    assert git(clone, "rev-parse", "FETCH_HEAD") == sha
    header = f"http.extraHeader=Authorization: bearer {api.token}"
    assert pushed(api.git(clone, "-c", header, "push", fake.git_url, f"{sha}:refs/heads/second"))
    assert fake.branch("second") == sha


def test_large_push_arrives(fake: FakeGitHub, api: Client, clone: Path) -> None:
    import random

    sha = commit(clone, {"big.bin": random.Random(1).randbytes(3_000_000)})  # more than git sends in one piece
    assert pushed(api.git(clone, "push", "URL", "HEAD:refs/heads/big"))
    assert fake.branch("big") == sha


def test_push_that_is_no_fast_forward_is_rejected(fake: FakeGitHub, api: Client, clone: Path) -> None:
    theirs = fake.push("main", {"theirs": b"x\n"})
    commit(clone, {"ours": "x\n"})
    done = api.git(clone, "push", "URL", "HEAD:main")
    assert not pushed(done) and "[rejected]" in done.stderr
    assert fake.branch("main") == theirs


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


def test_push_moves_pulls_and_closes_issues(fake: FakeGitHub, api: Client, clone: Path) -> None:
    number = fake.person("mara").create_issue("One")
    commit(clone, {"a": "a\n"})
    assert pushed(api.git(clone, "push", "URL", "HEAD:refs/heads/topic"))
    pull = fake.person("mara").open_pull("topic", "main", "A")
    sha = commit(clone, {"b": "b\n"}, message=f"Fixes #{number}")
    assert pushed(api.git(clone, "push", "URL", "HEAD:refs/heads/topic"))
    assert fake.pull(pull).pull.head_sha == sha == git(fake.bare, "rev-parse", f"refs/pull/{pull}/head")
    assert fake.issue(number).state == "open"
    assert pushed(Client(fake, fake.token("mara")).git(clone, "push", "URL", "HEAD:main"))
    assert (fake.issue(number).state, fake.pull(pull).pull.merge_sha) == ("closed", sha)
    assert fake.issue(number).closed_by.login == "mara"


# --- who may


def test_unknown_token_gets_nothing(fake: FakeGitHub, clone: Path) -> None:
    stranger, fake.world.private = Client(fake, "ghp_wrong"), True
    assert "Authentication failed" in stranger.git(clone, "fetch", "URL").stderr
    assert "Authentication failed" in stranger.git(clone, "push", "URL", "HEAD:refs/heads/x").stderr


def test_public_repository_is_read_by_anyone_and_pushed_by_none(fake: FakeGitHub, clone: Path) -> None:
    anyone = Client(fake, "")
    assert pushed(anyone.git(clone, "fetch", "URL", "main"))
    assert not pushed(anyone.git(clone, "push", "URL", "HEAD:refs/heads/x"))
    fake.world.private = True
    assert not pushed(anyone.git(clone, "fetch", "URL", "main"))


def test_reader_does_not_push(fake: FakeGitHub, clone: Path) -> None:
    reader = Client(fake, fake.token(permissions={"contents": "read"}))
    done = reader.git(clone, "push", "URL", "HEAD:refs/heads/x")
    assert "Permission to harbour/slackwater.git denied to github-actions[bot]." in done.stderr and "403" in done.stderr
    assert pushed(reader.git(clone, "fetch", "URL", "main"))


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


def test_protected_branch_takes_no_push(fake: FakeGitHub, api: Client, clone: Path) -> None:
    fake.protect("main", required_reviews=1)
    commit(clone, {"a": "a\n"})
    done = api.git(clone, "push", "URL", "HEAD:main", "HEAD:refs/heads/other")
    assert "GH006: Protected branch update failed for refs/heads/main." in done.stderr
    assert "(protected branch hook declined)" in done.stderr
    assert fake.branch("main") == git(clone, "rev-parse", "HEAD~1")
    assert fake.branch("other") == git(clone, "rev-parse", "HEAD")
    fake.unprotect("main")
    assert pushed(api.git(clone, "push", "URL", "HEAD:main"))


@pytest.mark.parametrize("rule", [{"restrict_pushes": True}, {"required_checks": ("ci",)}])
def test_other_rules_refuse_pushes_too(fake: FakeGitHub, api: Client, clone: Path, rule: dict[str, bool]) -> None:
    fake.protect("main", **rule)
    commit(clone, {"a": "a\n"})
    assert "GH006" in api.git(clone, "push", "URL", "HEAD:main").stderr


def test_unsigned_commits_are_refused_where_signatures_are_required(fake: FakeGitHub, api: Client, clone: Path) -> None:
    fake.protect("ralph-memory", required_signatures=True)
    sha = commit(clone, {"a": "a\n"})
    done = api.git(clone, "push", "URL", "HEAD:refs/heads/ralph-memory")
    assert "GH013: Repository rule violations found for refs/heads/ralph-memory." in done.stderr
    assert f"remote:   {sha}" in done.stderr and "push declined due to repository rule violations" in done.stderr
    assert fake.branch("ralph-memory") == ""


def test_default_branch_and_pulls_refs_are_not_deleted_or_written(fake: FakeGitHub, api: Client, clone: Path) -> None:
    assert not pushed(api.git(clone, "push", "URL", ":main"))
    assert "deny updating a hidden ref" in api.git(clone, "push", "URL", "HEAD:refs/pull/1/head").stderr
    assert fake.branch("main")


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


def test_info_refs_can_fail_on_its_own(fake: FakeGitHub, api: Client, clone: Path) -> None:
    fake.fail("500", ("GET", "/info/refs?service=git-upload-pack"))
    assert "500" in api.git(clone, "fetch", "URL").stderr
    assert pushed(api.git(clone, "fetch", "URL"))


def test_git_follows_a_renamed_repository(fake: FakeGitHub, api: Client, clone: Path) -> None:
    fake.fail("redirect", ("GET", "/info/refs*"), times=1)
    assert pushed(api.git(clone, "fetch", "URL", "main"))


def test_crash_after_a_push_leaves_it_applied(fake: FakeGitHub, api: Client, clone: Path) -> None:
    def crash(request: Request, response: object) -> None:
        if request.below == "/git-receive-pack":
            raise Crash

    remove = fake.after(crash)
    sha = commit(clone, {"a": "a\n"})
    assert not pushed(api.git(clone, "push", "URL", "HEAD:refs/heads/x"))
    assert fake.branch("x") == sha
    remove()
    assert pushed(api.git(clone, "push", "URL", "HEAD:refs/heads/y"))
