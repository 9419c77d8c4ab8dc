"""Where fixers may write: prose, comments, names in code (by Pygments), version tokens; and files they leave alone.

In doubt something is not prose: precision comes before recall. Version tokens of manifests are rewritten byte for byte.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Container, Iterator
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ralph_mission.safety.bumps import SECTIONS
from ralph_mission.safety.markdown import build_parser
from ralph_mission.safety.paths import fixer_may_write, unsafe_path
from ralph_mission.values import compile_regex

if TYPE_CHECKING:
    from pygments.lexer import Lexer

CODE = frozenset(
    ".py .pyi .pyx .js .mjs .cjs .jsx .ts .mts .cts .tsx .go .rs .java .kt .kts .c .h .cc .cpp .cxx .hh .hpp .hxx .m"
    " .cs .rb .php .swift .scala .sh .bash .zsh .lua .ex .exs .erl .hs .ml .dart .sql .css .scss .less .yml .yaml .toml"
    " .zig".split()
)
"""Suffixes of code whose comments are prose."""
LEXER_SUFFIXES = {".mts": ".ts", ".cts": ".ts"}
"""Suffixes that Pygments does not know -> one of the same language that it does."""


def is_code(path: str) -> bool:
    """Whether the comments of `path` can be found: a lexer may be missing from the Pygments that is installed."""
    return _suffix(path) in CODE and _lexer(_suffix(path)) is not None


def comments(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Where each comment and docstring begins, and its text; none when it is no code."""
    from pygments.token import Comment, String

    silent = (Comment.Preproc, Comment.PreprocFile, Comment.Hashbang, Comment.Special)
    for start, kind, value in _tokens(path, text):
        if _within(kind, String.Doc) or (_within(kind, Comment) and not any(_within(kind, other) for other in silent)):
            yield start, value


def identifiers(path: str, text: str) -> Iterator[str]:
    """All that is neither comment nor sentence: names, and strings without a space, which are keys or options."""
    from pygments.token import Comment, String

    for _, kind, value in _tokens(path, text):
        if _within(kind, String.Doc) or _within(kind, Comment):
            continue
        if not _within(kind, String) or not any(char.isspace() for char in value):
            yield value


def _tokens(path: str, text: str) -> Iterator[tuple[int, object, str]]:
    lexer = _lexer(_suffix(path))
    return iter(()) if lexer is None else lexer.get_tokens_unprocessed(text)


def _within(kind: object, family: Container[object]) -> bool:
    return kind in family


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


@cache
def _lexer(suffix: str) -> Lexer | None:
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(f"name{LEXER_SUFFIXES.get(suffix, suffix)}")
    except ClassNotFound:
        return None


DOCUMENTS = frozenset(".md .markdown .mdx .mkd .rst .adoc .asciidoc .txt .text".split())
"""Suffixes of texts that are prose."""
OTHERS = frozenset(
    """
    vendor vendored _vendor _vendored third_party third-party thirdparty 3rdparty extern external externals contrib
    node_modules bower_components site-packages dist build out target generated gen __generated__ autogen min
    public static assets
    """.split()
)
"""Folders of what someone or something else wrote."""
SAMPLES = frozenset(
    """
    fixture fixtures __fixtures__ snapshot snapshots __snapshots__ testdata test-data test_data golden goldens corpus
    cassettes samples __mocks__ testcases test-cases recordings
    """.split()
)
"""Folders where a mistake may be the point."""
TESTS = frozenset({"test", "tests", "testing", "spec", "specs", "__tests__", "e2e"})
TEST_DATA = frozenset(
    {"data", "files", "resources", "input", "inputs", "output", "outputs", "expected", "cases", "integration"}
)
TRANSLATED = frozenset({"locale", "locales", "i18n", "l10n", "lang", "langs", "translation", "translations", "po"})
PAST = frozenset(
    """
    changelog changelog.d changelogs changes news newsfragments history releases release-notes release_notes relnotes
    whatsnew blog posts _posts archive archives legal licenses licences
    """.split()
)
"""Folders of texts that were true on their day, or whose words are not ours to change."""
LANGUAGES = frozenset(
    "ar az be bg bn bs ca cn cs cy da de el eo es et eu fa fi fil fr ga gl he hi hr hu hy id is it ja jp ka kk km ko kr"
    " lt lv mk ml mn mr ms my nb ne nl nn no pl ps pt ro ru si sk sl sq sr sv sw ta te tg th tl tr tw ua uk ur uz vi"
    " zh".split()
)
"""ISO 639 codes, and the country codes people use in their place."""
_LANGUAGE = compile_regex(r"(?:^|[._-])([a-z]{2,3})(?:[-_]?(?:hans|hant|[a-z]{2}))?$")
_PAST_FILE = compile_regex(
    r"(?:change|release|history|news|what.?s.?new|relnotes|authors?|contributors|credits|thanks|maintainers|copying"
    r"|licen[sc]e|notice|patents|code.of.conduct|third.?party|robots|humans|cmakelists|requirements|constraints)",
    re.I,
)
_WORD_LIST = compile_regex(r"(?<!pass)(?<!key)word|spell|(?<!pre)dict|vocab|typo|stop.?list|ignore", re.I)
_GENERATED_NAME = compile_regex(
    r"\.min\.|[._-]generated\.|_pb2|\.pb\.|\.bundle\.|\.lock$|-lock\.|\.snap$|\.map$|\.pot?$|\.svg$|\.d\.ts$", re.I
)
_GENERATED_TEXT = compile_regex(
    r"@generated|do not (?:edit|modify|change)|(?:auto(?:matically)?|code)[- ]?generated|generated (?:by|from)"
    r"|sourceMapping",
    re.I,
)


