"""Detects text that a forge, a bot, a CI or a runner would act on.

Every pattern is wider than the original where that is not documented: rewording a harmless text costs nothing, a live
one may close an issue. Words therefore also end at an underscore, which is mark-up as often as part of a word
(`_@name_`, `__fixes #3__`), and the forge reads rendered text. Letters and digits are ASCII, as in the originals.

Markdown is read as GitHub renders it, where code is inert; titles and commit messages have no mark-up
(`markdown=False`), so there every occurrence counts.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ralph_mission.safety.markdown import INVISIBLE, prose, without_unseen
from ralph_mission.values import compile_regex

ANY_CASE = re.IGNORECASE
LINES = re.MULTILINE

NAME = r"[\w.-]{1,100}"
"""Characters of an owner or repository; without a bound, matching a long row takes quadratic time."""
REFERENCE = (
    rf"(?:(?P<place>{NAME}\\?/{NAME})?\\?#|GH\\?-"
    rf"|(?:https?|hxxps?)?:?(?://)?[\w.-]{{1,253}}/(?P<home>{NAME}/{NAME})/(?:issues|pull|discussions)/)"
    r"(?P<number>\d+|\{[0-9a-f]+\})(?![A-Za-z0-9])"  # the second form: a number filled in after judging
)
CLOSING = compile_regex(
    r"(?<![A-Za-z0-9])(?P<word>close[sd]?|(?:fi|\ufb01)x(?:e[sd])?|resolve[sd]?)"  # Ruby reads the ligature as f and i
    rf"(?P<gap>\s*+\\?:?[\s\\*_~(<\"']*+(?:\[[^\]\n]{{0,200}}\]\(\s*+<?)?[\s\\*_~(\[<\"']*+){REFERENCE}",
    ANY_CASE,
)
"""docs.github.com, "Linking a pull request to an issue": nine keywords, any case, with or without a colon."""

MENTION = compile_regex(r"(?<![A-Za-z0-9])@(?=(?:\\?[*_~])*+[A-Za-z0-9_&!])")
"""GitHub `@user` and `@org/team`, Discord `@everyone` and `<@&id>`, also after mark-up; not a@b.org."""
NAMED = compile_regex(rf"{MENTION.pattern}.")
"""Including the first letter of the name."""
BOTS = compile_regex(
    r"@(?=(?:dependabot|renovate|mergify|bors|homu|claude|codex|copilot|coderabbit|cursor|gemini|greptile|sweep|devin|"
    r"everyone\b|here\b|openhands|jules|github-actions|kodiak|allcontributors|netlify|vercel))",
    ANY_CASE,
)
"""Accounts that read the raw text, so code spans do not protect from them."""

AGAIN = "(?:un|re|auto-?|remove-)"
ORDERS = (
    rf"(?:{AGAIN}?(?:approve|assign|backport|cherry-?pick|close|deploy|lgtm|merge|ok-to-test|override|promote|publish|"
    r"ralph|reject|release|revert|rollback|ship(?:it)?|squash|target_branch)"
    rf"|{AGAIN}(?:base|build|hold|kind|label|lifecycle|lock|milestone|open|priority|run|review|test|title|triage))"
)
"""Commands of Prow, GitLab and other bots that may also be paths: /test, /ready, /label."""
COMMAND = compile_regex(
    rf"^(?P<lead>(?:[^\S\n]|[>*`+-])*+)/(?={ORDERS}(?![\w/-]|\.\w|:/|\?\w+=)|[a-z][\w-]*+(?![/:]|[.?]\w))",
    ANY_CASE | LINES,
)
"""Prow, GitLab and our own `/ralph approve`: a slash and a word at the beginning of a line, in code too.

Paths and URLs do not count: /usr/bin, /index.md, /path?x=1, /test: all of it. A known command counts even before a
colon or a question mark: most bots read up to the end of the word.
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
"""git-interpret-trailers(1): a token and a colon at the beginning of a line; its value may be on the next line."""

WORKFLOW = compile_regex(r"^(?P<lead>[^\S\n]*+)::(?=[a-z][\w-]*(?:::|\s[^\n]*::))|(?<=##)\[(?=[a-z])", ANY_CASE | LINES)
"""actions/runner, ActionCommand.cs: `::name …::` that begins a line, `##[name` anywhere in one."""
EXPRESSION = compile_regex(r"\$\{\{")

