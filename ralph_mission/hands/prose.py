"""What of a text is written for people: prose documents, comments and docstrings.

`canvas` blanks everything else and keeps every position, so that a word found on the canvas
can be replaced in the text. In doubt something is not prose: precision comes before recall.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygments.lexer import Lexer

BLANK = "\0"
MAX_LINE = 3000  # characters; a longer line is not looked at, which bounds every pattern below
MINIFIED = 2000  # characters in one line: nobody wrote that
MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".mkd"})
RST = frozenset({".rst"})
ADOC = frozenset({".adoc", ".asciidoc"})
TEXT = frozenset({".txt", ".text"})
DOCUMENTS = MARKDOWN | RST | ADOC | TEXT
CODE = frozenset(
    ".py .pyi .pyx .js .mjs .cjs .jsx .ts .mts .cts .tsx .go .rs .java .kt .kts .c .h .cc .cpp .cxx .hh .hpp .hxx .m"
    " .cs .rb .php .swift .scala .sh .bash .zsh .lua .ex .exs .erl .hs .ml .dart .sql .css .scss .less .yml .yaml .toml"
    " .zig".split()
)  # fmt: skip
PROSE_DIRECTIVES = (
    "note|warning|tip|important|seealso|admonition|caution|danger|attention|hint|topic|sidebar"
    "|deprecated|versionadded|versionchanged"
)

# Blocks of lines that hold no prose: where one begins and where it ends.
_HTML_BLOCK = re.compile(r"<!--|<(?:pre|script|style|code|svg|template)\b", re.I)
_FENCE = re.compile(r"^[\s>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
_ADOC_FENCE = re.compile(r"^(-{4,}|\.{4,}|\+{4,}|={4,}|/{4,}|```+)\s*$")
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n")
_DIRECTIVE = re.compile(rf"^\s*\.\.(?!\s+(?:{PROSE_DIRECTIVES})::)(?:\s|$)")
_PROSE_DIRECTIVE = re.compile(rf"^\s*\.\.\s+(?:{PROSE_DIRECTIVES})::")
_JSDOC_EXAMPLE = re.compile(r"^\s*@(?:example|code|see|author|copyright|license)\b")

# Things inside a line that are no prose.
_INLINE = [
    re.compile(pattern)
    for pattern in (
        r"[^\s\0]{100,}",  # data; and what follows need not fear long runs
        r"\$\$[^$\n]+\$\$|\$[^$\s][^$\n]*\$|\\\([^\n]*?\\\)|\\\[[^\n]*?\\\]",  # LaTeX
        r"(?i)<(code|kbd|samp|var|tt|pre|script|style)\b[^\n]*?</\1>",
        r"</?[A-Za-z!][^<>\n]*>|<[^\s<>]+>",  # tags and autolinks
        r"(?<=\])\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)",  # a link's destination and title
        r"(?<=\])\[[^\]\n]*\]|\[[^\]\n]*\](?=\[\])",  # a link's label
        r"^[ \t]*\[[^\]\n]+\]:[^\n]*",  # a definition of one
        r"!\[[^\]\n]*\]",
        r"\{\{[^{}\n]*\}\}|\{%[^{}\n]*%\}|\$?\{[^{}\n]*\}",  # templates, `{@link x}`
        r":[\w:.+-]+:(?=\0)|:[a-z][\w-]*:`[^`\n]*`",  # a role of reStructuredText
        r"(?:https?|ftp|file|git|ssh|mailto)[:@][^\s\0]*",
        r"^[\s>*+-]*@(?:param|arg|argument|property|prop|typedef|callback|throws|returns?|type|template)\b"
        r"(?:\s+\0*)?(?:\s*\[?[\w.$]+)?",
        r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*|(?<!\w)@[\w/-]+",
        r"[^\s\0]*[/\\][^\s\0]*",  # paths, either/or
        r"[\w$.]*\w\([^()\n]*\)",  # calls
        r"\|[ \t]*[^\s\0]+[ \t]*(?=\|)",  # a table's cell of one word
        r"(?<!\w)--?[A-Za-z][\w-]*",  # options
        r"\w+(?:[.:]\w+)+|[^\s\0]*[_=<>@#$%^&{}~][^\s\0]*",  # dotted names, anything that smells of code
        r"^\s*:\w+(?:\s+[\w.*]+)*:",  # a field list of reStructuredText, an attribute of AsciiDoc
    )
]
_PARAMETER = re.compile(r"^[\s\0]*(?:[-*]\s+)?\**\w+\s*(?:\([^()\n]*\))?\s*:(?=\s|$)")
_LEADER = re.compile(r"^([\0 \t]*)(/\*+!?|\*+/?|//+!?|#+[!:|]?|--+\[*|;+|\(\*+|\"{3}|'{3}|[rRbBuUfF]?\"{3})", re.M)
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)([^`]{1,400})(?<!`)\1(?!`)")
_LOOKS_LIKE_CODE = re.compile(
    r"[;{}]\s*(?:\*/)?\s*$|^\s*(?:import|from|export|const|let|var|def|class|func|fn|pub|elif|else:)\s"
    r"|[\w\])\"']\s*(?:[-+*/|&]?=|:=|==|!=|=>|->|&&|\|\|)\s*\S|^\s*(?:>>>|\.\.\.|\$|%)\s"
)
_LICENCE = re.compile(r"copyright|licen[sc]e|spdx-|all rights reserved", re.I)
_WORDS = re.compile(r"[A-Za-z]{3}")
_PARAGRAPH_END = re.compile(r"(\n[\0 \t\r]*(?=\n))")


def canvas(path: str, text: str) -> str | None:
    """`text` with all that is not prose blanked, of the same length; None for an unknown kind of file."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in DOCUMENTS:
        return _document(suffix, text)
    if suffix in CODE and not _minified(text):
        return _comments(path, text)
    return None


