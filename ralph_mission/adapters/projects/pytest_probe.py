"""A pytest plug-in for the project's own Python (`-p ralph_probe`): each test's failure, its frames, what it touched.

It is imported beside the project's packages and imports nothing of ours. JUnit XML contains neither the exception's
type nor its frames. Hosts that a test tries to reach are recorded, though the network is closed, and so are files under
test that a test itself opens, not an import.
"""

import ipaddress
import json
import os
import sys
from typing import Any

import pytest

ROOT = os.path.realpath(os.environ["RALPH_PROBE_ROOT"])
REPORT = os.environ["RALPH_PROBE_REPORT"]
WATCHED = frozenset(os.path.join(ROOT, path) for path in json.loads(os.environ["RALPH_PROBE_WATCHED"]))
LOADERS = ("<frozen importlib", "linecache.py", "traceback.py", "warnings.py", "_pytest")
"""Modules that open source code for reasons other than the test."""
LONGEST = 4_000  # characters of a message
cases: dict[str, dict[str, Any]] = {}
touched: dict[str, set[str]] = {"sources": set(), "connected": set()}
running = [False]


def notice(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook (PEP 578)."""
    if not running[0]:
        return
    if event == "socket.connect" and isinstance(args[1], tuple):
        note_host(str(args[1][0]))
    elif event == "socket.getaddrinfo" and args[0]:
        note_host(args[0].decode("latin-1") if isinstance(args[0], bytes) else str(args[0]))
    elif event == "open" and isinstance(args[0], str) and os.path.realpath(args[0]) in WATCHED and not is_loading():
        touched["sources"].add(os.path.relpath(os.path.realpath(args[0]), ROOT))


def note_host(host: str) -> None:
    """Record a remote host."""
    try:
        local = ipaddress.ip_address(host).is_loopback or host in ("0.0.0.0", "::")
    except ValueError:
        local = host in ("localhost", "ip6-localhost", "") or host.endswith(".localhost")
    if not local:
        touched["connected"].add(host)


def is_loading() -> bool:
    """Whether an import, or the formatting of an error, opens the file."""
    frame: Any = sys._getframe(2)
    names: list[str] = []
    while frame is not None and len(names) < 30:
        names.append(frame.f_code.co_filename)
        frame = frame.f_back
    if any(name.endswith(("inspect.py", "/ast.py")) for name in names):
        return False
    return any(loader in name for name in names[:12] for loader in LOADERS[:4])


def place(path: Any) -> str:
    """A path within the repository, or ""."""
    real = os.path.realpath(str(path))
    inside = real.startswith(ROOT + os.sep) and not any(
        part in real[len(ROOT) :].split(os.sep) for part in (".venv", "node_modules", "site-packages")
    )
    return os.path.relpath(real, ROOT) if inside else ""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Any:
    """Record what the test touches."""
    touched["sources"].clear()
    touched["connected"].clear()
    running[0] = True
    yield
    running[0] = False


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """The result of a test's phase, attached to the report, also from a worker of pytest-xdist."""
    outcome = yield
    running[0] = False
    fields: dict[str, Any] = {"file": place(item.fspath)}
    if call.excinfo is not None:
        entries = [(place(entry.path), entry.lineno + 1) for entry in call.excinfo.traceback]
        fields["error"] = call.excinfo.type.__name__
        fields["message"] = str(call.excinfo.value)[:LONGEST]
        fields["frames"] = [entry for entry in entries if entry[0]][-50:]
    if call.when == "call":
        fields["sources"], fields["connected"] = sorted(touched["sources"]), sorted(touched["connected"])
    outcome.get_result().user_properties.append(("ralph", json.dumps(fields)))


def pytest_runtest_logreport(report: Any) -> None:
    """Combine a case's phases: the first failure counts."""
    properties = [value for name, value in report.user_properties if name == "ralph"]
    fields = json.loads(properties[-1]) if properties else {}
    case = cases.setdefault(report.nodeid, {"id": report.nodeid, "file": fields.get("file", ""), "status": "passed"})
    if report.when == "call":
        case.update({name: fields[name] for name in ("sources", "connected") if name in fields})
    if case["status"] == "passed" and report.outcome != "passed":
        failed = "failed" if report.when == "call" else "error"
        case["status"] = "skipped" if report.outcome == "skipped" else failed
        case["phase"] = "call" if report.when == "call" else "set-up"
        if report.outcome == "failed":
            case.update({name: fields[name] for name in ("error", "message", "frames") if name in fields})
            case.setdefault("message", str(report.longrepr)[-LONGEST:])


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be imported counts as a failed case."""
    if report.failed:
        lines = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
        error = lines[-1].partition(":")[0] if lines else ""
        message = "\n".join(lines[-3:]) or str(report.longrepr)[-LONGEST:]
        path = place(report.fspath if os.path.isabs(str(report.fspath)) else os.path.join(ROOT, str(report.fspath)))
        case = {"id": report.nodeid, "file": path, "status": "error", "phase": "load"}
        cases[report.nodeid] = {**case, "error": error.rpartition(".")[2].strip(), "message": message[:LONGEST]}


def pytest_sessionfinish(session: Any) -> None:
    """Write the report; workers write none."""
    if not hasattr(session.config, "workerinput"):
        with open(REPORT, "w") as file:
            json.dump({"cases": list(cases.values())}, file)


sys.addaudithook(notice)