def off_limits(path: str) -> bool:
    """Whether no fixer may touch `path`: protected, unsafe, not ours, generated, or test data."""
    folders = [folder.lower() for folder in PurePosixPath(path).parts[:-1]]
    if unsafe_path(path) or not fixer_may_write(path) or _GENERATED_NAME.search(path):
        return True
    return any(folder in OTHERS | SAMPLES for folder in folders) or _test_data(folders)


def not_our_words(path: str) -> bool:
    """Whether the prose of `path` is a record of the past, a list of names or words, or not English."""
    place = PurePosixPath(path.lower())
    if any(folder in PAST | TRANSLATED for folder in place.parts[:-1]) or _WORD_LIST.search(place.name):
        return True
    if place.suffix not in DOCUMENTS:
        return False
    return bool(_PAST_FILE.match(place.name)) or any(_foreign(part) for part in (*place.parts[:-1], place.stem))


def is_generated(text: str) -> bool:
    """Whether a file says in its first lines that a program wrote it."""
    return bool(_GENERATED_TEXT.search(text[:1000]))


def _test_data(folders: list[str]) -> bool:
    first = next((place for place, folder in enumerate(folders) if folder in TESTS), len(folders))
    return any(folder in TEST_DATA for folder in folders[first:])


def _foreign(part: str) -> bool:
    found = _LANGUAGE.search(part)
    return found is not None and found[1] in LANGUAGES


MAX_LINE = 2000  # characters: nobody wrote a longer one by hand
MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".mkd"})
_FRONT_MATTER = compile_regex(r"\A(?:\ufeff)?---[ \t]*\r?\n.*?^---[ \t]*$", re.MULTILINE | re.DOTALL)
_ADOC = compile_regex(
    r"^(-{4,}|\.{4,}|\+{4,}|/{4,}|={4,})$.*?(?:^\1$|\Z)|^(?://|\[|:\w|\w+::)[^\n]*$", re.MULTILINE | re.DOTALL
)
_RST = compile_regex(  # literal blocks, comments, fields, and of directives all but those that admonish
    r"^([ \t]*)(?:\.\. (?!(?:note|warning|tip|hint|important|caution|danger|attention|seealso|admonition|deprecated"
    r"|version\w+)::)|:\w|(?!\.\. )[^\n]*::[ \t]*\r?$)[^\n]*(?:\n(?:\1[ \t]+[^\n]*|[ \t\r]*$))*",
    re.MULTILINE,
)
_NOT_PROSE = compile_regex(r"\$|\{[{%]|<(?:code|kbd|samp|var|tt|pre|script|style)\b", re.IGNORECASE)  # in a paragraph
_LEADER = compile_regex(
    r"^[ \t]*(?:/\*+!?|\*+/|\*+|//+!?|#+[!:|]?|--+\[*|;+|\(\*+|[A-Za-z]{0,2}(?:\"{3}|'{3}))", re.MULTILINE
)
_EXAMPLE = compile_regex(
    r"copyright|licen[sc]e|spdx-|all rights reserved|@example|::[ \t]*\r?$|^\s*>>>", re.I | re.MULTILINE
)
_CODE_LINE = compile_regex(
    r"[;{}]\s*(?:\*/)?\s*$|^\s*(?:import|from|export|const|let|var|def|class|func|fn|pub|elif|else:)\s"
    r"|[\w\])\"']\s*(?:[-+*/|&]?=|:=|==|!=|=>|->|&&|\|\|)\s*\S|^\s*(?:\.\.\.|\$|%)\s"
)


