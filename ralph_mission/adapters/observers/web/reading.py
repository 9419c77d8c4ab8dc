"""Reads what the web answered, as a program of its own, so that it can be ended.

Parsers and patterns get foreign input here: one that takes too long, too much memory or crashes the process only costs
one check of one source. Run by path: it imports none of our code.
Input: a line of JSON, {"kind": feed | json | page, "url", "type", "path", "match", "before"}, then the bytes.
Output, as JSON: {"items": [{"id", "title", "url", "date", "text", "fits"}]}, {"text", "changes", "fits"}, or
{"complaint"}. All text in it is plain: no markup, no scripts, no hidden text.
"""

from __future__ import annotations

import difflib
import io
import json
import re
import resource
import sys
from calendar import timegm
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

MEMORY = 1_500_000_000  # bytes
ITEMS = 200
TITLE, EXCERPT, LINK = 300, 2_000, 1_000  # characters
TEXT = 100_000  # characters of a page to compare
LINE, CHANGES = 300, 40  # of a difference
BLOCKS = frozenset(
    "address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form h1 h2"
    " h3 h4 h5 h6 header hr li main ol option p pre section summary table td th tr ul".split()
)
INERT = frozenset(
    "applet audio button canvas datalist dialog embed form head iframe link map math meta noembed noframes noscript"
    " object script select style svg template textarea title video".split()
)
AROUND = frozenset("aside footer header nav".split())
MAIN = ("main", "[role=main]", "article")


class UnreadablePage(Exception):
    """The content has another type than declared; the text completes a sentence."""


