"""A process's view at the level `bwrap`, and its only network access: the model's host.

It sees the system read-only, its folders, nothing else of the machine. Bubblewrap gets its own namespaces for users,
processes, shared memory, names, cgroups and, if the kernel supports it, the network. It ends with us, together with
everything inside. It starts no new session: `process.run_foreign` did, and its group must include everything inside.

If we are root, the kernel treats processes inside as root too, but without any capability. They own root's files, so
those that only root may read or write are hidden.

A server on this machine (a model server, a test) has the same address and port inside, byte for byte. Others are
reached through a proxy (RFC 9110 §9.3.6, CONNECT), so that TLS stays between the agent and the host.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from ralph_mission.adapters.sandbox import inside
from ralph_mission.adapters.sandbox.inside import LINES, pass_on
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

ANTHROPIC = ("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
GEMINI = ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com")
PROVIDERS = (
    ("ANTHROPIC_API_KEY", *ANTHROPIC),
    ("ANTHROPIC_AUTH_TOKEN", *ANTHROPIC),
    ("CLAUDE_CODE_OAUTH_TOKEN", *ANTHROPIC),
    ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com"),
    ("GEMINI_API_KEY", *GEMINI),
    ("GOOGLE_API_KEY", *GEMINI),
    ("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BASE_URL", ""),
    ("AMP_API_KEY", "AMP_URL", "https://ampcode.com"),
)
"""The key's variable, the variable of another URL, the default URL, as in the providers' own clients."""
HEAD = 8192  # bytes of a request's head: the limit of most servers
PATIENCE = 30.0  # seconds for a head, and for a connection to a host
TEMPORARY = "/tmp"  # a socket's path is limited to 107 characters, which TMPDIR may exceed
ORDINARY = 1024  # ip_unprivileged_port_start of Linux
PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and port to reach."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        if self.host == "localhost":
            return True
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False

    @property
    def listens(self) -> str:
        """Its address inside."""
        return self.host if self.loopback and self.host != "localhost" else "127.0.0.1"


def endpoint(url: str) -> Endpoint:
    """The host of a URL. Raises UserError (usage) if it is invalid, would send keys unencrypted, or cannot be offered
    inside: a port below 1024 needs root there, too."""
    parts = urlsplit(url)
    try:
        end = Endpoint(parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0))
    except ValueError:
        end = Endpoint("", 0)
    clear, reserved = parts.scheme == "http" and not end.loopback, end.loopback and end.port < ORDINARY
    if not end.host or not end.port or clear or reserved:
        what = (
            f"{parts.scheme}://{parts.hostname} is not the address of a model that an agent at sandbox: bwrap can use"
        )
        raise UserError(what, "use https, or http on this machine with a port from 1024; or sandbox: env", usage=True)
    return end


def of_models(environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The hosts of providers whose key is set, each once. `environ`: the agent's."""
    urls = (environ.get(address) or usual for key, address, usual in PROVIDERS if environ.get(key))
    return tuple(dict.fromkeys(endpoint(url) for url in urls if url))


@contextmanager
def relay(endpoints: Sequence[Endpoint]) -> Iterator[Path]:
    """A folder with one socket per endpoint, named by its number, for us only."""
    folder = Path(tempfile.mkdtemp(prefix="ralph-way-", dir=TEMPORARY))
    sockets: list[socket.socket] = []
    try:
        for number, end in enumerate(endpoints):
            sockets.append(_listen(folder / str(number)))
            threading.Thread(target=_serve, args=(sockets[-1], end, tuple(endpoints)), daemon=True).start()
        yield folder
    finally:
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes the waiting thread
            one.close()
        shutil.rmtree(folder, ignore_errors=True)


def _listen(place: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    place.chmod(0o600)
    listener.listen(LINES)
    return listener


def _serve(listener: socket.socket, end: Endpoint, allowed: tuple[Endpoint, ...]) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_onward, args=(client, end, allowed), daemon=True).start()


def _onward(client: socket.socket, end: Endpoint, allowed: tuple[Endpoint, ...]) -> None:
    with client, suppress(OSError):
        target = end if end.loopback else _read_connect(client)
        if target not in allowed:
            client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        try:
            onward = socket.create_connection((target.host, target.port), PATIENCE)
        except OSError:
            if not end.loopback:
                client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        onward.settimeout(None)
        if not end.loopback:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pass_on(client, onward)


def _read_connect(client: socket.socket) -> Endpoint | None:
    """The host and port of a CONNECT request, or None. Reads byte by byte, as later data is not ours."""
    client.settimeout(PATIENCE)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if len(head) > HEAD or not (byte := client.recv(1)):
            return None
        head += byte
    client.settimeout(None)
    method, _, rest = head.decode("latin-1").partition(" ")
    host, _, port = rest.partition(" ")[0].rpartition(":")
    if method != "CONNECT" or not re.fullmatch("[0-9]{1,5}", port):
        return None
    return Endpoint(host.strip("[]").lower(), int(port))


