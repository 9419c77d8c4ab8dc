"""A set-up runs once for what it depends on, and every clone gets what it left."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects import setup as module
from ralph_mission.adapters.projects.setup import LentSetup, ProjectSetup
from ralph_mission.adapters.sandbox.isolation import of_clone
from ralph_mission.adapters.sandbox.process import FinishedProcess
from ralph_mission.adapters.workspace.clone import clone
from ralph_mission.errors import UserError
from tests.helpers import commit, git, make_repo
from tests.integration.isolation_attacks import level_or_skip

COUNT = 'echo x >> "$COUNTER"'


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "one\n", "src/b.txt": "two\n"})


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    """A file in which each run of a set-up leaves a line; its path is written into commands."""
    return tmp_path / "counter"


Lend = Callable[..., tuple[LentSetup, dict[str, str], Path]]


@pytest.fixture
def lend(repo: Path, tmp_path: Path, counter: Path) -> Lend:
    def call(*commands: str, again: bool = False) -> tuple[LentSetup, dict[str, str], Path]:
        """What was lent, the clone's files, and the home it was lent with."""
        told = tuple(command.replace("$COUNTER", str(counter)) for command in commands)
        scratch = tmp_path / f"scratch{len(list(tmp_path.glob('scratch*')))}"
        scratch.mkdir()
        head = git(repo, "rev-parse", "HEAD")
        home = scratch / "home"
        with clone(Git.open(repo), head, scratch) as folder:
            lent = ProjectSetup(Git.open(repo), tmp_path / "kept", told).lend(head, folder, home)
            files = {
                str(path.relative_to(folder)): path.read_text(errors="replace")
                for path in folder.rglob("*")
                if path.is_file() and ".git/" not in str(path.relative_to(folder))
            }
        return lent, files, home

    return call


def runs(counter: Path) -> int:
    return len(counter.read_text().split()) if counter.exists() else 0


def test_what_a_set_up_leaves_is_in_every_clone_and_runs_once(lend, counter):
    command = f"{COUNT}; mkdir -p node_modules/x src/made; echo x > node_modules/x/i; echo y > src/made/y; echo z > z"
    for _ in range(2):
        lent, files, _ = lend(command)
        assert lent.names == ("node_modules", "src/made", "z")
        assert (files["node_modules/x/i"], files["src/made/y"], files["z"]) == ("x\n", "y\n", "z\n")
    assert runs(counter) == 1


def test_files_of_the_commit_stay_as_the_commit_has_them(lend):
    lent, files, _ = lend("echo changed > a.txt; rm src/b.txt")
    assert files == {"a.txt": "one\n", "src/b.txt": "two\n"}
    assert lent.names == ()


def test_what_it_left_in_its_home_comes_into_the_home_of_what_runs_later(lend):
    _, _, home = lend('mkdir -p "$HOME/.cargo"; echo crate > "$HOME/.cargo/crate"')
    assert (home / ".cargo/crate").read_text() == "crate\n"


def test_what_installers_downloaded_is_not_lent(lend):
    _, _, home = lend('mkdir -p "$HOME/.npm/_cacache/x" "$HOME/.npm/_logs"')
    assert [path.name for path in (home / ".npm").iterdir()] == ["_logs"]


def test_a_clone_cannot_change_what_the_next_one_is_lent(repo, tmp_path):
    setup = ProjectSetup(Git.open(repo), tmp_path / "kept", ("mkdir m; echo good > m/f",))
    head = git(repo, "rev-parse", "HEAD")
    seen = []
    for _ in range(2):
        with clone(Git.open(repo), head, tmp_path) as folder:
            setup.lend(head, folder, tmp_path / "home")
            seen.append((folder / "m/f").read_text())
            (folder / "m/f").write_text("poison")
    assert seen == ["good\n", "good\n"]


