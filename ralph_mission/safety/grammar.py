"""What makes a forge, a bot, a CI or a runner act on a text. Patterns only, each with its source.

Every pattern is wider than the original where the original is not documented: a harmless text
that is reworded costs nothing, a live one may close an issue. So words end at an underscore too:
it is mark-up as often as a part of a word (`_@name_`, `__fixes #3__`), and the forge reads what is
rendered. Letters and digits are ASCII's, as they are where these patterns come from.
"""

from __future__ import annotations

import re

ANY_CASE = re.IGNORECASE
LINES = re.MULTILINE

NAME = r"[\w.-]{1,100}"
"""Of an owner or a repository, neither of which is longer; without an end, a row of them takes quadratic time."""
REFERENCE = (
    rf"(?:(?P<place>{NAME}\\?/{NAME})?\\?#|GH\\?-"
    rf"|(?:https?|hxxps?)?:?(?://)?[\w.-]{{1,253}}/(?P<home>{NAME}/{NAME})/(?:issues|pull|discussions)/)"
    r"(?P<number>\d+|\{[0-9a-f]+\})(?![A-Za-z0-9])"  # the second form: a number that is filled in after judging
)
CLOSING = re.compile(
    r"(?<![A-Za-z0-9])(?P<word>close[sd]?|(?:fi|\ufb01)x(?:e[sd])?|resolve[sd]?)"  # Ruby takes the ligature for f and i
    rf"(?P<gap>\s*+\\?:?[\s\\*_~(<\"']*+(?:\[[^\]\n]{{0,200}}\]\(\s*+<?)?[\s\\*_~(\[<\"']*+){REFERENCE}",
    ANY_CASE,
)
"""docs.github.com, "Linking a pull request to an issue": nine keywords, any case, with or without a colon."""