MISSING = "bubblewrap (bwrap) is not installed"
INSTALL = "install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap)"
SYSTEM = tuple(map(Path, "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /gnu /snap".split()))
"""Programs, libraries and settings of the machine. Not homes, /var, /run (sockets of services), /srv, /mnt, /tmp."""
INSTALLED = ("lib", "lib64", "libexec", "pyvenv.cfg")
"""Folders that belong to programs in a `bin` beside them. Not `share`: below a home that is personal data."""
GO = ("src", "pkg", "go.env", "VERSION")
"""What belongs to a Go toolchain beside its `bin`."""
RUSTUP = ("toolchains", "settings.toml", "update-hashes", "downloads", "tmp")
"""What it wants to see in its own folder."""
LONGEST = 65_536  # bytes: a pipe's capacity
RELAY = "/run/ralph"
SECONDS = 20.0  # for a program that does nothing
PROC = Path("/proc")
NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent")
FRESH = ("--proc", "/proc", "--dev", "/dev", "--symlink", "/tmp", "/var/tmp", "--hostname", "ralph")
AS_USER = ("--unshare-user",)
AS_ROOT = ("--unshare-user", "--uid", "1000", "--gid", "1000")
"""Inside, root appears as an ordinary user, since many programs refuse to run as root."""
TRIAL = ("/bin/sh", "-c", 'exec "$0" -I -S -c ""', sys.executable)
"""Our own Python: each session needs it, for `ralph agent emit` and for the guard before its commands."""
# bwrap waits for processes inside to handle TERM; the helper passes it to the command.
DEAF = ("/bin/sh", "-c", 'trap "" TERM; exec "$@"', "sh")


@dataclass(frozen=True, slots=True)
class View:
    """The visible paths, resolved. `scratch` is also /tmp; `path`: the PATH; `program`: runs in `cwd`; `socket`: the
    relay's folder."""

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    scratch: Path | None = None
    path: str = ""
    program: str = ""
    cwd: Path = Path("/")
    socket: Path | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A pipe from inside. A session can write to it too, so it is only trusted about processes."""

    reading: int
    writing: int

    def heard(self) -> tuple[str, ...]:
        """The command lines of processes still running; empty if invalid, or for a killed view."""
        os.set_blocking(self.reading, False)
        with suppress(OSError, ValueError, RecursionError):
            lines = json.loads(os.read(self.reading, LONGEST))
            return tuple(str(one) for one in lines) if isinstance(lines, list) else ()
        return ()


@contextmanager
def reporting() -> Iterator[Report]:
    """A report, open within the context."""
    report = Report(*os.pipe())
    try:
        yield report
    finally:
        os.close(report.reading)
        os.close(report.writing)


def program() -> str:
    """The path of bubblewrap, or "" if not installed."""
    return shutil.which("bwrap") or ""


def wrap_command(view: View, command: Sequence[str], closed: bool) -> list[str]:
    """The command inside bubblewrap; `closed`: without the network."""
    places = [word for words in (*_system(), FRESH, *_places(view), *_of_root()) for word in words]
    net = ["--unshare-net"] if closed else []
    way = ["--perms", "0755", "--dir", "/run", "--ro-bind", str(view.socket), RELAY] if view.socket else []
    where = ["--chdir", "/", "--remount-ro", "/"]
    who = AS_ROOT if os.geteuid() == 0 else AS_USER
    return [*DEAF, program(), *NAMESPACES, *who, *net, "--cap-drop", "ALL", *places, *way, *where, "--", *command]


def with_helper(argv: Sequence[str], cwd: Path, endpoints: Sequence[Endpoint], report: int) -> list[str]:
    """The command in `cwd`, started by our helper inside, which listens for `endpoints` and writes to the descriptor
    `report`."""
    ways = [f"{RELAY}/{number} {end.listens} {end.port * end.loopback}" for number, end in enumerate(endpoints)]
    script = str(Path(inside.__file__).resolve())
    return [sys.executable, "-I", "-S", script, str(cwd), str(report), "\n".join(ways), *argv]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of starting a process in a view. `refused`: why that fails, or ""; `open_network`: why the network
    cannot be closed, or ""."""

    refused: str = ""
    open_network: str = ""


def attempt() -> Attempt:
    """Start our own Python in a view; cached per bubblewrap, as a machine does not change during a run."""
    return _try_bwrap(program())


@cache
def _try_bwrap(found: str) -> Attempt:
    if not found:
        return Attempt(MISSING)
    if not (refused := _error(wrap_command(View(), TRIAL, closed=True))):
        return Attempt()
    with_network = _error(wrap_command(View(), TRIAL, closed=False))
    return Attempt(with_network, "" if with_network else refused)