@lru_cache(maxsize=1024)  # taking code apart takes most of a look, and each file is asked about twice in one
def prose(path: str, text: str) -> str | None:
    """The sentences of a text, one paragraph or comment after another; None for an unknown kind of file."""
    suffix = PurePosixPath(path).suffix.lower()
    if not (suffix in DOCUMENTS or is_code(path)) or any(len(line) > MAX_LINE for line in text.splitlines()):
        return None
    if is_code(path):
        return "\n\n".join(_comments(path, text))
    markup = {".rst": _RST, ".adoc": _ADOC, ".asciidoc": _ADOC}.get(suffix)
    return "\n\n".join(_paragraphs(markup.sub("", text) if markup else text))


def _paragraphs(text: str) -> Iterator[str]:
    """The words of Markdown: no code, address, HTML or front matter."""
    for block in build_parser().parse(_FRONT_MATTER.sub("", text)):
        if block.type == "inline" and not _NOT_PROSE.search(block.content):
            breaks = {"softbreak": "\n", "hardbreak": "\n"}
            yield "".join(
                breaks.get(one.type, one.content if one.type == "text" else "\0") for one in block.children or ()
            )


def _comments(path: str, text: str) -> Iterator[str]:
    for _, comment in comments(path, text):
        if not _EXAMPLE.search(comment):
            text_only = inspect.cleandoc(_LEADER.sub("", comment).rstrip("*/\"' \t\r\n"))
            lines = ("" if _CODE_LINE.search(line) else line for line in text_only.splitlines())
            yield from _paragraphs("\n".join(lines))


def python_pins(text: str, name: str, old: str, new: str) -> str:
    """`text` of a requirements file or a pyproject.toml with every `name==old` made `name==new`."""
    from packaging.utils import canonicalize_name  # it takes a while to load, and most cycles pin nothing

    spelled = re.sub(r"-", "[-_.]", canonicalize_name(name))
    pin = re.compile(
        rf"(?<![\w.-])(?P<before>{spelled}\s*+(?:\[[^\]\n]*\])?\s*+===?\s*){re.escape(old)}(?![\w.*+!-])", re.IGNORECASE
    )
    return "".join(_outside_comments(line, pin, new) for line in text.splitlines(keepends=True))


def npm_pins(text: str, name: str, old: str, new: str) -> str:
    """`text` of a package.json with every exact `old` of `name` made `new`; as it was when more would change."""
    pin = re.compile(rf'(?P<before>"{re.escape(name)}"\s*:\s*"=?v?){re.escape(old)}(?=")')
    changed = pin.sub(rf"\g<before>{new}", text)
    return changed if changed == text or _only_sections(text, changed) else text


def manifest_is_sound(path: str, text: str) -> bool:
    """Whether a manifest can still be read after a token was changed."""
    try:
        if path.endswith(".json"):
            json.loads(text)
        elif path.endswith(".toml"):
            import tomllib

            tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _outside_comments(line: str, pin: re.Pattern[str], new: str) -> str:
    code, mark, comment = line.partition("#")
    return pin.sub(rf"\g<before>{new}", code) + mark + comment


def _only_sections(old: str, new: str) -> bool:
    before, after = json.loads(old), json.loads(new)
    return {k: v for k, v in before.items() if k not in SECTIONS} == {
        k: v for k, v in after.items() if k not in SECTIONS
    }
