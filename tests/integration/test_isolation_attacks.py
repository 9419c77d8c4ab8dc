"""What runs in a sandbox tries to reach us, from a real process. At `env` most attacks work: they are real."""

from __future__ import annotations

import fcntl
import http.server
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.sandbox.bwrap import attempt
from tests.cli.loop_world import until
from tests.integration.isolation_attacks import TOKEN, Place, level_or_skip, place

ENVIRONMENTS = """
import json, sys, pathlib
found = []
for file in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        if sys.argv[1].encode() in file.read_bytes(): found.append(str(file))
    except OSError: pass
print(json.dumps(found))
"""
READING = """
import json, sys
read = {}
for path in sys.argv[1:]:
    try: read[path] = open(path).read()
    except OSError as error: pass
print(json.dumps({path: text for path, text in read.items() if text}))
"""
WRITING = """
import json, os, sys
done = []
for path in sys.argv[1:]:
    try:
        with open(path, "a") as file: file.write("harm")
        done.append(path)
    except OSError: pass
print(json.dumps(done))
"""
TRACING = """
import ctypes, json, os, sys
pid, done = int(sys.argv[1]), []
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, pid, 0, 0) == 0: done.append("ptrace"); os.waitpid(pid, 0x40000000); libc.ptrace(17, pid, 0, 0)
for name in ("mem", "maps", "environ", "fd/0", "cwd/.", "root/."):
    try: os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY)); done.append(name)
    except OSError: pass
print(json.dumps(done))
"""
SIGNALLING = """
import json, os, sys
done = []
try: os.kill(int(sys.argv[1]), 0); done.append(int(sys.argv[1]))
except OSError: pass
print(json.dumps(done))
"""
HIDING = """
import json, os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.closerange(0, 64)
    code = "import fcntl,os,time\\nalive = open('alive','w')\\nfcntl.flock(alive, fcntl.LOCK_EX)\\n"
    code += "alive.write(str(os.getpid()))\\nalive.flush()\\ntime.sleep(3600)"
    os.execve("/proc/self/exe", [sys.executable, "-I", "-S", "-c", code], {})
while not os.path.exists("alive") or not open("alive").read(): time.sleep(0.01)
print(json.dumps(int(open("alive").read())))
"""
FETCHING = """
import json, sys, urllib.request
got = []
for url in sys.argv[1:]:
    try: got.append(urllib.request.urlopen(url, timeout=300).read().decode())
    except OSError: got.append("")
print(json.dumps(got))
"""


@pytest.fixture
def level() -> str:
    return level_or_skip("bwrap")


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as made:
        yield made


def test_at_env_our_environment_can_be_read_so_the_attack_is_a_real_one(here: Place) -> None:
    assert here.attack("env", ENVIRONMENTS, TOKEN)


def test_no_process_tells_our_token(here: Place, level: str) -> None:
    assert here.attack(level, ENVIRONMENTS, TOKEN) == []


def test_our_process_cannot_be_traced_nor_its_memory_and_files_be_opened(here: Place, level: str) -> None:
    assert "environ" in here.attack("env", TRACING, "RALPH_PID")
    assert here.attack(level, TRACING, "RALPH_PID") == []


def test_our_process_cannot_be_signalled(here: Place, level: str) -> None:
    assert here.attack("env", SIGNALLING, "RALPH_PID")
    assert here.attack(level, SIGNALLING, "RALPH_PID") == []


def test_our_folders_and_those_of_the_runner_cannot_be_read(here: Place, level: str) -> None:
    runner, kept = here.root / "runner-temp", here.root / "gh"
    runner.mkdir(mode=0o755)
    kept.mkdir(mode=0o755)
    files = [here.ours / "record", runner / "git-credentials", kept / "hosts.yml", here.root / "config"]
    for file in files:
        file.write_text(TOKEN)
        file.chmod(0o644)
    hidden = [str(runner), str(kept), str(files[-1])]
    assert len(here.attack("env", READING, *files)) == 4
    assert here.attack(level, READING, *files, hidden=hidden) == {}
    assert [stat.S_IMODE(place.stat().st_mode) for place in (runner, kept, files[-1])] == [0o755, 0o755, 0o644]


def test_what_is_hidden_in_the_work_tree_cannot_be_read(here: Place, level: str) -> None:
    (here.work / "secret").mkdir()
    (here.work / "secret/key").write_text(TOKEN)
    (here.work / "plain").write_text("plain")
    files = here.work / "secret/key", here.work / "plain"
    assert here.attack(level, READING, *files, hidden=[str(here.work / "secret")]) == {str(files[1]): "plain"}
    assert files[0].read_text() == TOKEN