def names(path: str, text: str, words: frozenset[str]) -> frozenset[str]:
    """Which of `words` (lower case) also occur outside the prose as a name or a part of one."""
    words = _among(text, words)
    shown = canvas(path, text) if words else None
    if shown is None:
        return words
    if PurePosixPath(path).suffix.lower() in CODE:
        return _among("\n".join(_identifiers(path, text)), words)
    hidden = "".join(char if seen == BLANK else " " for char, seen in zip(text, shown, strict=True))
    return _among(hidden, words)


def _among(text: str, words: frozenset[str]) -> frozenset[str]:
    lower = text.lower()
    there = frozenset(word for word in words if word in lower)  # a first look that costs little
    return frozenset(word.lower() for word in _parts(there).findall(text)) if there else there


@lru_cache(maxsize=64)
def _parts(words: frozenset[str]) -> re.Pattern[str]:
    """Matches a word by itself and as a part of snake_case, camelCase and UPPER_CASE."""
    lower = "|".join(sorted(map(re.escape, words), reverse=True))
    title = "|".join(sorted((re.escape(word.capitalize()) for word in words), reverse=True))
    return re.compile(rf"(?:(?<![A-Za-z])(?:{lower})|(?:{title}))(?![a-z])|(?<![A-Z])(?:{lower.upper()})(?![A-Za-z])")


def _minified(text: str) -> bool:
    return any(len(line) > MINIFIED for line in text.splitlines())


def _document(suffix: str, text: str) -> str:
    lines = text.splitlines(keepends=True)
    hidden = [_hide(line) if len(line) > MAX_LINE else line for line in lines]
    if suffix in MARKDOWN:
        hidden = _indented(_fenced(_front_matter(hidden), _FENCE))
    elif suffix in RST:
        hidden = _rst_blocks(hidden)
    elif suffix in ADOC:
        hidden = [_hide(line) if re.match(r"//|\[|:\w|\w+::", line) else line for line in _fenced(hidden, _ADOC_FENCE)]
    else:
        hidden = [_hide(line) if line.startswith((" ", "\t")) else line for line in hidden]
    return _inline("".join(_html_blocks(hidden)))


def _comments(path: str, text: str) -> str:
    shown = [char if char == "\n" else BLANK for char in text]
    for start, comment in _comment_tokens(path, text):
        if not _LICENCE.search(comment):
            shown[start : start + len(comment)] = comment
    drawn = _LEADER.sub(lambda match: match[1] + " " * len(match[2]), "".join(shown))
    lines = [_hide(line) if len(line) > MAX_LINE else line for line in drawn.splitlines(keepends=True)]
    lines = _rst_blocks(_fenced(_examples(lines), _FENCE))
    lines = [_hide(line) if _LOOKS_LIKE_CODE.search(line) else line for line in lines]
    return _inline("".join(_PARAMETER.sub(lambda match: _hide(match[0]), line) for line in lines))


def _comment_tokens(path: str, text: str) -> Iterator[tuple[int, str]]:
    from pygments.token import Comment, String

    silent = (Comment.Preproc, Comment.PreprocFile, Comment.Hashbang, Comment.Special)
    for start, kind, value in _lexer(path).get_tokens_unprocessed(text):
        if _within(kind, String.Doc) or (_within(kind, Comment) and not any(_within(kind, other) for other in silent)):
            yield start, value


