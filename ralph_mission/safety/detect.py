"""What a forge, a bot, a CI or a runner acts on in a text, and the detectors that policy asks about it.

Every pattern is wider than the original where the original is not documented: a harmless text
that is reworded costs nothing, a live one may close an issue. So words end at an underscore too:
it is mark-up as often as a part of a word (`_@name_`, `__fixes #3__`), and the forge reads what is
rendered. Letters and digits are ASCII's, as they are where these patterns come from.

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

from ralph_mission.safety.markdown import INVISIBLE, prose, without_controls, without_invisible
from ralph_mission.values import compile_regex

ANY_CASE = re.IGNORECASE
LINES = re.MULTILINE

NAME = r"[\w.-]{1,100}"
"""Of an owner or a repository, neither of which is longer; without an end, a row of them takes quadratic time."""
REFERENCE = (
    rf"(?:(?P<place>{NAME}\\?/{NAME})?\\?#|GH\\?-"
    rf"|(?:https?|hxxps?)?:?(?://)?[\w.-]{{1,253}}/(?P<home>{NAME}/{NAME})/(?:issues|pull|discussions)/)"
    r"(?P<number>\d+|\{[0-9a-f]+\})(?![A-Za-z0-9])"  # the second form: a number that is filled in after judging
)
CLOSING = compile_regex(
    r"(?<![A-Za-z0-9])(?P<word>close[sd]?|(?:fi|\ufb01)x(?:e[sd])?|resolve[sd]?)"  # Ruby takes the ligature for f and i
    rf"(?P<gap>\s*+\\?:?[\s\\*_~(<\"']*+(?:\[[^\]\n]{{0,200}}\]\(\s*+<?)?[\s\\*_~(\[<\"']*+){REFERENCE}",
    ANY_CASE,
)
"""docs.github.com, "Linking a pull request to an issue": nine keywords, any case, with or without a colon."""

MENTION = compile_regex(r"(?<![A-Za-z0-9])@(?=(?:\\?[*_~])*+[A-Za-z0-9_&!])")
"""GitHub `@user` and `@org/team`, Discord `@everyone` and `<@&id>`, behind mark-up too; a@b.org is none."""
NAMED = compile_regex(rf"{MENTION.pattern}.")
"""With the first letter of the name."""
BOTS = compile_regex(
    r"@(?=(?:dependabot|renovate|mergify|bors|homu|claude|codex|copilot|coderabbit|cursor|gemini|greptile|sweep|devin|"
    r"everyone\b|here\b|openhands|jules|github-actions|kodiak|allcontributors|netlify|vercel))",
    ANY_CASE,
)
"""Accounts that read the raw text and so act on code spans too."""

AGAIN = "(?:un|re|auto-?|remove-)"
ORDERS = (
    rf"(?:{AGAIN}?(?:approve|assign|backport|cherry-?pick|close|deploy|lgtm|merge|ok-to-test|override|promote|publish|"
    r"ralph|reject|release|revert|rollback|ship(?:it)?|squash|target_branch)"
    rf"|{AGAIN}(?:base|build|hold|kind|label|lifecycle|lock|milestone|open|priority|run|review|test|title|triage))"
)
"""What Prow, GitLab and other bots are told to do, but for words that name a page as often: /test, /ready, /label."""
COMMAND = compile_regex(
    rf"^(?P<lead>(?:[^\S\n]|[>*`+-])*+)/(?={ORDERS}(?![\w/-]|\.\w|:/|\?\w+=)|[a-z][\w-]*+(?![/:]|[.?]\w))",
    ANY_CASE | LINES,
)
"""Prow, GitLab and our own `/ralph approve`: a slash and a word that begin a line, in code too.