def test_a_clone_that_lost_what_it_was_lent_is_lent_it_again(repo, tmp_path):
    setup = ProjectSetup(Git.open(repo), tmp_path / "kept", ("mkdir m; echo good > m/f",))
    head = git(repo, "rev-parse", "HEAD")
    with clone(Git.open(repo), head, tmp_path) as folder:
        for _ in range(3):
            assert setup.lend(head, folder, tmp_path / "home").names == ("m",)
        (folder / "m/f").unlink()
        (folder / "m").rmdir()
        assert setup.lend(head, folder, tmp_path / "home").names == ("m",)
        assert (folder / "m/f").read_text() == "good\n"


def test_a_commit_that_changes_nothing_it_depends_on_uses_the_same_set_up(repo, tmp_path, monkeypatch):
    """Of a detected set-up the manifests count; of the owner's own commands the whole commit does."""
    made: list[str] = []

    def run(command: str, **_: object) -> FinishedProcess:
        made.append(command)
        return FinishedProcess(0, b"", b"", 0.0, False, False)

    monkeypatch.setattr(module, "run_foreign", run)
    commit(repo, {"requirements.txt": "x==1\n"})

    def use() -> None:
        head = git(repo, "rev-parse", "HEAD")
        with clone(Git.open(repo), head, tmp_path) as folder:
            ProjectSetup(Git.open(repo), tmp_path / "kept").lend(head, folder, tmp_path / "home")

    use()
    commit(repo, {"a.txt": "another\n"})
    use()
    assert len(made) == 1 and "pip" in made[0]
    commit(repo, {"requirements.txt": "x==2\n"})
    use()
    assert len(made) == 2


def test_a_failed_set_up_says_why_and_is_not_tried_again_at_once(lend, counter):
    command = f'{COUNT}; echo "error Couldn\'t find package left-padd" >&2; exit 4'
    for _ in range(2):
        with pytest.raises(UserError) as caught:
            lend(command)
        assert "cannot be set up" in caught.value.what and "exit code 4" in caught.value.what
        assert "Couldn't find package left-padd" in caught.value.what and "hands.setup" in caught.value.next_step
    assert runs(counter) == 1


def test_a_failed_set_up_is_tried_again_at_once_where_the_environment_changed_or_a_person_asks(
    lend, counter, repo, tmp_path, monkeypatch
):
    def fails() -> None:
        with pytest.raises(UserError, match="cannot be set up"):
            lend(f"{COUNT}; exit 1")

    fails()
    monkeypatch.setenv("SSL_CERT_FILE", "/own/ca.pem")
    fails()
    fails()
    assert runs(counter) == 2
    kept = ProjectSetup(Git.open(repo), tmp_path / "kept")
    replace(kept, keeps=False).forget_failures()  # a staged cycle changes nothing
    fails()
    assert runs(counter) == 2
    kept.forget_failures()
    fails()
    assert runs(counter) == 3


def test_a_refused_certificate_says_what_to_set(lend):
    with pytest.raises(UserError) as caught:
        lend("echo 'error: invalid peer certificate: UnknownIssuer' >&2; exit 2")
    assert "invalid peer certificate: UnknownIssuer (if your" in caught.value.what.partition("\n")[0]
    assert "SSL_CERT_FILE=/path/to/ca.pem" in caught.value.what


def test_one_that_keeps_nothing_uses_what_is_there_and_leaves_no_trace(repo, tmp_path, counter):
    head, kept = git(repo, "rev-parse", "HEAD"), tmp_path / "kept"
    setup = ProjectSetup(Git.open(repo), kept, (COUNT.replace("$COUNTER", str(counter)),), keeps=False)

    def use(setup: ProjectSetup) -> None:
        place = tmp_path / f"place{len(list(tmp_path.iterdir()))}"
        place.mkdir()
        with clone(Git.open(repo), head, place) as folder:
            setup.lend(head, folder, place / "tools")

    use(setup)
    assert not kept.exists() and runs(counter) == 1
    use(replace(setup, keeps=True))
    use(setup)
    assert runs(counter) == 2