def test_nothing_is_written_outside(here: Place, level: str) -> None:
    host, inside = Path("/proc/sys/kernel/hostname"), here.work / "f"
    targets = [here.ours / "f", here.root / "f", Path("/usr/f"), Path("/etc/ralph-f"), Path("/opt/ralph-f")]
    before = host.read_text()
    done = here.attack(level, WRITING, *targets, host, inside)
    assert str(inside) in done and inside.read_text() == "harm"
    assert not any(target.exists() for target in targets) and host.read_text() == before


OPENING = """
import json, os, sys
done = []
for folder in sys.argv[1:]:
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        for name in files:
            path = os.path.join(top, name)
            try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)); done.append(path)
            except OSError: pass
print(json.dumps(done))
"""
CLOSED = """
import json, os, sys
found = []
for top, folders, files in os.walk("/etc"):
    for path in (os.path.join(top, name) for name in files):
        try:
            if not os.stat(path).st_mode & 0o004 and open(path, "rb").read(1): found.append(path)
        except OSError: pass
print(json.dumps(found))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="to anybody else they are closed by their modes")
def test_a_session_of_roots_has_no_right_of_root(here: Place, level: str) -> None:
    assert "/proc/sys/kernel/core_pattern" in here.attack("env", OPENING, "/proc/sys/kernel")
    writable = here.attack(level, OPENING, "/proc")
    assert [path for path in writable if Path(path).is_file()] == []  # what is covered is the null device
    assert "/etc/shadow" in here.attack("env", CLOSED)
    assert here.attack(level, CLOSED) == []
    script = "cat /proc/self/status; id -u; unshare -Urmpf sh -c 'mount -t proc proc /proc && echo mounted'"
    said = here.run(level, ["/bin/sh", "-c", script]).out
    assert "CapBnd:\t0000000000000000\n" in said and "\n1000\n" in said and "mounted" not in said


def test_links_lead_nowhere(here: Place, level: str) -> None:
    (here.ours / "kept").write_text(TOKEN)
    (here.work / "file").symlink_to(here.ours / "kept")
    (here.work / "folder").symlink_to(here.ours)
    links = [here.work / "file", here.work / "folder/kept", here.work / "folder/new"]
    assert here.attack(level, READING, *links) == {} and here.attack(level, WRITING, *links) == []
    assert [file.name for file in here.ours.iterdir()] == ["kept"]
    assert ((here.ours / "kept").stat().st_uid, (here.work / "file").lstat().st_uid) == (os.getuid(), os.getuid())


def holds_lock(file: Path) -> bool:
    """Whether a process lives that has locked it."""
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_process_that_hides_is_ended(here: Place, level: str) -> None:
    here.attack(level, HIDING)
    until(lambda: not holds_lock(here.work / "alive"))


@pytest.mark.parametrize("hides", ["setsid", "setsid env -i"])
def test_a_process_that_is_left_is_told(here: Place, level: str, hides: str) -> None:
    begun = "until tr '\\0' ' ' </proc/$!/cmdline | grep -q '^/bin/sleep'; do sleep 0.02; done"
    told = here.run(level, ["/bin/sh", "-c", f"{hides} /bin/sleep 300 >/dev/null 2>&1 & {begun}"])
    assert (told.code, told.left) == (0, ["/bin/sleep 300"])


def test_a_report_that_is_filled_up_holds_nobody_up(here: Place) -> None:
    flood = "for end in /proc/1/fd/*; do (dd if=/dev/zero of=$end oflag=nonblock bs=4k count=64 2>/dev/null &) ; done"
    assert here.run(level_or_skip("bwrap"), ["/bin/sh", "-c", f"{flood}; exit 3"]).code == 3


def test_at_env_a_process_that_hides_lives_on(here: Place) -> None:
    pid = here.attack("env", HIDING)
    try:
        assert holds_lock(here.work / "alive") and Path(f"/proc/{pid}").exists()
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_name_below_proc_of_another_process_cannot_be_used_to_get_out(here: Place, level: str) -> None:
    (here.ours / "kept").write_text(TOKEN)
    ways = [f"/proc/RALPH_PID/root{here.ours}/kept", f"/proc/1/root{here.ours}/kept", "/proc/RALPH_PID/cwd/README.md"]
    assert here.attack(level, READING, *ways) == {}


def test_no_open_file_of_ours_is_passed_on(here: Place, level: str) -> None:
    source = "import json,os; print(json.dumps(sorted(int(n) for n in os.listdir('/proc/self/fd'))))"
    ends = ["http://127.0.0.1:4009"]  # with its way out, at bwrap
    assert here.attack(level, source, endpoints=ends)[:-1] == [0, 1, 2]  # the last is the listing's own


def test_namespaces_of_its_own_uncover_nothing(here: Place) -> None:
    (here.work / "secret").mkdir()
    (here.work / "secret/key").write_text(TOKEN)
    secret = here.work / "secret"
    script = (
        f"unshare -Urm sh -c 'umount -l {secret}; mount --bind {here.ours} {secret}; ls {secret}; cat {secret}/key'"
    )
    (here.ours / "key").write_text(TOKEN)
    assert here.run(level_or_skip("bwrap"), ["/bin/sh", "-c", script], hidden=[str(secret)]).out == ""


def test_a_name_beside_its_own_leads_to_no_file_of_ours(here: Place, level: str) -> None:
    (here.root / "config").write_text("kept")
    (here.root / "config").chmod(0o600)
    source = """
