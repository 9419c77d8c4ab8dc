"""Runs inside bubblewrap, before the command and beside it: relays to the model's host, and passes on TERM.

Started by its path with `python -I -S`, so that it is cheap and imports none of our code, and heavy modules where they
are used. Called with the folder to work in, the descriptor for a report, the ways (a line of socket, address and port
each; port 0: by way of a proxy) and the command. Processes still running after the command are reported, as they end
with the view, unseen.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

TYPE_CHECKING = False  # without `typing`, which is heavy
if TYPE_CHECKING:
    import socket
    import threading

PROXY = ("HTTPS_PROXY", "https_proxy")
NOT_FOUND, NOT_RUN = 127, 126  # as a shell reports it
LINES = 128  # connections in the backlog
MOMENT = 0.3  # seconds that a process has to end after its parent
TICK = 0.02
SHOWN = 500  # bytes of a command line


def main(cwd: str, report: int, lines: str, argv: list[str]) -> int:
    """Listen, start the command, relay data, and end with the command's exit code."""
    os.chdir(cwd)  # here rather than by bwrap, which may lack access
    os.environ["PWD"] = cwd  # some ask this instead of the kernel
    ways = [line.split(" ") for line in lines.splitlines()]
    listening = [(_listen_at(address, int(port)), place) for place, address, port in ways]
    proxies = [listener.getsockname()[1] for (listener, _), way in zip(listening, ways, strict=True) if way[2] == "0"]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(report, False)
    child = os.fork()
    if child == 0:
        _become(argv, proxies)
    for listener, place in listening:
        _in_background(_serve, listener, place)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if left := still(_others):
        _report(report, left)
    return code if code >= 0 else 128 - code


def pass_on(one: socket.socket, other: socket.socket) -> None:
    """Relay data in both directions until both sides are done."""
    with one, other:
        back = _in_background(_copy, other, one)
        _copy(one, other)
        back.join()


def _in_background(work: Callable[..., None], *arguments: object) -> threading.Thread:
    import threading

    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def still(running: Callable[[], list[int]]) -> tuple[str, ...]:
    """The command lines of processes still running after a grace period."""
    patience = time.monotonic() + MOMENT
    while (pids := running()) and time.monotonic() < patience:
        time.sleep(TICK)
    return tuple(map(command_line, pids))


def command_line(pid: int) -> str:
    """A process's command line, or its number if unknown."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        line = file.read(SHOWN).replace(b"\0", b" ").decode("utf-8", "replace").strip()
        return line or f"process {pid}"
    return f"process {pid}"


def _report(place: int, left: tuple[str, ...]) -> None:
    """Write without blocking, so that a full pipe cannot make us wait."""
    import json

    os.set_blocking(place, False)
    with suppress(OSError):
        os.write(place, json.dumps(left).encode())


def _others() -> list[int]:
    """All processes in this view except the first, bubblewrap's, and ourselves."""
    found = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
    return [pid for pid in found if stat_fields(pid)[:1] not in ([], [b"Z"])]


def stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name (proc(5)), of which the first is the state; none if it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return []


def _copy(source: socket.socket, target: socket.socket) -> None:
    from socket import SHUT_RDWR, SHUT_WR

    try:
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(SHUT_WR)
    except OSError:  # one side is gone, so the relay ends
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(SHUT_RDWR)


def _listen_at(address: str, port: int) -> socket.socket:
    import socket

    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.bind((address, port))
    listener.listen(LINES)
    return listener


def _serve(listener: socket.socket, place: str) -> None:
    import socket

    while True:
        client, _ = listener.accept()
        try:
            onward = socket.socket(socket.AF_UNIX)
            onward.connect(place)
        except OSError:
            client.close()
            continue
        _in_background(pass_on, client, onward)


def _become(argv: list[str], proxies: list[int]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    for port in proxies[:1]:
        os.environ.update(dict.fromkeys(PROXY, f"http://127.0.0.1:{port}"), NODE_USE_ENV_PROXY="1")
        os.environ.update(dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost,::1"))
    try:
        os.execvp(argv[0], argv)
    except FileNotFoundError:
        code = NOT_FOUND
    except OSError:
        code = NOT_RUN
    print(f"{argv[0]}: not found" if code == NOT_FOUND else f"{argv[0]}: cannot execute", file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
