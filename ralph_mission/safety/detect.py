"""What a forge, a bot, a runner or a hidden hand would make of a text: the detectors that policy asks.

Markdown is read as GitHub renders it, where code is only shown; titles and commit messages
have no mark-up (`markdown=False`), so there every occurrence counts.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

from ralph_mission.safety import grammar
from ralph_mission.safety.hidden import INVISIBLE, invisible, without_controls, without_invisible
from ralph_mission.safety.markdown import prose


def closing_keywords(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Every `fixes #3` and its kin, as GitHub would act on it, in any disguise."""
    return _seen(grammar.CLOSING, text, markdown)


def mentions(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Every `@name` that would notify someone or wake a bot."""
    whole = re.compile(grammar.MENTION.pattern + r"[\w&!/-]+")
    bots = re.compile(grammar.BOTS.pattern + r"[\w-]+", re.IGNORECASE)
    return tuple(dict.fromkeys((*_seen(whole, text, markdown), *_raw(bots, text))))


def commands(text: str) -> tuple[str, ...]:
    """Slash commands, bot commands, trailers and skip-CI markers. Their readers take code as text."""
    patterns = (grammar.COMMAND, grammar.BORS, grammar.TRAILER, grammar.SKIP_CI, grammar.SKIP_CHECKS)
    return tuple(word for pattern in patterns for word in _raw(pattern, text))


def workflow_commands(text: str, markdown: bool = False) -> tuple[str, ...]:
    """Every `::command::` and `##[command]` that a runner would obey if the text came by on its output."""
    return _raw(grammar.WORKFLOW, prose(text) if markdown else text)


def hidden(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Everything a reader would not see: invisible characters, controls, comments, unused definitions.

    Our own marker at the very end is no finding.
    """
    text = grammar.OWN_MARKER.sub("", text)
    live = prose(text) if markdown else text
    controls = [f"U+{ord(letter):04X}" for letter in live if without_controls(letter) == ""]
    entities = [entity for entity in grammar.ENTITY.findall(live) if shows_nothing(decoded(entity))]
    comments = grammar.COMMENT.findall(live) if markdown else []
    unused = [match.group() for match in unused_definitions(live)] if markdown else []
    return (*invisible(text), *controls, *entities, *comments, *unused)


def _seen(pattern: re.Pattern[str], text: str, markdown: bool) -> tuple[str, ...]:
    """What a reader of the rendered text would find."""
    return _matches(pattern, views(prose(text) if markdown else text, markdown))


def _raw(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """What a reader of the source would find: it decodes nothing and knows no code."""
    return _matches(pattern, (text, without_invisible(without_controls(text))))


def _matches(pattern: re.Pattern[str], seen: Iterable[str]) -> tuple[str, ...]:
    found = (" ".join(match.group().split()) for view in seen for match in pattern.finditer(view))
    return tuple(dict.fromkeys(found))


def views(text: str, markdown: bool) -> tuple[str, ...]:
    """The text as its different readers see it: raw, decoded, and with mark-up taken away."""
    plain = without_invisible(without_controls(text))
    meant = without_invisible(without_controls(decoded(plain)))
    if not markdown:
        return tuple(dict.fromkeys((text, plain, meant)))
    bare, untagged = grammar.ESCAPED.sub(r"\1", meant), as_shown(text)
    unmarked = re.sub(r"[*_~]+", "", untagged)
    return tuple(dict.fromkeys((text, plain, meant, bare, untagged, unmarked)))


def as_shown(text: str) -> str:
    """The text without entities, escapes and tags, emphasis kept."""
    meant = without_invisible(without_controls(decoded(without_invisible(without_controls(text)))))
    return re.sub(r"</?[A-Za-z][^<>]*>", "", grammar.COMMENT.sub("", grammar.ESCAPED.sub(r"\1", meant)))


def decoded(text: str) -> str:
    """Without entities, however often they were encoded."""
    for _ in range(8):
        if (plain := html.unescape(text)) == text:
            break
        text = plain
    return text


def shows_nothing(shown: str) -> bool:
    """Whether a decoded entity is, or holds, something that no reader sees."""
    spaceless = "".join(letter for letter in shown if letter not in "\t\n\r")
    return bool(INVISIBLE.search(shown)) or any(unicodedata.category(letter)[0] == "C" for letter in spaceless)


def unused_definitions(text: str) -> list[re.Match[str]]:
    """Link definitions that nothing shown refers to, and all but the first of a label."""
    shown, seen, unused = grammar.DEFINITION.sub("", text).casefold(), set[str](), []
    for match in grammar.DEFINITION.finditer(text):
        label = match["label"].casefold()
        if label in seen or f"[{label}]" not in shown:
            unused.append(match)
        seen.add(label)
    return unused
