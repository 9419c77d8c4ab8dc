"""Observes outdated documentation: broken links, anchors, commands, badges and imports.

Only what the repository itself can prove is reported. A relative link is broken if its target is not in the commit but
once was (then git knows where it went, and there is a fix), or if it is in a folder whose other files exist: links into
build output are ignored. Anchors are checked if GitHub renders the page, by GitHub's rule.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, field, replace
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.doc_tree import MOST_PAGES, PAGES, DocTree, KnownHistory, find_missing
from ralph_mission.adapters.observers.looking import one_line
from ralph_mission.config.observers import DocsSettings
from ralph_mission.mission.model.mission import Observation, Quote, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.safety.markdown import build_parser
from ralph_mission.safety.patch import FileChange, Patch
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

if TYPE_CHECKING:
    from markdown_it.token import Token

NAME = "docs"
ENCODING = 5  # of what is cached
MOST = 200  # findings
QUOTED = 10  # links of one page that are shown
SHELLS = ("", "sh", "bash", "shell", "console", "zsh", "shell-session")
RECORD = compile_regex(
    r"(?:^|/)(?:_?posts?|_?blogs?|news|change_?logs?[^/]*|changes|history|release[-_ ]?notes?|releases)"
    r"(?:/|[._-][^/]*$)"
    r"|(?:^|/)\d{4}-\d\d-\d\d[^/]*$",
    re.IGNORECASE,
)
"""Pages about a point in the past, such as changelogs: what they name need not exist."""
NOT_SLUG = compile_regex(r"[^\w\- ]")
BADGE = compile_regex(r"github\.com/([\w.-]+/[\w.-]+)/(?:actions/workflows|workflows)/([\w .%-]+?\.ya?ml)/badge\.svg")
HTML_LINK = compile_regex(r"<(?:a|img)\b[^>]*?\b(?:href|src)\s*=\s*([\"'])(.*?)\1", re.IGNORECASE | re.DOTALL)
HTML_ANCHOR = compile_regex(r"<\w+\b[^>]*?\b(?:id|name)\s*=\s*([\"']?)([^\"'>\s]+)\1", re.IGNORECASE)
HTML_HEADING = compile_regex(r"<h([1-6])\b[^>]*>(.*?)</h\1\s*>", re.IGNORECASE | re.DOTALL)
HTML_COMMENT = compile_regex(r"<!--.*?(?:-->|\Z)", re.DOTALL)
ENTERED = compile_regex(r"^(?:cd|pushd) ([\w./-]+)")


@dataclass(frozen=True, slots=True)
class BrokenReference:
    """A reference in a page, verbatim, and why it is broken; `better`: the correct text, if git knows."""

    page: str
    line: int
    text: str
    why: str = ""
    better: str = ""
    sure: float = 0.9


def build(settings: DocsSettings, git: Git, cache: Path | None = None) -> DocsObserver:
    """The observer of a repository's pages; `cache`: a folder for results by commit."""
    return DocsObserver(settings, git, FileCache(cache / NAME if cache else None))


@dataclass(frozen=True, slots=True)
class DocsObserver:
    """Reads the pages of a commit."""

    settings: DocsSettings
    git: Git
    cache: FileCache = FileCache(None)
    name: str = NAME
    known: KnownHistory = field(default_factory=KnownHistory, repr=False, compare=False)

    def observe(self, context: ObservationContext) -> Observation:
        """Everything that is broken now."""
        commit = context.head.sha
        if not commit:
            return Observation(NAME, "ok", detail="no commits yet", cursor=context.cursor)
        pages, broken = self._broken(commit)
        detail = f"{count_noun(pages, 'page')}, {count_noun(len(broken), 'broken reference')}"
        signals = tuple(_signals(broken[:MOST], self.git, commit))
        return Observation(
            NAME, "ok", signals, detail=detail, cursor=commit, complete=len(broken) <= MOST, at_commit=True
        )

    def _broken(self, commit: str) -> tuple[int, list[BrokenReference]]:
        """The number of pages, and their broken references."""
        question = cache_key(str(ENCODING), commit, repr(self.settings))
        with suppress(TypeError, KeyError, ValueError):
            known = self.cache.get(question)
            return int(known["pages"]), [BrokenReference(**one) for one in known["broken"]]
        tree = DocTree.of(self.git, commit, self.settings.exclude, self.known)
        broken = [one for page in tree.pages for one in broken_references(tree, page)]
        broken += [one for path in tree.examples for one in broken_imports(tree, path)]
        self.cache.put(question, {"pages": len(tree.pages), "broken": [asdict(one) for one in broken]})
        self.cache.tidy()
        return len(tree.pages), broken


