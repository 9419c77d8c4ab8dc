"""What a release consists of: `release.py FOLDER [TAG]` makes the archives, their bill of materials and their hashes.

The archives are the same bytes wherever they are made of the same commit: their times are the commit's. The bill of
materials (CycloneDX) names every package of requirements.lock with its version and hashes. TAG has to name the version.
It runs on .venv's own Python, after `make install`; CycloneDX's tool is installed from its own lock file, beside it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-release.lock"


def main(folder: Path, tag: str = "") -> None:
    """Fill `folder`. Raises SystemExit for a tag of another version, CalledProcessError."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if tag not in ("", f"v{version}"):
        sys.exit(f"the tag is {tag}, the version in pyproject.toml {version}: make them agree")
    folder.mkdir(parents=True, exist_ok=True)
    archives(folder)
    with tempfile.TemporaryDirectory(prefix="ralph-release-") as place:
        bill(tool(Path(place)), folder / "ralph_mission.cdx.json")
    (folder / "SHA256SUMS").write_text(hashes(folder))


def archives(folder: Path) -> None:
    """A source archive and a wheel."""
    build = "import sys; from flit_core import buildapi as b; b.build_sdist(sys.argv[1]); b.build_wheel(sys.argv[1])"
    folder.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-I", "-c", build, str(folder))


def tool(place: Path) -> Path:
    """Where CycloneDX's tool is: in an environment of its own, every package checked against the lock file."""
    run(sys.executable, "-I", "-m", "venv", str(place))
    pip = (str(place / "bin" / "python"), "-I", "-m", "pip", "-qq", "--disable-pip-version-check", "--no-input")
    run(*pip, "install", "--require-hashes", "--only-binary=:all:", "--no-deps", "-r", str(LOCK))
    return place / "bin" / "cyclonedx-py"


def bill(program: Path, file: Path) -> None:
    """The bill of materials, which the tool holds against CycloneDX's schema before it writes it."""
    described = ("--pyproject", "pyproject.toml", "--output-reproducible", "--spec-version", "1.6", "--validate")
    run(str(program), "requirements", "requirements.lock", *described, "--output-file", str(file))


def hashes(folder: Path) -> str:
    """A line for each file, as `sha256sum --check` reads it."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def moment() -> str:
    """When the commit was made that is released, in seconds since 1970."""
    when = ("git", "-C", str(ROOT), "log", "-1", "--format=%ct")
    return os.environ.get("SOURCE_DATE_EPOCH") or subprocess.check_output(when, text=True).strip()


def run(*command: str) -> None:
    """Raises CalledProcessError when it fails; what it says is shown."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": moment(), "PIP_USER": "0"}
    subprocess.run(command, check=True, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:3])
