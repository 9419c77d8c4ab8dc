"""Small honest changes, as maintainers of well-known projects make them every day. None of them may be held back.

They are made by hand after the shapes of such changes (one line for one line, a word, a link, an import), in the kinds
of files in which they are made; no line is copied from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ralph_mission.safety.patch import EXECUTABLE, REGULAR, FileChange, Patch

BASE = "0" * 40
PYTHON = (
    '"""Tide tables."""\n\nimport math\nimport os\n\nLIMIT = 12\n\n\ndef level(hour: int) -> float:\n'
    '    """The hight of the water at an hour."""\n    # TODO: leap seconds\n    value = math.sin(hour / 12)\n'
    '    if value == None:\n        return 0.0\n    print("recieved", value)\n    return value * LIMIT\n\n\n'
    "def name(path):\n    base = os.path.basename(path)\n    return base.strip() \n"
)
SCRIPT = "#!/bin/sh\n# Builds the adress list.\nset -e\nfor file in *.txt; do\n  cat $file >> all\ndone\n"
TYPESCRIPT = (
    "import { read } from './read';\n\n// The seperator between two columns\nexport const SEP = ';';\n"
    "export function rows(text: string): string[][] {\n  var lines = text.split('\\n');\n"
    "  return lines.map((line) => line.split(SEP));\n}\n"
)
GO = "package tide\n\n// Level returnes the level.\nfunc Level(h int) int {\n\tx := h * 2\n\treturn x\n}\n"
RUST = "/// Calulates the level.\npub fn level(h: u32) -> u32 {\n    let x = h * 2;\n    return x;\n}\n"
C = '#include <stdio.h>\n\n/* Prints teh level. */\nint main(void) {\n    printf("occured\\n");\n    return 0;\n}\n'
JAVA = "class Tide {\n    // Wether it is ebb.\n    boolean ebb() {\n        return level < 0 ;\n    }\n}\n"
RUBY = "# Lenght of a day\nDAY = 24\n\ndef hours\n  (0...DAY).to_a\nend\n"
CSS = ".table {\n  color: #333;\n  margin: 0px;\n}\n"
HTML = '<h1>Tides</h1>\n<p>Accomodation near the <a href="http://example.org/habour">harbour</a>.</p>\n'
SQL = "-- Selects the curent level\nSELECT level FROM tides WHERE hour = 1;\n"
README = (
    "# Slackwater\n\nIt prints tide tabels for [harbours](https://example.org/harbors).\n\n## Install\n\n"
    "    pip instal slackwater\n\n## Licence\n\nMIT. See also http://example.org/old-page for the the history.\n"
)
GUIDE = "# Guide\n\nThe table of definately every tide.\n\n* ebb\n* flow\n\n| hour | level |\n|---|---|\n| 1 | 2 |\n"
RST = "Guide\n=====\n\nThe library recieves tables.\n\n.. code-block:: python\n\n    print('a')\n"
GERMAN = "# Gezeiten\n\nDie Höhe der Flut am Haffen.\n\nGrüße aus Überlingen.\n"
PERSIAN = "# راهنما\n\nمی‌خواهم جدول را ببینم.\n"
JAPANESE = "# 潮汐\n\n港の潮汐表です。満潮と干潮。\n"
PO = 'msgid "Tide"\nmsgstr "Gezeit"\n\nmsgid "Harbour"\nmsgstr "Haffen"\n'
JSON = '{\n  "title": "Tide tabel",\n  "hours": [1, 2, 3]\n}\n'
YAML = "title: Tide tabel\nhours:\n  - 1\n  - 2\n"
CHANGELOG = "# Changes\n\n## 1.2\n\n- Fixes a typo in teh table (#12)\n\n## 1.1\n\n- First realease\n"
TEST = "from tide import level\n\n\ndef test_level():\n    # at midnite\n    assert level(0) == 0\n"
EMOJI = "# Tides 🌊\n\nBuilt with ❤️ by 👩‍💻 at teh harbour. 1️⃣ ebb 2️⃣ flow\n"
CRLF = GUIDE.replace("\n", "\r\n")
NO_END = "one\ntwo\nthere"


@dataclass(frozen=True, slots=True)
class Benign:
    """A change and what it is called."""

    name: str
    changes: tuple[FileChange, ...]

    @property
    def patch(self) -> Patch:
        """As a patch."""
        return Patch(BASE, self.changes)

    def __str__(self) -> str:
        return self.name


def edit(path: str, old: str, find: str, put: str, mode: str = REGULAR) -> FileChange:
    """One text for another, everywhere in a file."""
    assert find in old, (path, find)
    return FileChange(path, mode, mode, old.encode(), old.replace(find, put).encode())


def add(path: str, text: str) -> FileChange:
    """A new file."""
    return FileChange(path, "", REGULAR, None, text.encode())


def drop(path: str, text: str) -> FileChange:
    """A file that goes."""
    return FileChange(path, REGULAR, "", text.encode(), None)


WORDS = {
    "a typo in a docstring": ("src/tide.py", PYTHON, "hight", "height"),
    "a typo in a message": ("src/tide.py", PYTHON, "recieved", "received"),
    "a dead TODO": ("src/tide.py", PYTHON, "    # TODO: leap seconds\n", ""),
    "an unused import": ("src/tide.py", PYTHON, "import math\n", ""),
    "a comparison with None": ("src/tide.py", PYTHON, "value == None", "value is None"),
    "white space at an end": ("src/tide.py", PYTHON, "strip() \n", "strip()\n"),
    "a renamed variable": ("src/tide.py", PYTHON, "value", "height_of_water"),
    "a renamed constant": ("src/tide.py", PYTHON, "LIMIT", "HIGHEST"),
    "a number": ("src/tide.py", PYTHON, "LIMIT = 12", "LIMIT = 13"),
    "an annotation": ("src/tide.py", PYTHON, "def name(path):", "def name(path: str) -> str:"),
    "a print that goes": ("src/tide.py", PYTHON, '    print("recieved", value)\n', ""),
    "an early return": (
        "src/tide.py",
        PYTHON,
        "    value = math",
        "    if hour < 0:\n        return 0.0\n    value = math",
    ),
    "sorted imports": ("src/tide.py", PYTHON, "import math\nimport os\n", "import os\nimport math\n"),
    "a docstring in full": ("src/tide.py", PYTHON, '"""Tide tables."""', '"""Tide tables, by hour.\n\nIn metres.\n"""'),
    "a typo in a script's comment": ("bin/build", SCRIPT, "adress", "address"),
    "quotes in a script": ("scripts/build.sh", SCRIPT, "cat $file", 'cat "$file"'),
    "a comment of TypeScript": ("web/rows.ts", TYPESCRIPT, "seperator", "separator"),
    "var to const": ("web/rows.ts", TYPESCRIPT, "var lines", "const lines"),
    "a quote style": ("web/rows.ts", TYPESCRIPT, "'./read'", '"./read"'),
    "a comment of Go": ("tide.go", GO, "returnes", "returns"),
    "a name in Go": ("tide.go", GO, "x", "doubled"),
    "a comment of Rust": ("src/lib.rs", RUST, "Calulates", "Calculates"),
    "a return in Rust": ("src/lib.rs", RUST, "return x;", "x"),
    "a comment of C": ("main.c", C, "teh", "the"),
    "a string of C": ("main.c", C, "occured", "occurred"),
    "a comment of Java": ("src/Tide.java", JAVA, "Wether", "Whether"),
    "a space in Java": ("src/Tide.java", JAVA, "0 ;", "0;"),
    "a comment of Ruby": ("lib/tide.rb", RUBY, "Lenght", "Length"),
    "a colour": ("web/table.css", CSS, "#333", "#222"),
    "a unit": ("web/table.css", CSS, "0px", "0"),
    "a word in HTML": ("web/index.html", HTML, "Accomodation", "Accommodation"),
    "a link in HTML": ("web/index.html", HTML, "http://example.org/habour", "https://example.org/harbour"),
    "a comment of SQL": ("db/level.sql", SQL, "curent", "current"),
    "a word in the README": ("README.md", README, "tabels", "tables"),
    "a link in the README": ("README.md", README, "https://example.org/harbors", "https://example.org/harbours"),
    "a command in the README": ("README.md", README, "instal ", "install "),
    "a word twice": ("README.md", README, "the the", "the"),
    "https for http": ("README.md", README, "http://example.org/old-page", "https://example.org/new-page"),
    "a heading": ("README.md", README, "## Licence", "## License"),
    "a sentence more": ("README.md", README, "history.", "history. Tides of 2027 come later."),
    "a word in a guide": ("docs/guide.md", GUIDE, "definately", "definitely"),
    "list marks": ("docs/guide.md", GUIDE, "* ", "- "),
    "a table's cell": ("docs/guide.md", GUIDE, "| 1 | 2 |", "| 1 | 2.5 |"),
    "a word in reST": ("docs/guide.rst", RST, "recieves", "receives"),
    "code in reST": ("docs/guide.rst", RST, "print('a')", "print('b')"),
    "German": ("docs/de.md", GERMAN, "Haffen", "Hafen"),
    "Persian": ("docs/fa.md", PERSIAN, "جدول", "جدولِ"),
    "Japanese": ("docs/ja.md", JAPANESE, "です", "である"),
    "a translation": ("po/de.po", PO, "Haffen", "Hafen"),
    "a title in JSON": ("data/table.json", JSON, "tabel", "table"),
    "a number in JSON": ("data/table.json", JSON, "[1, 2, 3]", "[1, 2, 3, 4]"),
    "a title in YAML": ("data/table.yml", YAML, "tabel", "table"),
    "a word in the change log": ("CHANGELOG.md", CHANGELOG, "teh", "the"),
    "an entry of the change log": ("CHANGELOG.md", CHANGELOG, "## 1.2\n\n", "## 1.2\n\n- Prints neaps too\n"),
    "a comment in a test": ("tests/test_tide.py", TEST, "midnite", "midnight"),
    "a test more": ("tests/test_tide.py", TEST, "== 0\n", "== 0\n\n\ndef test_ebb():\n    assert level(6) > 0\n"),
    "beside emoji": ("README.md", EMOJI, "teh", "the"),
    "a file with CRLF": ("docs/guide.md", CRLF, "definately", "definitely"),
    "a file without a last line end": ("notes.txt", NO_END, "there", "three"),
    "a last line end": ("notes.txt", NO_END, "there", "there\n"),
    "lines that go": ("docs/guide.md", GUIDE, "| 1 | 2 |\n", ""),
}
"""By name: a path, its text, and what is put in place of what."""
PLACES = ("src/", "lib/harbour/", "docs/a b/", "ünï/", "packages/tide-table/src/")
"""Folders in which the same is tried, with spaces and other letters than a to z."""


def _whole() -> Iterator[Benign]:
    for name, (path, old, find, put) in WORDS.items():
        yield Benign(name, (edit(path, old, find, put),))


def _elsewhere() -> Iterator[Benign]:
    for at, (name, (path, old, find, put)) in enumerate(WORDS.items()):
        place = PLACES[at % len(PLACES)]
        yield Benign(f"{name} in {place}", (edit(place + path.rpartition("/")[2], old, find, put),))


def _more() -> Iterator[Benign]:
    build = ("bin/build", SCRIPT, "adress", "address")
    yield Benign("a program that stays one", (edit(*build, mode=EXECUTABLE),))
    yield Benign("another program that stays one", (edit("run", SCRIPT, "$file", '"$file"', mode=EXECUTABLE),))
    yield Benign("a new page", (add("docs/neaps.md", "# Neaps\n\nTwice a month.\n"),))
    yield Benign("a new module", (add("src/neaps.py", '"""Neaps."""\n\nDAYS = 14\n'),))
    yield Benign("a new empty package", (add("src/neaps/__init__.py", ""),))
    yield Benign("a new test", (add("tests/test_neaps.py", "def test_neaps():\n    assert 14 == 2 * 7\n"),))
    yield Benign("a note that goes", (drop("docs/old.md", "# Old\n\nNobody reads this.\n"),))
    yield Benign("a module that goes", (drop("src/unused.py", "X = 1\nY = 2\n"),))
    yield Benign("a file that moves", (drop("docs/a.md", GUIDE), add("docs/b.md", GUIDE)))
    many = (edit(f"docs/page{n}.md", f"# Page {n}\n\nIt recieves.\n", "recieves", "receives") for n in range(20))
    yield Benign("one word in twenty files", tuple(many))
    yield Benign(
        "code and its page",
        (edit("src/tide.py", PYTHON, "LIMIT", "MOST"), edit("README.md", README, "tabels", "tables")),
    )
    yield Benign("a paragraph on one line", (edit("docs/guide.md", GUIDE, "The table", "word " * 90 + "the table"),))
    yield Benign("49 lines of a page", (add("docs/long.md", "".join(f"line {n}\n" for n in range(49))),))
    yield Benign("tabs for spaces", (edit("lib/tide.rb", RUBY, "  (", "\t("),))
    for length in (1, 5, 10, 20, 24):
        old = "".join(f"the hieght of row {n}\n" for n in range(60))
        new = old.replace("hieght", "height", length)
        yield Benign(
            f"{length} lines of sixty", (FileChange("docs/rows.txt", REGULAR, REGULAR, old.encode(), new.encode()),)
        )
    for at in (0, 29, 59):
        rows = [f"row {n}" for n in range(60)]
        old = "\n".join(rows) + "\n"
        yield Benign(f"line {at} goes", (edit("docs/rows.txt", old, f"row {at}\n", ""),))
        yield Benign(f"a line before {at}", (edit("docs/rows.txt", old, f"row {at}\n", f"one more\nrow {at}\n"),))


PATCHES = (*_whole(), *_elsewhere(), *_more())
