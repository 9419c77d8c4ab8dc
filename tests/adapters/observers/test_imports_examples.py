"""Examples in the documentation that import what is gone."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.observers import docs
from tests.adapters.observers.place import Place
from tests.helpers import commit

PACKAGE = {
    "src/app/__init__.py": "from .core import run, stop\n",
    "src/app/core.py": "def run(): ...\ndef stop(): ...\n",
}
BLOCK = "# Use\n\n```python\n{}\n```\n"


def list_signals(place: Place) -> list[str]:
    seen = docs.build(docs.DocsSettings(), place.git).observe(place.context())
    return [f"{signal.path}:{signal.line} {signal.title}" for signal in seen.signals]


def test_an_import_of_what_the_package_no_longer_has_is_told_with_the_commit(place: Place) -> None:
    commit(place.path, PACKAGE | {"README.md": BLOCK.format("from app import run, stop")})
    assert list_signals(place) == []
    gone = commit(place.path, {"src/app/__init__.py": "from .core import run\n"})
    assert list_signals(place) == [
        f"README.md:4 README.md: from app import run, stop leads nowhere: app has no stop since {gone[:12]}"
    ]


def test_a_module_that_moved_is_told_in_examples_too(place: Place) -> None:
    commit(place.path, PACKAGE | {"docs/use.py": "from app.core import (\n    run,\n)\n"})
    gone = commit(
        place.path, {"src/app/core.py": None, "src/app/__init__.py": "", "src/app/base.py": PACKAGE["src/app/core.py"]}
    )
    docs_observer = docs.build(docs.DocsSettings(), place.git)
    (signal,) = docs_observer.observe(place.context()).signals
    assert signal.detail == (
        "docs/use.py, line 1: from app.core import ( run, )\n"
        f"the module app.core was moved to src/app/base.py in {gone[:12]}"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"README.md": BLOCK.format("from app import never")},  # it never was there
        {"README.md": BLOCK.format("from other import run")},
        {"README.md": BLOCK.format("from app import core")},  # a module
        {"README.md": "In words: from app import stop"},
        {"README.md": BLOCK.format("from app import stop"), "src/app/__init__.py": "from .core import *\n"},
        {"README.md": BLOCK.format("from app import stop"), "src/app/__init__.py": "def __getattr__(name): ...\n"},
        {"CHANGELOG.md": BLOCK.format("from app import stop")},
    ],
)
def test_what_cannot_be_known_to_be_gone_is_not_told(place: Place, change: dict[str, str]) -> None:
    commit(place.path, PACKAGE)
    commit(place.path, {"src/app/__init__.py": "from .core import run\n"})
    commit(place.path, change)
    assert list_signals(place) == []