def main() -> None:
    """Read the request from standard input, write the answer to standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    request = json.loads(sys.stdin.buffer.readline())
    try:
        answer = read(request, sys.stdin.buffer.read())
    except UnreadablePage as error:
        answer = {"complaint": str(error)}
    json.dump(answer, sys.stdout)


def read(request: Mapping[str, Any], content: bytes) -> dict[str, Any]:
    """The answer to a request. Raises UnreadablePage."""
    found = {"feed": feed, "json": document, "page": page}[request["kind"]](request, content)
    fits = re.compile(request["match"], re.IGNORECASE).search
    if isinstance(found, list):
        return {"items": [{**item, "fits": bool(fits(f"{item['title']}\n{item['text']}"))} for item in found]}
    changes = difference(request["before"], found) if request["before"] is not None else []
    return {"text": found, "changes": changes[:CHANGES], "fits": any(fits(line[2:]) for line in changes)}


# --- feeds and documents --------------------------------------------------------------


def feed(request: Mapping[str, Any], content: bytes) -> list[dict[str, str]]:
    """The entries of an RSS, RDF, Atom or JSON feed, in order."""
    import feedparser  # type: ignore[import-untyped]  # it tells no types

    # A stream, because a text may be mistaken for a URL or a file name, and opened.
    stream, headers = io.BytesIO(content), {"content-type": request["type"]}
    document = feedparser.parse(stream, response_headers=headers, sanitize_html=False, resolve_relative_uris=False)
    if not document.get("version") and not document.entries:
        raise UnreadablePage("is not a feed")
    return [_entry(entry, request["url"]) for entry in document.entries[:ITEMS]]


def _entry(entry: Any, base: str) -> dict[str, str]:
    when = entry.get("published_parsed") or entry.get("updated_parsed")
    text = next((part.get("value", "") for part in entry.get("content", [])), "") or entry.get("summary", "")
    date = f"{datetime.fromtimestamp(timegm(when), UTC):%Y-%m-%d}" if when else ""
    return _item(base, entry.get("id"), entry.get("title"), entry.get("link"), date, text)


def document(request: Mapping[str, Any], content: bytes) -> list[dict[str, str]] | str:
    """The value at `path` in a JSON document: a list becomes items, anything else a text."""
    import jmespath

    try:
        found = jmespath.search(request["path"] or "@", json.loads(content))
    except (ValueError, RecursionError):
        raise UnreadablePage("is not JSON that `path` fits") from None
    if found is None:
        raise UnreadablePage("has nothing at `path`")
    if isinstance(found, list):
        return [_thing(thing, request["url"]) for thing in found[:ITEMS]]
    text = found if isinstance(found, str) else json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False)
    return text[:TEXT]


def _thing(thing: Any, base: str) -> dict[str, str]:
    if not isinstance(thing, dict):
        return _item(base, None, thing, None, "", "")
    names = ("id", "title", "url", "date", "text")
    return _item(base, *(thing.get(name) for name in names))


def _item(base: str, name: Any, title: Any, url: Any, date: Any, text: Any) -> dict[str, str]:
    head, link = " ".join(inert(_as_text(title)).split())[:TITLE], _link(base, _as_text(url).strip())
    which = _as_text(name) or link or f"{head} {_as_text(date)}"
    excerpt = inert(_as_text(text))[:EXCERPT]
    return {"id": which, "title": head, "url": link, "date": _as_text(date)[:40], "text": excerpt}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _link(base: str, url: str) -> str:
    """A URL that may be shown: http or https, without a user; "" for any other."""
    try:
        full = urljoin(base, url) if url else ""
        parts = urlsplit(full)
    except ValueError:
        return ""
    fine = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc
    return full if fine and len(full) <= LINK and not re.search(r"[\s\x00-\x1f\x7f<>\"`\\]", full) else ""


# --- pages ----------------------------------------------------------------------------


def page(request: Mapping[str, Any], content: bytes) -> str:
    """The main text of a page, or of the elements that the CSS selector `path` names, a line per block."""
    kind = request["type"].partition(";")[0].strip().lower()
    text = content.decode(_charset(request["type"], content), "replace")
    if (kind.startswith("text/") and "html" not in kind) or kind == "application/json":
        return text[:TEXT]
    if kind and "html" not in kind and "xml" not in kind:
        raise UnreadablePage(f"is not a page but {kind[:40]}")
    return "\n".join(_main(text, request["path"]))[:TEXT]


def inert(markup: str) -> str:
    """The text of an HTML fragment; plain text unchanged."""
    from selectolax.lexbor import LexborHTMLParser

    if "<" not in markup and "&" not in markup:
        return markup.strip()
    return "\n".join(_lines(LexborHTMLParser(markup).body, INERT))


def _main(markup: str, selector: str) -> list[str]:
    """Only by structure: with heuristics on word density, a small change could move the whole text."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(markup)
    if selector:
        if not (chosen := tree.css(selector)):
            raise UnreadablePage("has nothing at `path`")
        return [line for node in chosen for line in _lines(node, INERT)]
    root = next((found[0] for found in map(tree.css, MAIN) if len(found) == 1), tree.body)
    return list(_lines(root, INERT | AROUND))


def _lines(root: Any, without: frozenset[str]) -> Iterator[str]:
    pieces: list[str] = []
    waiting = [root] if root is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif node.tag == "-text":
            pieces.append(re.sub(r"\s+", " ", node.text_content or ""))
        elif node is root or (node.tag not in without and not _is_hidden(node.attributes)):
            edge = ["\n"] if node.tag in BLOCKS else []
            waiting += [*edge, *reversed(list(node.iter(include_text=True))), *edge]
    return (line for one in "".join(pieces).split("\n") if (line := " ".join(one.split())))


def _is_hidden(attributes: Mapping[str, str | None]) -> bool:
    style = re.sub(r"\s+", "", attributes.get("style") or "").lower()
    return "hidden" in attributes or "display:none" in style or "visibility:hidden" in style


def _charset(header: str, content: bytes) -> str:
    named = re.search(r"charset=[\"']?([\w-]{1,40})", header) or re.search(
        r"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})", content[:2_000].decode("ascii", "replace"), re.IGNORECASE
    )
    name = named[1] if named else "utf-8"
    try:
        "".encode(name)
    except (LookupError, UnicodeError):
        return "utf-8"
    return name


def difference(before: str, after: str) -> list[str]:
    """The removed ("- …") and added ("+ …") lines."""
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), n=0, lineterm="")
    return [f"{line[0]} {line[1:][:LINE]}" for line in list(lines)[2:] if line[0] in "+-"]


if __name__ == "__main__":
    main()