def test_a_failed_set_up_is_tried_again_after_hours(lend, counter, monkeypatch):
    with pytest.raises(UserError):
        lend(f"{COUNT}; exit 1")
    later = module.time.time() + module.AGAIN + 1
    monkeypatch.setattr(module.time, "time", lambda: later)
    with pytest.raises(UserError):
        lend(f"{COUNT}; exit 1")
    assert runs(counter) == 2


def test_a_set_up_that_was_cut_off_begins_anew(lend, counter, tmp_path):
    lend(f"{COUNT}; echo z > z")
    (folder,) = [one for one in (tmp_path / "kept").iterdir() if one.is_dir()]
    (folder / module.REPORT).unlink()
    (folder / "tree/half").write_text("half")
    _, files, _ = lend(f"{COUNT}; echo z > z")
    assert "half" not in files and runs(counter) == 2


def test_a_program_that_is_missing_is_named(repo, tmp_path, monkeypatch):
    commit(repo, {"pom.xml": "<project/>"})
    head = git(repo, "rev-parse", "HEAD")
    setup = ProjectSetup(Git.open(repo), tmp_path / "kept")
    assert setup.detect(head).tools == ("maven",)
    monkeypatch.setattr(module.shutil, "which", lambda program: None if program == "mvn" else f"/bin/{program}")
    with clone(Git.open(repo), head, tmp_path) as folder, pytest.raises(UserError) as caught:
        setup.lend(head, folder, tmp_path / "home")
    assert "`maven` needs mvn, which is not installed here" in caught.value.what


def test_no_credential_of_ours_is_seen_and_registries_are(lend, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:password@index.example/simple")
    monkeypatch.setenv("npm_config_registry", "https://registry.example/")
    _, files, _ = lend("env > seen")
    seen = dict(line.partition("=")[::2] for line in files["seen"].splitlines())
    assert "GITHUB_TOKEN" not in seen and "PIP_INDEX_URL" not in seen
    assert seen["npm_config_registry"] == "https://registry.example/" and seen["CI"] == "1"


def test_tools_of_the_project_come_first_on_the_path(lend):
    lent, _, home = lend("mkdir -p node_modules/.bin; true > node_modules/.bin/tsc")
    entries = lent.environment["PATH"].split(os.pathsep)
    assert entries[0].endswith("node_modules/.bin") and entries[2] == str(home / ".local/bin")


def test_a_virtual_environment_names_the_clone_it_is_lent_to(lend):
    python = f"{shlex.quote(sys.executable)} -m venv --without-pip .venv"
    site = "$(echo .venv/lib/python*/site-packages)"
    _, files, _ = lend(
        f'{python}; echo "$PWD/src" > "{site}/here.pth"; printf "#!$PWD/.venv/bin/python\\n" > .venv/bin/x'
    )
    (pth,) = [text for name, text in files.items() if name.endswith("here.pth")]
    assert "/workshop-" in pth and "/kept/" not in pth
    assert "/kept/" not in files[".venv/bin/x"] and "/kept/" not in files[".venv/pyvenv.cfg"]


def test_the_last_used_ones_are_kept_and_no_more(repo, tmp_path):
    for number in range(module.KEPT_SETUPS + 2):
        commit(repo, {"a.txt": f"{number}\n"})
        head = git(repo, "rev-parse", "HEAD")
        with clone(Git.open(repo), head, tmp_path) as folder:
            ProjectSetup(Git.open(repo), tmp_path / "kept", ("true",)).lend(head, folder, tmp_path / "home")
    assert len([one for one in (tmp_path / "kept").iterdir() if one.is_dir()]) == module.KEPT_SETUPS


def test_an_old_one_that_cannot_be_removed_keeps_no_other(lend, tmp_path):
    old = [tmp_path / "kept" / str(age) for age in range(1, module.KEPT_SETUPS + 2)]
    for age, folder in enumerate(old):
        folder.mkdir(parents=True)
        folder.with_suffix(".lock").touch()
        os.utime(folder, (1e9 - age, 1e9 - age))
    stuck = old[module.KEPT_SETUPS - 1]  # the first that is to go
    stuck.with_suffix(".lock").unlink()
    stuck.with_suffix(".lock").symlink_to(tmp_path)
    lend("true")
    assert [folder.exists() for folder in old[module.KEPT_SETUPS - 1 :]] == [True, False]


def test_the_report_of_a_set_up_is_ours_to_read(lend, tmp_path):
    lend("true")
    (report,) = (tmp_path / "kept").glob(f"*/{module.REPORT}")
    assert json.loads(report.read_text())["failed"] == ""


def test_toolchains_of_rustup_are_found_though_the_home_is_another_one(repo, tmp_path, monkeypatch):
    level_or_skip("bwrap")
    home = tmp_path / "user"
    files = {"cargo/rustup": "", "cargo/cargo": 'cat "$RUSTUP_HOME/toolchains/x"', "rust/toolchains/x": "stable"}
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"#!/bin/sh\n{text}" if "cargo/" in name else text)
        (home / name).chmod(0o755)
    (home / "rust/credentials").write_text("secret")
    monkeypatch.setenv("RUSTUP_HOME", str(home / "rust"))
    monkeypatch.setenv("PATH", f"{home / 'cargo'}{os.pathsep}{os.environ['PATH']}")
    source, head = Git.open(repo), git(repo, "rev-parse", "HEAD")
    setup = ProjectSetup(
        source, tmp_path / "kept", ("cargo > said; cat $RUSTUP_HOME/credentials >> said; true",),
        sandbox_for=lambda made: of_clone("bwrap", made, made.work_tree or made.git_dir, {}),
    )  # fmt: skip  # one call
    with clone(source, head, tmp_path) as folder:
        lent = setup.lend(head, folder, tmp_path / "tools")
        assert (folder / "said").read_text() == "stable"
    assert lent.environment["RUSTUP_HOME"] == str(home / "rust")