MENTION = re.compile(r"(?<![A-Za-z0-9])@(?=(?:\\?[*_~])*+[A-Za-z0-9_&!])")
"""GitHub `@user` and `@org/team`, Discord `@everyone` and `<@&id>`, behind mark-up too; a@b.org is none."""
NAMED = re.compile(rf"{MENTION.pattern}.")
"""With the first letter of the name."""
BOTS = re.compile(
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
COMMAND = re.compile(
    rf"^(?P<lead>(?:[^\S\n]|[>*`+-])*+)/(?={ORDERS}(?![\w/-]|\.\w|:/|\?\w+=)|[a-z][\w-]*+(?![/:]|[.?]\w))",
    ANY_CASE | LINES,
)
"""Prow, GitLab and our own `/ralph approve`: a slash and a word that begin a line, in code too.

Paths and addresses are none: /usr/bin, /index.md, /path?x=1, /test: all of it. Where the word is an order a colon or a
question behind it makes none of it: most bots read up to the end of the word.
"""
BORS = re.compile(
    r"^(?P<lead>[^\w\n]*+(?:bors|homu|mergify|jenkins|ok|retest))"
    r"(?=\s+(?:r[+=-]|try|merge|retry|delegate|p=|ping|retest|test this|to test|this please))",
    ANY_CASE | LINES,
)

CI = (
    r"(?:ci|actions?|checks|travis|circle|azurepipelines|azp|netlify|render|vercel|cirrus|appveyor|github|gitlab|"
    r"build|deploy|preview|cd)"
)
SKIP_CI = re.compile(
    rf"\[(?P<mark>\s*(?:(?:skip|no)[\s_-]*{CI}|{CI}[\s_-]*skip|skip)\s*)\]|(?P<azure>\*\*\*NO_CI\*\*\*)", ANY_CASE
)
SKIP_CHECKS = re.compile(r"(?P<word>skip-checks|request-checks|ci-skip)\s*:(?=\s*true)", ANY_CASE)
"""docs.github.com, "Skipping workflow runs", and the markers of other vendors."""

TRAILER = re.compile(
    r"^(?P<lead>[ \t>*+-]*+)(?P<word>"
    r"(?:co-authored|co-developed|signed-off|acked|reviewed|tested|reported|approved|merged|committed|suggested|helped|"
    r"authored|requested)-by|on-behalf-of|change-id|cc|reviewed-on)[ \t]*:",
    ANY_CASE | LINES,
)
"""git-interpret-trailers(1): a token and a colon that begin a line; its value may come to stand below it later."""

WORKFLOW = re.compile(r"^(?P<lead>[^\S\n]*+)::(?=[a-z][\w-]*(?:::|\s[^\n]*::))|(?<=##)\[(?=[a-z])", ANY_CASE | LINES)
"""actions/runner, ActionCommand.cs: `::name …::` that begins a line, `##[name` anywhere in one."""
EXPRESSION = re.compile(r"\$\{\{")

COMMENT = re.compile(r"<!-->|<!--->|<!--.*?(?:--!?>|\Z)", re.DOTALL)
OWN_MARKER = re.compile(r"<!-- ralph:v1 key=[0-9a-f]{8,64}(?: [a-z]+=[^\s>]{1,80}){0,8} -->\s*\Z")
"""Our marker is the one comment that may stand in a text, and only as its end."""
SIGNATURE = re.compile(r"ralph:v(?=\d)", ANY_CASE)
"""What begins our marker's content."""
SEAL = re.compile(r"^(?=[^\S\n]*(?:proposal is now|the change (?:is|would be)) `)", ANY_CASE | LINES)
"""The line that an approval must be newer than, and the one that binds us to a change: each grants something."""
DEFINITION = re.compile(
    r"^ {0,3}\[(?P<label>(?!\^)[^\]\n]+)\]:[ \t]*\n?[ \t]*(?:<[^>\n]*>|[^\s<]\S*)"
    r"(?:[ \t]*\n?[ \t]+(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|\([^)]{0,2000}\)))?[ \t]*(?:\n|\Z)",
    LINES,
)
"""A link reference definition; one that nothing refers to is shown nowhere."""

AUTOLINK = re.compile(r"<(https?://[^\s<>]*)>", ANY_CASE)
HTML_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
EMPHASIS = re.compile(r"[*_~]+")
MARKUP = re.compile(r"<(?!https?://)/?[A-Za-z][^<>]*>|\\(?=[!-/:-@\[-`{-~])|[*_~]+", ANY_CASE)
"""What a reader of the rendered text does not see, so that a word goes on behind it."""
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
ENTITY = re.compile(r"&(?:amp;|#38;|#x0*26;)*(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
TAG = re.compile(r"<(?=[A-Za-z/!?])")
LIVE_TAG = re.compile(
    r"<(?=/?(?:script|style|iframe|object|embed|form|input|button|textarea|title|noembed|noframes|plaintext|xmp|base|"
    r"meta|link|svg|math|template|noscript|frame|frameset|applet|audio|video|source)\b|[?]|!\[CDATA|![A-Za-z])",
    ANY_CASE,
)
"""Elements that GitHub filters (GFM's tagfilter), that load something, or that swallow what follows."""

HOST = re.compile(
    r"(?P<scheme>https?|ftps?|wss?)(?P<colon>\\?:)(?P<slashes>(?:\\?/|\\){2,})(?P<host>[^\s/\\?#<>()\[\]\"'`|]*)",
    ANY_CASE,
)
BARE_HOST = re.compile(r"(?<![A-Za-z0-9./@-])www\.(?=[^\s.])[^\s!-,/:-@\[-^`{-~]+", ANY_CASE)
"""GFM, "Extended www autolink": also right behind mark-up, and of a host with any letter or symbol in it."""
TARGET = re.compile(
    r"(?P<lead>\]\(\s*<?|^ {0,3}\[[^\]\n]+\]:\s*<?|<(?=[a-z][a-z0-9+.-]{1,31}:)|"
    r"\b(?:href|src|srcset|formaction|poster)\s*=\s*[\"']?\s*)(?P<target>[^\s>)\"']+)",
    ANY_CASE | LINES,
)
SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):", ANY_CASE)
