"""Make `.venv` from a lock file: `environment.py runtime` to use ralph, `environment.py dev` to work on it.

A stamp remembers what was installed, so a second call does nothing; an environment that was
left half made is built anew. Standard library only, and old syntax: it runs before anything
is installed, on whatever `python3` is, and has to be able to say that it is too old.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, "installed.json")
PYTHON = os.path.join(VENV, "bin", "python")
LOCKS = {"runtime": "requirements.lock", "dev": "requirements-dev.lock"}
MIN_PYTHON = (3, 11)
MIN_GIT = (2, 38)  # merge-tree --write-tree


def main(kind):
    """Bring `.venv` to what the lock file of `kind` says. Gives the exit code."""
    wanted = {"kind": kind, "digest": digest(), "place": ROOT, "complete": True}
    found = read_stamp()
    if found in (wanted, dict(wanted, kind="dev")) and os.path.exists(PYTHON):
        return 0
    complaint = unmet()
    if complaint:
        return fail(complaint)
    if not usable(found):
        shutil.rmtree(VENV, ignore_errors=True)
        say("creating .venv with Python %d.%d" % sys.version_info[:2])
        os.makedirs(VENV)
    write_stamp(dict(wanted, complete=False))
    if not os.path.exists(PYTHON) and run(sys.executable, "-I", "-m", "venv", VENV) != 0:
        return fail("Python could not create .venv: see above")
    if install(kind) != 0:
        return fail("pip could not install %s: see above; when the network is back, run make again" % LOCKS[kind])
    write_stamp(wanted)
    say("ready: .venv/bin/ralph")
    return 0


def install(kind):
    """Everything the lock file names, verified by hash, then ralph_mission itself from this folder."""
    pip = [PYTHON, "-I", "-m", "pip", "-qq", "--disable-pip-version-check", "--no-input", "install"]
    say("installing %s (a minute the first time)" % LOCKS[kind])
    # The lock is whole; an old pip that looks for dependencies all the same stumbles over extras.
    code = run(*pip + ["--require-hashes", "--only-binary=:all:", "--no-deps", "-r", os.path.join(ROOT, LOCKS[kind])])
    return code or run(*pip + ["--no-deps", "--no-build-isolation", "-e", ROOT])


def unmet():
    """What this machine lacks, as one line that says how to mend it; "" when nothing."""
    if sys.version_info < MIN_PYTHON:
        return "Python %d.%d is too old: install 3.11 or newer, then make PYTHON=python3.11" % sys.version_info[:2]
    try:
        import ensurepip  # noqa: F401  # only whether it is there
        import venv  # noqa: F401  # only whether it is there
    except ImportError:
        return "Python has no venv module: install it (Debian, Ubuntu: apt install python3-venv)"
    if git_version() < MIN_GIT:
        return "git 2.38 or newer is needed: install or upgrade git"
    return ""


def git_version():
    """Git's version as a tuple; () when there is no git."""
    try:
        said = subprocess.check_output(["git", "--version"]).decode()
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def usable(found):
    """Whether `.venv` can be built upon: whole, made for this folder, with a Python that is new enough."""
    if found and not (found.get("complete") and found.get("place") == ROOT):
        return False
    check = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    with open(os.devnull, "w") as nowhere:
        try:
            return subprocess.call([PYTHON, "-I", "-c", check], stderr=nowhere) == 0
        except OSError:
            return False


def digest():
    """A hash of everything that decides what is installed."""
    total = hashlib.sha256(repr(sys.version_info[:2]).encode())
    for name in ("pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        with open(os.path.join(ROOT, name), "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def read_stamp():
    """The stamp, or {} when there is none to be read."""
    try:
        with open(STAMP) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def write_stamp(value):
    """Replace the stamp in one step."""
    with open(STAMP + ".new", "w") as file:
        json.dump(value, file)
    os.replace(STAMP + ".new", STAMP)


def run(*command):
    """The command's exit code, with a sign of life every ten seconds. It never outlives us."""
    environment = dict(os.environ, PIP_USER="0")
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    waited = 0
    try:
        while True:
            try:
                return process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                waited += 10
                say("... still at it, %d s" % waited)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def say(line):
    """Progress, for people."""
    sys.stderr.write("[make] %s\n" % line)
    sys.stderr.flush()


def fail(line):
    """The one line that names what to do."""
    say(line)
    return 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
