"""Blocks of lines that hold no prose, blanked: fences, front matter, HTML, literal blocks, examples.

Each function takes lines with their ends and gives back as many, of the same lengths.
"""

from __future__ import annotations

import re

BLANK = "\0"
PROSE_DIRECTIVES = (
    "note|warning|tip|important|seealso|admonition|caution|danger|attention|hint|topic|sidebar"
    "|deprecated|versionadded|versionchanged"
)
_HTML_BLOCK = re.compile(r"<!--|<(?:pre|script|style|code|svg|template)\b", re.I)
FENCE = re.compile(r"^[\s>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
ADOC_FENCE = re.compile(r"^(-{4,}|\.{4,}|\+{4,}|={4,}|/{4,}|```+)\s*$")
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n")
_DIRECTIVE = re.compile(rf"^\s*\.\.(?!\s+(?:{PROSE_DIRECTIVES})::)(?:\s|$)")
_PROSE_DIRECTIVE = re.compile(rf"^\s*\.\.\s+(?:{PROSE_DIRECTIVES})::")
_JSDOC_EXAMPLE = re.compile(r"^\s*@(?:example|code|see|author|copyright|license)\b")


def hide(text: str) -> str:
    """Blanks of the same length; line ends stay."""
    return re.sub(r"[^\r\n]", BLANK, text)


def front_matter(lines: list[str]) -> list[str]:
    """YAML or TOML at the head of a document."""
    opened = _FRONT_MATTER.match("".join(lines[:1]))
    if not opened:
        return lines
    end = next((n for n, line in enumerate(lines[1:], 2) if line.rstrip() == opened[1]), 0)
    return [hide(line) for line in lines[:end]] + lines[end:]


def fenced(lines: list[str], opening: re.Pattern[str]) -> list[str]:
    """Fenced blocks blanked; one that is never closed reaches to the end, as in CommonMark."""
    shown, fence = [], ""
    for line in lines:
        found = opening.match(line)
        shown.append(hide(line) if fence or found else line)
        if not fence and found:
            fence = found[1]
        elif fence and line.strip("> \t\r\n\0").startswith(fence) and not line.strip("> \t\r\n\0").strip(fence[0]):
            fence = ""
    return shown


def html_blocks(lines: list[str]) -> list[str]:
    """HTML comments, and elements whose text is no prose, where they reach over lines."""
    shown, closing = [], ""
    for line in lines:
        inside = bool(closing)
        if not inside:
            closing = _left_open(line)
        shown.append(hide(line) if inside or closing else line)
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


def indented(lines: list[str]) -> list[str]:
    """Four spaces are code, or the text of a nested list: in doubt it is code."""
    return [hide(line) if line.startswith(("    ", "\t")) else line for line in lines]


def rst_blocks(lines: list[str]) -> list[str]:
    """Literal blocks, directives that hold no prose and comments, each to the end of its indentation."""
    shown, limit = [], -1
    for line in lines:
        bare = line.replace(BLANK, " ")
        depth = len(bare) - len(bare.lstrip())
        if limit >= 0 and bare.strip() and depth <= limit:
            limit = -1
        literal = bare.rstrip().endswith("::") and not _PROSE_DIRECTIVE.match(bare)
        silent = bool(_DIRECTIVE.match(bare))
        shown.append(hide(line) if limit >= 0 or silent or _PROSE_DIRECTIVE.match(bare) else line)
        if limit < 0 and (literal or silent):
            limit = depth
    return shown


def examples(lines: list[str]) -> list[str]:
    """`@example` of JSDoc and its like, to the next tag or the end of the comment."""
    shown, inside = [], False
    for line in lines:
        bare = line.replace(BLANK, " ").strip()
        inside = (inside and bool(bare) and not bare.startswith("@")) or bool(_JSDOC_EXAMPLE.match(bare))
        shown.append(hide(line) if inside else line)
    return shown
