"""What a session that was cut off had staged is set aside with its files: no later commit takes it in."""

from __future__ import annotations

from pathlib import Path

from tests.gateways.checkout_world import by, opened, state
from tests.helpers import git


def rest(repo: Path, path: str) -> str:
    ref = git(repo, "for-each-ref", "--format=%(refname)", "refs/ralph/aside")
    return git(repo, "show", f"{ref}:{path}")


def test_what_was_staged_is_not_staged_any_more(repo: Path, tmp_path: Path) -> None:
    before, mark = state(repo), opened(repo, tmp_path).mark()
    (repo / "half.py").write_text("half\n")
    (repo / "docs/guide.md").write_text("half\n")
    (repo / "run.sh").unlink()
    by(repo, "add", "--all")
    opened(repo, tmp_path).set_aside(mark)
    assert state(repo) == before
    assert rest(repo, "half.py") == rest(repo, "docs/guide.md") == "half"


def test_what_stands_in_the_index_alone_is_kept_aside_as_well(repo: Path, tmp_path: Path) -> None:
    before, mark = state(repo), opened(repo, tmp_path).mark()
    (repo / "half.py").write_text("half\n")
    by(repo, "add", "half.py")
    (repo / "half.py").unlink()
    told = opened(repo, tmp_path).set_aside(mark)
    assert [(change.path, change.how) for change in told] == [("half.py", "staged")]
    assert state(repo) == before
    assert rest(repo, "half.py") == "half"


def test_what_a_person_had_staged_before_stays_staged(repo: Path, tmp_path: Path) -> None:
    (repo / "docs/guide.md").write_text("a person's\n")
    by(repo, "add", "docs/guide.md")
    before, mark = state(repo), opened(repo, tmp_path).mark()
    (repo / "docs/guide.md").write_text("a session's\n")
    by(repo, "add", "--all")
    opened(repo, tmp_path).set_aside(mark)
    assert state(repo) == before


def test_what_was_committed_since_stays_in_the_index(repo: Path, tmp_path: Path) -> None:
    mark = opened(repo, tmp_path).mark()
    (repo / "docs/guide.md").write_text("committed\n")
    (repo / "README.md").unlink()
    by(repo, "add", "--all")
    by(repo, "commit", "--quiet", "--message", "x")
    (repo / "docs/guide.md").write_text("half\n")
    (repo / "README.md").write_text("half\n")
    by(repo, "add", "--all")
    opened(repo, tmp_path).set_aside(mark)
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "docs/guide.md").read_text() == "committed\n" and not (repo / "README.md").exists()
