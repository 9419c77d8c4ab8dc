"""Comments and names in code, told apart by the lexers of Pygments."""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygments.lexer import Lexer

CODE = frozenset(
    ".py .pyi .pyx .js .mjs .cjs .jsx .ts .mts .cts .tsx .go .rs .java .kt .kts .c .h .cc .cpp .cxx .hh .hpp .hxx .m"
    " .cs .rb .php .swift .scala .sh .bash .zsh .lua .ex .exs .erl .hs .ml .dart .sql .css .scss .less .yml .yaml .toml"
    " .zig".split()
)
"""Suffixes of code whose comments are prose."""
SPOKEN_BY = {".mts": ".ts", ".cts": ".ts"}
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
        return get_lexer_for_filename(f"name{SPOKEN_BY.get(suffix, suffix)}")
    except ClassNotFound:
        return None
