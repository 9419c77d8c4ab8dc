"""Make `.venv` from lock files: `environment.py runtime [EXTRA...]` to use ralph, `environment.py dev` to work on it.

uv installs where it is there, pip otherwise. A stamp remembers what was installed, so a second call does nothing; an
environment that was left half made, or made for another folder or Python, is built anew. Standard library only, and
old syntax: it runs before anything is installed, on whatever `python3` is, and has to be able to say that it is too
old.
"""

import glob
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
MIN_PYTHON = (3, 11)
MIN_GIT = (2, 38)  # merge-tree --write-tree
MIN_PIP = (22, 3)  # it installs into another Python's environment, which then needs none of its own


def main(kind, *extras):
    """Bring `.venv` to what the lock files say. Gives the exit code."""
    wanted = {"requirements.lock" if kind == "runtime" else "requirements-dev.lock"}
    wanted.update("requirements-%s.lock" % extra for extra in extras)
    unknown = sorted(name for name in wanted if not os.path.exists(os.path.join(ROOT, name)))
    if unknown:
        return fail("there is no %s: EXTRAS are the optional-dependencies of pyproject.toml" % unknown[0])
    state = {"digest": digest(), "python": list(sys.version_info[:2]), "place": ROOT}
    found = read_stamp()
    is_usable = os.path.exists(PYTHON) and all(found.get(key) == state[key] for key in ("python", "place"))
    if is_usable and found["digest"] == state["digest"] and wanted <= set(found["locks"]):
        return 0
    complaint = unmet()
    if complaint:
        return fail(complaint)
    if is_usable:
        wanted.update(lock for lock in found["locks"] if os.path.exists(os.path.join(ROOT, lock)))
        os.remove(STAMP)
    else:
        shutil.rmtree(VENV, ignore_errors=True)
        say("creating .venv with Python %d.%d" % sys.version_info[:2])
        if run(sys.executable, "-I", "-m", "venv", "--without-pip", VENV) != 0:
            return fail("Python could not create .venv: see above")
    locks = sorted(wanted)
    if install([os.path.join(ROOT, name) for name in locks]) != 0:
        return fail("%s could not be installed: see above; when the network is back, run make again" % ", ".join(locks))
    write_stamp(dict(state, locks=sorted({name for lock in locks for name in included(lock)})))
    say("ready: .venv/bin/ralph")
    return 0


def install(locks):
    """Everything the lock files name, then ralph_mission itself from this folder."""
    say("installing %s" % ", ".join(os.path.basename(lock) for lock in locks))
    return install_locked(locks) or install_with_any("--no-deps", "--no-build-isolation", "-e", ROOT)


def install_locked(locks, *options):
    """Everything the lock files name, verified by hash. They are whole: nothing is looked for beside them."""
    named = [word for lock in locks for word in ("-r", lock)]
    return install_with_any("--require-hashes", "--only-binary", ":all:", "--no-deps", *(list(options) + named))


def install_with_any(*words):
    """Uv's exit code, or pip's where there is no uv or it fails: it may know of no registry where pip does."""
    watched = sys.stderr.isatty()  # by a person, who wants to see how much is still to be downloaded
    uv = shutil.which("uv")
    if uv and run(uv, "pip", "install", *(() if watched else ("--quiet",)), "--python", PYTHON, *words) == 0:
        return 0
    if pip_version() >= MIN_PIP:
        pip = (sys.executable, "-I", "-m", "pip", "--python", PYTHON)
    elif run(sys.executable, "-I", "-m", "venv", VENV) == 0:
        pip = (PYTHON, "-I", "-m", "pip")
    else:
        return 1
    terse = () if watched else ("-qq",)
    return run(*(pip + terse + ("--disable-pip-version-check", "--no-input", "install", "--no-compile") + words))


def pip_version():
    """The version of this Python's own pip as a tuple; () when it has none."""
    try:
        from importlib.metadata import version

        return tuple(int(part) for part in re.findall(r"\d+", version("pip"))[:2])
    except ImportError:  # PackageNotFoundError is one
        return ()


def included(lock):
    """The names of a lock file and of those that it includes."""
    with open(os.path.join(ROOT, lock)) as file:
        return [lock] + re.findall(r"^-r (\S+)$", file.read(), re.MULTILINE)


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


def digest():
    """A hash of everything that decides what is installed."""
    total = hashlib.sha256()
    for name in [os.path.join(ROOT, "pyproject.toml")] + sorted(glob.glob(os.path.join(ROOT, "requirements*.lock"))):
        with open(name, "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def read_stamp():
    """The stamp, or {} when there is none to be read. It is there only while `.venv` is whole."""
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
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
