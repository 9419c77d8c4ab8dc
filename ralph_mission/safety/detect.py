"""What a forge, a bot, a runner or a hidden hand would make of a text: the detectors that policy asks.

Markdown is read as GitHub renders it, where code is only shown; titles and commit messages
have no mark-up (`markdown=False`), so there every occurrence counts.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ralph_mission.safety import grammar
from ralph_mission.safety.hidden import CONTROL, ESCAPE, INVISIBLE, invisible, without_controls, without_invisible
from ralph_mission.safety.markdown import prose

LIVE_MENTION = re.compile(grammar.MENTION.pattern + r"[\w&!/-]+")
BOT_NAME = re.compile(grammar.BOTS.pattern + r"[\w-]+", re.IGNORECASE)


@dataclass(frozen=True)
class TextViews:
    """One text as its different readers see it. Each view is computed once, when it is first asked for.

    `markdown`: whether code is only shown, so that what a forge acts on is the prose alone.
    """

    text: str
    markdown: bool

    @cached_property
    def live(self) -> str:
        """The text without code, where there is such a thing as code; positions stay."""
        return prose(self.text) if self.markdown else self.text

    @cached_property
    def raw(self) -> tuple[str, ...]:
        """What a reader of the source may see: it decodes nothing and knows no code."""
        return _different(self.text, _plain(self.text))

    @cached_property
    def rendered(self) -> tuple[str, ...]:
        """What a reader of the rendered text may see: raw, decoded, and with mark-up taken away."""
        plain = _plain(self.live)
        meant = _plain(decoded(plain))
        if not self.markdown:
            return _different(self.live, plain, meant)
        unescaped = grammar.ESCAPED.sub(r"\1", meant)
        shown = _untagged(unescaped)
        # Within HTML an address between angle brackets is a tag, too.
        without_tags = grammar.HTML_TAG.sub("", grammar.COMMENT.sub("", unescaped))
        bare = (grammar.EMPHASIS.sub("", view) for view in (shown, without_tags))
        return _different(self.live, plain, meant, unescaped, shown, without_tags, *bare)


views_of = lru_cache(maxsize=128)(TextViews)
"""The views of a text: detectors are asked about the same texts again and again."""


def closing_keywords(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Every `fixes #3` and its kin, as GitHub would act on it, in any disguise."""
    return _matches(grammar.CLOSING, views_of(text, markdown).rendered)


def mentions(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Every `@name` that would notify someone or wake a bot."""
    views = views_of(text, markdown)
    return _different(*_matches(LIVE_MENTION, views.rendered), *_matches(BOT_NAME, views.raw))


def commands(text: str) -> tuple[str, ...]:
    """Slash commands, bot commands, trailers and skip-CI markers. Their readers take code as text."""
    patterns = (grammar.COMMAND, grammar.BORS, grammar.TRAILER, grammar.SKIP_CI, grammar.SKIP_CHECKS)
    return tuple(word for pattern in patterns for word in _matches(pattern, views_of(text, False).raw))


def workflow_commands(text: str, markdown: bool = False) -> tuple[str, ...]:
    """Every `::command::` and `##[command]` that a runner would obey if the text came by on its output."""
    return _matches(grammar.WORKFLOW, views_of(views_of(text, markdown).live, False).raw)


def hidden(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Everything a reader would not see: invisible characters, controls, comments, unused definitions.

    Our own marker at the very end is no finding.
    """
    text = grammar.OWN_MARKER.sub("", text)
    live = views_of(text, markdown).live
    controls = [f"U+{ord(found[0]):04X}" for found in (*ESCAPE.findall(live), *CONTROL.findall(live))]
    entities = [entity for entity in grammar.ENTITY.findall(live) if shows_nothing(decoded(entity))]
    comments = grammar.COMMENT.findall(live) if markdown else []
    unused = [match.group() for match in unused_definitions(live)] if markdown else []
    return (*invisible(text), *controls, *entities, *comments, *unused)


def _matches(pattern: re.Pattern[str], seen: Iterable[str]) -> tuple[str, ...]:
    return _different(*(" ".join(match.group().split()) for view in seen for match in pattern.finditer(view)))


def _different(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _plain(text: str) -> str:
    return without_invisible(without_controls(text))


def as_shown(text: str) -> str:
    """The text without entities, escapes and tags, emphasis kept."""
    return _untagged(grammar.ESCAPED.sub(r"\1", _plain(decoded(_plain(text)))))


def _untagged(text: str) -> str:
    """Without comments and tags; an address between angle brackets shows itself."""
    addressed = grammar.AUTOLINK.sub(r"\1", grammar.COMMENT.sub("", text))
    return grammar.HTML_TAG.sub("", addressed)


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
