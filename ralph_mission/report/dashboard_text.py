"""Texts as they may stand in the dashboard, which is a markdown file of a repository, not an issue."""

from __future__ import annotations

import re

from ralph_mission.safety.text import inline_words, sanitise

TITLE = 120  # characters
_ESCAPED_OR_LINKING = re.compile(r"\\.|(\\$|[\[\]|])")
_LIVE = re.compile(r"[\\`*_{}\[\]()<>#~|!$^]")


def foreign(text: str, limit: int = TITLE) -> str:
    """One line of anybody's words, in which nothing is mark-up."""
    return _LIVE.sub(r"\\\g<0>", inline_words(text, limit)) or "\\-"


def ours(text: str) -> str:
    """One line of our own words: their code spans stay, links and tags of whatever is quoted in them do not.

    What is escaped already stays so: one more backslash would bring it to life.
    """
    line = " ".join(sanitise(text, "summary").split())
    return _ESCAPED_OR_LINKING.sub(lambda found: f"\\{found[0]}" if found[1] else found[0], line)


def link_number(number: int, address: str) -> str:
    """`#12`, as a link where there is an address: in a file it does not become one by itself."""
    return f"[#{number}]({address})" if address else f"#{number}"


def command_text(how: str) -> str:
    """What to type as code; in a sentence that holds an address, the address as a short link."""
    if "://" in how:
        return re.sub(r"https?://\S+", lambda address: f"[it]({address[0]})", how)
    return f"`{how}`" if how else ""
