"""Shims stand before the real programs: what is denied exits 126 and is told, all else is the program itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.sandbox import shims
from tests.helpers import make_repo

PATTERNS = ("git push --force", "rm -rf", "sudo")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a": "a\n"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    made = shims.build(tmp_path / "a folder", PATTERNS, tmp_path / "run")
    assert made
    return made


def shell(folder: Path, repo: Path, line: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=repo,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": shims.path_with(folder)} | env,
    )


@pytest.mark.parametrize(
    "line",
    [
        "git push -f",
        "git push --force-with-lease",
        "git -C . push origin +x",
        "rm -r -f x",
        "sudo ls",
        "F=-f; git push $F",
        "env git push -f",
        "echo Z2l0IHB1c2ggLWY= | base64 -d | sh",
        "printf 'git push -f' > x.sh; sh x.sh",
        "python3 -c \"import os; exit(os.system('git pu''sh -f') >> 8)\"",
    ],
)
def test_what_is_denied_does_not_run_and_is_recorded(line, folder, repo, tmp_path):
    done = shell(folder, repo, line)
    assert done.returncode == 126 and "is denied by" in done.stderr
    assert len(done.stderr.strip().split("\n")) == 1
    [why] = shims.refused_commands(tmp_path / "run")
    assert f"ralph: {why}\n" == done.stderr


DENIED = """
git push --force
git push -uf origin feature
git push --force-with-lease=feature:abc origin feature
git push --forc
git push origin +feature
git push origin +HEAD:refs/heads/feature
git push origin main
git push origin HEAD:refs/heads/main
git -C /somewhere -c user.name=x --no-pager push -f
/usr/bin/git --git-dir .git push -f
git reset HEAD~1 --hard
git branch -D feature
git stash drop
git clean -dfx
git tag --delete v1
rm -fr x
rm --recursive --force x
sudo ls
mkfs.ext4 /dev/sda
dd if=/dev/zero of=/dev/sda
npm publish --tag next
"""
ALLOWED = """
git push
git push origin feature
git push origin feature:mainland
git log --force
git commit -m push -f
git reset --soft HEAD~1
git branch -d feature
git clean -d
git tag v1
git push origin -- -f
rm x
rm -r x
dd if=/dev/zero of=image
npm run test
"""
JUDGED = (*PATTERNS, "git push origin main", "git reset --hard", "git branch -D", "git stash drop", "git clean -f -d",
          "git tag -d", "mkfs.ext4", "dd of=/dev/*", "Bash(npm publish:*)")  # fmt: skip  # one list


@pytest.mark.parametrize("line", DENIED.strip().split("\n"))
def test_a_denied_command_is_denied_in_every_spelling_of_its_words(line):
    assert "is denied by" in shims.why_denied(line.split(), JUDGED)


@pytest.mark.parametrize("line", ALLOWED.strip().split("\n"))
def test_what_only_looks_like_one_may_run(line):
    assert shims.why_denied(line.split(), JUDGED) == ""


def test_what_is_removed_is_judged_by_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in (".", "./", str(tmp_path), "..", ".git/", f"{tmp_path}/x/../.git", os.environ["HOME"], "/"):
        assert "is lost" in shims.why_denied(["rm", "-rf", place], shims.DANGEROUS), place
    for place in ("x", "./.github", "/tmp/x"):
        assert shims.why_denied(["rm", "-rf", place], shims.DANGEROUS) == "", place


@given(st.lists(st.text(max_size=20)), st.sampled_from([JUDGED, tuple(shims.DANGEROUS), ("git re* --hard", "")]))
def test_no_words_make_the_judge_fail(words, patterns):
    for program in ("git", "rm", "dd"):
        shims.why_denied([program, *words], patterns)


def test_all_else_is_the_program_itself(folder, repo, tmp_path):
    assert (
        shell(folder, repo, "git rev-parse --show-prefix && git log --format=%s && rm a && echo $?").stdout
        == "\nStart\n0\n"
    )
    assert shell(folder, repo, "printf 'x\\n' | git hash-object --stdin").stdout.startswith("587be6b4")
    assert shell(folder, repo, "git no-such-command").returncode == 1
    assert shims.refused_commands(tmp_path / "run") == ()


def test_a_program_that_is_not_there_is_missing(tmp_path, repo):
    (tmp_path / "run").mkdir()
    made = shims.build(tmp_path / "bin", ["frobnicate --hard"], tmp_path / "run")
    assert shell(made, repo, "frobnicate x").returncode == 127


def test_a_shim_never_starts_a_shim(tmp_path, folder, repo):
    again = shims.build(tmp_path / "again", PATTERNS, tmp_path / "run")
    path = os.pathsep.join((str(again), str(folder), os.environ["PATH"]))
    assert shell(folder, repo, "git rev-parse HEAD", PATH=path).returncode == 0


def test_shells_and_interpreters_are_not_shimmed(tmp_path):
    assert shims.build(tmp_path / "bin", ["sh -c", "python3 -m x", "mkfs*", ""], tmp_path) is None


def test_the_record_may_be_damaged(tmp_path):
    (tmp_path / "denied.jsonl").write_text('{"why": "a"}\nnonsense\n[]\n{"why": "b"}\n')
    assert shims.refused_commands(tmp_path) == ("a", "b")


def test_the_words_stand_in_the_record(folder, repo, tmp_path):
    shell(folder, repo, "rm -rf 'a b'")
    assert json.loads((tmp_path / "run/denied.jsonl").read_text())["argv"] == ["rm", "-rf", "a b"]


def test_a_command_without_a_word_of_a_pattern_runs_without_a_judge(folder, repo):
    shim = folder / "git"
    shim.write_text(shim.read_text().replace(sys.executable, "/bin/false"))
    assert (
        shell(folder, repo, "git log --format=%s -- 'a' '*'", PATH=f"{folder}::{os.environ['PATH']}").stdout
        == "Start\n"
    )
    assert shell(folder, repo, "git -C . -c user.name='a b' status").returncode == 0
    for judged in ("git push", "git -C . push", "git commit -m push", "git -c alias.log=push push"):
        assert shell(folder, repo, judged).returncode == 1


def test_a_shim_that_was_altered_is_written_anew_and_one_that_was_not_stays(folder, repo, tmp_path):
    before = (folder / "git").stat().st_ino
    shims.build(folder, PATTERNS, tmp_path / "run")
    assert (folder / "git").stat().st_ino == before
    for spoil in (lambda place: place.write_text("x"), lambda place: place.chmod(0o644), _linked):
        spoil(folder / "rm")
        shims.build(folder, PATTERNS, tmp_path / "run")
        assert shell(folder, repo, "rm -rf x").returncode == 126


def _linked(place: Path) -> None:
    copy = place.with_name("elsewhere")
    copy.write_bytes(place.read_bytes())
    copy.chmod(0o755)
    place.unlink()
    place.symlink_to(copy)


def test_git_is_told_nothing_that_its_caller_did_not_tell(folder, repo):
    subprocess.run(["git", "-C", repo, "config", "core.fsmonitor", "env >&2; false"], check=True)
    told = {"place": "London", "git": "yes", "IFS": "x"}
    seen = shell(folder, repo, "git status", **told).stderr.splitlines()
    assert {f"{name}={value}" for name, value in told.items() if name != "IFS"} <= {*seen}
    assert not any(line.startswith("_ralph") for line in seen)


def test_a_folder_whose_list_was_taken_away_does_not_call_itself(folder, repo):
    (folder / "shims.list").unlink()
    assert shell(folder, repo, "git log --format=%s").stdout == "Start\n"


def test_what_a_session_links_there_is_no_record_and_no_word_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text('{"why": "secret"}\n')
    (tmp_path / "run").mkdir()
    (record := tmp_path / "run/denied.jsonl").symlink_to("../theirs")
    assert shims.refused_commands(tmp_path / "run") == ()
    record.unlink()
    record.write_text('{"why": "one\u2028and more"}\n' + "[" * 100_000 + '\n{"why": "two"}\n')
    assert shims.refused_commands(tmp_path / "run") == ("one\u2028and more", "two")
