"""Git over HTTP with a token: what is brought here, what moves there, what is refused and in which words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import FETCHED_REFS, Denied, Remote, place, read_shared
from ralph_mission.errors import UserError
from tests.fakes.github.server import FakeGitHub
from tests.helpers import NOON, commit, copy_bare, git, make_repo

HERE = {"GITHUB_REPOSITORY": "mara/slackwater", "GITHUB_TOKEN": "a-token-of-nobody"}


@pytest.mark.attack(60)
@pytest.mark.parametrize("url", ["http://api.example.org", "https://mara:hunter2@api.example.org", "ftp://example.org"])
def test_the_token_goes_to_no_address_in_clear_and_to_none_with_a_user(url: str) -> None:
    assert place({**HERE, "GITHUB_API_URL": "http://127.0.0.1:1"}).api == "http://127.0.0.1:1"
    with pytest.raises(UserError, match="is not an https address"):
        place({**HERE, "GITHUB_API_URL": url})


@pytest.mark.attack(45)
@pytest.mark.parametrize("name", ["mara/..", "../mara", "mara/a/b", "mara/a?b", "-mara/a"])
def test_a_repository_is_owner_and_name_and_leads_nowhere(name: str) -> None:
    with pytest.raises(UserError, match="GITHUB_REPOSITORY is"):
        place({**HERE, "GITHUB_REPOSITORY": name})


@pytest.mark.attack(39)
@pytest.mark.parametrize("token", ["a token", "a\ntoken", "a\r\nX-Header: b"])
def test_a_token_is_one_word(token: str) -> None:
    with pytest.raises(UserError, match="a space or a line break"):
        place({**HERE, "GITHUB_TOKEN": token})


NOBODY = ""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeGitHub]:
    """A repository on a server, with one commit on main."""
    bare = copy_bare(make_repo(tmp_path / "start"), tmp_path / "server.git")
    with FakeGitHub(bare, "harbour/slackwater") as fake:
        yield fake


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository that has never met the server."""
    return make_repo(tmp_path / "clone")


def remote(server: FakeGitHub, clone: Path, token: str | None = None, keep: bool = True) -> Remote:
    return Remote(Git.open(clone), server.git_url, server.token() if token is None else token, keep)


def grown(clone: Path, parent: str, name: str = "new.txt") -> str:
    """A commit on top of another; nothing points at it."""
    here = Git.open(clone)
    tree = here.write_tree(parent, {name: ("100644", b"new\n")})
    return here.commit_tree(tree, (parent,), "New", NOON)


def fetched(there: Remote) -> str:
    """The default branch's commit, brought here."""
    name, oid = there.default()
    there.fetch({f"refs/heads/{name}": oid})
    return oid


def test_default_branch_and_heads_are_told_by_the_server(server, clone):
    there = remote(server, clone)
    theirs = server.push("topic", {"x.txt": b"x\n"})
    assert there.default() == ("main", server.branch("main"))
    assert there.heads() == {"main": server.branch("main"), "topic": theirs}
    assert (there.head("topic"), there.head("none")) == (theirs, "")


def test_what_was_fetched_is_here_and_kept(server, clone):
    there = remote(server, clone)
    oid = fetched(there)
    assert there.has(oid)
    assert git(clone, "rev-parse", f"{FETCHED_REFS}heads%2Fmain") == oid
    before = server.count("git")
    there.fetch({"refs/heads/main": oid})
    assert server.count("git") == before


def test_a_branch_whose_name_goes_on_from_a_former_ones_can_be_kept(server, clone):
    there = remote(server, clone)
    old = fetched(there)
    git(server.bare, "branch", "-m", "main", "main/next")
    new = server.push("main/next", {"x.txt": b"x\n"})
    there.fetch({"refs/heads/main/next": old})
    there.fetch({"refs/heads/main/next": new})
    assert git(clone, "rev-parse", f"{FETCHED_REFS}heads%2Fmain%2Fnext") == new


def test_without_keeping_no_ref_is_written(server, clone):
    before = git(clone, "for-each-ref")
    there = remote(server, clone, keep=False)
    assert there.has(fetched(there))
    assert git(clone, "for-each-ref") == before
    assert not (clone / ".git" / "FETCH_HEAD").exists()


