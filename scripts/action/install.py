"""Install ralph_mission for the action: `install.py ACTION PLACE WORKSPACE CONFIG [EXTRA...]` makes PLACE a link to an
environment with what the settings of WORKSPACE need ("": nobody's; CONFIG "": its ralph.yml).

Every package by hash from the lock files and none that would have to be built, then ralph_mission itself as a copy:
the action's folder may vanish. uv installs, in less time than pip takes: the machine's, else one that pip brings by
hash and that stays beside the environments. Where the machine tells pip how packages are reached, or uv fails, pip does
it all. What an earlier job left for them to obey is not heard (`clean`). The environment is built beside PLACE, where
it stays; PLACE appears when it is whole. One at a time installs, under a lock; what was begun and never finished, and
what nobody used for a month, goes. Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

UNUSED = 30 * 86400  # seconds


def main(action: Path, place: Path, workspace: str, config: str, extras: Sequence[str]) -> None:
    """Install, unless another job did while we waited."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with alone(place.parent / "lock"):
        if whole(place):
            return
        place.unlink(missing_ok=True)
        sweep(place.parent, time.time() - UNUSED)
        built = Path(tempfile.mkdtemp(prefix=f"{place.name}.", suffix=".built", dir=place.parent))
        try:
            build(action, built, extras)
            if workspace and (missing := lacking(built, workspace, config)):
                add(action, built, missing)
            place.symlink_to(built.name)
        except BaseException:
            shutil.rmtree(built, ignore_errors=True)
            raise


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """While nobody else is in here. The kernel lets go of the lock of a process that dies."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def whole(place: Path) -> bool:
    """Whether the link leads to an environment whose Python, itself a link, is still there."""
    return all(os.access(place / "bin" / name, os.X_OK) for name in ("python", "ralph"))


def sweep(root: Path, before: float) -> None:
    """Remove what nobody used since `before`, environments that no link leads to, and what a dead job began."""
    for used in root.glob("*.used"):
        if used.stat().st_mtime < before:
            used.with_suffix("").unlink(missing_ok=True)
            used.unlink()
    for uv in root.glob("uv-[0-9]*"):
        if uv.stat().st_mtime < before:
            shutil.rmtree(uv, ignore_errors=True)
    kept = {link.resolve() for link in root.iterdir() if link.is_symlink()}
    for built in (*root.glob("*.built"), *root.glob("begun-*")):
        if built.resolve() not in kept:
            shutil.rmtree(built, ignore_errors=True)


def build(action: Path, folder: Path, extras: Sequence[str]) -> None:
    """An environment in `folder` with the package and these extras. Raises CalledProcessError."""
    print(f"installing ralph_mission in {folder}", flush=True)
    if uv := shutil.which("uv"):
        run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder))
    else:
        run(sys.executable, "-I", "-m", "venv", str(folder))
        bring_uv(action, folder)
    add(action, folder, extras, "requirements.lock")
    # uv knows a folder by its name, and would hand out what stood in it before
    install(action, folder, "--no-cache-dir", "--no-deps", "--no-build-isolation", str(action))
    run(str(folder / "bin" / "python"), "-I", "-m", "ralph_mission", "--version")


# A package that is built runs what it likes, with tools that no lock names; the locks are whole.
WHEELS = ("--require-hashes", "--only-binary", ":all:", "--no-deps")


def add(action: Path, folder: Path, extras: Sequence[str], *locks: str) -> None:
    """The packages of lock files and extras. Raises CalledProcessError."""
    names = (*locks, *(f"requirements-{extra}.lock" for extra in extras))
    install(action, folder, *WHEELS, *(word for name in names for word in ("-r", str(action / name))))


def install(action: Path, folder: Path, *what: str) -> None:
    """Install into `folder`. Raises CalledProcessError when the last that can do it fails."""
    machines, brought = shutil.which("uv"), uv_place(action, folder)
    settings = {} if machines else pip_settings(folder)
    if uv := machines or (str(brought / UV) if (brought / UV).exists() and reaches_as_usual(settings) else ""):
        command = (uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(folder / "bin" / "python"))
        try:
            return run(*command, *what, **({} if machines else certificates(settings)))
        except subprocess.CalledProcessError:
            if machines:
                raise
            print("uv could not do it: pip tries", flush=True)
            shutil.rmtree(brought, ignore_errors=True)
    run(*pip(folder), "install", "--quiet", "--no-input", *what)


def pip(folder: Path) -> tuple[str, ...]:
    """The pip of an environment that has one."""
    return (str(folder / "bin" / "python"), "-I", "-m", "pip", "--disable-pip-version-check")


UV, UV_LOCK = Path("bin") / "uv", "requirements-uv.lock"
WAYS = ("index-url", "extra-index-url", "no-index", "find-links", "proxy", "client-cert", "trusted-host")
"""Settings of pip that say how packages are reached, which uv does not read."""


def uv_place(action: Path, folder: Path) -> Path:
    """Where the uv of this version of the action is kept, beside the environment `folder`."""
    version = (action / UV_LOCK).read_text().partition(" ")[0].replace("==", "-")
    return folder.parent / version


def bring_uv(action: Path, folder: Path) -> None:
    """Have the environment's pip bring uv, unless the machine tells pip how packages are reached."""
    place = uv_place(action, folder)
    if (place / UV).exists():
        return os.utime(place)
    if not reaches_as_usual(pip_settings(folder)):
        return
    begun = tempfile.mkdtemp(prefix="begun-", dir=place.parent)
    try:
        run(*pip(folder), "install", "--quiet", "--no-input", "--target", begun, *WHEELS, "-r", str(action / UV_LOCK))
        shutil.rmtree(place, ignore_errors=True)
        os.rename(begun, place)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(begun, ignore_errors=True)
        print(f"uv could not be brought, so pip installs: {error}", flush=True)


