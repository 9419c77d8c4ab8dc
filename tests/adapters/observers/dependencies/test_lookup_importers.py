"""Who imports a package: by the syntax of its language, by the name its code is imported by."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.dependencies.lookup import dump_importers, load_importers, read_importers
from ralph_mission.adapters.packages.model import CRATES, Package
from tests.helpers import make_repo

FILES = {
    "web/a.ts": "import type { X } from '@harbour/pilot/lib';\nimport {\n  y,\n} from \"lantern\";\n",
    "web/b.cjs": "const l = require( 'lantern' );\n// mentions buoy\n",
    "web/node_modules/x/c.js": "require('lantern')\n",
    "a.py": "import yaml\nfrom tide_tables.moon import up\n",
    "b.py": "def f():\n    import yaml\n",
    "src/main.rs": "use chain_link::Link;\nfn main() { let x = anchor::drop(); self.moon(); }\n",
    "main.go": 'package main\nimport (\n\t"fmt"\n\tl "example.org/lantern/v2/light"\n)\n',
}
CASES = [
    ("npm", "@harbour/pilot", ("web/a.ts",)),
    ("npm", "lantern", ("web/a.ts", "web/b.cjs")),
    ("npm", "buoy", ()),
    ("PyPI", "pyyaml", ("a.py", "b.py")),
    ("PyPI", "tide-tables", ("a.py",)),
    (CRATES, "chain-link", ("src/main.rs",)),
    (CRATES, "anchor", ("src/main.rs",)),
    (CRATES, "moon", ()),
    ("Go", "example.org/lantern/v2", ("main.go",)),
    ("Go", "example.org/lantern", ("main.go",)),
    ("Go", "example.org/lan", ()),
]


@pytest.mark.parametrize("kept", [False, True])
def test_files_that_import_a_package_are_found(tmp_path: Path, kept: bool) -> None:
    git = Git.open(make_repo(tmp_path / "repo", FILES))
    found = read_importers(git, git.resolve("HEAD"), frozenset(("npm", "PyPI", CRATES, "Go", "Maven")))
    found = load_importers(dump_importers(found)) if kept else found
    told = {(eco, name): found.of(Package(eco, name, "1.0.0", "lock")) for eco, name, _ in CASES}
    assert told == {(eco, name): (len(files), files) for eco, name, files in CASES}
    assert found.of(Package("Maven", "a:b", "1", "pom.xml")) is None