Paths and addresses are none: /usr/bin, /index.md, /path?x=1, /test: all of it. Where the word is an order a colon or a
question behind it makes none of it: most bots read up to the end of the word.
"""
BORS = compile_regex(
    r"^(?P<lead>[^\w\n]*+(?:bors|homu|mergify|jenkins|ok|retest))"
    r"(?=\s+(?:r[+=-]|try|merge|retry|delegate|p=|ping|retest|test this|to test|this please))",
    ANY_CASE | LINES,
)

CI = (
    r"(?:ci|actions?|checks|travis|circle|azurepipelines|azp|netlify|render|vercel|cirrus|appveyor|github|gitlab|"
    r"build|deploy|preview|cd)"
)
SKIP_CI = compile_regex(
    rf"\[(?P<mark>\s*(?:(?:skip|no)[\s_-]*{CI}|{CI}[\s_-]*skip|skip)\s*)\]|(?P<azure>\*\*\*NO_CI\*\*\*)", ANY_CASE
)
SKIP_CHECKS = compile_regex(r"(?P<word>skip-checks|request-checks|ci-skip)\s*:(?=\s*true)", ANY_CASE)
"""docs.github.com, "Skipping workflow runs", and the markers of other vendors."""

TRAILER = compile_regex(
    r"^(?P<lead>[ \t>*+-]*+)(?P<word>"
    r"(?:co-authored|co-developed|signed-off|acked|reviewed|tested|reported|approved|merged|committed|suggested|helped|"
    r"authored|requested)-by|on-behalf-of|change-id|cc|reviewed-on)[ \t]*:",
    ANY_CASE | LINES,
)
"""git-interpret-trailers(1): a token and a colon that begin a line; its value may come to stand below it later."""

WORKFLOW = compile_regex(r"^(?P<lead>[^\S\n]*+)::(?=[a-z][\w-]*(?:::|\s[^\n]*::))|(?<=##)\[(?=[a-z])", ANY_CASE | LINES)
"""actions/runner, ActionCommand.cs: `::name …::` that begins a line, `##[name` anywhere in one."""
EXPRESSION = compile_regex(r"\$\{\{")

COMMENT = compile_regex(r"<!-->|<!--->|<!--.*?(?:--!?>|\Z)", re.DOTALL)
SIGNATURE = compile_regex(r"ralph:v(?=\d)", ANY_CASE)
"""What begins our marker's content."""
SEAL = compile_regex(r"^(?=[^\S\n]*(?:proposal is now|the change (?:is|would be)) `)", ANY_CASE | LINES)
"""The line that an approval must be newer than, and the one that binds us to a change: each grants something."""
AUTOLINK = compile_regex(r"<(https?://[^\s<>]*)>", ANY_CASE)
HTML_TAG = compile_regex(r"</?[A-Za-z][^<>]*>")
EMPHASIS = compile_regex(r"[*_~]+")
MARKUP = compile_regex(r"(?:<|&lt;)(?!https?://)/?[A-Za-z][^<>]*>|\\(?=[!-/:-@\[-`{-~])|[*_~]+", ANY_CASE)
"""What a reader of the rendered text does not see, so that a word goes on behind it."""
ESCAPED = compile_regex(r"\\([!-/:-@\[-`{-~])")
ENTITY = compile_regex(r"&(?:amp;|#38;|#x0*26;)*(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
TAG = compile_regex(r"<(?=[A-Za-z/!?])")

HOST = compile_regex(
    r"(?P<scheme>https?|ftps?|wss?)(?P<colon>\\?:)(?P<slashes>(?:\\?/|\\){2,})(?P<host>[^\s/\\?#<>()\[\]\"'`|]*)",
    ANY_CASE,
)
BARE_HOST = compile_regex(r"(?<![A-Za-z0-9./@-])www\.(?=[^\s.])[^\s!-,/:-@\[-^`{-~]+", ANY_CASE)
"""GFM, "Extended www autolink": also right behind mark-up, and of a host with any letter or symbol in it."""
LINK = compile_regex(r"\](?=[(:])")
"""What makes a link of the brackets before it, or of a line a definition that nobody sees."""

LIVE_MENTION = compile_regex(MENTION.pattern + r"[\w&!/-]+")
BOT_NAME = compile_regex(BOTS.pattern + r"[\w-]+", re.IGNORECASE)


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
        meant = _plain(decode_entities(plain))
        if not self.markdown:
            return _different(self.live, plain, meant)
        unescaped = ESCAPED.sub(r"\1", meant)
        shown = _without_tags(unescaped)
        # Within HTML an address between angle brackets is a tag, too.
        without_tags = HTML_TAG.sub("", COMMENT.sub("", unescaped))
        bare = (EMPHASIS.sub("", view) for view in (shown, without_tags))
        return _different(self.live, plain, meant, unescaped, shown, without_tags, *bare)


views_of = lru_cache(maxsize=128)(TextViews)
"""The views of a text: detectors are asked about the same texts again and again."""


def closing_keywords(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Every `fixes #3` and its kin, as GitHub would act on it, in any disguise."""
    return _matches(CLOSING, views_of(text, markdown).rendered)


def mentions(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Every `@name` that would notify someone or wake a bot."""
    views = views_of(text, markdown)
    return _different(*_matches(LIVE_MENTION, views.rendered), *_matches(BOT_NAME, views.raw))


def workflow_commands(text: str, markdown: bool = False) -> tuple[str, ...]:
    """Every `::command::` and `##[command]` that a runner would obey if the text came by on its output."""
    return _matches(WORKFLOW, views_of(views_of(text, markdown).live, False).raw)


def _matches(pattern: re.Pattern[str], seen: Iterable[str]) -> tuple[str, ...]:
    return _different(*(" ".join(match.group().split()) for view in seen for match in pattern.finditer(view)))


def _different(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _plain(text: str) -> str:
    return without_invisible(without_controls(text))


def as_shown(text: str) -> str:
    """The text without entities, escapes and tags, emphasis kept."""
    return _without_tags(ESCAPED.sub(r"\1", _plain(decode_entities(_plain(text)))))


def _without_tags(text: str) -> str:
    """Without comments and tags; an address between angle brackets shows itself."""
    addressed = AUTOLINK.sub(r"\1", COMMENT.sub("", text))
    return HTML_TAG.sub("", addressed)


def decode_entities(text: str) -> str:
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