# --- what a page says -----------------------------------------------------------------


def broken_references(tree: DocTree, page: str) -> Iterator[BrokenReference]:
    """The broken references of a page."""
    told_then = RECORD.search(page) is not None
    at_top = not told_then and not tree.is_in_project(page)
    for line, text, is_command in _references(tree.texts[page]):
        reference = BrokenReference(page, line, text)
        if is_command:
            if (entered := ENTERED.match(text)) and tree.has(posixpath.normpath(entered[1])):
                at_top = False
            elif at_top and (why := find_missing(tree, text, posixpath.dirname(page))):
                yield replace(reference, why=why)
        elif (broken := _judge_link(tree, reference)) and (broken.better or not told_then):
            yield broken


def broken_imports(tree: DocTree, path: str) -> Iterator[BrokenReference]:
    """The imports of a page or an example that the repository's own package no longer allows."""
    from ralph_mission.adapters.observers.imports import stale_imports  # an idle cycle reads none

    if not RECORD.search(path):
        for line, text, why in stale_imports(tree, path, tree.texts[path]):
            yield BrokenReference(path, line, text, why)


@lru_cache(maxsize=2 * MOST_PAGES)  # most pages of a new commit are unchanged
def _references(page: str) -> tuple[tuple[int, str, bool], ...]:
    """The references of a page: line, text, whether it is a command."""
    found: list[tuple[int, str, bool]] = []
    at = end = 0
    lines = page.split("\n")
    for token in build_parser().parse(page):
        at, end = (token.map[0] + 1, token.map[1]) if token.map else (at, end)
        for target in dict.fromkeys(_targets(token)):
            found += ((line, target, False) for line in _lines_of(lines, target, at, end))
        if token.type == "fence" and token.info.strip().split(" ")[0].lower() in SHELLS:
            found += ((at + 1 + offset, command, True) for offset, command in _commands(token.content))
    return tuple(found)


def _targets(token: Token) -> Iterator[str]:
    for child in token.children or ():
        if child.type == "link_open":
            yield str(child.attrGet("href") or "")
        elif child.type == "image":
            yield str(child.attrGet("src") or "")
        elif child.type == "html_inline":
            yield from (found[1] for found in HTML_LINK.findall(HTML_COMMENT.sub("", child.content)))
    if token.type == "html_block":
        yield from (found[1] for found in HTML_LINK.findall(HTML_COMMENT.sub("", token.content)))


def _lines_of(lines: Sequence[str], target: str, start: int, end: int) -> list[int]:
    """The lines of a block that link to the target, or else one after it that defines or names the link."""
    if linking := [number for number in range(start, end + 1) if _links(lines[number - 1], target)]:
        return linking
    after = range(start, len(lines) + 1)
    named = (n for n in after if target in lines[n - 1] or unquote(target) in lines[n - 1])
    defined = (n for n in after if "]:" in lines[n - 1] and _links(lines[n - 1], target))
    return [next(defined, next(named, start))]


def _links(line: str, target: str) -> bool:
    return _relink(line, target, "\0") != line