def test_a_file_is_looked_at_without_its_history(server, clone):
    there = remote(server, clone)
    assert there.peek("main", "README.md") == b"# Sample\n"
    assert there.peek("main", "none.md") is None


def test_a_file_of_another_repository_is_read_at_its_commit_and_asked_for_once(server, clone, monkeypatch):
    sha = git(server.bare, "rev-parse", "main")
    there = {"GITHUB_API_URL": server.api_url, "GITHUB_SERVER_URL": server.url, "GITHUB_TOKEN": server.token()}
    for name, value in there.items():
        monkeypatch.setenv(name, value)
    folder = Git.open(clone).common_dir
    assert read_shared(folder, "harbour/slackwater", sha, "README.md") == b"# Sample\n"
    assert read_shared(folder, "harbour/slackwater", sha, "none.md") is None
    asked = len(server.journal)
    assert read_shared(folder, "harbour/slackwater", sha, "README.md") == b"# Sample\n"
    assert len(server.journal) == asked


def test_a_job_of_a_fleet_reads_the_control_repository_by_its_own_token(server, clone, monkeypatch):
    sha = git(server.bare, "rev-parse", "main")
    there = {"GITHUB_API_URL": server.api_url, "GITHUB_SERVER_URL": server.url, "GITHUB_TOKEN": "of-another-repository"}
    control = {"RALPH_CONTROL_REPOSITORY": "harbour/slackwater", "RALPH_CONTROL_TOKEN": server.token()}
    for name, value in there.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="does not let this token read"):
        read_shared(Git.open(clone).common_dir, "harbour/slackwater", sha, "README.md")
    for name, value in control.items():
        monkeypatch.setenv(name, value)
    assert read_shared(Git.open(clone).common_dir, "harbour/slackwater", sha, "README.md") == b"# Sample\n"


def test_branch_is_created_once_and_moves_from_where_it_was(server, clone):
    there = remote(server, clone)
    first = grown(clone, fetched(there))
    second = grown(clone, first, "more.txt")
    assert there.push("ralph/x", first, NOBODY)
    assert there.push("ralph/x", second, first)
    assert server.branch("ralph/x") == second


def test_branch_that_stands_elsewhere_is_left_alone(server, clone):
    there = remote(server, clone)
    ours = grown(clone, fetched(there))
    theirs = server.push("ralph/x", {"t.txt": b"t\n"})
    assert not there.push("ralph/x", ours, NOBODY)
    assert not there.push("ralph/x", ours, server.branch("main"))
    assert server.branch("ralph/x") == theirs


def test_same_push_again_is_done_already(server, clone):
    there = remote(server, clone)
    ours = grown(clone, fetched(there))
    assert there.push("ralph/x", ours, NOBODY)
    assert there.push("ralph/x", ours, NOBODY)


@pytest.mark.parametrize("kind", ["reset_applied", "502_applied"])
def test_answer_that_was_lost_after_the_push_is_found_out(server, clone, kind):
    there = remote(server, clone)
    ours = grown(clone, fetched(there))
    server.fail(kind, ("POST", "/git-receive-pack"))
    assert there.push("ralph/x", ours, NOBODY)


def test_push_that_did_not_arrive_is_trouble_of_the_network(server, clone):
    there = remote(server, clone)
    ours = grown(clone, fetched(there))
    server.fail("502_not_applied", ("POST", "/git-receive-pack"))
    with pytest.raises(UserError) as caught:
        there.push("ralph/x", ours, NOBODY)
    assert caught.value.who == "network"
    assert server.branch("ralph/x") == ""


@pytest.mark.parametrize(
    ("rules", "setting"),
    [
        ({"restrict_pushes": True}, "Settings, Rules"),
        ({"required_signatures": True}, "signed commits"),
    ],
)
def test_protected_branch_names_the_setting(server, clone, rules, setting):
    there = remote(server, clone)
    ours = grown(clone, fetched(there))
    server.push("ralph/x", {"t.txt": b"t\n"})
    server.protect("ralph/x", **rules)
    with pytest.raises(Denied) as caught:
        there.push("ralph/x", grown(clone, _fetched_head(there, "ralph/x")), server.branch("ralph/x"))
    assert setting in f"{caught.value}"
    assert ours