def pip_settings(folder: Path) -> dict[str, str]:
    """What the machine and the environment set for pip."""
    lines = capture(*pip(folder), "config", "list").splitlines()
    return {name.rpartition(".")[2]: value.strip("'") for name, _, value in (line.partition("=") for line in lines)}


def reaches_as_usual(settings: dict[str, str]) -> bool:
    """Whether pip's settings leave it to the installer how packages are reached."""
    return settings.keys().isdisjoint(WAYS)


def certificates(settings: dict[str, str]) -> dict[str, str]:
    """The environment by which uv trusts whom pip trusts."""
    return {"SSL_CERT_FILE": settings["cert"]} if "cert" in settings else {"UV_SYSTEM_CERTS": "1"}


def lacking(folder: Path, workspace: str, config: str) -> list[str]:
    """The extras that the settings need besides what is there; none of settings that the command cannot read either."""
    program = "import sys; from ralph_mission.app.extras import main; main(sys.argv[1:])"
    command = (str(folder / "bin" / "python"), "-I", "-c", program, workspace, *filter(None, (config,)))
    asked = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    return asked.stdout.split() if asked.returncode == 0 else []


def run(*command: str, **more: str) -> None:
    """Show what it says; `more` is in its environment. Raises CalledProcessError when it fails."""
    with somewhere_else() as place:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, cwd=place, env=clean(place) | more)


def capture(*command: str) -> str:
    """What it prints. Raises CalledProcessError when it fails."""
    with somewhere_else() as place:
        env, nothing = clean(place), subprocess.DEVNULL
        return subprocess.check_output(command, stdin=nothing, text=True, cwd=place, env=env)


@contextmanager
def somewhere_else() -> Iterator[Path]:
    """A folder to run commands in: in the workspace uv obeys files."""
    with tempfile.TemporaryDirectory(prefix="ralph-install-") as nowhere:
        yield Path(nowhere)


def clean(nowhere: Path) -> dict[str, str]:
    """Our environment, in which neither pip nor uv reads what stands in the user's home, nor Python anything at all.

    What the machine's own settings and the environment itself say holds: that is where a mirror is named.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"PIP_USER": "0"}
    if not os.path.exists(ours.get("PIP_CONFIG_FILE", "")):
        (nowhere / "pip.conf").touch()
        ours["PIP_CONFIG_FILE"] = str(nowhere / "pip.conf")
    if not ours.get("UV_CONFIG_FILE"):
        machine = Path("/etc/uv/uv.toml")
        ours |= {"UV_CONFIG_FILE": str(machine)} if machine.is_file() else {"UV_NO_CONFIG": "1"}
    return ours


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:])
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"ralph_mission could not be installed: {error}")