COMMENT = compile_regex(r"<!-->|<!--->|<!--.*?(?:--!?>|\Z)", re.DOTALL)
SIGNATURE = compile_regex(r"ralph:v(?=\d)", ANY_CASE)
"""The beginning of our marker."""
SEAL = compile_regex(r"^(?=[^\S\n]*(?:proposal is now|the change (?:is|would be)) `)", ANY_CASE | LINES)
"""The line that approvals must be newer than, and the one that binds us to a change: both grant something."""
AUTOLINK = compile_regex(r"<(https?://[^\s<>]*)>", ANY_CASE)
HTML_TAG = compile_regex(r"</?[A-Za-z][^<>]*>")
EMPHASIS = compile_regex(r"[*_~]+")
MARKUP = compile_regex(r"(?:<|&lt;)(?!https?://)/?[A-Za-z][^<>]*>|\\(?=[!-/:-@\[-`{-~])|[*_~]+", ANY_CASE)
"""Mark-up that does not interrupt a word in the rendered text."""
ESCAPED = compile_regex(r"\\([!-/:-@\[-`{-~])")
ENTITY = compile_regex(r"&(?:amp;|#38;|#x0*26;)*(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
TAG = compile_regex(r"<(?=[A-Za-z/!?])")

HOST = compile_regex(
    r"(?P<scheme>https?|ftps?|wss?)(?P<colon>\\?:)(?P<slashes>(?:\\?/|\\){2,})(?P<host>[^\s/\\?#<>()\[\]\"'`|]*)",
    ANY_CASE,
)
BARE_HOST = compile_regex(r"(?<![A-Za-z0-9./@-])www\.(?=[^\s.])[^\s!-,/:-@\[-^`{-~]+", ANY_CASE)
"""GFM, "Extended www autolink": also right after mark-up, and for hosts with any letter or symbol."""
LINK = compile_regex(r"\](?=[(:])")
"""What turns preceding brackets into a link, or a line into an invisible definition."""

LIVE_MENTION = compile_regex(MENTION.pattern + r"[\w&!/-]+")
BOT_NAME = compile_regex(BOTS.pattern + r"[\w-]+", re.IGNORECASE)


@dataclass(frozen=True)
class TextViews:
    """A text as its different readers see it. Each view is computed once, on first use.

    `markdown`: whether code is inert, so that a forge acts on prose only.
    """

    text: str
    markdown: bool

    @cached_property
    def live(self) -> str:
        """The text without code, if it is markdown; positions are kept."""
        return prose(self.text) if self.markdown else self.text

    @cached_property
    def raw(self) -> tuple[str, ...]:
        """What a reader of the source sees, without decoding."""
        return _different(self.text, without_unseen(self.text))

    @cached_property
    def rendered(self) -> tuple[str, ...]:
        """What a reader of the rendered text sees: raw, decoded, and without mark-up."""
        plain = without_unseen(self.live)
        meant = without_unseen(decode_entities(plain))
        if not self.markdown:
            return _different(self.live, plain, meant)
        unescaped = ESCAPED.sub(r"\1", meant)
        visible = _without_tags(unescaped)
        # Within HTML an address between angle brackets is a tag, too.
        without_tags = HTML_TAG.sub("", COMMENT.sub("", unescaped))
        bare = (EMPHASIS.sub("", view) for view in (visible, without_tags))
        return _different(self.live, plain, meant, unescaped, visible, without_tags, *bare)


views_of = lru_cache(maxsize=128)(TextViews)
"""The views of a text, cached because several detectors ask about the same text."""


def closing_keywords(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Every `fixes #3` and its kin, as GitHub would act on it, in any disguise."""
    return _matches(CLOSING, views_of(text, markdown).rendered)


def mentions(text: str, markdown: bool = True) -> tuple[str, ...]:
    """Every `@name` that would notify someone or trigger a bot."""
    views = views_of(text, markdown)
    return _different(*_matches(LIVE_MENTION, views.rendered), *_matches(BOT_NAME, views.raw))


def workflow_commands(text: str, markdown: bool = False) -> tuple[str, ...]:
    """Every `::command::` and `##[command]` that a runner would execute if the text were printed."""
    return _matches(WORKFLOW, views_of(views_of(text, markdown).live, False).raw)


def _matches(pattern: re.Pattern[str], texts: Iterable[str]) -> tuple[str, ...]:
    return _different(*(" ".join(match.group().split()) for view in texts for match in pattern.finditer(view)))


def _different(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def as_shown(text: str) -> str:
    """The text without entities, escapes and tags, emphasis kept."""
    return _without_tags(ESCAPED.sub(r"\1", without_unseen(decode_entities(without_unseen(text)))))


def _without_tags(text: str) -> str:
    """The text without comments and tags; a URL in angle brackets stays."""
    addressed = AUTOLINK.sub(r"\1", COMMENT.sub("", text))
    return HTML_TAG.sub("", addressed)


def decode_entities(text: str) -> str:
    """The text with entities decoded, repeatedly."""
    for _ in range(8):
        if (plain := html.unescape(text)) == text:
            break
        text = plain
    return text


def shows_nothing(text: str) -> bool:
    """Whether a decoded entity is, or contains, something invisible."""
    spaceless = "".join(letter for letter in text if letter not in "\t\n\r")
    return bool(INVISIBLE.search(text)) or any(unicodedata.category(letter)[0] == "C" for letter in spaceless)
