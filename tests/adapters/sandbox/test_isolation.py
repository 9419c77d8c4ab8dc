"""What a sandbox for a checkout holds, which level is insisted on, and that a weaker one is never taken instead."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.sandbox import bwrap, isolation
from ralph_mission.adapters.sandbox.isolation import (
    OPEN,
    Found,
    Level,
    Sandbox,
    describe_level,
    find_level,
    missing_bwrap,
    of_checkout,
    private,
)
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.adapters.workspace.clone import clone
from ralph_mission.errors import UserError
from tests.integration.isolation_attacks import Place, level_or_skip, place

COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -qm made && git status --short && git branch made"


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as made:
        git(made.work, "init", "-q", "-b", "main")
        (made.work / "file").write_text("one")
        git(made.work, "add", "-A")
        git(made.work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
        yield made


@pytest.fixture
def level() -> Level:
    return level_or_skip("bwrap")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bwrap that does what is written into it, before the real one on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin" / "bwrap"


def write_program(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# --- which level ---------------------------------------------------------------------


GITHUB = {"GITHUB_ACTIONS": "true"}
REFUSAL = "bwrap: setting up uid map: Permission denied"


@pytest.mark.parametrize(
    ("wanted", "environ", "level"),
    [(None, {}, "bwrap"), (None, GITHUB, "bwrap"), ("bwrap", {}, "bwrap"), ("env", {}, "env"), ("env", GITHUB, "env")],
)
def test_it_is_bwrap_where_that_can_be_had_unless_env_is_asked_for(
    program: Path, wanted: Level | None, environ: dict[str, str], level: Level
) -> None:
    write_program(program, "exit 0")
    assert find_level(wanted, environ) == Found(level)


def test_where_nothing_is_asked_for_and_bwrap_cannot_be_had_it_is_env_and_says_what_that_leaves_open(
    program: Path,
) -> None:
    write_program(program, f"echo '{REFUSAL}' >&2; exit 1")
    found = find_level(None, {})
    said = describe_level(found)
    assert found.level == "env" and REFUSAL in said and "apparmor_restrict_unprivileged_userns" in said
    assert "your files, your processes and the network stay open" in said and "\n" not in said
    assert "stay open" not in describe_level(find_level("env", {}))  # who asks for it knows


def test_what_is_asked_for_and_missing_is_an_error_and_never_something_weaker(program: Path) -> None:
    write_program(program, "echo no >&2; exit 1")
    with pytest.raises(UserError, match="sandbox: bwrap is not available: no"):
        find_level("bwrap", {})


def test_on_github_nothing_runs_at_env_unless_an_owner_wrote_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as told:
        find_level(None, GITHUB)
    assert "sandbox: env" in told.value.next_step and "apt-get install bubblewrap" in told.value.next_step


def test_bwrap_that_does_not_run_what_it_is_given_is_not_there(program: Path) -> None:
    write_program(program, "exit 1")
    assert missing_bwrap()[0] == "exit 1"


def test_a_network_that_cannot_be_closed_is_told(program: Path) -> None:
    refuses = 'case "$*" in *--unshare-net*) echo "bwrap: loopback: Failed RTM_NEWADDR" >&2; exit 1;; esac; exit 0'
    write_program(program, refuses)
    found = find_level(None, {})
    assert found.open_network == "bwrap: loopback: Failed RTM_NEWADDR" and "network: open" in describe_level(found)


def test_another_system_has_env_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation.sys, "platform", "darwin")
    assert "Linux" in missing_bwrap()[0] and find_level(None, {}).level == "env"


def test_a_level_that_is_missing_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="bwrap"):
        run_foreign(
            ["/bin/touch", "ran"], cwd=tmp_path, home=tmp_path / "h", timeout=9, sandbox=Sandbox("bwrap", (tmp_path,))
        )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("uid", [0, 1000])
def test_a_view_has_no_right_of_root_and_only_root_is_shown_as_another_user(
    monkeypatch: pytest.MonkeyPatch, uid: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    words = " ".join(bwrap.wrap_command(bwrap.View(), ["/bin/true"], closed=True))
    assert "--unshare-user" in words and "--cap-drop ALL" in words and "--unshare-net" in words
    assert ("--uid 1000 --gid 1000" in words, "--ro-bind /proc/sys /proc/sys" in words) == (uid == 0, uid == 0)


@pytest.mark.parametrize("named", ["env", "bwrap"])
def test_the_owners_own_command_stands_in_front(here: Place, named: Level) -> None:
    sandbox = Sandbox(level_or_skip(named), (here.work,), wrap=("/usr/bin/env", "WRAPPED=yes"))
    done = run_foreign(["/bin/sh", "-c", "echo $WRAPPED"], cwd=here.work, home=here.home, timeout=300, sandbox=sandbox)
    assert done.stdout == b"yes\n"


# --- a checkout ----------------------------------------------------------------------


def test_git_works_inside(here: Place, level: Level) -> None:
    sandbox = of_checkout(level, Git.open(here.work), {})
    done = run_foreign(f"echo two > file && {COMMIT}", cwd=here.work, home=here.home, timeout=300, sandbox=sandbox)
    assert (done.code, done.stdout, done.stderr) == (0, b"", b"")
    assert git(here.work, "log", "--format=%s", "made") == "made\nfirst"


def test_git_works_in_a_linked_work_tree_whose_repository_lies_elsewhere(here: Place, level: Level) -> None:
    linked = here.root / "linked"
    git(here.work, "worktree", "add", "-q", "-b", "side", str(linked))
    sandbox = of_checkout(level, Git.open(linked), {})
    done = run_foreign(f"echo two > file && {COMMIT}", cwd=linked, home=here.home, timeout=300, sandbox=sandbox)
    assert (done.code, done.stderr) == (0, b"")
    assert git(here.work, "log", "--format=%s", "side") == "made\nfirst" and git(linked, "status", "--short") == ""


def test_the_main_work_tree_is_not_to_be_written_from_a_linked_one(here: Place, level: Level) -> None:
    linked = here.root / "linked"
    git(here.work, "worktree", "add", "-q", "-b", "side", str(linked))
    sandbox = of_checkout(level, Git.open(linked), {})
    run_foreign(
        ["/bin/sh", "-c", f"echo harm > {here.work}/file"], cwd=linked, home=here.home, timeout=300, sandbox=sandbox
    )
    assert (here.work / "file").read_text() == "one"


def test_a_clone_that_borrows_objects_reads_them_but_not_the_settings_beside_them(here: Place, level: Level) -> None:
    git(here.work, "config", "http.extraheader", "AUTHORIZATION: basic secret")
    with clone(Git.open(here.work), git(here.work, "rev-parse", "HEAD"), here.root) as folder:
        sandbox = of_checkout(level, Git.open(folder), {})
        script = f"git show HEAD:file; {COMMIT.replace('add -A', 'rm -q file')}; cat {here.work}/.git/config"
        done = run_foreign(script, cwd=folder, home=here.home, timeout=300, sandbox=sandbox)
        assert done.stdout == b"one" and b"secret" not in done.stderr
        assert git(folder, "log", "-1", "--format=%s") == "made"
    assert "secret" in (here.work / ".git/config").read_text()


SECRET = "c3Bhcmtz"  # long enough to be in no random folder's name
HEADER = ("http.https://github.com/.extraheader", f"AUTHORIZATION: basic {SECRET}")


@pytest.mark.parametrize(
    "setting",
    [
        HEADER,  # as actions/checkout leaves it
        ("remote.origin.url", f"https://x-access-token:{SECRET}@github.com/o/n"),
        ("remote.origin.pushurl", f"https://:{SECRET}@github.com/o/n"),
    ],
)
def test_a_checkout_whose_configuration_holds_a_credential_is_refused(here: Place, setting: tuple[str, str]) -> None:
    git(here.work, "config", *setting)
    with pytest.raises(UserError) as told:
        of_checkout("bwrap", Git.open(here.work), {})
    assert "credential" in told.value.what and "persist-credentials: false" in told.value.next_step
    assert SECRET not in told.value.what + told.value.next_step


@pytest.mark.parametrize(
    "named",
    [
        "{}/git-credentials-1.config",
        "../../runner/git-credentials-1.config",
        '"{}/git-credentials-1.config"  ; quoted',
        "{}/git-credentials-1.config # said",
        '"{}/git-cred"entials-1.config',
        "{}/more",  # which includes it
    ],
)
def test_a_credential_in_a_file_that_the_configuration_includes_is_refused(here: Place, named: str) -> None:
    kept = here.root / "runner" / "git-credentials-1.config"  # as newer versions of actions/checkout leave it
    kept.parent.mkdir()
    git(here.root, "config", "--file", str(kept), *HEADER)
    (kept.parent / "more").write_text("[include]\n\tpath = ../runner/git-credentials-1.config\n")
    with (here.work / ".git" / "config").open("a") as config:
        config.write(f'[includeIf "gitdir:{here.work}/.git"]\n\tpath = {named.format(kept.parent)}\n')
    with pytest.raises(UserError, match=r"git-credentials-1\.config holds a credential") as told:
        of_checkout("bwrap", Git.open(here.work), {})
    assert "persist-credentials: false" in told.value.next_step


def test_a_credential_that_is_not_there_inside_is_nobodys_trouble(here: Place) -> None:
    kept = here.root / "runner" / "git-credentials-1.config"
    kept.parent.mkdir()
    git(here.root, "config", "--file", str(kept), *HEADER)
    git(here.work, "config", f"includeIf.gitdir:{here.work}/.git.path", str(kept))
    inside = {"RUNNER_TEMP": str(kept.parent)}
    assert kept.parent in of_checkout("bwrap", Git.open(here.work), inside).hidden
    with pytest.raises(UserError, match="holds a credential"):
        of_checkout("bwrap", Git.open(here.work), {})
    kept.rename(beside := here.root / "beside")
    git(here.work, "config", f"includeIf.gitdir:{here.work}/.git.path", f"{kept.parent}/../{beside.name}")
    with pytest.raises(UserError, match="holds a credential"):  # the name alone begins there
        of_checkout("bwrap", Git.open(here.work), inside)


def test_a_file_that_is_included_and_holds_none_is_nobodys_trouble(here: Place) -> None:
    (here.root / "aliases").write_text("[alias]\n\tst = status\n")
    git(here.work, "config", "include.path", str(here.root / "aliases"))
    git(here.work, "config", "mergetool.kelp.path", str(here.root))
    git(here.root, "config", "--file", str(here.root / "theirs"), "http.extraheader", HEADER[1])
    git(here.work, "config", "includeIf.gitdir:/elsewhere/.path", str(here.root / "theirs"))  # another repository's
    assert of_checkout("bwrap", Git.open(here.work), {}).writable


@pytest.mark.parametrize("url", ["git@github.com:o/n.git", "https://github.com/o/n", "ssh://git@github.com:22/o/n"])
def test_an_address_without_a_password_is_no_credential(here: Place, url: str) -> None:
    git(here.work, "remote", "add", "origin", url)
    assert of_checkout("bwrap", Git.open(here.work), {}).writable


def test_at_env_nothing_changes(here: Place) -> None:
    assert of_checkout("env", Git.open(here.work), {}) == OPEN


def test_a_runner_that_hosts_itself_has_its_credentials_hidden(tmp_path: Path) -> None:
    (tmp_path / "runner/_work/_temp").mkdir(parents=True)
    (tmp_path / "runner/.credentials").touch()
    temporary = tmp_path / "runner/_work/_temp"
    found = private({"HOME": "/home/r", "RUNNER_TEMP": str(temporary)})
    assert {temporary, tmp_path / "runner/.credentials", Path("/home/r/.ssh")} <= set(found)
    assert private({}) == ()


def test_a_link_that_a_session_left_on_its_path_shows_nothing_more(tmp_path: Path) -> None:
    home, letter = tmp_path / "home", tmp_path / "letter"
    (home / "bin").mkdir(parents=True)
    letter.write_text("private")
    (home / "bin/x").symlink_to(letter)
    (tmp_path / "letters").mkdir()
    (home / "more").symlink_to(tmp_path / "letters")
    (tmp_path / "door").symlink_to(home / "bin")  # of the owner, into what sessions write
    path = os.pathsep.join(map(str, (home / "bin", home / "more", tmp_path / "door")))
    seen = bwrap.wrap_command(bwrap.View((home,), path=path), ["true"], closed=True)
    assert str(home) in seen
    assert not {str(letter), str(tmp_path / "letters"), str(home / "more")}.intersection(seen)


def test_packages_are_shown_around_programs_alone_and_through_no_link(tmp_path: Path) -> None:
    work, large, bin_folder = tmp_path / "node_modules/x/work", tmp_path / "large", tmp_path / "co/node_modules/.bin"
    work.mkdir(parents=True)
    (large / ".bin").mkdir(parents=True)
    (tmp_path / "co").mkdir()
    (tmp_path / "co/node_modules").symlink_to(large)
    seen = bwrap.wrap_command(bwrap.View((work,), cwd=work, path=str(bin_folder)), ["true"], closed=True)
    shown = {place for word, place in pairwise(seen) if word in ("--ro-bind", "--bind")}
    assert str(bin_folder) in shown
    assert not {str(tmp_path / "node_modules"), str(large), str(tmp_path / "co/node_modules")}.intersection(shown)


def test_a_program_that_was_updated_or_taken_away_during_a_run_hinders_no_later_session(
    here: Place, level: Level
) -> None:
    versions, folder = here.root / "share/tool", here.root / "bin"
    folder.mkdir()

    def install(version: str) -> None:
        (versions / version).mkdir(parents=True)
        (versions / version / "tool").write_text(f"#!/bin/sh\necho {version}\n")
        (versions / version / "tool").chmod(0o755)
        (folder / "tool").unlink(missing_ok=True)
        (folder / "tool").symlink_to(versions / version / "tool")

    def run() -> bytes:
        path = {"PATH": f"{folder}{os.pathsep}{os.defpath}"}
        sandbox = of_checkout(level, Git.open(here.work), {})
        return run_foreign("tool", cwd=here.work, home=here.home, timeout=300, extra_env=path, sandbox=sandbox).stdout

    install("1")
    assert run() == b"1\n"
    install("2")
    shutil.rmtree(versions / "1")
    assert run() == b"2\n"


def test_a_file_that_root_closes_during_a_run_is_closed_to_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed() -> set[str]:
        return set(bwrap.wrap_command(bwrap.View(), ["true"], closed=True)) & {str(tmp_path / name) for name in "ab"}

    scan = os.scandir
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "scandir", lambda place: scan(tmp_path if place == Path("/etc") else place))
    (tmp_path / "a").touch(0o600)
    assert closed() == {str(tmp_path / "a")}
    (tmp_path / "a").rename(tmp_path / "b")
    assert closed() == {str(tmp_path / "b")}


def test_a_link_from_path_into_a_folder_that_sessions_write_in_shows_nothing_more(tmp_path: Path) -> None:
    work, letter, folder = tmp_path / "work", tmp_path / "letter", tmp_path / "bin"
    (work / "bin").mkdir(parents=True)
    letter.write_text("private")
    folder.mkdir()
    (folder / "tool").symlink_to(work / "bin/tool")
    (work / "bin/tool").touch()
    (work / "bin/x").symlink_to(letter)
    seen = bwrap.wrap_command(bwrap.View((work,), path=str(folder)), ["true"], closed=True)
    assert str(folder) in seen
    assert str(letter) not in seen


@pytest.mark.parametrize("folder", ["node_modules/.bin", "bin"])
def test_a_program_of_node_sees_the_packages_beside_its_own(here: Place, level: Level, folder: str) -> None:
    packages = here.root / "node_modules/@openai"
    own, beside = packages / "codex/bin/codex", packages / "codex-linux/codex"
    for program, text in ((own, f"cat {beside}"), (beside, "echo found")):
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    (here.root / folder).mkdir()
    (here.root / folder / "codex").symlink_to(own)
    path = {"PATH": f"{here.root / folder}{os.pathsep}{os.defpath}"}
    sandbox = of_checkout(level, Git.open(here.work), {})
    done = run_foreign("codex", cwd=here.work, home=here.home, timeout=300, extra_env=path, sandbox=sandbox)
    assert b"echo found" in done.stdout, done.stderr


def test_a_link_to_itself_on_path_hinders_no_session(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to(tmp_path / "x")
    assert str(tmp_path) in bwrap.wrap_command(bwrap.View(path=str(tmp_path)), ["true"], closed=True)
