"""Shims stand before the real programs: what is denied exits 126 and is told, all else is the program itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralph_mission.gateways import shims
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
        "$(printf git) push -f",
        "X=1 git push -f",
        "env git push -f",
        "echo 'git push -f' | sh",
        "echo Z2l0IHB1c2ggLWY= | base64 -d | sh",
        "git -c alias.p='push -f' p",
        "printf 'git push -f' > x.sh; sh x.sh",
        "python3 -c \"import os; exit(os.system('git pu''sh -f') >> 8)\"",
    ],
)
def test_what_is_denied_does_not_run_and_is_recorded(line, folder, repo, tmp_path):
    done = shell(folder, repo, line)
    assert done.returncode == 126 and "is denied by" in done.stderr
    assert len(done.stderr.strip().split("\n")) == 1
    [why] = shims.refused(tmp_path / "run")
    assert f"ralph: {why}\n" == done.stderr


@pytest.mark.parametrize("value", ["push -f", "!git push -f", "q --quiet"])
def test_an_alias_in_the_configuration_is_followed(value, folder, repo):
    subprocess.run(["git", "-C", repo, "config", "alias.p", value], check=True)
    subprocess.run(["git", "-C", repo, "config", "alias.q", "push --force"], check=True)
    assert shell(folder, repo, "git p").returncode == 126


def test_an_alias_in_the_environment_is_followed(folder, repo):
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "alias.p", "GIT_CONFIG_VALUE_0": "push -f"}
    assert shell(folder, repo, "git p", **env).returncode == 126


def test_all_else_is_the_program_itself(folder, repo, tmp_path):
    assert (
        shell(folder, repo, "git rev-parse --show-prefix && git log --format=%s && rm a && echo $?").stdout
        == "\nStart\n0\n"
    )
    assert shell(folder, repo, "printf 'x\\n' | git hash-object --stdin").stdout.startswith("587be6b4")
    assert shell(folder, repo, "git no-such-command").returncode == 1
    assert shims.refused(tmp_path / "run") == ()


def test_a_program_that_is_not_there_is_missing(tmp_path, repo):
    (tmp_path / "run").mkdir()
    made = shims.build(tmp_path / "bin", ["frobnicate --hard"], tmp_path / "run")
    assert shell(made, repo, "frobnicate x").returncode == 127


def test_a_shim_never_starts_a_shim(tmp_path, folder, repo):
    again = shims.build(tmp_path / "again", PATTERNS, tmp_path / "run")
    path = os.pathsep.join((str(again), str(folder), os.environ["PATH"]))
    assert shell(folder, repo, "git rev-parse HEAD", PATH=path).returncode == 0


def test_shells_and_interpreters_are_not_shimmed(tmp_path):
    assert shims.build(tmp_path / "bin", ["sh -c", "python3 -m x", "mkfs*"], tmp_path) is None


def test_the_record_may_be_damaged(tmp_path):
    (tmp_path / "denied.jsonl").write_text('{"why": "a"}\nnonsense\n[]\n{"why": "b"}\n')
    assert shims.refused(tmp_path) == ("a", "b")


def test_the_words_stand_in_the_record(folder, repo, tmp_path):
    shell(folder, repo, "rm -rf 'a b'")
    assert json.loads((tmp_path / "run/denied.jsonl").read_text())["argv"] == ["rm", "-rf", "a b"]


def test_brackets_are_balanced_for_the_sh_of_macos(folder):
    """bash 3.2 ends `$(` at the first single `)`, that of a `case` too."""
    text = (folder / "git").read_text()
    inside = text.partition("_ralph_verb=$(")[2].partition('printf %s "${1-}")')[0]
    assert inside and inside.count("(") == inside.count(")")


def test_what_no_pattern_is_about_runs_without_a_judge(folder, repo):
    shim = folder / "git"
    shim.write_text(shim.read_text().replace(sys.executable, "/bin/false"))
    assert shell(folder, repo, "git log --format=%s 'a b'", PATH=f"{folder}::{os.environ['PATH']}").returncode == 128
    assert shell(folder, repo, "git log --format=%s -- 'a' '*'").stdout == "Start\n"
    for at_once in ("-C . status", "--no-pager log", "-c user.name='a b' -c user.email=c -C . --no-pager status"):
        assert shell(folder, repo, f"git {at_once}").returncode == 0
    options = ("", "-C . ", "-c user.name=log ", "--no-pager ", "-c alias.log=push ", "-c core.pager=sh ")
    for judged in (*(f"git {option}push" for option in options), "git rebase", "git bisect run x", "git p"):
        assert shell(folder, repo, judged).returncode == 1
    for judged in ("git -c alias.x=push x", "git -c core.pager=sh log", "git -C", "git -p log"):
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
    assert shims.refused(tmp_path / "run") == ()
    record.unlink()
    record.write_text('{"why": "one\u2028and more"}\n' + "[" * 100_000 + '\n{"why": "two"}\n')
    assert shims.refused(tmp_path / "run") == ("one\u2028and more", "two")
