"""Texts that somebody who means harm might leave in a repository, and what none of ours may do."""

from __future__ import annotations

from hypothesis import strategies as st

from ralph_mission.mission.lifecycle.approval import ASKED_LINE
from ralph_mission.mission.model.effects import MARKER
from ralph_mission.safety.detect import closing_keywords, mentions, workflow_commands
from ralph_mission.safety.secrets import find_secrets
from tests.safety.hostile_texts import commands, hidden

TOKEN = "gh" + "p_" + "a1B2" * 9
SIGNED = "<!-- ralph:v1 key=deadbeefdeadbeef mission=1 finding=cafecafecafecafe -->"
SEALED = "proposal is now `deadbeef`"
FRAGMENTS = [
    "fixes #3",
    "Closes: o/r#4",
    "fix",
    "#3",
    "@octocat",
    "@org/team",
    "@everyone",
    "@dependabot merge",
    "bors r+",
    "/ralph approve",
    "/merge",
    "::set-output name=a::b",
    "##[error]x",
    "::",
    "[skip ci]",
    "***NO_CI***",
    "Co-authored-by: a <a@b.c>",
    "Signed-off-by",
    ": ",
    SIGNED,
    "<!-- ",
    " -->",
    "ralph:v1",
    SEALED,
    "`",
    "``",
    "```",
    "`" * 30,
    "~~~",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\t",
    "    ",
    " ",
    "\v",
    "\u2028",
    "\x85",
    "\x1b[31m",
    "\x00",
    "\u200b",
    "\u202e",
    "\U000e0041",
    "\udce9",
    "<details>",
    "<img src=x>",
    "<script>",
    "<!DOCTYPE",
    "</a>",
    "![x](https://evil.example/?d=1)",
    "[a](javascript:x)",
    "[a]: https://evil.example",
    "https://evil.example",
    "&#64;octocat",
    "&commat;octocat",
    "fixes &#35;3",
    "&lt;",
    "${{ x }}",
    "|",
    "- ",
    "> ",
    "# ",
    "===== ",
    "---",
    "\\",
    "*",
    "_",
    "é",
    "日本",
    "a",
    "1",
    ".",
    TOKEN,
    f"token: {TOKEN[4:]}",
    "teh -> the",
    "docs/guide.md",
]
texts = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join),
    st.sampled_from(FRAGMENTS).map(lambda fragment: fragment * 400),
    st.text(max_size=80),
)
"""Arbitrary, and arbitrarily long."""


def harmful_actions(text: str, markdown: bool = True) -> list[object]:
    """What a text of ours would do that none may, our marker at its end apart."""
    end = MARKER.search(text, text.rfind("\n") + 1) if markdown else None
    own = text[: end.start()] if end and end.end() == len(text) else text
    return [
        *closing_keywords(own, markdown),
        *mentions(own, markdown),
        *workflow_commands(own),
        *commands(own),
        *hidden(own, markdown),
        *find_secrets(own),
        *MARKER.findall(own),
        *(["too long"] if len(text) >= 60_000 else []),
        *(["not text"] if text != text.encode("utf-8", "replace").decode() else []),
    ]


def is_title(text: str) -> bool:
    """One line, not empty, short enough for a phone, and harmless."""
    return (
        bool(text) and text == " ".join(text.split()) and len(text) <= 140 and not harmful_actions(text, markdown=False)
    )


def seals(text: str) -> int:
    """How many lines look like the one that names a proposal's hash."""
    return len(ASKED_LINE.findall(text))
