"""Which folders import each other, and when an established direction is reversed."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.observers import code
from ralph_mission.adapters.observers.imports import imports_between, is_source, reversed_directions
from ralph_mission.mission.model.mission import Observation
from tests.adapters.observers.place import Place
from tests.helpers import commit

PACKAGE = {
    "app/__init__.py": "",
    "app/core/__init__.py": "",
    "app/core/run.py": "from app.utils import text\n",
    "app/core/load.py": "from ..utils.text import clean\n",
    "app/utils/__init__.py": "",
    "app/utils/text.py": "import os\n\n\ndef clean():\n    from app.core import run  # within a function\n",
}
AGAINST = {"app/utils/text.py": "import os\n\nfrom app.core.run import start\n"}


def look(place: Place, cursor: str) -> Observation:
    return code.build(code.CodeSettings(), place.git).observe(place.context(cursor))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (PACKAGE, {("app/core", "app/utils")}),
        ({"src/a/x.ts": "import {\n  y,\n} from '../b/y.js'\n", "src/b/y.ts": ""}, {("src/a", "src/b")}),
        ({"src/a/x.ts": "export * from '../b'\n", "src/b/index.ts": ""}, {("src/a", "src/b")}),
        ({"src/a/x.ts": "import type { Y } from '../b/y'\n", "src/b/y.ts": ""}, set()),
        ({"a/x.js": "import y from './deep/y.js'\n", "a/deep/y.js": ""}, set()),  # one folder is part of the other
        (
            {
                "src/main/java/org/x/a/A.java": "import org.x.b.B;\n",
                "src/main/java/org/x/b/B.java": "import static org.x.a.A.make;\n",
            },
            {
                ("src/main/java/org/x/a", "src/main/java/org/x/b"),
                ("src/main/java/org/x/b", "src/main/java/org/x/a"),
            },
        ),
    ],
)
def test_imports_are_read_as_each_language_writes_them(texts: dict[str, str], expected: set[tuple[str, str]]) -> None:
    assert set(imports_between(texts)) == expected


def test_tests_documentation_and_scripts_are_no_part_of_it() -> None:
    paths = ("a/x.py", "tests/x.py", "docs/x.py", "a/x.test.ts", "a/test_x.py", "a/x.d.ts", "a/x.go", "vendor/x.py")
    assert [path for path in paths if is_source(path, lambda path: path.startswith("vendor"))] == ["a/x.py"]


def test_a_direction_that_a_single_file_makes_is_not_established() -> None:
    few = {path: text for path, text in PACKAGE.items() if path != "app/core/load.py"}
    assert reversed_directions(imports_between(few), imports_between(few | AGAINST)) == []
    assert reversed_directions(imports_between(PACKAGE), imports_between(PACKAGE | AGAINST)) == [
        ("app/utils", "app/core")
    ]


def test_an_import_against_the_direction_is_told_once_with_its_line_and_taken_back_when_it_is_gone(
    place: Place,
) -> None:
    first = commit(place.path, PACKAGE)
    second = commit(place.path, AGAINST, author="New Hand <new@example.org>")
    assert [signal for signal in look(place, "").signals if signal.kind == "architecture"] == []
    (signal,) = look(place, first).signals
    assert signal.title == "app/utils now imports app/core, where 2 files import app/utils"
    assert (signal.path, signal.line, signal.author) == ("app/utils/text.py", 3, "New Hand")
    assert [quote.text for quote in signal.quotes] == [
        "from app.core.run import start",
        "from ..utils.text import clean",
    ]
    commit(place.path, {"app/core/more.py": "from app.utils import text\n"})
    assert look(place, second).signals == ()
    third = commit(place.path, {"app/utils/text.py": "import os\n"})
    seen = look(place, second)
    assert (seen.cursor, seen.signals, seen.gone) == (third, (), (signal.essence,))


def test_a_restructuring_is_no_news(place: Place) -> None:
    parts = {f"app/p{n}/{name}.py": "from app.utils import text\n" for n in range(4) for name in ("a", "b")}
    inits = {f"app/p{n}/__init__.py": "" for n in range(4)}
    first = commit(
        place.path, {"app/__init__.py": "", "app/utils/__init__.py": "", "app/utils/text.py": "", **parts, **inits}
    )
    commit(place.path, {"app/utils/text.py": "".join(f"from app.p{n} import a\n" for n in range(4))})
    assert look(place, first).signals == ()
