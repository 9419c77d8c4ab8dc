"""A test that reads code instead of running it is told by Node.js itself, however it goes about it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ralph_mission.adapters.projects.suites import SuiteTool, notes_file

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")

CODE = "'use strict'\nexports.half = function half (n) { return Math.floor(n / 2) }\n"
TRANSFORM = "exports.read = (path) => require('fs').readFileSync(path, 'utf8')\n"


def sources(folder: Path, test: str, name: str = "test/a.js") -> set[str]:
    """What is noted of a script that stands at `name` of a repository whose lib/a.js is under test."""
    root, home = folder / "repo", folder / "home"
    for path, text in {"lib/a.js": CODE, "node_modules/x/index.js": TRANSFORM, name: test}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    environment = SuiteTool("node", "").environment(home, root, home / "report", ["lib/a.js"])
    subprocess.run(["node", name], cwd=root, env={"PATH": os.environ["PATH"], **environment}, check=True)
    noted = notes_file(home, "sources")
    return set(noted.read_text().split("\n")[:-1]) if noted.exists() else set()


PATH = json.dumps("lib/a.js")


@pytest.mark.parametrize(
    "test",
    [
        f"require('fs').readFileSync({PATH}, 'utf8').replace(/\\/\\/.*/g, '')",
        f"require('fs').readFileSync(Buffer.from({PATH}))",
        f"require('fs').readFile({PATH}, () => {{}})",
        f"require('fs').promises.readFile({PATH})",
        f"require('fs').closeSync(require('fs').openSync({PATH}))",
        f"require('fs').createReadStream({PATH}).resume()",
        f"require('fs').readFileSync(require('url').pathToFileURL({PATH}))",
        "String(require('../lib/a.js').half)",
        "`${require('../lib/a.js').half}`",
    ],
)
def test_a_test_that_reads_the_code_is_noted(tmp_path: Path, test: str) -> None:
    assert len(sources(tmp_path, test)) == 1


def test_so_is_a_module_with_names_of_its_own(tmp_path: Path) -> None:
    test = f"import {{ readFileSync }} from 'node:fs'\nreadFileSync({PATH})\n"
    assert sources(tmp_path, test, "test/a.mjs") == {"lib/a.js"}


@pytest.mark.parametrize(
    "test",
    [
        "require('../lib/a.js').half(3)",
        f"require('x').read({PATH})",
        "require('fs').readFileSync('test/a.js')",
        "[1].toString()",
    ],
)
def test_one_that_runs_it_is_not(tmp_path: Path, test: str) -> None:
    assert sources(tmp_path, test) == set()
