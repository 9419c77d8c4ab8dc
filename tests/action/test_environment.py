"""The environment of the action: one for each version, whole or not there, whoever else is installing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.action.runner import Runner, bare_environment, release, wait_for

INSTALLER = """\
#!/bin/sh
# Stands in for uv: makes what it is asked for, and notes down that it was asked.
echo "$$ $*" >>"$ASKED"
for word; do folder="$word"; done
case "$*" in
  venv*)
    mkdir -p "$folder/bin"
    printf '#!/bin/sh\\n' >"$folder/bin/python" && chmod +x "$folder/bin/python" ;;
  *--require-hashes*) if [ -n "$HANGS" ]; then echo here >"$HANGS"; sleep 600; fi; [ -z "$FAILS" ] ;;
  *--no-deps*)
    while [ "$1" != --python ]; do shift; done
    printf '#!/bin/sh\\n' >"${2%python}ralph" && chmod +x "${2%python}ralph" ;;
  *) echo "not understood: $*" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def installer(tmp_path: Path) -> Path:
    """A folder for the path with an installer that needs no network."""
    folder = tmp_path / "installer"
    folder.mkdir()
    (folder / "uv").write_text(INSTALLER)
    (folder / "uv").chmod(0o755)
    return folder


def start(cold: Runner, installer: Path | None, **more: str) -> subprocess.Popen[str]:
    """One job looking for its environment."""
    environment = bare_environment(cold.home, RUNNER_TOOL_CACHE=str(cold.tools), ASKED=str(cold.home / "asked"), **more)
    if installer:
        environment["PATH"] = f"{installer}{os.pathsep}{environment['PATH']}"
    return subprocess.Popen(
        ["bash", str(cold.action / "scripts" / "action" / "environment.sh")],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def find(cold: Runner, installer: Path, **more: str) -> Path:
    """Where a job that went well found its environment."""
    process = start(cold, installer, **more)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return Path(out.strip())


def list_installed(cold: Runner) -> list[str]:
    """What the installer was asked for, in order; the processes left out."""
    path = cold.home / "asked"
    return [line.split(" ", 1)[1] for line in path.read_text().splitlines()] if path.exists() else []


def built(cold: Runner) -> list[str]:
    """Every environment that takes room in the tool cache."""
    return sorted(path.name for path in (cold.tools / "ralph-mission").glob("*.built"))


def test_a_cold_runner_installs_by_hash_and_then_the_action_itself(cold: Runner, installer: Path) -> None:
    place = find(cold, installer)
    assert place == cold.place()
    assert os.access(place / "bin" / "ralph", os.X_OK)
    packages, itself = list_installed(cold)[1:]
    assert "--require-hashes" in packages and packages.endswith("requirements.lock")
    assert itself.endswith(f"--no-deps --no-build-isolation {cold.action}") and " -e " not in itself


def test_extras_are_installed_by_hash_too_into_an_environment_of_their_own(cold: Runner, installer: Path) -> None:
    plain = find(cold, installer)
    (cold.home / "asked").unlink()
    place = find(cold, installer, RALPH_EXTRAS=" prisma  llm llm")
    assert place != plain and find(cold, installer, RALPH_EXTRAS="llm prisma") == place
    packages = list_installed(cold)[1]
    named = [Path(word).name for word in packages.split() if word.endswith(".lock")]
    assert "--require-hashes" in packages
    assert named == ["requirements.lock", "requirements-llm.lock", "requirements-prisma.lock"]


def test_a_warm_runner_starts_neither_python_nor_installer(cold: Runner, installer: Path) -> None:
    for name in ("python3", "python3.14", "python3.13", "python3.12", "python3.11"):
        (installer / name).write_text(
            f'#!/bin/sh\necho "$$ python" >>"$ASKED"\nexec {sys.base_prefix}/bin/python3 "$@"\n'
        )
        (installer / name).chmod(0o755)
    place = find(cold, installer)
    assert "python" in list_installed(cold) and "venv" in " ".join(list_installed(cold))
    (cold.home / "asked").unlink()
    assert find(cold, installer) == place
    assert list_installed(cold) == []


def test_two_jobs_at_once_install_once(cold: Runner, installer: Path) -> None:
    jobs = [start(cold, installer) for _ in range(2)]
    said = [job.communicate() for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], said
    assert {out.strip() for out, _ in said} == {str(cold.place())}
    assert len([line for line in list_installed(cold) if line.startswith("venv")]) == 1
    assert len(built(cold)) == 1


def test_what_a_killed_job_left_half_installed_is_never_used(cold: Runner, installer: Path) -> None:
    hangs = cold.home / "hangs"
    job = start(cold, installer, HANGS=str(hangs))
    wait_for(hangs)
    os.killpg(job.pid, signal.SIGKILL)
    job.communicate()
    assert not cold.place().exists() and len(built(cold)) == 1
    half = built(cold)
    assert os.access(find(cold, installer) / "bin" / "ralph", os.X_OK)
    assert built(cold) != half and len(built(cold)) == 1


@pytest.mark.long  # environments built anew
@pytest.mark.parametrize("lost", ["bin/python", "bin/ralph"])
def test_an_environment_that_lost_its_python_is_built_anew(cold: Runner, installer: Path, lost: str) -> None:
    place = find(cold, installer)
    (place / lost).unlink()
    (place / lost).symlink_to("/nowhere/python3")
    assert os.access(find(cold, installer) / lost, os.X_OK)
    assert len(built(cold)) == 1


def test_a_failed_installation_leaves_nothing_and_the_next_one_succeeds(cold: Runner, installer: Path) -> None:
    job = start(cold, installer, FAILS="1")
    _, err = job.communicate()
    assert job.returncode != 0
    assert "could not be installed" in err and "Traceback" not in err
    assert built(cold) == [] and not cold.place().exists()
    find(cold, installer)


@pytest.mark.long  # environments built anew
@pytest.mark.parametrize("changed", ["requirements.lock", "ralph_mission/cli/mission/wakes.py", "pyproject.toml"])
def test_another_version_is_another_environment(cold: Runner, tmp_path: Path, changed: str) -> None:
    other = Runner(cold.home, shutil.copytree(cold.action, tmp_path / "other"))
    assert other.place() == cold.place()
    with (other.action / changed).open("a") as file:
        file.write("\n# changed\n")
    assert other.place() != cold.place()


def test_what_python_compiled_is_no_other_version(cold: Runner, tmp_path: Path) -> None:
    other = Runner(cold.home, shutil.copytree(cold.action, tmp_path / "other"))
    (other.action / "ralph_mission" / "__pycache__").mkdir()
    (other.action / "ralph_mission" / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"x")
    assert other.place() == cold.place()


def test_what_nobody_used_for_a_month_goes_with_the_next_installation(cold: Runner, installer: Path) -> None:
    old = find(cold, installer)
    stamp = Path(f"{old}.used")
    month_ago = time.time() - 31 * 86400
    os.utime(stamp, (month_ago, month_ago))
    other = shutil.copytree(cold.action, cold.home / "other")
    (other / "requirements.lock").write_text("changed\n")
    find(Runner(cold.home, other), installer)
    assert not old.is_symlink() and not stamp.exists()
    assert len(built(cold)) == 1


def test_a_machine_without_a_new_python_is_told_what_to_install(cold: Runner, installer: Path) -> None:
    folder = cold.home / "bin"
    folder.mkdir()
    for name in "bash uname readlink find sort xargs sha256sum cut dirname".split():
        (folder / name).symlink_to(shutil.which(name) or name)
    (folder / "python3").write_text("#!/bin/sh\nexit 1\n")
    (folder / "python3").chmod(0o755)
    script = cold.action / "scripts" / "action" / "environment.sh"
    done = subprocess.run(
        [str(folder / "bash"), str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(folder), "HOME": str(cold.home), "RUNNER_TOOL_CACHE": str(cold.tools)},
    )
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr


@pytest.mark.real  # installs everything anew
def test_a_cold_runner_installs_from_a_registry_what_outlives_the_action(tmp_path: Path) -> None:
    action = release(tmp_path / "action")
    cold = Runner(tmp_path, action)
    environment = bare_environment(cold.home, RUNNER_TOOL_CACHE=str(cold.tools))
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    script = cold.action / "scripts" / "action" / "environment.sh"
    place = Path(subprocess.check_output(["bash", str(script)], env=environment, text=True).strip())
    shutil.rmtree(action)
    where = "import ralph_mission; print(ralph_mission.__file__)"
    said = subprocess.check_output([place / "bin" / "python", "-I", "-c", where], text=True)
    assert Path(said.strip()).resolve().is_relative_to(place.resolve())