def test_the_whole_of_a_go_toolchain_is_found_wherever_it_is(repo, tmp_path, monkeypatch):
    level_or_skip("bwrap")
    shows = '#!/bin/sh\ncd "${0%/bin/*}"\ncat src/fmt/print.go go.env secret\n'
    files = {"bin/go": shows, "src/fmt/print.go": "package fmt\n", "go.env": "GOPROXY=x\n", "secret": "secret\n"}
    for name, text in files.items():
        (tmp_path / "go/1.27" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "go/1.27" / name).write_text(text)
    (tmp_path / "go/1.27/bin/go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'go/1.27/bin'}{os.pathsep}{os.environ['PATH']}")
    source, head = Git.open(repo), git(repo, "rev-parse", "HEAD")
    setup = ProjectSetup(
        source, tmp_path / "kept", ("go > said; true",),
        sandbox_for=lambda made: of_clone("bwrap", made, made.work_tree or made.git_dir, {}),
    )  # fmt: skip  # one call
    with clone(source, head, tmp_path) as folder:
        setup.lend(head, folder, tmp_path / "tools")
        assert (folder / "said").read_text() == "package fmt\nGOPROXY=x\n"


def test_what_a_clone_was_lent_is_told_by_the_set_up_alone(repo, tmp_path):
    """No name comes from the clone, which a session may write; none of an earlier set-up stays."""
    setup = ProjectSetup(Git.open(repo), tmp_path / "kept", ("mkdir m; echo good > m/f",))
    commit(repo, {"m/own.txt": "x\n"})
    head, home = git(repo, "rev-parse", "HEAD"), tmp_path / "home"
    with clone(Git.open(repo), head, tmp_path) as folder:
        assert setup.lend(head, folder, home).names == ("m/f",), "the folder is the commit's"
        (home / module.MARK).write_bytes((home / module.MARK).read_bytes() + b"\0conftest.py")
        (folder / "conftest.py").write_text("hidden")
        (folder / "m/f").unlink()
        assert setup.lend(head, folder, home).names == ("m/f",)
        assert (folder / "m/f").read_text() == "good\n"
        other = replace(setup, commands=("mkdir n; echo n > n/f",))
        assert other.lend(head, folder, home).names == ("n",)
