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
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b\W{0,3}"
    r"(?:[\w.-]+/[\w.-]+)?(?:#|GH-|https?://\S+/(?:issues|pull)/)\d",
    re.IGNORECASE,
)
MENTION = re.compile(r"(?<![\w`/.])@(?:[A-Za-z0-9][A-Za-z0-9-]*(?:/[\w.-]+)?|!?&?\d)")
BOTS = re.compile(
    r"^(?:/(?:merge|approve|lgtm|retest|close|ralph|deploy|ok-to-test|rebase|assign)\b|[\s>]*bors (?:r[+=]|merge|try))"
    r"|@(?:dependabot|renovate|mergify|bors|claude|copilot|codex|coderabbit|everyone|here)\b",
    re.IGNORECASE | re.MULTILINE,
)
SKIPPING = re.compile(
    r"\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\]|\*\*\*NO_CI\*\*\*|^skip-checks:\s*true",
    re.IGNORECASE | re.MULTILINE,
)
TRAILER = re.compile(r"^(?:co-authored|signed-off|reviewed|acked|approved)-by:", re.IGNORECASE | re.MULTILINE)
RUNNER = re.compile(r"^\s*::[a-z][\w-]*(?:\s[^\n]*)?::|##\[[a-z]", re.IGNORECASE | re.MULTILINE)
UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\U000e0000-\U000e0fff]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
OURS = re.compile(r"(?:<!-- ralph:(?:v1|anchor)(?: [a-z]+=[^\s<>]+)* -->\s*)+\Z")
"""The marks at the end of what is ours, and the only comments that may be there."""
TAGS = re.compile(r"</?(?:details|summary|sub|sup|br|kbd|b|i)\s*/?>", re.IGNORECASE)
HOSTS = ("https://github.com/", "https://docs.github.com/", "http://127.0.0.1:")


def misdeeds(text: str, markdown: bool = True) -> list[str]:
    """Everything of it, named; no more than one line for each kind."""
    seen = rendered(OURS.sub("", text)) if markdown else text
    reading = {
        "closing keyword": CLOSING.search(_plain(seen)),
        "mention": MENTION.search(_plain(seen)),
        "bot": BOTS.search(text),
        "skips CI": SKIPPING.search(text),
        "trailer": TRAILER.search(text),
        "workflow command": RUNNER.search(text),
        "unseen": UNSEEN.search(text),
    }
    found = [f"{name}: {match.group()!r}" for name, match in reading.items() if match]
    return found + (sorted(set(_embedded(OURS.sub("", text)))) if markdown else [])


def rendered(text: str) -> str:
    """What a reader sees, without code: entities decoded, mark-up taken away."""
    return "\n".join(_shown(token) for token in _markdown().parse(text))


def _shown(token: Token) -> str:
    if token.type == "html_block":
        return re.sub(r"<[^>]*>", "", token.content)
    return "".join(_piece(child) for child in token.children or ())


def _piece(token: Token) -> str:
    if token.type == "image":
        return token.content
    return {"text": token.content, "softbreak": "\n", "hardbreak": "\n", "code_inline": "`"}.get(token.type, "")


def _plain(text: str) -> str:
    return UNSEEN.sub("", text)


def _embedded(text: str) -> Iterator[str]:
    """Images, links and mark-up that lead or load from anywhere but the forge."""
    for token in (one for block in _markdown().parse(text) for one in (block, *(block.children or ()))):
        if token.type in ("html_block", "html_inline") and re.search(r"<[A-Za-z/!?]", TAGS.sub("", token.content)):
            yield f"mark-up: {token.content[:60]!r}"
        target = str(token.attrGet("src") or token.attrGet("href") or "")
        if target.startswith("//") or (":" in target.split("/")[0] and not _known(target)):
            yield f"leads away: {target[:60]!r}"


def _known(target: str) -> bool:
    """Hosts of the forge, and schemes that nobody follows."""
    if target.startswith(("hxxp://", "hxxps://", "unsafe-")):
        return True
    return target.startswith((*HOSTS, "mailto:")) and "@" not in target.removeprefix("mailto:").split("/")[2:3]


@cache
def _markdown() -> MarkdownIt:
    # Every target is looked at, those that a careful renderer would drop too.
    made = MarkdownIt("commonmark").enable("table")
    made.validateLink = lambda url: True  # type: ignore[method-assign]  # as its documentation has it
    return made