import json, os, sys
done = []
for act in (os.link, os.rename):
    try: act(sys.argv[1], "mine"); done.append(act.__name__)
    except OSError: pass
print(json.dumps(done))
"""
    assert here.attack(level, source, here.root / "config") == []
    assert (here.root / "config").read_text() == "kept"


# --- the network, at bwrap -----------------------------------------------------------


@pytest.fixture
def servers() -> Iterator[list[str]]:
    """The addresses of two servers that answer with their own."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(str(self.server.server_address[1]).encode())

        def log_message(self, *_: object) -> None:
            pass

    made = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    for server in made:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield [f"http://127.0.0.1:{server.server_port}" for server in made]
    for server in made:
        server.shutdown()
        server.server_close()


def test_only_the_host_of_the_model_is_reached(here: Place, servers: list[str]) -> None:
    if level_or_skip("bwrap") and (why := attempt().open_network):
        pytest.skip(why)
    ports = [url.rpartition(":")[2] for url in servers]
    clear = dict.fromkeys(("http_proxy", "HTTP_PROXY"), "")
    assert here.attack("env", FETCHING, *servers, env=clear) == ports
    assert here.attack("bwrap", FETCHING, *servers, env=clear) == ports  # nothing was said of the network
    assert here.attack("bwrap", FETCHING, *servers, env=clear, endpoints=servers[:1]) == [ports[0], ""]
    assert here.attack("bwrap", FETCHING, *servers, env=clear, endpoints=[]) == ["", ""]


def test_services_of_the_machine_are_not_seen(here: Place) -> None:
    source = "import json,os,sys; print(json.dumps([os.path.exists(p) for p in sys.argv[1:]]))"
    places = [
        name for name in ("/run/systemd", "/run/dbus", "/var/lib", "/srv", "/sys", "/boot") if Path(name).exists()
    ]
    assert places and here.attack(level_or_skip("bwrap"), source, *places) == [False] * len(places)


# --- what still has to work ----------------------------------------------------------


def test_the_prompt_the_words_and_the_exit_code_get_through(here: Place, level: str) -> None:
    ended = here.run(level, ["/bin/sh", "-c", "cat; echo err >&2; exit 3"], stdin="prompt")
    assert (ended.code, ended.out, ended.err) == (3, "prompt", "err\n")
    assert here.run(level, ["no-such-program"]).code == 127


def test_the_folder_is_the_work_tree_whoever_is_asked(here: Place, level: str) -> None:
    said = here.run(level, ["/usr/bin/env"]).out
    assert f"\nPWD={here.work}\n" in f"\n{said}"


def test_it_has_the_seconds_of_grace_to_end_in_order(here: Place, level: str) -> None:
    script = "trap 'echo bye > last; exit 0' TERM; echo $$ > started; while :; do sleep 0.05; done"
    here_too = str(here.work / "started")
    assert here.run(level, ["/bin/sh", "-c", script], timeout=900, until=here_too, grace=300.0).code == 124
    assert (here.work / "last").read_text() == "bye\n"


def test_temporary_files_go_and_those_of_the_home_stay(here: Place, level: str) -> None:
    script = 'echo a > "$TMPDIR/a"; echo b > "$HOME/b"; test -w "$TMPDIR" && echo c > /tmp/ralph-iso-c; ls "$TMPDIR"'
    here.run(level, ["/bin/sh", "-c", script])
    assert [file.name for file in here.home.iterdir()] == ["b"]
    assert not Path("/tmp/ralph-iso-c").exists()


def test_our_own_python_runs_inside(here: Place, level: str) -> None:
    source = "import ralph_mission.adapters.sandbox.shims, sys; print(sys.prefix)"
    assert here.run(level, [sys.executable, "-c", source]).out.strip() == sys.prefix