def _fetched_head(there: Remote, branch: str) -> str:
    oid = there.head(branch)
    there.fetch({f"refs/heads/{branch}": oid})
    return oid


def test_token_without_the_permission_names_it(server, clone):
    there = remote(server, clone, server.token(permissions={"contents": "read"}))
    with pytest.raises(Denied, match="contents: write"):
        there.push("ralph/x", grown(clone, fetched(there)), NOBODY)


def test_workflow_files_need_their_own_permission(server, clone):
    there = remote(server, clone)
    base = fetched(there)
    tree = Git.open(clone).write_tree(base, {".github/workflows/x.yml": ("100644", b"on: push\n")})
    made = Git.open(clone).commit_tree(tree, (base,), "New", NOON)
    with pytest.raises(Denied, match="workflow"):
        there.push("ralph/x", made, NOBODY)


def test_wrong_token_is_told_in_one_line(server, clone):
    with pytest.raises(UserError, match="does not let this token read harbour/slackwater") as caught:
        remote(server, clone, "ghs_wrong").default()
    assert "ghs_wrong" not in f"{caught.value.what} {caught.value.next_step}"


def test_server_that_is_away_is_trouble_of_the_network(server, clone):
    there = Remote(Git.open(clone), "http://127.0.0.1:9/o/n.git", "ghs_secret")
    with pytest.raises(UserError) as caught:
        there.default()
    assert caught.value.who == "network"
    assert "ghs_secret" not in caught.value.what


def test_token_stands_in_no_argument_and_no_trace(server, clone, monkeypatch, tmp_path):
    """A git in front of git writes down how it was called."""
    seen = tmp_path / "seen"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    real = git(clone, "--exec-path")
    wrapper.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {seen}\nexec {real}/git "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    token = server.token()
    there = remote(server, clone, token)
    there.push("ralph/x", grown(clone, fetched(there)), NOBODY)
    assert "ls-remote" in seen.read_text()
    assert token not in seen.read_text()
    assert token not in (clone / ".git" / "config").read_text()
    assert token not in repr(there)


@pytest.mark.attack(60)
def test_redirect_does_not_carry_the_token_away(server, clone):
    there = remote(server, clone)
    server.fail("redirect", ("GET", "/info/refs*"))
    with pytest.raises(UserError):
        there.default()


@pytest.mark.parametrize(
    "key",
    [
        "http.proxy",
        "http.{url}.proxy",
        "http.sslVerify",
        "http.{url}.sslCAInfo",
        "http.curloptResolve",
        "url.http://127.0.0.1:9/.insteadOf",
        "url.x.pushInsteadOf",
    ],
)
@pytest.mark.attack(60)
def test_configuration_of_the_clone_never_leads_the_token_elsewhere(server, clone, key):
    git(clone, "config", key.format(url=server.git_url), "http://127.0.0.1:9/")
    with pytest.raises(UserError, match="token elsewhere"):
        remote(server, clone).default()
    assert server.count(transport="git") == 0


def test_people_commit_in_the_work_tree_is_none_of_the_servers(server, clone):
    commit(clone, {"mine.txt": "m\n"})
    there = remote(server, clone)
    assert fetched(there) != git(clone, "rev-parse", "HEAD")
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize(("kind", "words"), [("403", "contents: write"), ("401", "not valid")])
def test_server_that_turns_a_push_away_is_not_out_of_reach(server, clone, kind, words):
    there = remote(server, clone)
    ours = grown(clone, fetched(there))
    server.fail(kind, ("POST", "/git-receive-pack"), times=9)
    with pytest.raises(Denied, match=words):
        there.push("ralph/x", ours, NOBODY)


def test_no_name_of_a_branch_speaks_for_another(server, clone):
    main = server.branch("main")
    git(server.bare, "update-ref", "refs/heads/y\u2028main", main)
    assert remote(server, clone).heads()["y\u2028main"] == main
    assert remote(server, clone).head("main") == main
