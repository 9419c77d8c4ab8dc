"""The suite's house rules: no real network, no real home, no real model, no one's identity or settings.

A tripwire raises when a test reaches for one of them, in this process; for the processes it
starts, the environment leads nowhere: an empty home, proxies that refuse, agents that fail.
"""

from __future__ import annotations

import faulthandler
import gc
import ipaddress
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

pytest_plugins = ["tests.figures_plugin"]
ROOT = Path(__file__).resolve().parent.parent
REAL_HOME = Path(os.environ.setdefault("HOUSE_REAL_HOME", str(Path.home())))  # workers inherit it
SANDBOX, KEPT = "HOUSE_SANDBOX", "HOUSE_SANDBOX_KEPT"
NO_BWRAP = "no-bwrap"
"""A folder in front of PATH, so that what runs without naming a level does so at `env` on every machine."""
AGENTS = ("claude", "codex", "gemini", "copilot", "opencode", "amp", "aider", "goose")
OURS = (
    "RALPH_",
    "GITHUB_",
    "RUNNER_",
    "GIT_",
    "XDG_",
    "ANTHROPIC_",
    "OPENAI_",
    "GEMINI_",
    "GOOGLE_",
    "TWITTER_",
    "TELEGRAM_",
    "DISCORD_",
    "DATABASE_",
    "CLAUDE",
    "CODEX_",
)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
ROOMY, MANY = 4 * 2**30, 1_000_000  # bytes, and files: the suite takes about a quarter of each
HANGS_AFTER = 160  # seconds
_HANGS: dict[str, Any] = {}
_FOLDERS = count()
WRITABLE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_HOME = f"{str(REAL_HOME).rstrip(os.sep)}{os.sep}"
# What may lie below a home and is written all the same; a home may in turn lie below one of them.
_PLACES = (ROOT, Path(tempfile.gettempdir()), Path(sys.prefix), Path(sys.base_prefix), Path("/dev"))
_NOT_HOME = tuple(f"{place}{os.sep}" for place in _PLACES if place not in REAL_HOME.parents)

settings.register_profile("house", deadline=None, max_examples=50)
settings.register_profile("ci", settings.get_profile("house"), derandomize=True, print_blob=True)
settings.register_profile("long", settings.get_profile("house"), max_examples=500)  # for make test-long
settings.load_profile("ci" if os.environ.get("CI") else "house")


class Tripwire(AssertionError):
    """A test reached for something real. Script it, or serve it from loopback."""


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is collected, so that what modules do on import is covered too."""
    _keep_byte_code()
    _in_memory()
    sandbox = Path(tempfile.mkdtemp(prefix="ralph-suite-"))
    if not config.option.basetemp:  # what pytest would keep of older runs takes longer to remove than to make
        config.option.basetemp = tempfile.mkdtemp(prefix="suite-")
    _quiet_environment(sandbox)
    _stand_in_agents(sandbox / "bin")
    _stand_in(sandbox / NO_BWRAP / "bwrap", "bwrap is kept from tests that do not ask for it", 1)
    sys.addaudithook(_watch)
    if config.option.markexpr != "crash":  # whose tests take as long as they take
        _HANGS.update(armed=time.monotonic() - HANGS_AFTER, stderr=os.dup(2))


def pytest_runtest_logstart() -> None:
    """A test that hangs says where. pytest's own timer starts a thread for each test: longer than most of them take."""
    if _HANGS and time.monotonic() - _HANGS["armed"] > HANGS_AFTER / 4:
        _HANGS["armed"] = time.monotonic()
        faulthandler.dump_traceback_later(HANGS_AFTER, file=_HANGS["stderr"])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests stay where they are: the collector need not look at them again and again, nor while they
    are made."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What failed may be looked at afterwards."""
    if session.testsfailed and not hasattr(session.config, "workerinput"):
        print(f"\nthe folders of these tests: {session.config.option.basetemp}", file=sys.stderr)
        os.environ[KEPT] = "yes"


