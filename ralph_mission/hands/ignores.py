"""What a repository itself tells codespell to leave alone, read as data from its configuration.

Sources, as codespell documents them: `.codespellrc`, `setup.cfg`, `[tool.codespell]` of pyproject.toml.
"""

from __future__ import annotations

import configparser
import fnmatch
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ralph_mission.hands.fixer import Tree
from ralph_mission.trouble import Trouble

_NESTED = re.compile(r"[+*}]\)?[+*{]|\([^()]*[+*{][^()]*\)[+*{]")
WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class Ignores:
    """Words (lower case), globs of paths, whole lines, and a pattern whose matches are left alone."""

    words: frozenset[str] = frozenset()
    skip: tuple[str, ...] = ()
    lines: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    def skipped(self, path: str) -> bool:
        """Whether `path`, its name or a folder above it matches a glob, as in codespell's `--skip`."""
        places = (PurePosixPath(path), *PurePosixPath(path).parents)
        names = {str(place) for place in places} | {place.name for place in places} - {".", ""}
        return any(fnmatch.fnmatchcase(name, glob) for name in names for glob in self.skip)

    def within(self, text: str) -> frozenset[str]:
        """The words of `text` that stand on an excluded line or match the pattern."""
        lines = [line for line in text.splitlines() if line.strip() in self.lines] if self.lines else []
        matches = [match[0] for match in self.pattern.finditer(text)] if self.pattern else []
        return frozenset(word.lower() for part in (*lines, *matches) for word in WORD.findall(part))


def ignores(tree: Tree) -> Ignores:
    """What the repository configured. Raises Trouble when its configuration cannot be read or obeyed."""
    merged: dict[str, list[str]] = {}
    for settings in _settings(tree):
        for name, value in settings.items():
            merged.setdefault(name.replace("_", "-"), []).extend(_listed(value))
    files = [tree.read(name) for name in merged.get("ignore-words", [])]
    words = [*merged.get("ignore-words-list", []), *(line.strip() for text in files for line in text.splitlines())]
    excluded = [tree.read(name).splitlines() for name in merged.get("exclude-file", [])]
    return Ignores(
        words=frozenset(word.lower() for word in words if word),
        skip=tuple(glob.removeprefix("./").rstrip("/") for glob in merged.get("skip", [])),
        lines=frozenset(line.strip() for lines in excluded for line in lines if line.strip()),
        pattern=_pattern(",".join(merged.get("ignore-regex", []))),
    )


def _settings(tree: Tree) -> Iterator[Mapping[str, object]]:
    try:
        for name in ("setup.cfg", ".codespellrc"):
            parser = configparser.ConfigParser(interpolation=None, strict=False)
            text = tree.read(name)
            if "[codespell]" in text:
                parser.read_string(text)
                yield dict(parser["codespell"])
        text = tree.read("pyproject.toml")
        if "codespell" in text:
            yield tomllib.loads(text).get("tool", {}).get("codespell", {})
    except (configparser.Error, tomllib.TOMLDecodeError, KeyError, AttributeError, RecursionError) as error:
        raise Trouble(f"the repository's codespell settings cannot be read: {error}", "mend the file") from None


def _listed(value: object) -> list[str]:
    items = value if isinstance(value, list) else str(value or "").replace("\n", ",").split(",")
    return [text for item in items if (text := str(item).strip())]


def _pattern(source: str) -> re.Pattern[str] | None:
    # A pattern of the repository runs over all its text: one that may take for ever is refused.
    if not source:
        return None
    try:
        if not _NESTED.search(source) and len(source) <= 500:
            return re.compile(source)
    except re.error:
        pass
    raise Trouble("codespell's ignore-regex cannot be obeyed safely", "write it without a repeat inside a repeat")