def _relink(line: str, target: str, better: str) -> str:
    """A line whose links to the target lead elsewhere; its prose and code stay."""
    before = r"\]\(\s*<?|\]:\s*<?|\b(?:href|src)\s*=\s*[\"']?"
    link = compile_regex(rf"(`+)(?!`).*?(?<!`)\1(?!`)|({before}){re.escape(target)}(?=[)\"'> \t\r]|$)", re.IGNORECASE)
    return link.sub(lambda found: found[0] if found[1] else f"{found[2]}{better}", line)


def _judge_link(tree: DocTree, reference: BrokenReference) -> BrokenReference | None:
    target = reference.text
    if found := BADGE.search(target):
        name = unquote(found[2])
        workflow = f".github/workflows/{name}"
        missing = tree.slug.lower() == found[1].lower() and workflow not in tree.files
        return replace(reference, why=f"the badge is of a workflow that is not there: {workflow}") if missing else None
    try:
        parts = urlsplit(target)
    except ValueError:
        return None
    if re.match(r"[^\w]+https?://", target):
        inner = re.fullmatch(r"\((https?://[^\s()]+)\)", target)
        why = "this is not an address: something stands before it"
        return replace(reference, why=why, better=inner[1] if inner else "")
    if parts.scheme or parts.netloc or not target or target.startswith("/") or any(mark in target for mark in "{}<>$"):
        return None
    path = (
        posixpath.normpath(posixpath.join(posixpath.dirname(reference.page), unquote(parts.path))) if parts.path else ""
    )
    if parts.path and (path.startswith("..") or not _is_file_like(path)):
        return None
    if parts.path and not tree.has(path):
        return _judge_missing(tree, reference, path, target[len(parts.path) :])
    if parts.fragment and (path or reference.page).lower().endswith(PAGES) and not tree.is_in_site(reference.page):
        return _judge_anchor(tree, reference, path or reference.page, unquote(parts.fragment))
    return None


def _is_file_like(path: str) -> bool:
    """Whether the link has a suffix: sites drop those of pages, so links without one cannot be judged."""
    return "." in posixpath.basename(path)


def _judge_missing(tree: DocTree, reference: BrokenReference, path: str, rest: str) -> BrokenReference | None:
    """`rest`: the link's query and fragment."""
    commit, now = tree.went_to(path)
    if now:
        moved = f"{path} was moved to {now} in {commit[:12]}"
        if lost := _judge_anchor(tree, reference, now, unquote(rest.partition("#")[2])):
            return replace(reference, why=f"{moved}, and {lost.why}")
        return replace(reference, why=moved, better=_link_to(now, reference.page) + rest, sure=0.95)
    if tree.is_in_site(reference.page):
        return None  # a site may fill it in
    if commit:
        return replace(reference, why=f"{path} was removed in {commit[:12]}")
    folder = posixpath.dirname(path)
    alike = [one for one in tree.files if posixpath.dirname(one) == folder and Path(one).suffix == Path(path).suffix]
    if not alike:
        return None  # build output
    existing = next((one for one in alike if one.lower() == path.lower()), "")
    better = _link_to(existing, reference.page) + rest if existing else ""
    return replace(reference, why=f"there is no {path}, and never was", better=better, sure=0.8)


def _link_to(path: str, page: str) -> str:
    """A relative link, as Markdown allows it: without spaces and brackets."""
    relative = posixpath.relpath(path, posixpath.dirname(page) or ".")
    return re.sub(r"[^\w./~@+,=-]", lambda found: quote(found[0]), relative)


def _judge_anchor(tree: DocTree, reference: BrokenReference, page: str, fragment: str) -> BrokenReference | None:
    text = tree.texts.get(page)
    if text is None or not fragment or re.fullmatch(r"L\d+(-L\d+)?|user-content-.*|:~:text=.*", fragment):
        return None
    if fragment.lower() in {anchor.lower() for anchor in anchors(text)} | {"top", "readme"}:
        return None  # browsers know #top, GitHub #readme
    return replace(reference, why=f"{page} has no heading #{fragment}", sure=0.85)


