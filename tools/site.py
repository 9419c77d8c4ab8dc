"""Build the site of the documents: `python -m tools.site [OWNER/NAME]` writes `site/` and fails for a broken link.

The documents are written for the repository, where they link to its files. Here those links lead to the repository at
OWNER/NAME; ARCHITECTURE.md and its like become pages. It needs Zensical: `pip install -r requirements-docs.lock`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
TOP = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]*)((?:#[^)\s]*)?)\)")
"""A link in Markdown that leads into the repository."""


def main(repository: str) -> None:
    """Write `site/`. Raises CalledProcessError when a link is broken."""
    with tempfile.TemporaryDirectory(prefix="ralph-site-") as folder:
        place = Path(folder)
        shutil.copytree(ROOT / "docs", place / "docs")
        shutil.copy(ROOT / "zensical.toml", place)
        for path in (ROOT / "docs").glob("*.md"):
            (place / "docs" / path.name).write_text(relinked(path.read_text(), "docs", repository))
        for name in TOP:
            page = relinked((ROOT / name).read_text(), "", repository)
            (place / "docs" / name).write_text(page.replace('="docs/images/', '="images/'))
        program = str(Path(sys.executable).with_name("zensical"))
        subprocess.run([program, "build", "--clean", "--strict"], cwd=place, check=True)
        shutil.rmtree(ROOT / "site", ignore_errors=True)
        shutil.copytree(place / "site", ROOT / "site")


def relinked(text: str, folder: str, repository: str) -> str:
    """A page of `folder` whose links lead to other pages of the site, or to the repository."""

    def lead(found: re.Match[str]) -> str:
        path = os.path.normpath(PurePosixPath(folder) / found[1])
        if path in TOP or (path.startswith("docs/") and (ROOT / path).is_file()):
            return f"]({path.removeprefix('docs/')}{found[2]})"
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"](https://github.com/{repository}/{kind}/main/{path}{found[2]})"

    return LINK.sub(lead, text)


if __name__ == "__main__":
    main((*sys.argv[1:], os.environ.get("GITHUB_REPOSITORY", "OWNER/NAME"))[0])
