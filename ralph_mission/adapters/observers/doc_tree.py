"""The files of a commit as documentation refers to them: pages, commands, and what git knows of missing ones.

A command counts as missing if it once existed: one that never did may belong to another project.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers.markers import excluder, is_test_data
from ralph_mission.adapters.projects.manifests import read_json, read_toml, table
from ralph_mission.values import compile_regex, dataclass

PAGES = (".md", ".markdown")
MOST_PAGES, LARGEST = 1_000, 500_000  # pages, bytes of a page
HOPS = 5  # renames that are followed
SITE = compile_regex(
    r"(?:^|/)(?:\.(?:vitepress|vuepress)/config(?:\.\w+|/.+)|(?:docusaurus|astro)\.config\.[cm]?[jt]s|conf\.py"
    r"|(?:mkdocs|antora|_config|_quarto|hugo)\.ya?ml|(?:book|hugo|zensical)\.toml)$"
)
"""Site generators: they rearrange pages, so their links and anchors cannot be judged from the tree."""
EXAMPLES = compile_regex(r"(?:^|/)(?:docs|docs_src|doc|examples?)/(?:.*/)?[^/]+\.py$")
MANIFESTS = ("Makefile", "package.json", "pyproject.toml")
MAKE_RULE = compile_regex(r"^([^\s:#=][^:#=]*):(?!=)", re.MULTILINE)
RUN_SCRIPT = compile_regex(
    r"^(?:npm|yarn|pnpm|bun) run(?:-script)? ([\w:.-]+)"
    r"(?!.*\s(?:-w|-ws|-F|-C|-r|--(?:workspaces?|filter|prefix|if-present|cwd)))"
)
RUN_MAKE = compile_regex(r"^make ([\w.-]+)\s*(?:$|#|&&|;)")
RUN_FILE = compile_regex(r"^(?:(?:ba|z)?sh |python3? |node |source |\. )?(\.{0,2}/?[\w./-]+\.(?:sh|py|js|mjs|ts|rb))\b")
RUN_PROGRAM = compile_regex(r"^(?:uv run |poetry run |npx |sudo )?([\w.-]+) (?!.*<<)([^|;&#<>`]*)")
OPTION = compile_regex(r"(?<!\S)--([a-z][a-z0-9-]*[a-z0-9])(?=[\s=]|$)")
PROSE = compile_regex(r"\.(?:md|markdown|rst|txt|adoc)$|^(?:docs?|\.github)/", re.IGNORECASE)


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


def read_targets(makefile: str) -> frozenset[str] | None:
    """The targets of a Makefile; None if unknown."""
    if not makefile or re.search(r"^\s*[-s]?include\b|^[^\t#\n]*%[^\n]*:|^\$[({]", makefile, re.MULTILINE):
        return None
    return frozenset(name for rule in MAKE_RULE.findall(makefile) for name in rule.split())


def read_scripts(package: str) -> frozenset[str] | None:
    """The scripts of a package.json; None if unreadable."""
    found = table(read_json(package)).get("scripts")
    return frozenset(found) if isinstance(found, dict) else None


class DocTree:
    """The files of a commit, with its pages' contents."""

    def __init__(
        self, git: Git, commit: str, files: Mapping[str, str], texts: Mapping[str, str], known: KnownHistory
    ) -> None:
        self.git, self.commit, self.oids, self.texts, self.known = git, commit, files, texts, known
        self.files: Collection[str] = frozenset(files)
        self.sources = dict[str, str]()  # the texts that were read so far besides those of pages
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
        wanted += [path for path in MANIFESTS if path in entries]
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

    def has(self, path: str) -> bool:
        """Whether a file or folder exists."""
        return path in self.files or path in self.folders or path in ("", ".")

    def is_in_project(self, page: str) -> bool:
        """Whether a folder of the page below the top has a manifest of its own, by which its commands run."""
        folders = map(str, Path(page).parents)
        return any(f"{folder}/{name}" in self.files for folder in folders if folder != "." for name in MANIFESTS)

    def is_in_site(self, page: str) -> bool:
        """Whether a site generator may render the page: one with settings at the top or in the page's folder."""
        top = page.partition("/")[0] if "/" in page else None
        return top is not None and (None in self.sites or top in self.sites)

    @cached_property
    def sites(self) -> frozenset[str | None]:
        """Top-level folders with a generator's settings; None for the top itself."""
        folders = (path[: found.start()] for path in self.files if (found := SITE.search(path)))
        return frozenset(folder.partition("/")[0] or None for folder in folders)

    @cached_property
    def make_targets(self) -> frozenset[str] | None:
        """The targets of the top-level Makefile; None if unknown."""
        return read_targets(self.texts.get("Makefile", ""))

    @cached_property
    def scripts(self) -> frozenset[str] | None:
        """The scripts of the top-level package.json; None if unreadable."""
        return read_scripts(self.texts.get("package.json", ""))

    @cached_property
    def programs(self) -> frozenset[str]:
        """The command-line programs that the repository installs, by its top-level manifests."""
        package = table(read_json(self.texts.get("package.json", "")))
        project = read_toml(self.texts.get("pyproject.toml", ""))
        bins = table(package, "bin") or ({package["name"]: ""} if isinstance(package.get("bin"), str) else {})
        scripts = {**table(project, "project", "scripts"), **table(project, "tool", "poetry", "scripts")}
        return frozenset(map(str, (*bins, *scripts)))

    def option_gone(self, name: str) -> str:
        """The newest commit that removed the option `--NAME` from the sources; "" if it is there or never was.

        Parsers also derive options from names (`dry_run`, `dryRun`), so any of these counts.
        """
        question = ("--", name, self.commit)
        if question not in self.known.answers:
            self.known.answers[question] = "" if self._names_option(name) else self._removal_of(f"--{name}")
        return self.known.answers[question]

    def _names_option(self, name: str) -> bool:
        first, *others = name.split("-")
        spelled = (f"--{name}", name, name.replace("-", "_"), first + "".join(map(str.capitalize, others)))
        patterns = (flag for text in spelled for flag in ("-e", text))
        found = self.git.try_text("grep", "-lFwz", *patterns, self.commit).split("\0")
        return any(not PROSE.search(place.removeprefix(f"{self.commit}:")) for place in found if place)

    def _removal_of(self, text: str) -> str:
        """The newest commit that changed how often sources say it."""
        changes = self.git.try_text("log", "--format=%x00%H", "--name-only", f"-S{text}", self.commit).split("\0")
        listed = (change.split() for change in changes if change)
        return next((commit for commit, *paths in listed if any(not PROSE.search(path) for path in paths)), "")

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


