"""Runs inside bubblewrap, before the command and beside it: relays to the model's host, and passes on TERM.

Started by its path with `python -I -S`, so that it is cheap and imports none of our code. Called with a JSON
`{"cwd": …, "folder": …, "ways": [[socket, address, port], …], "report": …}` and the command; port 0: by way of a
proxy. Processes still running after the command are written to the descriptor `report`, as they end with the view,
unseen.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

PROXY = ("HTTPS_PROXY", "https_proxy")
NOT_FOUND, NOT_RUN = 127, 126  # as a shell reports it
LINES = 128  # connections in the backlog
MOMENT = 0.3  # seconds that a process has to end after its parent
TICK = 0.02
SHOWN = 500  # bytes of a command line


def main(text: str, argv: list[str]) -> int:
    """Listen, start the command, relay data, and end with the command's exit code."""
    order = json.loads(text)
    os.chdir(order["cwd"])  # here rather than by bwrap, which may lack access
    os.environ["PWD"] = order["cwd"]  # some ask this instead of the kernel
    listening = [(_listen_at(address, port), f"{order['folder']}/{name}") for name, address, port in order["ways"]]
    proxies = [
        listener.getsockname()[1] for (listener, _), way in zip(listening, order["ways"], strict=True) if not way[2]
    ]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(order["report"], False)
    child = os.fork()
    if child == 0:
        _become(argv, proxies)
    for listener, place in listening:
        threading.Thread(target=_serve, args=(listener, place), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _report(order["report"])
    return code if code >= 0 else 128 - code


def pass_on(one: socket.socket, other: socket.socket) -> None:
    """Relay data in both directions until both sides are done."""
    with one, other:
        back = threading.Thread(target=_copy, args=(other, one), daemon=True)
        back.start()
        _copy(one, other)
        back.join()


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


def _report(place: int) -> None:
    """Write without blocking, so that a full pipe cannot make us wait."""
    os.set_blocking(place, False)
    with suppress(OSError):
        os.write(place, json.dumps(still(_others)).encode())


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
    try:
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one side is gone, so the relay ends
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _listen_at(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.bind((address, port))
    listener.listen(LINES)
    return listener


def _serve(listener: socket.socket, place: str) -> None:
    while True:
        client, _ = listener.accept()
        try:
            onward = socket.socket(socket.AF_UNIX)
            onward.connect(place)
        except OSError:
            client.close()
            continue
        threading.Thread(target=pass_on, args=(client, onward), daemon=True).start()


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
    os._exit(main(sys.argv[1], sys.argv[2:]))
