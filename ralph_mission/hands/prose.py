"""What of a text is written for people: prose documents, comments and docstrings.

In doubt something is not prose: precision comes before recall.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ralph_mission.hands.lexing import comments, is_code
from ralph_mission.hands.places import DOCUMENTS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_LINE = 2000  # characters: nobody wrote a longer one by hand
MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".mkd"})
_FRONT_MATTER = re.compile(r"\A(?:\ufeff)?---[ \t]*\r?\n.*?^---[ \t]*$", re.MULTILINE | re.DOTALL)
_ADOC = re.compile(
    r"^(-{4,}|\.{4,}|\+{4,}|/{4,}|={4,})$.*?(?:^\1$|\Z)|^(?://|\[|:\w|\w+::)[^\n]*$", re.MULTILINE | re.DOTALL
)
_RST = re.compile(  # literal blocks, comments, fields, and of directives all but those that admonish
    r"^([ \t]*)(?:\.\. (?!(?:note|warning|tip|hint|important|caution|danger|attention|seealso|admonition|deprecated"
    r"|version\w+)::)|:\w|(?!\.\. )[^\n]*::[ \t]*\r?$)[^\n]*(?:\n(?:\1[ \t]+[^\n]*|[ \t\r]*$))*",
    re.MULTILINE,
)
_NOT_PROSE = re.compile(r"\$|\{[{%]|<(?:code|kbd|samp|var|tt|pre|script|style)\b", re.IGNORECASE)  # in a paragraph
_LEADER = re.compile(
    r"^[ \t]*(?:/\*+!?|\*+/|\*+|//+!?|#+[!:|]?|--+\[*|;+|\(\*+|[A-Za-z]{0,2}(?:\"{3}|'{3}))", re.MULTILINE
)
_EXAMPLE = re.compile(
    r"copyright|licen[sc]e|spdx-|all rights reserved|@example|::[ \t]*\r?$|^\s*>>>", re.I | re.MULTILINE
)
_CODE_LINE = re.compile(
    r"[;{}]\s*(?:\*/)?\s*$|^\s*(?:import|from|export|const|let|var|def|class|func|fn|pub|elif|else:)\s"
    r"|[\w\])\"']\s*(?:[-+*/|&]?=|:=|==|!=|=>|->|&&|\|\|)\s*\S|^\s*(?:\.\.\.|\$|%)\s"
)


def prose(path: str, text: str) -> str | None:
    """The sentences of a text, one paragraph or comment after another; None for an unknown kind of file."""
    suffix = PurePosixPath(path).suffix.lower()
    if not (suffix in DOCUMENTS or is_code(path)) or any(len(line) > MAX_LINE for line in text.splitlines()):
        return None
    if is_code(path):
        return "\n\n".join(_comments(path, text))
    hidden = {".rst": _RST, ".adoc": _ADOC, ".asciidoc": _ADOC}.get(suffix)
    return "\n\n".join(_paragraphs(hidden.sub("", text) if hidden else text))


def _paragraphs(text: str) -> Iterator[str]:
    """The words of Markdown: no code, address, HTML or front matter."""
    for block in _markdown().parse(_FRONT_MATTER.sub("", text)):
        if block.type == "inline" and not _NOT_PROSE.search(block.content):
            breaks = {"softbreak": "\n", "hardbreak": "\n"}
            yield "".join(
                breaks.get(one.type, one.content if one.type == "text" else "\0") for one in block.children or ()
            )


def _comments(path: str, text: str) -> Iterator[str]:
    for _, comment in comments(path, text):
        if not _EXAMPLE.search(comment):
            said = inspect.cleandoc(_LEADER.sub("", comment).rstrip("*/\"' \t\r\n"))
            lines = ("" if _CODE_LINE.search(line) else line for line in said.splitlines())
            yield from _paragraphs("\n".join(lines))


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")
