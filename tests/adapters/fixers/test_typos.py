"""Every correction is one that a maintainer nods at; everything else stays, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from ralph_mission.adapters.fixers import places, typos
from ralph_mission.adapters.fixers.places import not_our_words
from ralph_mission.adapters.fixers.typos import TyposHit

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
        TyposHit(1, 4, "recieve", ("receive", "relieve")),
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
