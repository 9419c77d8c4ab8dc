"""Observes outdated documentation: broken links, anchors, commands, badges and imports.

Only what the repository itself can prove is reported. A relative link is broken if its target is not in the commit but
once was (then git knows where it went, and there is a fix), or if it is in a folder whose other files exist: links into
build output are ignored. Anchors are checked if GitHub renders the page, by GitHub's rule.
"""

from __future__ import annotations

import itertools
import json
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ralph_mission.adapters.cache import FileCache, cache_key
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers.markers import excluder, is_test_data
from ralph_mission.adapters.observers.text import count_noun, one_line
from ralph_mission.config.observers import DocsSettings
from ralph_mission.mission.model.mission import Observation, Quote, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.safety.patch import FileChange, Patch
from ralph_mission.values import compile_regex, dataclass

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

NAME = "docs"
PAGES = (".md", ".markdown")
ENCODING = 3  # of what is cached
MOST_PAGES, LARGEST, MOST = 1_000, 500_000, 200
"""Limits: pages, bytes of a page, findings."""
QUOTED = 10  # links of one page that are shown
HOPS = 5  # renames that are followed
SITES = ("mkdocs.yml", "mkdocs.yaml", "docusaurus.config.js", "docusaurus.config.ts", "astro.config.mjs", "conf.py",
         "_config.yml", "book.toml", "hugo.toml", "antora.yml")  # fmt: skip  # one list
"""Site generators: they rearrange pages, so their links and anchors cannot be judged from the tree."""
EXAMPLES = compile_regex(r"(?:^|/)(?:docs|docs_src|doc|examples?)/(?:.*/)?[^/]+\.py$")
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
HTML_ANCHOR = compile_regex(r"<\w+\b[^>]*?\b(?:id|name)\s*=\s*([\"'])(.*?)\1", re.IGNORECASE)
MAKE_RULE = compile_regex(r"^([^\s:#=][^:#=]*):(?!=)", re.MULTILINE)
RUN_SCRIPT = compile_regex(r"^(?:npm|yarn|pnpm|bun) run(?:-script)? ([\w:.-]+)")
RUN_MAKE = compile_regex(r"^make ([\w.-]+)\s*(?:$|#|&&|;)")
RUN_FILE = compile_regex(r"^(?:(?:ba|z)?sh |python3? |node |source |\. )?(\.{0,2}/?[\w./-]+\.(?:sh|py|js|mjs|ts|rb))\b")


@dataclass(frozen=True, slots=True)
class DocReference:
    """A reference in a page; `text`: verbatim."""

    page: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class BrokenReference:
    """A broken reference, and why; `better`: the correct text, if git knows."""

    page: str
    line: int
    text: str
    why: str
    better: str = ""
    sure: float = 0.9


def build(settings: DocsSettings, git: Git, cache: Path | None = None) -> DocsObserver:
    """The observer of a repository's pages; `cache`: a folder for results by commit."""
    return DocsObserver(settings, git, FileCache(cache / NAME if cache else None))


@dataclass(frozen=True, slots=True)
class KnownHistory:
    """Cached answers of git about paths and lines: expensive, and stable across commits."""

    moves: dict[str, tuple[str, str]] = field(default_factory=dict)
    answers: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def forget(self, files: Collection[str]) -> None:
        """Drop what may have changed in a commit with these files."""
        for path, (_, now) in tuple(self.moves.items()):
            if path in files or (now and now not in files):
                del self.moves[path]


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
        return Observation(NAME, "ok", signals, detail=detail, cursor=commit, complete=len(broken) <= MOST)

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


# --- what a commit holds --------------------------------------------------------------


