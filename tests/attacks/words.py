"""What a text of ours would do to those who read it, found without the package's own code.

Markdown is rendered by markdown-it as a forge would; what bots, runners and git read is the source itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

CLOSING = re.compile(
    r"(?<![A-Za-z0-9])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?:\s*:\s*|\s+)"
    r"(?:(?:[\w.-]+/[\w.-]+)?#|GH-|https?://\S+/(?:issues|pull)/)\d+(?![A-Za-z0-9])",
    re.IGNORECASE,
)
MENTION = re.compile(r"(?<![A-Za-z0-9])@(?:[A-Za-z0-9][A-Za-z0-9-]*(?:/[\w.-]+)?|!?&?\d)")
ADDRESS = re.compile(r"(?<![A-Za-z0-9./@-])(?:(?:https?|ftp)://|www\.)[^\s<]+", re.IGNORECASE)
"""What a forge makes a link of where it stands in the text itself."""
BOTS = re.compile(
    r"^(?:/(?:merge|approve|lgtm|retest|retitle|close|ralph|deploy|ok-to-test|rebase|assign)\b(?!:?/|-|[.]\w|[?]\w+=)"
    r"|[\s>]*bors (?:r[+=]|merge|try))"
    r"|@(?:dependabot|renovate|mergify|bors|claude|copilot|codex|coderabbit|everyone|here)\b",
    re.IGNORECASE | re.MULTILINE,
)
SKIPPING = re.compile(
    r"\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\]|\*\*\*NO_CI\*\*\*|^skip-checks:\s*true",
    re.IGNORECASE | re.MULTILINE,
)
TRAILER = re.compile(r"^(?:co-authored|signed-off|reviewed|acked|approved)-by:", re.IGNORECASE | re.MULTILINE)
RUNNER = re.compile(r"^\s*::[a-z][\w-]*(?:\s[^\n]*)?::|##\[[a-z]", re.IGNORECASE | re.MULTILINE)
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
"""What makes a target an absolute URL (RFC 3986, section 3.1); `%5Ba%5D:` is the name of a file."""
UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\U000e0000-\U000e0fff]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
OURS = re.compile(r"(?:<!-- ralph:(?:v1|anchor)(?: [a-z]+=[^\s<>]+)* -->\s*)+\Z")
"""The marks at the end of what is ours, and the only comments that may be there."""
TAGS = re.compile(r"</?(?:details|summary|sub|sup|br|kbd|b|i)\s*/?>", re.IGNORECASE)
HOSTS = ("https://github.com/", "https://docs.github.com/", "http://127.0.0.1:")
EDGE = "\ufffc"
"""Stands for mark-up where it matters that the text on both sides is apart: no word, no space."""
WRAPPINGS = ("{}", "_{}_", "__{}__", "*{}*", "~~{}~~", "_x_{}")
"""Mark-up after which the same is said: what is harmless in one has to be so in each."""


def wrapped(text: str) -> list[str]:
    """`text` in each of the wrappings."""
    return [wrapping.format(text) for wrapping in WRAPPINGS]


def harmful_actions(text: str, markdown: bool = True) -> list[str]:
    """Everything of it, named; no more than one line for each kind."""
    own = OURS.sub("", text)
    seen = UNSEEN.sub("", rendered(own) if markdown else text)
    apart = UNSEEN.sub("", rendered(own, EDGE)) if markdown else seen  # names are sought between mark-up
    reading = {
        "closing keyword": CLOSING.search(seen) or CLOSING.search(apart),
        "mention": MENTION.search(apart),
        "bot": BOTS.search(text),
        "skips CI": SKIPPING.search(text),
        "trailer": TRAILER.search(text),
        "workflow command": RUNNER.search(text),
        "unseen": UNSEEN.search(text),
    }
    found = [f"{name}: {match.group()!r}" for name, match in reading.items() if match]
    return found + (sorted({*_embedded(own), *_bare(apart)}) if markdown else [])


def rendered(text: str, edge: str = "") -> str:
    """What a reader sees, without code: entities decoded, `edge` instead of mark-up."""
    return "\n".join(_shown(token, edge) for token in _markdown().parse(text))


def _shown(token: Token, edge: str) -> str:
    if token.type == "html_block":
        return re.sub(r"<[^>]*>", edge, token.content)
    return "".join(_piece(child, edge) for child in token.children or ())


def _piece(token: Token, edge: str) -> str:
    if token.type in ("text", "image"):
        return token.content
    return {"softbreak": "\n", "hardbreak": "\n", "code_inline": "`"}.get(token.type, edge)


def _bare(seen: str) -> Iterator[str]:
    """Addresses that become links by themselves."""
    for match in ADDRESS.finditer(seen):
        if not _known(match.group()):
            yield f"leads away: {match.group()[:60]!r}"


def _embedded(text: str) -> Iterator[str]:
    """Images, links and mark-up that lead or load from anywhere but the forge."""
    for token in (one for block in _markdown().parse(text) for one in (block, *(block.children or ()))):
        if token.type in ("html_block", "html_inline") and re.search(r"<[A-Za-z/!?]", TAGS.sub("", token.content)):
            yield f"mark-up: {token.content[:60]!r}"
        target = str(token.attrGet("src") or token.attrGet("href") or "")
        if target.startswith("//") or (SCHEME.match(target) and not _known(target)):
            yield f"leads away: {target[:60]!r}"


def _known(target: str) -> bool:
    """Hosts of the forge, and schemes that nobody follows."""
    if target.startswith(("hxxp://", "hxxps://", "unsafe-")):
        return True
    return target.startswith((*HOSTS, "mailto:")) and "@" not in target.removeprefix("mailto:").split("/")[2:3]


@cache
def _markdown() -> MarkdownIt:
    # Every target is looked at, those that a careful renderer would drop too.
    made = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    made.validateLink = lambda url: True  # type: ignore[method-assign]  # as its documentation has it
    return made
