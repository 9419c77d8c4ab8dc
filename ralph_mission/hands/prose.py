"""What of a text is written for people: prose documents, comments and docstrings.

`canvas` blanks everything else and keeps every position, so that a word found on the canvas
can be replaced in the text. In doubt something is not prose: precision comes before recall.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath

from ralph_mission.hands.blocks import (
    ADOC_FENCE,
    BLANK,
    FENCE,
    examples,
    fenced,
    front_matter,
    hide,
    html_blocks,
    indented,
    rst_blocks,
)
from ralph_mission.hands.lexing import comments, identifiers, is_code

MAX_LINE = 3000  # characters; a longer line is not looked at, which bounds every pattern below
MINIFIED = 2000  # characters in one line: nobody wrote that
MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".mkd"})
RST = frozenset({".rst"})
ADOC = frozenset({".adoc", ".asciidoc"})
TEXT = frozenset({".txt", ".text"})
DOCUMENTS = MARKDOWN | RST | ADOC | TEXT

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
    if is_code(path) and not _minified(text):
        return _comments(path, text)
    return None


def names(path: str, text: str, words: frozenset[str]) -> frozenset[str]:
    """Which of `words` (lower case) also occur outside the prose as a name or a part of one."""
    words = _among(text, words)
    shown = canvas(path, text) if words else None
    if shown is None:
        return words
    if is_code(path):
        return _among("\n".join(identifiers(path, text)), words)
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
    hidden = [hide(line) if len(line) > MAX_LINE else line for line in lines]
    if suffix in MARKDOWN:
        hidden = indented(fenced(front_matter(hidden), FENCE))
    elif suffix in RST:
        hidden = rst_blocks(hidden)
    elif suffix in ADOC:
        hidden = [hide(line) if re.match(r"//|\[|:\w|\w+::", line) else line for line in fenced(hidden, ADOC_FENCE)]
    else:
        hidden = [hide(line) if line.startswith((" ", "\t")) else line for line in hidden]
    return _inline("".join(html_blocks(hidden)))


def _comments(path: str, text: str) -> str:
    shown = [char if char == "\n" else BLANK for char in text]
    for start, comment in comments(path, text):
        if not _LICENCE.search(comment):
            shown[start : start + len(comment)] = comment
    drawn = _LEADER.sub(lambda match: match[1] + " " * len(match[2]), "".join(shown))
    lines = [hide(line) if len(line) > MAX_LINE else line for line in drawn.splitlines(keepends=True)]
    lines = rst_blocks(fenced(examples(lines), FENCE))
    lines = [hide(line) if _LOOKS_LIKE_CODE.search(line) else line for line in lines]
    return _inline("".join(_PARAMETER.sub(lambda match: hide(match[0]), line) for line in lines))


def _inline(text: str) -> str:
    text = "".join(_CODE_SPAN.sub(lambda match: hide(match[0]), part) for part in _PARAGRAPH_END.split(text))
    return "".join(_inline_line(line) for line in text.splitlines(keepends=True))


def _inline_line(line: str) -> str:
    if not _WORDS.search(line):
        return line
    if "`" in line:  # a code span that reaches over the end of its paragraph, or none: who knows
        return hide(line)
    for pattern in _INLINE:
        line = pattern.sub(lambda match: hide(match[0]), line)
    return line