def find_missing(tree: DocTree, command: str, folder: str = "") -> str:
    """Why a command of a page in `folder` no longer exists; one that never did may belong to another project."""
    if (found := RUN_MAKE.match(command)) and tree.make_targets is not None and found[1] not in tree.make_targets:
        commit = tree.last_said(rf"^{re.escape(found[1])}[^:=]*:", "Makefile")
        return f"the Makefile has no target {found[1]} since {commit[:12]}" if commit else ""
    if (found := RUN_SCRIPT.match(command)) and tree.scripts is not None and found[1] not in tree.scripts:
        commit = tree.last_said(rf'"{re.escape(found[1])}"[[:space:]]*:', "package.json")
        return f"package.json has no script {found[1]} since {commit[:12]}" if commit else ""
    if (found := RUN_FILE.match(command)) and not any(
        tree.has(posixpath.normpath(posixpath.join(where, found[1]))) for where in ("", folder)
    ):
        commit, now = tree.went_to(posixpath.normpath(found[1]))
        if commit:
            return f"{found[1]} was {f'moved to {now}' if now else 'removed'} in {commit[:12]}"
    if (found := RUN_PROGRAM.match(command)) and found[1] in tree.programs:
        gone = ((option, tree.option_gone(option)) for option in OPTION.findall(found[2].partition(" -- ")[0]))
        return next(
            (f"{found[1]} has no option --{option} since {commit[:12]}" for option, commit in gone if commit), ""
        )
    return ""