@lru_cache(maxsize=2 * MOST_PAGES)
def anchors(text: str) -> set[str]:
    """The anchors of a page, as GitHub derives them from headings."""
    found: set[str] = {name for _, name in HTML_ANCHOR.findall(text)}
    found |= set(re.findall(r"\{:?\s*#([\w-]+)[^}\n]*\}", text))
    for words in _headings(build_parser().parse(text)):
        slug = NOT_SLUG.sub("", re.sub(r"<[^>]+>", "", words).strip().lower()).replace(" ", "-")
        name, number = slug, 0
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found


def _headings(tokens: Sequence[Token]) -> Iterator[str]:
    """The text of each heading, also of those in HTML."""
    for token, after in itertools.pairwise((*tokens, None)):
        if token and token.type == "html_block":
            yield from (unescape(words) for _, words in HTML_HEADING.findall(token.content))
        elif token and token.type == "heading_open" and after:
            parts = ("text", "code_inline", "html_inline")
            yield "".join(child.content for child in after.children or () if child.type in parts)


def _commands(block: str) -> Iterator[tuple[int, str]]:
    """(line within the block, command), as long as it runs at the top of the repository."""
    for number, line in enumerate(block.split("\n")):
        command = re.sub(r"^\s*[$>%] ", "", line).strip()
        elsewhere = re.match(r"(cd|pushd|git clone|docker|ssh)\b", command)
        yield number, command
        if elsewhere:
            return


# --- the report -----------------------------------------------------------------------


def _signals(broken: Iterable[BrokenReference], git: Git, commit: str) -> Iterator[Signal]:
    """One signal for the fixes of each page, and one for each reference without a fix."""
    fixes: dict[str, list[BrokenReference]] = {}
    for one in broken:
        if one.better:
            fixes.setdefault(one.page, []).append(one)
        else:
            yield _signal(one)
    for page, found in fixes.items():
        patch = _patch(git, commit, page, found)
        yield from (_signal(one) for one in found) if patch is None else (_fix(page, found, patch),)


def _signal(one: BrokenReference) -> Signal:
    top = one.page.lower() in ("readme.md", "contributing.md", "security.md")
    return Signal(
        observer=NAME,
        kind="broken-docs",
        title=one_line(f"{one.page}: {one.text} leads nowhere: {one.why}"),
        essence=("broken-docs", one.page, one.text),
        severity=Severity.MEDIUM if top else Severity.LOW,
        confidence=one.sure,
        effort=0.5,
        detail=f"{one.page}, line {one.line}: {one.text}\n{one.why}",
        path=one.page,
        line=one.line,
    )


def _fix(page: str, found: Sequence[BrokenReference], patch: Patch) -> Signal:
    lines = [f"line {one.line}: {one.text} -> {one.better} ({one.why})" for one in found]
    return Signal(
        observer=NAME,
        kind="dead-link",
        title=f"{count_noun(len(found), 'dead link')} in {page}",
        essence=tuple(sorted(f"{one.text} -> {one.better}" for one in found)),
        severity=Severity.LOW,
        confidence=min(one.sure for one in found),
        effort=0.2,
        detail="\n".join(lines),
        path=page,
        line=found[0].line,
        facts=(("count", len(found)),),
        patch=patch,
        quotes=tuple(Quote(f"{one.text} → {one.better}", page, one.line, patch.base) for one in found[:QUOTED]),
    )


def _patch(git: Git, commit: str, page: str, found: Sequence[BrokenReference]) -> Patch | None:
    """A patch that replaces each link on its line; None if one cannot be found there."""
    (entry,) = git.listing(commit, page)
    old = git.blobs([entry.oid])[entry.oid]
    lines = old.decode("utf-8", "surrogateescape").split("\n")
    for one in found:
        line = lines[one.line - 1]
        changed = _relink(line, one.text, one.better)
        if changed == line:
            return None
        lines[one.line - 1] = changed
    new = "\n".join(lines).encode("utf-8", "surrogateescape")
    return Patch(commit, (FileChange(page, entry.mode, entry.mode, old, new),))
