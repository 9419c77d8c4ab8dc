"""What a release consists of: `release.py FOLDER [TAG [OWNER/NAME]]` makes the archives, their bill of materials and
their hashes.

The archives are the same bytes wherever they are made of the same commit: their times are the commit's. On a package
index nobody sees the repository: with OWNER/NAME they name its addresses, and the links of their README lead to TAG
there. The bill of materials (CycloneDX) names every package of requirements.lock with its version and hashes. TAG has
to name the version, and the changelog needs a section for it. It runs on .venv's own Python, after `make install`;
CycloneDX's tool is installed from its own lock file, beside it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-release.lock"


def main(folder: Path, tag: str = "", repository: str = "") -> None:
    """Fill `folder`. Raises SystemExit for a tag of another version, CalledProcessError."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if tag not in ("", f"v{version}"):
        sys.exit(f"the tag is {tag}, the version in pyproject.toml {version}: make them agree")
    if tag and f"\n## [{version}]" not in (ROOT / "CHANGELOG.md").read_text():
        sys.exit(f"CHANGELOG.md has no section [{version}]: name its first section so")
    if tag and (outdated := [name for name in ("README.md", "docs/action.md") if NONE_YET.search(read(name))]):
        sys.exit(f"{' and '.join(outdated)} says that there is no release: delete that")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ralph-release-") as place:
        tree = addressed(Path(place) / "tree", repository, tag or f"v{version}", head("%H")) if repository else ROOT
        archives(folder, tree)
        bill(tool(Path(place)), folder / "ralph_mission.cdx.json")
    shutil.copy(ROOT / "tools" / "trust" / "evidence.md", folder / "trust-evidence.md")
    (folder / "SHA256SUMS").write_text(hashes(folder))


def addressed(tree: Path, repository: str, tag: str, commit: str) -> Path:
    """What the archives are made of, copied to `tree`, with the addresses of this repository in it. `ralph --version`
    reads the commit from that of the source."""
    page = f"https://github.com/{repository}"
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        tree.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / "ralph_mission", tree / "ralph_mission", ignore=shutil.ignore_patterns("__pycache__"))
    urls = {"Homepage": page, "Documentation": f"{page}/tree/{tag}/docs", "Issues": f"{page}/issues"}
    urls |= {"Changelog": f"{page}/blob/{tag}/CHANGELOG.md", "Source": f"{page}/tree/{commit}"}
    table = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    project = tree / "pyproject.toml"
    told = project.read_text().replace("[project.scripts]", f"[project.urls]\n{table}\n[project.scripts]", 1)
    project.write_text(told)
    readme = tree / "README.md"
    readme.write_text(absolute(readme.read_text(), repository, tag))
    return tree


NONE_YET = re.compile(r"\bthere\s+is\s+no\s+release\b", re.IGNORECASE)
FROM_CLONE = re.compile(r"`uv tool install \.` or\s+`pipx install \.` in the clone[^)]*\)")
"""How a README of a clone has it installed: a package index knows no clone."""


def read(name: str) -> str:
    """A document of ours."""
    return (ROOT / name).read_text()


RELATIVE = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https?:|mailto:|#)(?P<path>[^)\s]+)\)")
"""A link or a picture in Markdown that leads into the repository."""
SOURCE = re.compile(r'(?P<before><(?:img|source)\b[^>]*\bsrc(?:set)?=")(?!https?:)(?P<path>[^"\s]+)')
"""The same of a picture in HTML, which may be another one where it is dark."""


def absolute(text: str, repository: str, tag: str) -> str:
    """Markdown whose links lead to the files of `tag`, wherever it is shown."""
    raw, page = f"https://raw.githubusercontent.com/{repository}/{tag}", f"https://github.com/{repository}/blob/{tag}"

    def lead(found: re.Match[str]) -> str:
        return f"{found['image']}[{found['text']}]({raw if found['image'] else page}/{found['path']})"

    text = FROM_CLONE.sub("`uv tool install ralph-mission` or `pipx install ralph-mission`", text)
    return SOURCE.sub(rf"\g<before>{raw}/\g<path>", RELATIVE.sub(lead, text))


def archives(folder: Path, tree: Path = ROOT) -> None:
    """A source archive and a wheel of `tree`."""
    build = "import sys; from flit_core import buildapi as b; b.build_sdist(sys.argv[1]); b.build_wheel(sys.argv[1])"
    folder.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-I", "-c", build, str(folder), tree=tree)


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
    return os.environ.get("SOURCE_DATE_EPOCH") or head("%ct")


def head(form: str) -> str:
    """What git's format says of the commit that is checked out."""
    return subprocess.check_output(("git", "-C", str(ROOT), "log", "-1", f"--format={form}"), text=True).strip()


def run(*command: str, tree: Path = ROOT) -> None:
    """Raises CalledProcessError when it fails; what it says is shown."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": moment(), "PIP_USER": "0"}
    subprocess.run(command, check=True, cwd=tree, env=environment, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:4])
