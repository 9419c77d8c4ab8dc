"""Separates prose from code, as GitHub renders it, and from what a person does not see at all.

Code pings nobody and closes nothing. A CommonMark parser decides, not a regular expression. If a code span's place in
the source is in doubt, it counts as prose, so doubt never hides anything.

Invisible are Unicode tricks, terminal escapes, comments. An invisible code point stays only where a script or an emoji
needs it: a variation selector after an emoji, a joiner between emoji, a joiner between letters of scripts that join.
Sources: Unicode TR36 and TR51, "Trojan Source" (CVE-2021-42574).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from ralph_mission.values import compile_regex, dataclass

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

INVISIBLE = compile_regex(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Code points that are invisible or reorder text, wherever they are."""

EMOJI = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
EMOJI += "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
JOINING = "\u0620-\u06ff\u0710-\u07ff\u08a0-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff"
NEEDED = compile_regex(
    f"(?<=[{EMOJI}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)"  # emoji or text style, keycaps
    f"|(?<=[{EMOJI}\ufe0f])\u200d(?=[{EMOJI}])"  # families, professions, flags
    f"|(?<=[{JOINING}])[\u200c\u200d](?=[{JOINING}])"  # Persian, Indic and Khmer spelling
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"  # Mongolian letter forms
)
ESCAPE = compile_regex(
    r"\x1b\[[0-?]*[ -/]*[@-~]?|\x9b[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC 8 links, DCS, APC
    r"|\x1b[ -/]*[0-~]?"
)
CONTROL = compile_regex(r"[\x00-\x08\x0e-\x1f\x7f\x80-\x84\x86-\x9f]")
BREAK = compile_regex("\r\n|[\r\n\v\f\x85\u2028\u2029]")
SURROGATE = compile_regex("[\ud800-\udfff]")


def invisible(text: str) -> tuple[str, ...]:
    """The unneeded invisible characters of `text`, as `U+200B`, in order."""
    needed = {match.start() for match in NEEDED.finditer(text)}
    found = (match for match in INVISIBLE.finditer(text) if match.start() not in needed)
    return tuple(f"U+{ord(match.group()):04X}" for match in found)


def without_invisible(text: str) -> str:
    """`text` without invisible characters, except those that a script or an emoji needs."""
    if not INVISIBLE.search(text):
        return text
    needed = {match.start() for match in NEEDED.finditer(text)}
    return INVISIBLE.sub(lambda match: match.group() if match.start() in needed else "", text)


def without_controls(text: str) -> str:
    """`text` without terminal escapes and control characters, with all line ends as newlines."""
    plain = CONTROL.sub("", ESCAPE.sub("", text))
    return SURROGATE.sub("\ufffd", BREAK.sub(_newline, plain))


def without_unseen(text: str) -> str:
    """`text` without terminal escapes, control characters and invisible ones; its lines stay."""
    return without_invisible(without_controls(text))


def _newline(match: re.Match[str]) -> str:
    return match.group() if match.group() == "\r\n" else "\n"


Span = tuple[int, int]
FOOTNOTE = compile_regex(r"^[ \t>]*\[\^", re.MULTILINE)
IN_LINK = compile_regex(r"(?:://|www\.)[^\s<]*\Z")
"""GitHub's bare links swallow backticks, so what seems to start right after one may not be code."""
_COMMENT = compile_regex(r"<!--(?:-?>|.*?--!?>)", re.DOTALL)  # as a browser ends it, which is sooner than CommonMark
BLANK = "\ufffc"
"""Replaces a character of code in `prose`: not a word character, space or mark-up."""


@lru_cache(maxsize=64)
def code_spans(text: str) -> tuple[Span, ...]:
    """The half-open ranges of `text` that are code, in order, disjoint."""
    if "`" not in text and "~~~" not in text and "    " not in text and "\t" not in text:
        return ()
    source = text.replace("\r\n", " \n").replace("\r", "\n").replace("\0", "\ufffd")
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    return tuple(sorted(_spans(build_parser().parse(source), lines, starts, bool(FOOTNOTE.search(source)))))


@lru_cache(maxsize=64)
def prose(text: str) -> str:
    """`text` with every character of code replaced by `BLANK`; positions are kept."""
    spans = code_spans(text)
    if not spans:
        return text
    letters = list(text)
    for start, end in spans:
        letters[start:end] = ["\n" if letter == "\n" else BLANK for letter in letters[start:end]]
    return "".join(letters)


PARAGRAPH, FENCE = -1, 0


@dataclass(frozen=True, slots=True)
class Block:
    """A heading (`level` 1 to 6), a fenced block of code (FENCE) or a PARAGRAPH, with its text.

    `info`: the info string of a fence; GitHub renders some kinds as pictures instead of text.
    """

    level: int
    text: str
    info: str = ""


