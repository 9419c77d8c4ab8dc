"""Links to the forge: to a line of a file at a commit, a commit, a run, an issue or a pull request. Text in, text out.

Paths are untrusted: every character that could mean anything in Markdown, or to a bot, is encoded. A link to a person's
issue leaves no trace there: GitHub notes "mentioned in …" on whatever a text links to, except through the host it
offers bots for this.
"""

from __future__ import annotations

import re
from urllib.parse import quote as encode

from ralph_mission.mission.model.mission import Quote
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline
from ralph_mission.values import compile_regex

PAGE = compile_regex(r"https?://[\w.:-]+(?:/[\w.-]+)+")
COMMIT = compile_regex(r"[0-9a-f]{40,64}")
QUOTED = 160  # characters of a line
PLAIN_URL = compile_regex(r"https://[\w.-]+(?:/[\w./-]*)?")
"""An encoded URL that does nothing but lead to its target."""


def thread_link(page: str, number: int) -> str:
    """`#12` as a link to the issue or pull request (GitHub redirects); plain for a forge without URLs."""
    if not PAGE.fullmatch(page):
        return f"#{number}"
    quiet = re.sub(r"^https://github\.com/", "https://redirect.github.com/", page)
    return f"[#{number}]({quiet}/issues/{number})"


def place_link(page: str, quote: Quote) -> str:
    """`path:12` as code, linking to that line at that commit; plain for a forge without URLs."""
    label = inline(redact(f"{quote.path}:{quote.line}" if quote.line else quote.path), 200)
    if not PAGE.fullmatch(page) or not COMMIT.fullmatch(quote.commit):
        return label
    line = f"#L{quote.line}" if quote.line else ""
    return f"[{label}]({page}/blob/{quote.commit}/{encode(quote.path, safe='/', errors='replace')}{line})"


def run_link(page: str, number: int) -> str:
    """`run 12`, linking to the workflow run; plain for a forge without URLs."""
    return f"[run {number}]({page}/actions/runs/{number})" if PAGE.fullmatch(page) else f"run {number}"


def commit_link(page: str, commit: str) -> str:
    """The short id, linking to the commit; plain for a forge without URLs."""
    label = inline(commit[:12], 12)
    return f"[{label}]({page}/commit/{commit})" if PAGE.fullmatch(page) and COMMIT.fullmatch(commit) else label


def quote_line(page: str, quote: Quote) -> str:
    """A line's place and its text."""
    place = ""
    if quote.path:
        place = place_link(page, quote)
    elif quote.reference:
        place = thread_link(page, quote.reference)
    elif quote.run:
        place = run_link(page, quote.run)
    elif quote.commit:
        place = commit_link(page, quote.commit)
    elif quote.url:
        place = f"<{quote.url}>" if PLAIN_URL.fullmatch(quote.url) else inline(quote.url, QUOTED)
    text = inline(redact(quote.text.strip()), 2 * QUOTED if quote.url else QUOTED)
    return f"{place}: {text}" if place else text