def _error(command: Sequence[str]) -> str:
    """A command's error output; "" if it succeeds."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=SECONDS, env={"PATH": os.defpath})
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (lines[-1] if lines else f"exit {done.returncode}") if done.returncode else ""


def _system() -> Iterator[tuple[str, ...]]:
    for place in SYSTEM:
        if place.is_symlink():
            yield "--symlink", os.readlink(place), str(place)
        elif place.is_dir():
            yield "--ro-bind", str(place), str(place)


def _of_root() -> tuple[tuple[str, ...], ...]:
    """Hides root's own files, which root's sessions could access: kernel settings are read-only; files in `/etc` that
    others may not read, and kernel files that only root may read or write, are hidden. Empty unless we are root."""
    if os.geteuid() != 0:
        return ()
    kernel = [entry for entry in os.scandir(PROC) if not entry.name.isdigit() and not entry.is_symlink()]
    folders = [("--ro-bind", entry.path, entry.path) for entry in kernel if entry.is_dir()]
    modes = {Path(entry.path): entry.stat().st_mode for entry in kernel if not entry.is_dir()}
    closed = [place for place, mode in modes.items() if mode & stat.S_IWUSR or not mode & stat.S_IROTH]
    return (*folders, *map(_cover, (*closed, *_closed_to_others(Path("/etc")))))


def _closed_to_others(folder: Path) -> Iterator[Path]:
    """The topmost files and folders below `folder` that others may not read."""
    for entry in os.scandir(folder):
        if entry.is_symlink():
            continue
        mode, folder_of_files = entry.stat().st_mode, entry.is_dir()
        if not mode & stat.S_IROTH or (folder_of_files and not mode & stat.S_IXOTH):
            yield Path(entry.path)
        elif folder_of_files:
            yield from _closed_to_others(Path(entry.path))


def _places(view: View) -> Iterator[tuple[str, ...]]:
    """The more specific path wins, because it comes later; of equal ones the more permissive."""
    yield ("--bind", str(view.scratch), "/tmp") if view.scratch else ("--perms", "1777", "--tmpfs", "/tmp")
    known = (*view.writable, *SYSTEM)
    needed = {place for place in _needed_paths(view) if not _inside(place, known)}
    places = {*view.readable, *needed} - {*view.writable}
    steps = [(place, 0, _cover(place)) for place in view.hidden if _inside(place, (*known, *places))]
    steps += [(place, 1, ("--ro-bind", str(place), str(place))) for place in places]
    steps += [(place, 2, ("--bind", str(place), str(place))) for place in view.writable]
    # If bubblewrap created them implicitly, the parent folders would be closed to another user.
    above = {parent for place, _, _ in steps for parent in place.parents[:-1] if not _inside(parent, SYSTEM)}
    steps += [(parent, -1, ("--perms", "0755", "--dir", str(parent))) for parent in above]
    yield from (words for place, rank, words in sorted(steps, key=lambda step: (len(step[0].parts), step[1])))


def _cover(place: Path) -> tuple[str, ...]:
    return ("--tmpfs", str(place)) if place.is_dir() else ("--ro-bind", os.devnull, str(place))


def _needed_paths(view: View) -> Iterator[Path]:
    """The paths that programs on PATH and our own Python need, named and resolved. Computed for each view: a program
    that updates itself moves between sessions. Links in folders that sessions write are not followed."""
    named = [Path(folder) for folder in (*view.path.split(os.pathsep), os.path.dirname(view.program))]
    folders = [folder for folder in named if folder.is_absolute()]
    folders += [Path(prefix, "bin") for prefix in (sys.prefix, sys.base_prefix)]
    found = {Path("/etc/resolv.conf").resolve(), Path(inside.__file__).resolve().parents[2]}  # the first is below /run
    known, closed = set[Path](), (*view.writable, *SYSTEM)
    while folders:
        folder = folders.pop()
        if folder in known or not os.access(folder / ".", os.R_OK):
            continue
        if _inside(folder.resolve(), closed) or _inside(folder, view.writable):
            continue
        known.add(folder)
        if (folder / "rustup").exists():  # its `cargo` starts a toolchain's, which is elsewhere
            found |= {rustup_home() / name for name in RUSTUP}
        if (folder.parent / "src/fmt/print.go").is_file():
            found |= {folder.parent / name for name in GO}
        found |= {folder, *(folder.parent / name for name in INSTALLED if folder.name == "bin")}
        with os.scandir(folder) as entries:
            links = [entry.path for entry in entries if entry.is_symlink()]
        leads = {os.path.realpath(link) for link in links}  # one may lead to itself, and many to one
        targets = [folder.resolve() / "-", *map(Path, leads)]
        folders += [target.parent for target in targets if target.parent.name == "bin" or target.name == "-"]
        found |= {target for target in targets if target.parent.name != "bin" and target.name != "-"}
    yield view.cwd
    yield from (_with_packages(place) for place in found if os.path.exists(place) and not _inside(place, closed))


def _with_packages(place: Path) -> Path:
    """The outermost `node_modules` around a program, since one finds the packages beside its own; else the path."""
    above = next((above for above in reversed((place, *place.parents)) if above.name == "node_modules"), place)
    return place if above.is_symlink() else above


def rustup_home() -> Path:
    """The folder of rustup's toolchains: `RUSTUP_HOME`, or below our user's home."""
    return Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")


def _inside(place: Path, folders: Iterable[Path]) -> bool:
    path = f"{place}/"  # as text: `parents` for each pair took a quarter of a session's time
    return any(path.startswith(f"{str(folder).rstrip('/')}/") for folder in folders)