def pytest_unconfigure(config: pytest.Config) -> None:
    """What the session made goes with it; rm takes a third of the time that shutil does."""
    faulthandler.cancel_dump_traceback_later()
    ours = [] if KEPT in os.environ or hasattr(config, "workerinput") else [config.option.basetemp]
    subprocess.run(["rm", "-rf", os.environ[SANDBOX], *ours], check=False)


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _environment_is_put_back() -> Iterator[None]:
    before = dict(os.environ)
    yield
    after = dict(os.environ)
    for name in after.keys() - before.keys() - {"PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update({name: value for name, value in before.items() if after.get(name) != value})


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pytest's own looks through the folders of all tests before it makes one."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / "each" / f"{name}-{next(_FOLDERS)}"
    folder.mkdir(mode=0o700, parents=True)
    return folder


def _keep_byte_code() -> None:
    """Here and in the processes that tests start: compiling the product takes longer than most tests."""
    sys.dont_write_bytecode = False
    sys.pycache_prefix = sys.pycache_prefix or str(Path(sys.prefix) / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix


def _in_memory() -> None:
    """Thousands of repositories are made and removed, in two thirds of the time where no disk takes part."""
    memory = Path("/dev/shm")
    if "TMPDIR" in os.environ or not memory.is_dir():
        return
    state = os.statvfs(memory)
    if state.f_flag & os.ST_NOEXEC:
        return  # programs that tests write could not be started there
    if state.f_bavail * state.f_frsize > ROOMY and state.f_favail > MANY:
        os.environ["TMPDIR"], tempfile.tempdir = str(memory), None


def _quiet_environment(sandbox: Path) -> None:
    for name in [name for name in os.environ if name.startswith(OURS)]:
        del os.environ[name]
    home, ours = sandbox / "home", (sandbox / NO_BWRAP, sandbox / "bin")
    home.mkdir()
    os.environ |= {
        SANDBOX: str(sandbox),
        "HOME": str(home),
        **{f"XDG_{part}_HOME": str(home / part.lower()) for part in ("CACHE", "CONFIG", "DATA", "STATE")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        # Git invents an identity from the machine's name unless it is told not to.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.useConfigOnly",
        "GIT_CONFIG_VALUE_0": "true",
        "PATH": os.pathsep.join(map(str, (*ours, Path(sys.executable).parent, os.environ["PATH"]))),
        "NO_PROXY": "127.0.0.1,localhost,::1",
        "no_proxy": "127.0.0.1,localhost,::1",
        **dict.fromkeys(PROXIES, "http://127.0.0.1:9"),
        "TZ": "<+0545>-05:45",  # nobody's machine: a test that only holds in UTC fails here
    }
    time.tzset()


def _stand_in_agents(folder: Path) -> None:
    for name in AGENTS:
        _stand_in(folder / name, f"the real {name} is out of reach of the tests", 97)


def _stand_in(program: Path, words: str, code: int) -> None:
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit {code}\n")
    program.chmod(0o755)


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect":
        _only_loopback(arguments[1])
    elif event == "socket.getaddrinfo":
        _only_loopback(arguments)
    elif event == "subprocess.Popen":
        _only_scripted(arguments)
    elif event == "open":
        _not_at_home(arguments)


def _only_loopback(address: object) -> None:
    host = address[0] if isinstance(address, tuple) else None  # a string is a Unix socket's path
    if host in (None, "", b"", "localhost", b"localhost"):
        return
    try:
        if ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback:
            return
    except ValueError:
        pass
    raise Tripwire(f"real network: {address!r}")


def _only_scripted(arguments: tuple[object, ...]) -> None:
    name, environment = os.fsdecode(arguments[0] or ""), arguments[3]  # type: ignore[arg-type]  # as the audit hook hands it over
    if os.path.basename(name) not in AGENTS:
        return
    path = dict(environment or os.environ).get("PATH", "")  # type: ignore[call-overload]  # as above
    found = shutil.which(name, path=path) or name
    scripted = os.path.realpath(found).startswith(os.path.realpath(tempfile.gettempdir()))
    if not scripted or Path(found).parent == Path(os.environ[SANDBOX]) / "bin":
        raise Tripwire(f"an agent that no test has scripted: {name}")


def _not_at_home(arguments: tuple[object, ...]) -> None:
    path, _, flags = arguments
    if not isinstance(path, str | bytes) or not isinstance(flags, int) or not flags & WRITABLE:
        return
    place = os.path.abspath(os.fsdecode(path))
    if place.startswith(_HOME) and not place.startswith(_NOT_HOME):
        raise Tripwire(f"real home: {place}")