class DocTree:
    """The files of a commit, with its pages' contents."""

    def __init__(
        self, git: Git, commit: str, files: Mapping[str, str], texts: Mapping[str, str], known: KnownHistory
    ) -> None:
        self.git, self.commit, self.oids, self.texts, self.known = git, commit, files, texts, known
        self.files: Collection[str] = frozenset(files)
        self.folders = frozenset(str(parent) for path in files for parent in Path(path).parents)

    @classmethod
    def of(cls, git: Git, commit: str, exclude: Sequence[str], known: KnownHistory | None = None) -> DocTree:
        """Raises GitError."""
        known = known or KnownHistory()
        excluded = excluder(exclude)
        entries = {entry.path: entry for entry in git.listing(commit)}
        known.forget(entries.keys())
        wanted = [path for path in entries if path.lower().endswith(PAGES) and not excluded(path)][:MOST_PAGES]
        wanted += [path for path in entries if EXAMPLES.search(path) and not excluded(path)][:MOST_PAGES]
        wanted += [path for path in ("Makefile", "package.json") if path in entries]
        blobs = git.blobs(entries[path].oid for path in wanted)
        contents = {path: blobs.get(entries[path].oid, b"") for path in wanted}
        texts = {path: c.decode("utf-8", "replace") for path, c in contents.items() if len(c) <= LARGEST}
        return cls(git, commit, {path: entry.oid for path, entry in entries.items()}, texts, known)

    @property
    def pages(self) -> tuple[str, ...]:
        """The paths of pages."""
        return tuple(path for path in sorted(self.texts) if path.lower().endswith(PAGES) and not is_test_data(path))

    @property
    def examples(self) -> tuple[str, ...]:
        """The paths of what may import the repository's package as its users do."""
        return (*self.pages, *(path for path in sorted(self.texts) if EXAMPLES.search(path)))

    def read(self, path: str) -> str:
        """A file's text."""
        if path not in self.sources:
            self.sources[path] = self.git.blobs([self.oids[path]])[self.oids[path]].decode("utf-8", "replace")
        return self.sources[path]

    @cached_property
    def sources(self) -> dict[str, str]:
        """The texts that were read so far besides those of pages."""
        return {}

    def has(self, path: str) -> bool:
        """Whether a file or folder exists."""
        return path in self.files or path in self.folders or path in ("", ".")

    def is_in_site(self, page: str) -> bool:
        """Whether a site generator may render the page: one with settings at the top or in the page's folder."""
        top = page.partition("/")[0] if "/" in page else None
        return top is not None and (None in self.sites or top in self.sites)

    @cached_property
    def sites(self) -> frozenset[str | None]:
        """Top-level folders with a generator's settings; None for the top itself."""
        found = (path for path in self.files if posixpath.basename(path) in SITES)
        return frozenset(path.partition("/")[0] if "/" in path else None for path in found)

    @cached_property
    def make_targets(self) -> frozenset[str] | None:
        """The targets of the top-level Makefile; None if unknown."""
        text = self.texts.get("Makefile")
        if text is None or re.search(r"^\s*-?include\b|^[^\t#\n]*%[^\n]*:", text, re.MULTILINE):
            return None
        return frozenset(name for rule in MAKE_RULE.findall(text) for name in rule.split())

    @cached_property
    def scripts(self) -> frozenset[str] | None:
        """The scripts of the top-level package.json; None if unreadable."""
        try:
            found = json.loads(self.texts.get("package.json", ""))["scripts"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return frozenset(found) if isinstance(found, dict) else None

    @cached_property
    def slug(self) -> str:
        """OWNER/NAME of the repository, by its remote."""
        found = re.search(
            r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?$", self.git.try_text("config", "remote.origin.url")
        )
        return found[1] if found else ""

    def went_to(self, path: str) -> tuple[str, str]:
        """(commit, current path) of a file that once was at `path`: ("", "") if none was, and "" as its path if it was
        deleted."""
        if path not in self.known.moves:
            self.known.moves[path] = self._follow(path)
        return self.known.moves[path]

    def _follow(self, path: str) -> tuple[str, str]:
        gone = ""
        for _ in range(HOPS):
            commit = self.git.try_text(
                "log", "-1", "--diff-filter=D", "--no-renames", "--format=%H", self.commit, "--", path
            )
            if not commit:
                return gone, ""
            gone = gone or commit
            path = self._renamed_to(commit, path)
            if not path or path in self.files:
                return gone, path
        return gone, ""

    def last_said(self, expression: str, path: str) -> str:
        """The newest commit that changed a line of `path` that matches the expression, or ""."""
        question = (expression, path, self.oids.get(path, ""))  # the same content has the same history
        if question not in self.known.answers:
            self.known.answers[question] = self.git.try_text(
                "log", "-1", "--format=%H", "-G", expression, self.commit, "--", path
            )
        return self.known.answers[question]

    def _renamed_to(self, commit: str, path: str) -> str:
        flags = ("--no-commit-id", "-r", "-z", "-M", "--diff-filter=R", "--name-status", "--root")
        try:
            raw = self.git.run("diff-tree", *flags, commit).decode("utf-8", "surrogateescape").split("\0")
        except GitError:
            return ""
        moved = dict(zip(raw[1::3], raw[2::3], strict=False))
        return moved.get(path, "")


# --- what a page says -----------------------------------------------------------------


def broken_references(tree: DocTree, page: str) -> Iterator[BrokenReference]:
    """The broken references of a page."""
    told_then = RECORD.search(page) is not None
    for line, text, is_command in _references(tree.texts[page]):
        reference = DocReference(page, line, text)
        if is_command:
            if not told_then and (why := _missing(tree, text)):
                yield _broken(reference, why)
        elif (broken := _judge_link(tree, reference)) and (broken.better or not told_then):
            yield broken


def broken_imports(tree: DocTree, path: str) -> Iterator[BrokenReference]:
    """The imports of a page or an example that the repository's own package no longer allows."""
    from ralph_mission.adapters.observers.imports.examples import stale_imports  # an idle cycle reads none

    if not RECORD.search(path):
        for line, text, why in stale_imports(tree, path, tree.texts[path]):
            yield BrokenReference(path, line, text, why)


@lru_cache(maxsize=2 * MOST_PAGES)  # most pages of a new commit are unchanged
def _references(page: str) -> tuple[tuple[int, str, bool], ...]:
    """The references of a page: line, text, whether it is a command."""
    found: list[tuple[int, str, bool]] = []
    at = 0
    for token in _markdown().parse(page):
        at = token.map[0] + 1 if token.map else at
        found += ((_line_of(page, target, at), target, False) for target in _targets(token))
        if token.type == "fence" and token.info.strip().split(" ")[0].lower() in SHELLS:
            found += ((at + 1 + offset, command, True) for offset, command in _commands(token.content))
    return tuple(found)


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt  # takes a while to load

    return MarkdownIt("commonmark").enable("table")


def _targets(token: Token) -> Iterator[str]:
    for child in token.children or ():
        if child.type == "link_open":
            yield str(child.attrGet("href") or "")
        elif child.type == "image":
            yield str(child.attrGet("src") or "")
        elif child.type == "html_inline":
            yield from (found[1] for found in HTML_LINK.findall(child.content))
    if token.type == "html_block":
        yield from (found[1] for found in HTML_LINK.findall(token.content))


def _line_of(text: str, target: str, start: int) -> int:
    for number, line in enumerate(text.split("\n")[start - 1 :], start):
        if target in line or unquote(target) in line:
            return number
    return start


def _broken(reference: DocReference, why: str, better: str = "", sure: float = 0.9) -> BrokenReference:
    return BrokenReference(reference.page, reference.line, reference.text, why, better, sure)


def _judge_link(tree: DocTree, reference: DocReference) -> BrokenReference | None:
    target = reference.text
    if found := BADGE.search(target):
        name = unquote(found[2])
        workflow = f".github/workflows/{name}"
        missing = tree.slug.lower() == found[1].lower() and workflow not in tree.files
        return _broken(reference, f"the badge is of a workflow that is not there: {workflow}") if missing else None
    try:
        parts = urlsplit(target)
    except ValueError:
        return None
    if re.match(r"[^\w]+https?://", target):
        inner = re.fullmatch(r"\((https?://[^\s()]+)\)", target)
        return _broken(reference, "this is not an address: something stands before it", inner[1] if inner else "")
    if parts.scheme or parts.netloc or not target or target.startswith("/") or any(mark in target for mark in "{}<>$"):
        return None
    path = (
        posixpath.normpath(posixpath.join(posixpath.dirname(reference.page), unquote(parts.path))) if parts.path else ""
    )
    if parts.path and (path.startswith("..") or not _is_file_like(path)):
        return None
    if parts.path and not tree.has(path):
        return _judge_missing(tree, reference, path, parts.fragment)
    if parts.fragment and (path or reference.page).lower().endswith(PAGES) and not tree.is_in_site(reference.page):
        return _judge_anchor(tree, reference, path or reference.page, unquote(parts.fragment))
    return None


def _is_file_like(path: str) -> bool:
    """Whether the link has a suffix: sites drop those of pages, so links without one cannot be judged."""
    return "." in posixpath.basename(path)


def _judge_missing(tree: DocTree, reference: DocReference, path: str, fragment: str) -> BrokenReference | None:
    commit, now = tree.went_to(path)
    if now:
        better = posixpath.relpath(now, posixpath.dirname(reference.page) or ".") + (f"#{fragment}" if fragment else "")
        return _broken(reference, f"{path} was moved to {now} in {commit[:12]}", better, 0.95)
    if tree.is_in_site(reference.page):
        return None  # a site may fill it in
    if commit:
        return _broken(reference, f"{path} was removed in {commit[:12]}")
    folder = posixpath.dirname(path)
    alike = [one for one in tree.files if posixpath.dirname(one) == folder and Path(one).suffix == Path(path).suffix]
    if not alike:
        return None  # build output
    twin = next((one for one in alike if one.lower() == path.lower()), "")
    better = posixpath.relpath(twin, posixpath.dirname(reference.page) or ".") if twin else ""
    return _broken(reference, f"there is no {path}, and never was", better, 0.8)


def _judge_anchor(tree: DocTree, reference: DocReference, page: str, fragment: str) -> BrokenReference | None:
    text = tree.texts.get(page)
    if text is None or not fragment or re.fullmatch(r"L\d+(-L\d+)?|user-content-.*|:~:text=.*", fragment):
        return None
    if fragment.lower() in {anchor.lower() for anchor in anchors(text)}:
        return None
    return _broken(reference, f"{page} has no heading #{fragment}", sure=0.85)


@lru_cache(maxsize=2 * MOST_PAGES)
def anchors(text: str) -> set[str]:
    """The anchors of a page, as GitHub derives them from headings."""
    found: set[str] = {name for _, name in HTML_ANCHOR.findall(text)}
    found |= set(re.findall(r"\{:?\s*#([\w-]+)[^}\n]*\}", text))
    tokens = _markdown().parse(text)
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            words = "".join(
                child.content for child in token.children or () if child.type in ("text", "code_inline", "html_inline")
            )
            slug = NOT_SLUG.sub("", re.sub(r"<[^>]+>", "", words).strip().lower()).replace(" ", "-")
            name, number = slug, 0
            while name in found:
                number += 1
                name = f"{slug}-{number}"
            found.add(name)
    return found


def _commands(block: str) -> Iterator[tuple[int, str]]:
    """(line within the block, command), as long as it runs at the top of the repository."""
    for number, line in enumerate(block.split("\n")):
        command = re.sub(r"^\s*[$>%] ", "", line).strip()
        if re.match(r"(cd|pushd|git clone|docker|ssh)\b", command):
            return
        yield number, command


def _missing(tree: DocTree, command: str) -> str:
    """A command that no longer exists; one that never did may belong to another project."""
    if (found := RUN_MAKE.match(command)) and tree.make_targets is not None and found[1] not in tree.make_targets:
        commit = tree.last_said(rf"^{re.escape(found[1])}[^:=]*:", "Makefile")
        return f"the Makefile has no target {found[1]} since {commit[:12]}" if commit else ""
    if (found := RUN_SCRIPT.match(command)) and tree.scripts is not None and found[1] not in tree.scripts:
        commit = tree.last_said(rf'"{re.escape(found[1])}"[[:space:]]*:', "package.json")
        return f"package.json has no script {found[1]} since {commit[:12]}" if commit else ""
    if (found := RUN_FILE.match(command)) and not tree.has(posixpath.normpath(found[1])):
        commit, now = tree.went_to(posixpath.normpath(found[1]))
        if commit:
            return f"{found[1]} was {f'moved to {now}' if now else 'removed'} in {commit[:12]}"
    return ""


# --- what is told ---------------------------------------------------------------------


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
        link = compile_regex(rf"(?<=[(\"'<: ]){re.escape(one.text)}(?=[)\"'> \r]|$)")
        changed = link.sub(one.better.replace("\\", "\\\\"), line)
        if changed == line:
            return None
        lines[one.line - 1] = changed
    new = "\n".join(lines).encode("utf-8", "surrogateescape")
    return Patch(commit, (FileChange(page, entry.mode, entry.mode, old, new),))
