"""Texts made of what makes texts dangerous, for every sink."""

from __future__ import annotations

from hypothesis import strategies as st

from ralph_mission.safety import detect
from ralph_mission.safety.markdown import CONTROL, ESCAPE, invisible, prose
from ralph_mission.safety.text import LIMITS

SINKS = sorted(LIMITS)
FRAGMENTS = [
    "fixes #3",
    "Closes: o/r#4",
    "resolve GH-6",
    "fix",
    "es ",
    "close",
    "GH-",
    "/",
    "#3",
    "@bob",
    "@org/team",
    "@",
    "everyone",
    "<@&1>",
    "<!--",
    "-->",
    "<!-",
    "--",
    "<",
    ">",
    "!",
    "`",
    "``",
    "```",
    "\n",
    "\n\n",
    "    ",
    "\t",
    " ",
    "a",
    "1",
    "|",
    "- ",
    "> ",
    "[x]",
    "(",
    ")",
    "](",
    "https://evil.example/",
    "//evil",
    "javascript:",
    "www.evil.example",
    "https://github.com/",
    "![",
    "[a]: ",
    "&#64;",
    "&commat;",
    "&amp;",
    "&#x66;",
    ";",
    "&#xE0041;",
    "&#10;",
    "\\",
    "\u200b",
    "\u200d",
    "\ufe0f",
    "\U000e0041",
    "\u202e",
    "\u2060",
    "❤",
    "\x1b[31m",
    "\x1b]8;;",
    "\x07",
    "\r",
    "\u2028",
    "::set-output name=a::b",
    "::",
    "##[",
    "group]",
    "${{",
    "}}",
    "[skip ci]",
    "skip-checks: true",
    "Co-authored-by: x",
    "/merge",
    "bors r+",
    "@claude",
    "<script>",
    "<div>",
    "</div>",
    '<a title="',
    '"',
    "'",
    "*",
    "_",
    "~~~",
    "[^1]: ",
    "#{ab12}",
    "é",
    "م",
]
nasty = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join) | st.text(max_size=30)


def commands(text: str) -> list[str]:
    """Slash commands, bot commands, trailers and skip-CI markers. Their readers take code as text."""
    patterns = (detect.COMMAND, detect.BORS, detect.TRAILER, detect.SKIP_CI, detect.SKIP_CHECKS)
    views = detect.views_of(text, False).raw
    return [match.group() for pattern in patterns for view in views for match in pattern.finditer(view)]


def hidden(text: str, markdown: bool = True) -> list[str]:
    """Invisible characters, controls and comments: what a sanitised text holds none of."""
    live = prose(text) if markdown else text
    entities = [one for one in detect.ENTITY.findall(live) if detect.shows_nothing(detect.decode_entities(one))]
    comments = detect.COMMENT.findall(live) if markdown else []
    return [*invisible(text), *ESCAPE.findall(live), *CONTROL.findall(live), *entities, *comments]
