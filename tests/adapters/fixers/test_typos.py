"""Every correction is one that a maintainer nods at; everything else stays, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ralph_mission.adapters.fixers import FIXERS, places, typos, verify
from ralph_mission.adapters.fixers import places as lexing
from ralph_mission.adapters.fixers.places import not_our_words
from ralph_mission.adapters.fixers.typos import TyposHit
from ralph_mission.adapters.git.git import Git
from ralph_mission.errors import UserError
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Severity
from ralph_mission.mission.model.proposal import ObservationContext
from tests.helpers import commit, git, make_repo

CHANGED = [
    ("README.md", "You will recieve the data.", "You will receive the data."),
    ("README.md", "This is seperate from that.", "This is separate from that."),
    ("README.md", "It works becuase of the cache.", "It works because of the cache."),
    ("README.md", "An occured error is shown to you.", "An occurred error is shown to you."),
    ("README.md", "Recieve the data in one go.", "Receive the data in one go."),
    ("README.md", "It is done. Recieve the data then.", "It is done. Receive the data then."),
    ("README.md", "- Seperate lists are fine.", "- Separate lists are fine."),
    ("README.md", "## Instalation", "## Installation"),
    ("README.md", "You can **definately** do it.", "You can **definitely** do it."),
    ("README.md", "It is done (and succesful).", "It is done (and successful)."),
    ("README.md", "See [the refered page](x.html) for it.", "See [the referred page](x.html) for it."),
    ("README.md", "Use `foo` to acheive this.", "Use `foo` to achieve this."),
    ("README.md", "It is teh best of all.", "It is the best of all."),
    ("README.md", "It is regualar, unfortuntely.", "It is regular, unfortunately."),
    (
        "docs/x.adoc",
        "----\ncode of this\n----\n\nIt is illustated here.",
        "----\ncode of this\n----\n\nIt is illustrated here.",
    ),
    ("README.md", "| name | the recieved value |", "| name | the received value |"),
    ("README.md", "> Note that the enviroment is kept.", "> Note that the environment is kept."),
    ("docs/x.md", "It is neccessary,\nand it is\noccasionaly slow.", "It is necessary,\nand it is\noccasionally slow."),
    ("docs/x.rst", "The ``code`` is neccessary here.", "The ``code`` is necessary here."),
    ("docs/x.rst", ".. note::\n\n   You will recieve it.\n", ".. note::\n\n   You will receive it.\n"),
    ("docs/x.adoc", "It is neccessary to do this.", "It is necessary to do this."),
    ("docs/x.txt", "It is neccessary to do this.", "It is necessary to do this."),
    ("a.py", "# wait until the data is recieved\n", "# wait until the data is received\n"),
    ("a.py", "x = 1  # this is neccessary\n", "x = 1  # this is necessary\n"),
    ("a.py", 'def f():\n    """Return the seperated parts."""\n', 'def f():\n    """Return the separated parts."""\n'),
    ("a.py", '"""Module that is usefull."""\n', '"""Module that is useful."""\n'),
    ("a.js", "// we recieve the data here\n", "// we receive the data here\n"),
    ("a.ts", "/**\n * Returns the recieved data.\n */\n", "/**\n * Returns the received data.\n */\n"),
    ("a.ts", "/** @param {x} name the refered name of it */\n", "/** @param {x} name the referred name of it */\n"),
    ("a.cts", "// we recieve the data here\n", "// we receive the data here\n"),
    ("a.MTS", "// we recieve the data here\n", "// we receive the data here\n"),
    ("a.go", "// Open opens the refered file.\nfunc Open() {}\n", "// Open opens the referred file.\nfunc Open() {}\n"),
    ("a.rs", "/// Returns the lenght of the list.\nfn f() {}\n", "/// Returns the length of the list.\nfn f() {}\n"),
    ("a.c", "/* the adress of the buffer */\n", "/* the address of the buffer */\n"),
    ("a.sh", "# this is neccessary for the build\n", "# this is necessary for the build\n"),
    ("a.yml", "# this is neccessary for the build\nkey: 1\n", "# this is necessary for the build\nkey: 1\n"),
    ("a.css", "/* the heigth of the page */\na { color: red }\n", "/* the height of the page */\na { color: red }\n"),
    ("a.py", "# Calls foo() and the rest is recieved.\n", "# Calls foo() and the rest is received.\n"),
    ("a.py", "# first line\r\n# the data is recieved\r\n", "# first line\r\n# the data is received\r\n"),
]

KEPT = [
    # what is written correctly, or may be
    ("README.md", "You will receive the data in a separate file."),
    ("README.md", "The colour of the grey behaviour was cancelled."),
    ("README.md", "You can re-use the pre-existing code-base."),
    ("README.md", "Ask Claus about the alot of it, or the ans."),
    ("README.md", "The datas of the serie are in the runtimes."),
    # names
    ("README.md", "Call `recieve` to get the data."),
    ("README.md", "Call ``a `recieve` b`` to get the data."),
    ("README.md", "The span `of several\nlines recieve` is code."),
    ("README.md", "The function recieve_data is called."),
    ("README.md", "The class RecieveData is used."),
    ("README.md", "The constant RECIEVE is used."),
    ("README.md", "Run it with --recieve or with -seperator."),
    ("README.md", "Call recieve() to get the data."),
    ("README.md", "Use obj.recieve to get the data."),
    ("README.md", "Open recieve.txt to see the data."),
    ("README.md", "Open docs/recieve to see the data."),
    ("README.md", "Set recieve=1 to see the data."),
    ("README.md", "Set $recieve to see the data."),
    ("README.md", "Use <recieve> to see the data."),
    ("README.md", "Write to recieve@example.org or to @recieve about it."),
    ("README.md", "The issue is #recieve and the data is there."),
    ("README.md", "recieve\n"),
    ("README.md", "- recieve\n- seperate\n"),
    ("README.md", "| recieve | bool |\n"),
    ("README.md", "The `recieve` option: when recieve is set, the data is there."),
    ("README.md", "We met Mr. Recieve in the house of Recieve."),
    ("README.md", "The word `x`recieve is not a word."),
    ("README.md", "The 'recieve' key and the \"seperate\" key are read."),
    # code
    ("README.md", "```\nthe recieve of this\n```\n"),
    ("README.md", "```python\nthe recieve of this\n"),
    ("README.md", "~~~\nthe recieve of this\n~~~\n"),
    ("README.md", "- a list\n\n  ```\n  the recieve of this\n  ```\n"),
    ("README.md", "The text:\n\n    the recieve of this\n"),
    ("README.md", "<pre>\nthe recieve of this\n</pre>\n"),
    ("README.md", "<code>the recieve of this</code> is the text"),
    ("README.md", "<!-- the recieve of this -->\n"),
    ("README.md", "<!--\nthe recieve of this\n-->\n"),
    ("README.md", '<a title="the recieve of this">x</a>\n'),
    ("README.md", "---\ntitle: the recieve of this\n---\n\nThe text of this.\n"),
    ("README.md", "The value of {{ the recieve of this }} is it."),
    ("README.md", "The formula is $the recieve of$ and $$the recieve of$$ it."),
    # links
    ("README.md", "See https://example.org/the-recieve/of?recieve=1 for the data."),
    ("README.md", "See [the page](the/recieve/of.html) for the data."),
    ("README.md", 'See [the page](x.html "the recieve of") for it.'),
    ("README.md", "See [the page][recieve] for the data.\n\n[recieve]: https://example.org\n"),
    ("README.md", "See <https://example.org/recieve> for the data."),
    ("README.md", "![the recieve of](x.png) is a picture"),
    # rst and adoc
    ("docs/x.rst", "The ``recieve`` and `recieve`_ and :func:`recieve` of it."),
    ("docs/x.rst", "The text::\n\n   the recieve of this\n"),
    ("docs/x.rst", ".. code-block:: python\n\n   the recieve of this\n"),
    ("docs/x.rst", ".. the recieve of this comment\n"),
    ("docs/x.rst", ":recieve: the value of this\n"),
    ("docs/x.adoc", "----\nthe recieve of this\n----\n"),
    ("docs/x.adoc", ":recieve: the value of this\n"),
    ("docs/x.rst", ".. math::\n\n   the recieve of this\n\nMore of this.\n"),
    ("docs/x.rst", "The text.\n\n.. csv-table:: the recieve\n   :header: the, recieve\n\n   the, recieve of this\n"),
    # what stands elsewhere in the file is a name
    ("README.md", "Call recieve_data to recieve the data."),
    ("a.py", 'x = "the recieve of this"  # we recieve the data\n'),
    # several corrections, and words that are too short
    ("README.md", "The fo of the nd is in the ba and the ot."),
    # code files
    ("a.py", "recieve = 1\n"),
    ("a.py", 'x = "the recieve of this"\n'),
    ("a.py", 'raise ValueError("the recieve of this")\n'),
    ("a.py", "def recieve():\n    pass  # the recieve of this\n"),
    ("a.py", "recieve_data = 1  # the recieve of this\n"),
    ("a.py", "x['recieve'] = 1  # the recieve of this\n"),
    ("a.py", "# recieve = the_value\n"),
    ("a.py", "# the recieve of this = 1;\n"),
    ("a.py", "# def recieve(the, value):\n"),
    ("a.py", '"""The text.\n\n    >>> the recieve of this\n    """\n'),
    ("a.py", '"""The text.\n\n    :param recieve: the value of it\n    """\n'),
    ("a.py", '"""The text.\n\n    Args:\n        recieve: the value\n        recieve (int): the value\n    """\n'),
    ("a.py", "x = the(1)  # recieve: the value of it\n"),
    ("a.py", '"""The text::\n\n        the recieve of this\n    """\n'),
    ("a.py", "# Copyright 2020 the Recieve of this\n"),
    ("a.py", "# Licensed to the recieve of this under a licence\n"),
    ("a.py", "#!/usr/bin/recieve\n"),
    ("a.js", "const s = 'the recieve of this'; // ok\n"),
    ("a.js", "const s = `the recieve of this`;\n"),
    ("a.js", "const r = /the recieve of this/;\n"),
    ("a.ts", "/**\n * @param recieve the value of it\n */\n"),
    ("a.ts", "/**\n * @example\n * the recieve of this\n */\n"),
    ("a.ts", "/** See {@link recieve} for the value. */\n"),
    ("a.go", 'var s = "the recieve of this"\n'),
    ("a.c", '#define RECIEVE "the recieve of this"\n'),
    ("a.yml", "key: the recieve of this\n"),
    ("a.toml", 'key = "the recieve of this"\n'),
    ("a.min.js", "x" * 6000 + "\n// the recieve of this\n"),
    # marks
    ("README.md", "The recieve of this <!-- codespell:ignore -->"),
    ("a.py", "# the recieve of this  # codespell:ignore recieve\n"),
    ("README.md", "He wrote: the recieve of this (sic)."),
    # other languages, word lists
    (
        "README.md",
        "Die Adresse und das Exemple sind hier zu finden, der Server ist nicht da, und wir warten auf die"
        " Antwort von dem recieve, das noch fehlt und kommt.",
    ),
    ("README.md", "El recieve está en la página de la dirección."),
    ("README.md", "the teh recieve seperate occured of neccessary acheive and enviroment lenght"),
    ("README.md", "the recieve of it " * 4),
    # unknown kinds of file
    ("data.json", '{"a": "the recieve of this"}'),
    ("Makefile", "# the recieve of this\n"),
    ("page.html", "<p>the recieve of this</p>"),
]

EVERY = [*CHANGED, *((path, text, text) for path, text in KEPT)]


def found_in(folder: Path, files: Iterable[tuple[str, str]]) -> list[list[TyposHit]]:
    """What typos finds in each of these files, in one go."""
    names = [f"{number}/{path}" for number, (path, _) in enumerate(files)]
    for name, (_, text) in zip(names, files, strict=True):
        (folder / "files" / name).parent.mkdir(parents=True)
        (folder / "files" / name).write_bytes(text.encode())
    hits = typos.run_typos(folder / "files", folder / "home")
    return [hits.get(name, []) for name in names]


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[TyposHit]]:
    """What typos finds in every text of the tables, and in what becomes of it."""
    texts = list(dict.fromkeys(each for path, before, after in EVERY for each in ((path, before), (path, after))))
    return dict(zip(texts, found_in(tmp_path_factory.mktemp("tables"), texts), strict=True))


@pytest.mark.parametrize(("path", "before", "after"), CHANGED)
def test_a_misspelling_that_is_beyond_doubt_is_corrected(hits, path, before, after):
    text, corrections = typos.correct(path, before, hits[path, before])
    assert text == after and corrections
    assert typos.correct(path, after, hits[path, after]) == (after, ())


@pytest.mark.parametrize(("path", "text"), KEPT)
def test_a_text_in_which_anything_is_in_doubt_stays(hits, path, text):
    assert typos.correct(path, text, hits[path, text]) == (text, ())


@pytest.mark.parametrize("suffix", sorted(places.CODE))
def test_every_language_that_is_claimed_has_a_lexer(suffix):
    assert places.is_code(f"name{suffix}")


def test_a_correction_names_its_place_and_both_words(tmp_path):
    text = "Fine.\n\nYou recieve it. Recieve it now.\n"
    _, corrections = typos.correct("x.md", text, *found_in(tmp_path, [("x.md", text)]))
    assert [(one.word, one.correction) for one in corrections] == [("recieve", "receive"), ("Recieve", "Receive")]
    assert all(text.startswith(one.word, one.start) for one in corrections)


def test_a_name_of_the_repository_stays():
    assert (
        typos.correct("x.md", "You recieve it.", [TyposHit(1, 4, "recieve", ("receive",))], frozenset({"recieve"}))[1]
        == ()
    )


def test_nothing_but_the_corrected_words_changes(tmp_path):
    before = "\ufeffYou  recieve\tit. \r\n\r\nThe end\x0c of\u2028it, seperate.\n\n"
    after, _ = typos.correct("x.md", before, *found_in(tmp_path, [("x.md", before)]))
    assert after == before.replace("recieve", "receive").replace("seperate", "separate")


@pytest.mark.parametrize(
    "hit",
    [
        TyposHit(1, 4, "recieve", ("receives", "relieve")),
        TyposHit(1, 4, "recieve", ()),
        TyposHit(1, 4, "recieve", ("rm -rf /",)),
        TyposHit(1, 4, "recieve", ("a\nb",)),
        TyposHit(1, 4, "it", ("is",)),
        TyposHit(1, 5, "recieve", ("receive",)),
        TyposHit(9, 0, "recieve", ("receive",)),
    ],
)
def test_what_is_no_plain_correction_at_its_place_is_not_made(hit):
    assert typos.correct("x.md", "You recieve it.", [hit]) == ("You recieve it.", ())


@pytest.mark.parametrize("path", ["src/predict.py", "src/password.py", "docs/keywords.md", "docs/prediction.md"])
def test_a_name_that_only_contains_such_a_word_is_no_list_of_words(path: str) -> None:
    assert not not_our_words(path)


@pytest.mark.parametrize("path", ["data/wordlist.txt", "stopwords.txt", "src/dictionary.py", "docs/spelling.txt"])
def test_a_list_of_words_is_left_alone(path: str) -> None:
    assert not_our_words(path)


# --- Fixers as observers: one signal per file, with a patch that is exactly what it says. ---

TYPO = "You will recieve the data of it.\n"
FIXED = TYPO.replace("recieve", "receive")
UNUSED = "import os\nimport sys\n\nprint(sys.argv)\n"


def paths(observation) -> list[str]:
    return [signal.path for signal in observation.signals]


def test_a_misspelling_becomes_a_signal_with_its_patch(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"docs/guide.md": TYPO + "It is seperate.\n", "README.md": "# Fine\n"})
    seen = look(repo, "typos")
    (signal,) = seen.signals
    assert (seen.name, seen.status, seen.complete) == ("typos", "ok", True)
    assert signal.title == "2 misspellings in docs/guide.md"
    assert (signal.kind, signal.severity, signal.confidence) == ("spelling", Severity.LOW, 0.9)
    assert signal.detail == "line 1: recieve → receive\nline 2: seperate → separate" and signal.line == 1
    (change,) = signal.patch.changes
    assert signal.patch.base == git(repo, "rev-parse", "HEAD") and change.path == "docs/guide.md"
    assert (change.old, change.new) == ((TYPO + "It is seperate.\n").encode(), (FIXED + "It is separate.\n").encode())


def test_a_language_without_a_lexer_is_left_alone_and_the_others_are_not(tmp_path, look, monkeypatch):
    monkeypatch.setattr(lexing, "CODE", lexing.CODE | {".nolexer"})
    comment = "// you will recieve the data\n"
    files = {"a.nolexer": "// it is seperate from it\n", "b.cts": comment, "c.mts": comment, "d.ts": comment}
    repo = make_repo(tmp_path / "repo", files)
    assert paths(look(repo, "typos")) == ["b.cts", "c.mts", "d.ts"]


def test_the_mode_of_a_file_stays(tmp_path, look):
    repo = make_repo(tmp_path / "repo")
    (repo / "run.sh").write_text("# you will recieve the data\n")
    (repo / "run.sh").chmod(0o755)
    git(repo, "add", ".")
    commit(repo, {})
    (change,) = look(repo, "typos").signals[0].patch.changes
    assert change.old_mode == change.new_mode == "100755"


def test_looking_changes_nothing_in_the_repository(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO, "b.py": UNUSED})
    before = everything(repo)
    assert look(repo, "typos").signals and look(repo, "ruff").signals
    assert everything(repo) == before


def everything(repo: Path) -> dict[str, bytes]:
    return {str(place): place.read_bytes() for place in repo.rglob("*") if place.is_file()}


def test_the_commit_is_looked_at_and_not_the_work_tree(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.md": "Fine.\n"})
    (repo / "a.md").write_text(TYPO)
    assert paths(look(repo, "typos")) == []


def test_identity_survives_a_move(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO})
    before = identify(look(repo, "typos").signals)[0].fingerprint
    commit(repo, {"a.md": None, "docs/b.md": "# New\n\n" + TYPO})
    assert identify(look(repo, "typos").signals)[0].fingerprint == before


@pytest.mark.parametrize(
    "path",
    [
        "LICENSE.md",
        "CHANGELOG.md",
        "HISTORY.rst",
        "NEWS.txt",
        "docs/changelog/1.0.md",
        "AUTHORS.md",
        "CONTRIBUTORS.txt",
        "CODE_OF_CONDUCT.md",
        "vendor/x.md",
        "third_party/x/README.md",
        "node_modules/x/README.md",
        "dist/x.js",
        "x.min.js",
        "tests/fixtures/x.md",
        "tests/data/x.md",
        "src/__snapshots__/x.md",
        "testdata/x.go",
        "locale/x.md",
        "docs/de/x.md",
        "README.zh.md",
        "README_cn.md",
        "README-ja.md",
        "docs/zh-CN/x.md",
        "i18n/fr/x.md",
        "requirements.txt",
        "words.txt",
        "docs/spelling_wordlist.txt",
        ".github/x.md",
        "CLAUDE.md",
        "conftest.py",
        "setup.py",
        "x_pb2.py",
        "types.d.ts",
        "docs/posts/x.md",
        "docs/release-notes/x.md",
        "CMakeLists.txt",
        "robots.txt",
        "AGENTS.md",
        ".claude/x.md",
    ],
)
def test_files_that_are_not_ours_to_correct_are_left_alone(tmp_path, look, path):
    mark = {"md": "", "rst": "", "txt": "", "py": "# "}.get(path.rpartition(".")[2], "// ")
    text = mark + TYPO
    repo = make_repo(tmp_path / "repo", {path: text, "guide.md": "You see that it is seperate.\n"})
    assert paths(look(repo, "typos")) == ["guide.md"]


@pytest.mark.parametrize("mark", ["# @generated by a tool", "# DO NOT EDIT", "# This file is auto-generated"])
def test_generated_files_are_left_alone(tmp_path, look, mark):
    repo = make_repo(tmp_path / "repo", {"a.py": f"{mark}\n# {TYPO}", "b.py": f"# {TYPO}"})
    assert paths(look(repo, "typos")) == ["b.py"]


@pytest.mark.parametrize(
    "file",
    [
        {"a.py": 'KEY = "\\trecieve"\n'},
        {"src/api.py": "def recieve():\n    pass\n"},
        {"src/api.py": "x = cli.option('--recieve-all')\n"},
        {"src/api.py": "class RecieveThing:\n    pass\n"},
        {"src/api.ts": "const RECIEVE_LIMIT = 1;\n"},
        {"settings.json": '{"recieve": 1}'},
        {"cspell.json": '{"words": ["recieve"]}'},
        {"words.dic": "recieve\n"},
        {"docs/other.md": "Use `recieve` here.\n"},
        {"LICENSE": "the recieve of it\n"},
    ],
)
def test_a_word_that_names_something_in_the_repository_stays(tmp_path, look, file):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO + "It is seperate.\n", **file})
    assert look(repo, "typos").signals[0].detail == "line 2: seperate → separate"


def test_a_word_that_is_only_part_of_a_longer_name_is_corrected(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.md": "Ask for acces to it.\n", "b.py": "accessible = accesses = 1\n"})
    assert paths(look(repo, "typos")) == ["a.md"]


@pytest.mark.parametrize(
    "files",
    [
        {"_typos.toml": '[default.extend-words]\nrecieve = "recieve"\n'},
        {".typos.toml": '[default.extend-identifiers]\nrecieve = "recieve"\n'},
        {"typos.toml": '[files]\nextend-exclude = ["a.*"]\n'},
        {"pyproject.toml": '[tool.typos.default.extend-words]\nrecieve = "recieve"\n'},
        {"_typos.toml": '[default]\nextend-ignore-re = ["will \\\\w+"]\n'},
    ],
)
def test_the_repository_s_own_settings_for_typos_are_obeyed(tmp_path, look, files):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO, "b.md": "It is seperate.\n", **files})
    assert paths(look(repo, "typos")) == ["b.md"]


def test_settings_below_the_top_and_of_other_tools_are_not_read(tmp_path, look):
    nested = {"docs/a.md": TYPO, "docs/_typos.toml": '[files]\nextend-exclude = ["*"]\n', "pyproject.toml": "[tool"}
    assert paths(look(make_repo(tmp_path / "repo", nested), "typos")) == ["docs/a.md"]


@pytest.mark.parametrize("text", ["[default", '[default]\nextend-ignore-re = ["(a"]\n', "[default]\nmoon = 1\n"])
def test_settings_that_cannot_be_read_stop_the_fixer_with_a_clear_line(tmp_path, look, text):
    with pytest.raises(UserError, match="typos cannot check this repository"):
        look(make_repo(tmp_path / "repo", {"a.md": TYPO, "_typos.toml": text}), "typos")


def test_settings_can_make_typos_write_nothing(tmp_path, look):
    places = '[files]\nextend-exclude = ["/etc/*", "../*"]\n[type.md]\nextend-glob = ["../../*"]\n'
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO, "_typos.toml": f"{places}[default]\nbinary = true\n"})
    before = {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()}
    assert paths(look(repo, "typos")) == ["a.md"]
    assert {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()} == before


def test_links_submodules_binary_and_large_files_are_left_alone(tmp_path, look):
    repo = make_repo(
        tmp_path / "repo",
        {
            "a.md": TYPO,
            "binary.md": TYPO.encode() + b"\0",
            "latin.md": TYPO.encode() + b"\xe9\n",
            "large.md": TYPO + "fine words are here\n" * 60_000,
        },
    )
    (repo / "link.md").symlink_to("a.md")
    git(repo, "add", "link.md")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module.md")
    commit(repo, {})
    assert paths(look(repo, "typos")) == ["a.md"]


def test_an_unchanged_head_is_not_looked_at_again(tmp_path, look, monkeypatch):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO})
    first = look(repo, "typos")
    forget = verify.Fixer("typos", "spelling", typos.version, lambda tree: pytest.fail("looked again"))
    monkeypatch.setitem(FIXERS, "typos", forget)
    assert look(repo, "typos").signals == first.signals


BROKEN = (
    *("", "{", "[]", '{"of": 1}', '{"of": ["x"], "fixes": []}'),
    *(
        json.dumps({"of": typos.version(), "memo": memo})
        for memo in (
            3,
            {"settings": [], "clean": ["a.md"], "dirty": {}},
            {"settings": [], "clean": {}, "dirty": 3},
            {"settings": [], "clean": {"a.md": [1]}, "dirty": {"a.md": None}},
        )
    ),
)


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("name", ["typos.json", "typos-memo.json"])
def test_a_broken_cache_costs_nothing_but_time(tmp_path, look, broken, name):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO})
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / name).write_text(broken)
    assert paths(look(repo, "typos")) == ["a.md"]


def test_a_new_commit_or_new_rules_are_looked_at(tmp_path, look, monkeypatch):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO})
    look(repo, "typos")
    commit(repo, {"a.md": "Fine.\n", "b.md": TYPO})
    assert paths(look(repo, "typos")) == ["b.md"]
    other = verify.Fixer("typos", "spelling", lambda: "newer rules", lambda tree: tree.memo and pytest.fail("old"))
    monkeypatch.setitem(FIXERS, "typos", other)
    assert paths(look(repo, "typos")) == []


@pytest.mark.parametrize("planted", [pytest.param("[" * 200_000, id="nested"), "{", "[1]", '{"of": 1}'])
def test_a_planted_cache_is_written_anew(tmp_path, look, planted):
    repo, cache = make_repo(tmp_path / "repo", {"a.md": TYPO}), tmp_path / "cache"
    cache.mkdir()
    (cache / "typos.json").write_text(planted)
    assert paths(look(repo, "typos", cache=cache)) == ["a.md"]
    assert json.loads((cache / "typos.json").read_text())["fixes"]


@pytest.mark.attack(46)
@pytest.mark.parametrize("name", [".ralph", ".ralph/cache", ".ralph/cache/typos.json"])
def test_a_link_in_the_place_of_the_cache_is_neither_read_nor_written_behind(tmp_path, look, name):
    repo, cache = make_repo(tmp_path / "repo", {"a.md": TYPO}), tmp_path / "repo/.ralph/cache"
    look(repo, "typos", cache=cache)
    assert json.loads((cache / "typos.json").read_text())["fixes"]
    (theirs := tmp_path / "theirs").mkdir()
    (repo / name).rename(theirs / "kept")
    (repo / name).symlink_to(theirs / "kept")
    kept = theirs / "kept" / Path(".ralph/cache/typos.json").relative_to(name)
    kept.write_text(before := kept.read_text().replace("recieve", "RECIEVE"))
    (signal,) = look(repo, "typos", cache=cache).signals
    assert "RECIEVE" not in signal.detail and kept.read_text() == before


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO})
    (tmp_path / "file").write_text("in the way")
    assert paths(look(repo, "typos", cache=tmp_path / "file" / "cache")) == ["a.md"]


def test_what_is_too_much_for_one_look_is_cut_and_said(tmp_path, look, monkeypatch):
    monkeypatch.setattr(verify, "MOST_FILES", 2)
    repo = make_repo(tmp_path / "repo", {f"{number}.md": TYPO for number in range(3)})
    seen = look(repo, "typos")
    assert paths(seen) == ["0.md", "1.md"] and not seen.complete and seen.detail
    monkeypatch.setattr(verify, "MOST_FILES", 3)
    assert len(look(repo, "typos").signals) == 3  # the cut was not remembered


def test_a_look_that_runs_out_of_time_ends(tmp_path, look, monkeypatch):
    monkeypatch.setattr(verify, "SURVEY_SECONDS", -1.0)
    seen = look(make_repo(tmp_path / "repo", {"a.md": TYPO}), "typos")
    assert seen.status == "ok" and not seen.complete


def test_a_look_that_runs_out_of_time_gives_what_it_saw_and_the_next_goes_on_from_there(tmp_path, look, monkeypatch):
    two = f"{TYPO}This is seperate from that.\n"  # and a name in a file that is not yet checked
    files = {"a.md": two, "b.md": FIXED, "c.md": TYPO, "d.md": FIXED, "e.md": TYPO, "z.py": "seperate = 1\n"}
    repo = make_repo(tmp_path / "repo", files)
    found, checked, most = typos.run_typos, list[list[str]](), 1

    def run_typos(folder: Path, home: Path) -> dict[str, list[TyposHit]]:
        checked.append(sorted(file.name for file in folder.iterdir() if file.name != ".git"))
        return found(folder, home)

    monkeypatch.setattr(typos, "PART", 2)
    monkeypatch.setattr(typos, "run_typos", run_typos)
    monkeypatch.setattr(verify.CommitTree, "out_of_time", property(lambda _: len(checked) == most))
    first = look(repo, "typos")
    assert (paths(first), first.complete, checked) == (["a.md"], False, [["a.md", "b.md"]])
    assert first.detail == "files with corrections so far: 1; the next look goes on"
    assert first.signals[0].patch.changes[0].new.decode() == two.replace("recieve", "receive")
    checked.clear()
    assert paths(look(repo, "typos")) == ["c.md"] and checked == [["c.md", "d.md"]]  # what is not known comes first
    commit(repo, {"b.md": TYPO, "c.md": f"Fine. {TYPO}"})  # what has changed is checked again
    checked.clear()
    most = 9
    last = look(repo, "typos")
    assert (paths(last), last.complete, last.detail) == (["a.md", "b.md", "c.md", "e.md"], True, "")
    assert checked == [["b.md", "c.md"], ["e.md", "z.py"], ["a.md"]]


def test_what_was_checked_longest_ago_is_checked_first(tmp_path, look, monkeypatch):
    repo = make_repo(tmp_path / "repo", {f"{name}.md": TYPO for name in "abc"})
    given = list[str]()
    monkeypatch.setattr(typos, "PART", 1)
    monkeypatch.setattr(verify.CommitTree, "out_of_time", property(lambda _: next(clock)))
    for _ in range(5):
        clock = iter([False, True])
        given += paths(look(repo, "typos"))
    clock = iter([True])
    assert paths(look(repo, "typos")) == []  # and this forgets nothing
    clock = iter([False, True])
    assert given + paths(look(repo, "typos")) == ["a.md", "b.md", "c.md", "a.md", "b.md", "c.md"]


def test_what_was_checked_before_typos_failed_is_not_checked_again(tmp_path, look, monkeypatch):
    repo = make_repo(tmp_path / "repo", {"a.md": FIXED, "b.md": FIXED, "c.md": TYPO})
    found, checked, broken = typos.run_typos, list[list[str]](), True

    def run_typos(folder: Path, home: Path) -> dict[str, list[TyposHit]]:
        checked.append(sorted(file.name for file in folder.iterdir() if file.name != ".git"))
        if broken and "c.md" in checked[-1]:
            raise UserError("typos cannot check this repository: it took too long", "run `typos` there to see why")
        return found(folder, home)

    monkeypatch.setattr(typos, "PART", 2)
    monkeypatch.setattr(typos, "run_typos", run_typos)
    with pytest.raises(UserError):
        look(repo, "typos")
    broken = False
    assert paths(look(repo, "typos")) == ["c.md"]
    assert checked == [["a.md", "b.md"], ["c.md"], ["c.md"]]


@pytest.mark.parametrize("name", typos.SETTINGS)
def test_files_are_checked_again_under_other_settings(tmp_path, look, monkeypatch, name):
    table = "tool.typos.default" if name == "pyproject.toml" else "default"
    monkeypatch.setattr(typos, "PART", 1)
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO, "b.md": TYPO})
    for allowed in ("recieve", "teh", "recieve"):
        commit(repo, {name: f"[{table}.extend-words]\n{allowed} = '{allowed}'\n"})
        assert paths(look(repo, "typos")) == ([] if allowed == "recieve" else ["a.md", "b.md"])


def test_settings_that_typos_cannot_read_are_an_error(tmp_path, look):
    settings = b"# Andr\xe9\n[tool.typos.default.extend-words]\nrecieve = 'recieve'\n"
    with pytest.raises(UserError, match="cannot check this repository"):
        look(make_repo(tmp_path / "repo", {"a.md": TYPO, "pyproject.toml": settings}), "typos")


def test_a_new_version_in_pyproject_toml_is_no_reason_to_check_again(tmp_path, look, monkeypatch):
    repo = make_repo(tmp_path / "repo", {"a.md": FIXED, "pyproject.toml": "[project]\nversion = '1'\n"})
    look(repo, "typos")
    commit(repo, {"pyproject.toml": "[project]\nversion = '2'\n"})
    monkeypatch.setattr(typos, "run_typos", lambda folder, home: pytest.fail("checked again"))
    assert look(repo, "typos").complete


def test_a_file_that_typos_cannot_read_keeps_no_other_from_being_corrected(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.md": TYPO, "b.md": b"\xff\xfe\xff", "c.md": TYPO, "\udcff.md": TYPO})
    seen = look(repo, "typos")
    assert paths(seen) == ["a.md", "c.md"] and seen.complete


HOSTILE = [
    "`" * 40_000,
    "<!--" * 10_000,
    "[" * 40_000,
    "](" * 10_000,
    "$" * 20_000,
    "a/" * 20_000,
    "(" * 20_000,
    "<a " * 12_000,
    "{" * 20_000,
    "\n" * 40_000,
    "x " * 20_000,
    "@param " * 6_000,
    "*" * 20_000,
    "::\n" * 12_000,
    ("<code " * 300 + "\n") * 15,
    ("\\(" * 900 + "\n") * 15,
    ("a" * 1999 + "\n") * 15,
    ("|a" * 900 + "\n") * 15,
]


@pytest.mark.parametrize("path", ["x.md", "x.rst", "x.py", "x.js"])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.attack(57)
def test_a_text_made_to_exhaust_a_pattern_comes_to_an_end(path, text):
    before = "# recieve the data of it\n" + text
    hit = typos.TyposHit(1, 2, "recieve", ("receive",))
    assert len(typos.correct(path, before, [hit])[0].splitlines()) == len(before.splitlines())


def test_every_fixer_can_be_configured_and_its_kind_is_known():
    from ralph_mission.config.loop import FixerSettings
    from ralph_mission.mission.model.proposal import KINDS

    assert set(FixerSettings().fixers) == {*FIXERS, "project"}
    assert all(name == fixer.name and fixer.kind in KINDS for name, fixer in FIXERS.items())


def test_a_tree_leaves_out_what_is_too_large(tmp_path, scratch):
    repo = make_repo(tmp_path / "repo", {"a.md": "x", "b.md": "x" * 1_000_001})
    tree = verify.CommitTree.at(Git.open(repo), git(repo, "rev-parse", "HEAD"), scratch, 60)
    assert [entry.path for entry in tree.entries] == ["a.md"]


def test_a_look_that_knows_files_says_what_a_first_one_says(tmp_path):
    prose = "We hope that you can use this guide and that it is of use to all of you who read it.\n"
    repo = make_repo(tmp_path / "repo", {"a.md": f"{prose}You will recieve the answer.\n"})
    walk = [
        {"b.md": f"{prose}This is seperate from the rest of it.\n"},
        {"c.py": "def recieve(data):\n    return data\n"},
        {"c.py": None, "d.md": f"{prose}An error occured in the place that you named.\n"},
        {"c.py": "def recieve(data):\n    return data\n", "e.py": "occured = 1\n"},
        {"typos.toml": "[default.extend-words]\nseperate = 'seperate'\n"},
        {"c.py": None, "e.py": None, "typos.toml": None},
    ]

    def look(observer: verify.FixerObserver) -> list[str]:
        with TemporaryDirectory(dir=tmp_path) as folder:
            head = Branch("main", git(repo, "rev-parse", "HEAD"))
            seen = observer.observe(ObservationContext(head, datetime(2026, 5, 4, tzinfo=UTC), None, "", folder))
        return [f"{signal.path}: {signal.detail}" for signal in seen.signals]

    def observer(cache: Path | None) -> verify.FixerObserver:
        return verify.FixerObserver(Git.open(repo), FIXERS["typos"], cache)

    said = []
    for files in walk:
        commit(repo, files)
        said.append(look(observer(tmp_path / "cache")))
        assert said[-1] == look(observer(None))
    assert len({tuple(found) for found in said}) > 3


SLIP = "We recieve it. The staking of it is good staking. Nobody does {} alone."


def corrected(text: str, *more: TyposHit) -> str:
    return typos.correct("README.md", text, [TyposHit(1, 3, "recieve", ("receive",)), *more])[0]


def test_a_word_with_two_letters_swapped_that_the_file_writes_rightly_is_corrected_with_the_others():
    assert corrected(SLIP.format("stakign")) == SLIP.format("staking").replace("recieve", "receive")


def test_a_slip_that_is_repeated_is_one_all_the_same_where_the_right_word_is_far_more_frequent():
    text = "We recieve it. " + "The staking is good. " * 60 + "They do stakign here. " * 4
    assert corrected(text + "\n\n- stakign rewards") == (text + "\n\n- stakign rewards").replace(
        "stakign", "staking"
    ).replace("recieve", "receive")


@pytest.mark.parametrize(
    "text",
    [
        "We recieve it. Nobody does stakign alone. One staking is enough.",  # too little to go by
        "We recieve it. The causal link is the causal link. It is casual here.",  # both are right
        "We recieve it. The form of it takes form. Come from there.",  # short words
        "We recieve it. The staking is the staking. Call `stakign` for it. Nobody does stakign.",  # a name
        "We recieve it. The tables are tables. The table is elsewhere in it.",  # no swap
    ],
)
def test_a_word_that_may_be_right_stays_beside_a_correction(text):
    assert corrected(text) == text.replace("recieve", "receive")


def test_a_file_without_any_misspelling_is_not_searched_for_slips():
    text = SLIP.replace("recieve", "receive").format("stakign")
    assert typos.correct("README.md", text, [])[0] == text


def test_a_correction_that_is_longer_than_the_word_with_two_letters_swapped_is_not_made():
    text = "A conversino of each cell value, which is definately fine."
    hits = [TyposHit(1, 2, "conversino", ("conversions",)), TyposHit(1, 42, "definately", ("definitely",))]
    assert typos.correct("README.md", text, hits)[0] == text.replace("definately", "definitely")


def test_of_several_corrections_the_one_that_swaps_two_letters_is_certain():
    text = "The chain perforamnce is fine and it was Twiiter."
    hits = [
        TyposHit(1, 10, "perforamnce", ("performances", "performance")),
        TyposHit(1, 41, "Twiiter", ("Twitter", "Twister")),
    ]
    assert typos.correct("README.md", text, hits)[0] == text.replace("perforamnce", "performance")
