"""Names that git or a file system would misread: unsafe paths, protected paths, branch names.

Names are compared as the most forgiving file system would: case, compatibility forms,
ignorable code points, trailing dots and NTFS short names make no difference.
Sources: git's `verify_path`, `is_ntfs_dotgit`, `is_hfs_dotgit`, and git-check-ref-format(1).
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ralph_mission.safety import protected
from ralph_mission.safety.hidden import INVISIBLE

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SHORT_NAME = re.compile(r"[^.]{1,6}~[0-9]+(?:\.[^.]{0,3})?")
"""NTFS gives every long name one like GIT~1 or CLAUDE~1.MD; nobody writes such names by hand."""
BRANCH = re.compile(r"ralph/[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
"""Narrower than git: no shell, URL or option character, no component that starts with a dot or a dash."""


def unsafe_path(path: str) -> str:
    """Why no change may touch `path` at all, "" when it may. Bytes that are not UTF-8 are harmless by themselves."""
    if not path or path.startswith(("/", "~")):
        return "is not relative to the repository"
    if "\\" in path or ":" in path:
        return "holds a backslash or a colon (a drive, a stream, a separator on Windows)"
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in path):
        return "holds a control character"
    if INVISIBLE.search(path):
        return "holds invisible characters"
    return next((why for part in path.split("/") if (why := _unsafe_part(part))), "")


def protected_path(path: str, extra: Sequence[str] = ()) -> str:
    """Which protection covers `path`, "" when none does. `extra` holds globs as in `.gitignore`."""
    *folders, name = [fold(part) for part in path.split("/")]
    for folder in (*folders, name):
        if folder in protected.FOLDERS:
            return f"{folder}/ configures what is run or trusted"
    written = path.rpartition("/")[2]
    if _decides(folders, name) or written in protected.CAPITALS or _stands_out(path, protected.TOP_NAMES):
        return f"{name} decides what is run, installed, checked or told to an agent"
    return "is protected by configuration" if extra and _spec(tuple(extra)).match_file(path.casefold()) else ""


def steers_agents(path: str) -> bool:
    """Whether a coding agent that works in a repository may take `path` for orders, hooks or servers of its own.

    A manual of the name docs/agent.md is one of them: whoever reads a change is told what is kept from it.
    """
    parts = [fold(part) for part in path.split("/")]
    named = _among(protected.AGENT_NAMES).fullmatch(parts[-1]) or _stands_out(path, protected.TOP_GUIDES)
    # Where a file system ignores case, a reader of AGENT.md is given agent.md, whatever folder it looks into.
    return bool(named) or parts[-1] == "agent.md" or any(part in protected.AGENT_FOLDERS for part in parts)


def configures_agents(path: str) -> bool:
    """The same without the guides: what gives an agent hooks, servers, permissions or commands of its own."""
    *folders, name = [fold(part) for part in path.split("/")]
    if any(part in protected.AGENT_FOLDERS for part in (*folders, name)):
        return True
    return bool(_among(protected.AGENT_NAMES).fullmatch(name)) and not _among(protected.AGENT_GUIDES).fullmatch(name)


def branch_name_ok(name: str, existing: Iterable[str] = ()) -> bool:
    """Whether we may create branch `name` beside `existing`; the very same name is no collision."""
    if not BRANCH.fullmatch(name) or len(name) > 200 or ".." in name:
        return False
    if any(part.endswith((".", ".lock")) for part in name.split("/")):
        return False
    return not any(_collides(name, other) for other in existing)


def fold(part: str) -> str:
    """One path component as the most forgiving file system compares it."""
    plain = INVISIBLE.sub("", unicodedata.normalize("NFKC", part))
    return plain.split(":")[0].rstrip(". ").casefold() or part


def _unsafe_part(part: str) -> str:
    if part in ("", ".", ".."):
        return "has an empty, . or .. component"
    if fold(part) == ".git":
        return "names git's own folder"
    if SHORT_NAME.fullmatch(fold(part)):
        return "holds an NTFS short name"
    if part != part.rstrip(". "):
        return "has a component that ends with a dot or a space"
    return "" if len(part.encode("utf-8", "surrogateescape")) <= 255 else "has a component of more than 255 bytes"


def _collides(name: str, other: str) -> bool:
    mine, theirs = name.casefold(), other.casefold()
    if mine == theirs:
        return name != other
    return mine.startswith(theirs + "/") or theirs.startswith(mine + "/")


def _decides(folders: list[str], name: str) -> bool:
    """Whether something runs or obeys a file of this name there."""
    if _among(protected.NAMES).fullmatch(name) or _among(protected.PLACES).fullmatch("/".join((*folders[-1:], name))):
        return True
    if _among(protected.SAMPLES).fullmatch(name):
        return not _is_for_tests(folders, name)
    return False


def _stands_out(path: str, names: frozenset[str]) -> bool:
    """Whether it has one of these names, at the top or with a capital in it."""
    *folders, written = path.split("/")
    return fold(written) in names and (not folders or written != written.lower())


def _is_for_tests(folders: list[str], name: str) -> bool:
    """Whether it is data of tests: among the tests themselves it may be a checker's, or of a package `test`."""
    if not protected.SAMPLE_FOLDERS.isdisjoint(folders):
        return True
    if name.startswith(".") and not protected.FIXTURE_FOLDERS.isdisjoint(folders):
        return True
    of_tests = [at for at, folder in enumerate(folders) if folder in protected.TEST_FOLDERS]
    if not of_tests or name == "auth.json":  # this one runs nothing
        return bool(of_tests)
    return not protected.DATA_FOLDERS.isdisjoint(folders[of_tests[0] :])


@lru_cache(maxsize=8)
def _among(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, names)))


@lru_cache(maxsize=4)
def _spec(globs: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(glob.casefold() for glob in globs)