def _identifiers(path: str, text: str) -> Iterator[str]:
    # A string without a space is a key, an option, a name; one with spaces is a sentence.
    from pygments.token import Comment, String

    for _, kind, value in _lexer(path).get_tokens_unprocessed(text):
        if _within(kind, String.Doc) or _within(kind, Comment):
            continue
        if not _within(kind, String) or not any(char.isspace() for char in value):
            yield value


def _within(kind: object, family: Container[object]) -> bool:
    return kind in family


@cache
def _lexer_for(suffix: str) -> Lexer:
    from pygments.lexers import get_lexer_for_filename

    return get_lexer_for_filename(f"name{suffix}")


def _lexer(path: str) -> Lexer:
    return _lexer_for(PurePosixPath(path).suffix.lower())


def _hide(text: str) -> str:
    return re.sub(r"[^\r\n]", BLANK, text)


def _front_matter(lines: list[str]) -> list[str]:
    opened = _FRONT_MATTER.match("".join(lines[:1]))
    if not opened:
        return lines
    end = next((n for n, line in enumerate(lines[1:], 2) if line.rstrip() == opened[1]), 0)
    return [_hide(line) for line in lines[:end]] + lines[end:]


def _fenced(lines: list[str], opening: re.Pattern[str]) -> list[str]:
    """Fenced blocks blanked; one that is never closed reaches to the end, as in CommonMark."""
    shown, fence = [], ""
    for line in lines:
        found = opening.match(line)
        shown.append(_hide(line) if fence or found else line)
        if not fence and found:
            fence = found[1]
        elif fence and line.strip("> \t\r\n\0").startswith(fence) and not line.strip("> \t\r\n\0").strip(fence[0]):
            fence = ""
    return shown


def _html_blocks(lines: list[str]) -> list[str]:
    shown, closing = [], ""
    for line in lines:
        inside = bool(closing)
        if not inside:
            closing = _left_open(line)
        shown.append(_hide(line) if inside or closing else line)
        if inside and closing in line.lower():
            closing = ""
    return shown


def _left_open(line: str) -> str:
    """What will close the last block of HTML that `line` opens; "" when it leaves none open."""
    found = list(_HTML_BLOCK.finditer(line))
    if not found:
        return ""
    name = found[-1][0].lower()
    closing = "-->" if name == "<!--" else f"</{name[1:]}>"
    return "" if closing in line.lower()[found[-1].end() :] else closing


def _indented(lines: list[str]) -> list[str]:
    # Four spaces are code, or the text of a nested list: in doubt it is code.
    return [_hide(line) if line.startswith(("    ", "\t")) else line for line in lines]


def _rst_blocks(lines: list[str]) -> list[str]:
    """Literal blocks, directives that hold no prose and comments, each to the end of its indentation."""
    shown, limit = [], -1
    for line in lines:
        bare = line.replace(BLANK, " ")
        depth = len(bare) - len(bare.lstrip())
        if limit >= 0 and bare.strip() and depth <= limit:
            limit = -1
        literal = bare.rstrip().endswith("::") and not _PROSE_DIRECTIVE.match(bare)
        silent = bool(_DIRECTIVE.match(bare))
        shown.append(_hide(line) if limit >= 0 or silent or _PROSE_DIRECTIVE.match(bare) else line)
        if limit < 0 and (literal or silent):
            limit = depth
    return shown


def _examples(lines: list[str]) -> list[str]:
    """`@example` of JSDoc and its like, to the next tag or the end of the comment."""
    shown, inside = [], False
    for line in lines:
        bare = line.replace(BLANK, " ").strip()
        inside = (inside and bool(bare) and not bare.startswith("@")) or bool(_JSDOC_EXAMPLE.match(bare))
        shown.append(_hide(line) if inside else line)
    return shown


def _inline(text: str) -> str:
    text = "".join(_CODE_SPAN.sub(lambda match: _hide(match[0]), part) for part in _PARAGRAPH_END.split(text))
    return "".join(_inline_line(line) for line in text.splitlines(keepends=True))


def _inline_line(line: str) -> str:
    if not _WORDS.search(line):
        return line
    if "`" in line:  # a code span that reaches over the end of its paragraph, or none: who knows
        return _hide(line)
    for pattern in _INLINE:
        line = pattern.sub(lambda match: _hide(match[0]), line)
    return line