def blocks(text: str) -> tuple[Block, ...]:
    """The top-level headings, fenced blocks and paragraphs of `text`, in order, without comments.

    If `has_html`, other blocks may be hidden too.
    """
    tokens = build_parser().parse(text.replace("\r\n", "\n").replace("\r", "\n"))
    return tuple(block for at, token in enumerate(tokens) if (block := _block(token, tokens, at)))


def _block(token: Token, tokens: list[Token], at: int) -> Block | None:
    if token.level:
        return None
    if token.type in ("heading_open", "paragraph_open"):
        level = int(token.tag[1:]) if token.type == "heading_open" else PARAGRAPH
        return Block(level, tokens[at + 1].content.strip())
    return Block(FENCE, token.content, token.info.strip()) if token.type == "fence" else None


def has_html(text: str) -> bool:
    """Whether `text` contains HTML other than complete comments: it may hide everything after it."""
    tokens = build_parser().parse(text.replace("\r\n", "\n").replace("\r", "\n"))
    every = (child for token in tokens for child in (token, *(token.children or ())))
    return any(_COMMENT.sub("", one.content).strip() for one in every if one.type in ("html_block", "html_inline"))


def replace(pattern: re.Pattern[str], with_: Callable[[re.Match[str]], str], text: str, everywhere: bool) -> str:
    """`pattern.sub` that leaves code alone, unless `everywhere`."""
    spans = () if everywhere else code_spans(text)
    starts = [start for start, _ in spans]

    def inside(position: int) -> bool:
        index = bisect_right(starts, position) - 1
        return index >= 0 and position < spans[index][1]

    def answer(match: re.Match[str]) -> str:
        return match.group() if inside(match.start()) or inside(match.end() - 1) else with_(match)

    return pattern.sub(answer, text)


@lru_cache(maxsize=1)
def build_parser() -> MarkdownIt:
    """The one parser of pages, with tables; its inline code knows where it stands. All share it: do not change it."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import backtick

    def located(state: StateInline, silent: bool) -> bool:
        start, known = state.pos, len(state.tokens)
        found = backtick(state, silent)
        if found and not silent and len(state.tokens) > known and state.tokens[-1].type == "code_inline":
            state.tokens[-1].meta = {"span": (start, state.pos)}
        return found

    parser = MarkdownIt("commonmark").enable("table")  # GitHub splits table cells before it looks for code
    parser.inline.ruler.at("backticks", located)
    parser.parse("x")  # compiles its rules, which threads must not do at once: one would find none
    return parser


def _spans(tokens: list[Token], lines: list[str], starts: list[int], footnotes: bool) -> Iterator[Span]:
    end_of_cell: int | None = 0  # in its row; None if in doubt
    for before, token in zip([None, *tokens], tokens, strict=False):
        first, last = token.map or (0, 0)
        # A paragraph that continues a footnote looks like indented code to plain CommonMark.
        if token.type == "fence" or (token.type == "code_block" and not footnotes):
            yield starts[first], min(starts[last], starts[-1] - 1)
        elif token.type == "tr_open":
            end_of_cell = 0
        elif token.type == "inline" and "`" in token.content:
            if before is not None and before.type in ("th_open", "td_open"):
                place = _place_of_cell(token.content, lines[first], end_of_cell)
                places = [] if place is None else [(0, starts[first] + place)]
                end_of_cell = None if place is None else place + len(token.content)
            else:
                places = _places(token.content.split("\n"), lines[first:last], starts[first:last])
            yield from _inline(token, places)


def _inline(token: Token, places: list[Span]) -> Iterator[Span]:
    spans = [child.meta["span"] for child in token.children or () if child.type == "code_inline"]
    if not places or any(IN_LINK.search(token.content[:start]) for start, _ in spans):
        return
    for start, end in spans:
        yield _position(places, start), _position(places, end)


def _place_of_cell(content: str, line: str, begin: int | None) -> int | None:
    """Where a cell's `content` stands in its row, after `begin`; None if in doubt, as where it has an escaped pipe, and
    so for all after it.

    A match that skips no backtick is the cell itself: cells before it that have any lie before `begin`.
    """
    place = -1 if begin is None else line.find(content, begin)
    return None if place < 0 or "`" in line[begin:place] else place


def _places(contents: list[str], lines: list[str], starts: list[int]) -> list[Span]:
    """For each line of an inline token (its offset there, its position in the source); [] if in doubt."""
    places, offset = [], 0
    for content, line, start in zip(contents, lines, starts, strict=False):
        if not content or line.count(content) != 1:
            return []
        places.append((offset, start + line.index(content)))
        offset += len(content) + 1
    return places if len(places) == len(contents) else []


def _position(places: list[Span], offset: int) -> int:
    begin, position = places[bisect_right(places, (offset, 1 << 60)) - 1]
    return position + offset - begin
