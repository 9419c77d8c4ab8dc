"""Misspellings in prose, comments and docstrings, by the dictionary of typos.

`typos` finds them, in a clone of text files alone; here is decided which of them a maintainer would nod at without
looking twice: those with one correction, where people write for people, of words that stand nowhere else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ralph_mission.adapters.fixers.fixer import CommitTree, Correction, Fix, Fixer, Unfinished, installed_version
from ralph_mission.adapters.fixers.places import (
    DOCUMENTS,
    MARKDOWN,
    identifiers,
    is_code,
    is_generated,
    not_our_words,
    off_limits,
    prose,
)
from ralph_mission.adapters.git.git import TreeEntry
from ralph_mission.adapters.sandbox.process import own_tool, run_foreign
from ralph_mission.errors import UserError
from ralph_mission.mission.findings.identity import normalise_line
from ralph_mission.values import compile_regex, dataclass

RULES = 3
"""Counts the changes to what follows here and in `places`, so that no cache outlives its rules."""
SETTINGS = ("typos.toml", "_typos.toml", ".typos.toml", "pyproject.toml")
"""Where a repository says what typos leaves alone; the first of them that says anything is read."""
SECONDS = 120.0
PART = 4_000
"""Files checked in one run of typos; the deadline is checked between runs."""
MIN_LENGTH = 5  # shorter words are too often abbreviations ...
SHORT = frozenset("teh hte thsi taht thta wich whic wiht wtih htis".split())  # ... but not these
# Names, other languages or words of the trade more often than misspellings.
DOUBTFUL = frozenset("claus datas exemple overlayed overwritte programms serie unparseable".split())
MAX_REPEATS = 3  # a "misspelling" that a file uses more often is its own word
SWAPPED = 6  # letters of a word of which the dictionary does not know that two of them are swapped
EVIDENCE = 2  # times as often a file writes such a word rightly; from ...
STRONG = 3  # ... so many times on it is a slip of the pen, however often
# Words that are right, though another word is made of them by swapping two letters.
BOTH_RIGHT = frozenset(
    "angels angles barely barley calvary cavalry casual casually causal causally complaint complaints compliant "
    "discreet discrete marital martial nuclear unclear perfect prefect reigns resign sacred scared signed singed "
    "silver sliver trails trials united untied unites unties".split()
)
MAX_SHARE = 3 / 100  # corrections per word: above it the text is not English
WORD = compile_regex(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_PLAIN = compile_regex(r"[A-Za-z]+(?: [a-z]+)?")  # a correction
_BEFORE = compile_regex(r"[\s(*“\[—]")
_AFTER = compile_regex(r"[\s*—\]]|[.,;:!?)”…]+(?=[\s)\]”*\"]|$)")
_SENTENCE_START = compile_regex(r"(?:^|(?<!\bProf)(?<!\bMrs)(?<=[a-z`)]{2})[.!?:]\s)[\s>*/+#=|\d.)(-]*$")
_NAMED = compile_regex(r"[@:]\w+(?:\s+\{[^}]*\})?\s+$")  # before what a tag or a field documents: `@param `, `:param `
_LABEL = (
    compile_regex(r"(?:^|[#*/>\"'-])\s*$"),
    compile_regex(r"\s*(?:\([^()\n]*\))?\s*:(?:\s|$)"),
)  # `name (int): what it is`
_CELL = compile_regex(r"\|\s*$"), compile_regex(r"\s*\|")  # a cell of one word
_NOT_UTF8 = compile_regex(r"[\ud800-\udfff]")  # in a path: typos ends at such a one
_OPT_OUT = compile_regex(r"(?:codespell|typos):\s*ignore|spell-?check(?:er)?:\s*(?:disable|ignore)|\bsic\b|cspell:")
_ENGLISH = frozenset(
    "the of and is this that with when if not are it for to be from by has have will can should which you your we "
    "a in".split()
)


class TyposHit(NamedTuple):
    """What typos reported: line (1-based), byte in the line, word, corrections."""

    line: int
    byte: int
    word: str
    corrections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Misspelling:
    """Where a word stands (characters from the beginning of the text), and what should stand there."""

    start: int
    word: str
    correction: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """A file with misspellings, unless they are names elsewhere; `words` (lower case): what would be corrected."""

    entry: TreeEntry
    text: str
    hits: tuple[TyposHit, ...]
    words: frozenset[str]


def version() -> str:
    """Of the dictionary, of what takes files apart, and of the rules here, for caches."""
    tools = ", ".join(f"{name} {installed_version(name)}" for name in ("typos", "pygments", "markdown-it-py"))
    return f"{tools}, rules {RULES}"


def fixes(tree: CommitTree) -> Iterator[Fix]:
    """One fix per file with misspellings, until time runs out; the next call continues with the remaining files.

    Raises UserError when typos cannot run or read the repository's settings, and Unfinished after the last fix.
    """
    suspects, finished = _suspects(tree)
    names = _names_in(tree, frozenset[str]().union(*(one.words for one in suspects)))
    for one in sorted(suspects, key=lambda one: one.entry.path):
        new, corrections = correct(one.entry.path, one.text, one.hits, names)
        if corrections:
            old = one.text.encode()
            yield Fix(one.entry.path, one.entry.mode, old, new.encode(), _to_corrections(one.text, corrections))
    if not finished:
        raise Unfinished


def _suspects(tree: CommitTree) -> tuple[list[Suspect], bool]:
    """The files with misspellings, and whether every file was checked.

    Results are cached by path and object, part by part, while the settings stay the same. Clean files are skipped;
    files with misspellings are checked after unknown ones, least recently checked first.
    """
    settings = [entry for entry in tree.entries if _says_anything(tree, entry)]
    key = [[entry.path, entry.oid] for entry in settings]
    oids = {entry.path: entry.oid for entry in tree.entries}
    clean, dirty = (
        {path: oid for path, oid in known.items() if oids.get(path) == oid} for known in _recall(tree.memo, key)
    )
    tree.memo.update(settings=key, clean=clean, dirty=dirty)
    places = {path: place for place, path in enumerate(dirty, 1)}
    others = [entry for entry in tree.entries if entry.path not in clean and _is_wanted(entry.path)]
    others.sort(key=lambda entry: places.get(entry.path, 0))
    suspects: list[Suspect] = []
    for start in range(0, len(others), PART):
        if tree.out_of_time:
            return suspects, False
        part = {entry.path: entry for entry in others[start : start + PART]}
        found = {one.entry.path: one for one in _check(tree, part, settings)}
        for path in part:
            dirty.pop(path, None)
            (dirty if path in found else clean)[path] = oids[path]
        suspects += found.values()
    return suspects, True


def _recall(memo: Mapping[str, Any], settings: list[list[str]]) -> tuple[dict[str, str], dict[str, str]]:
    """The cached clean and dirty files (path -> object), if they were checked with these settings."""
    with suppress(KeyError, TypeError, ValueError):
        if memo["settings"] == settings:
            return dict(memo["clean"]), dict(memo["dirty"])
    return {}, {}


def _says_anything(tree: CommitTree, entry: TreeEntry) -> bool:
    if entry.path != "pyproject.toml":
        return entry.path in SETTINGS
    return b"[tool.typos" in tree.git.blobs([entry.oid]).get(entry.oid, b"")


def _check(tree: CommitTree, part: Mapping[str, TreeEntry], settings: Iterable[TreeEntry]) -> Iterator[Suspect]:
    texts = [entry for entry, text in tree.texts(part.__contains__) if not is_generated(text)]
    if not texts:
        return
    from ralph_mission.adapters.workspace.clone import clone

    with clone(tree.git, tree.commit, tree.scratch, paths=[one.path for one in (*texts, *settings)]) as folder:
        found = run_typos(folder, tree.scratch / "home")
    for entry, text in tree.texts((found.keys() & part.keys()).__contains__):
        hits = tuple(found[entry.path])
        if corrections := correct(entry.path, text, hits)[1]:
            yield Suspect(entry, text, hits, frozenset(one.word.lower() for one in corrections))


def run_typos(folder: Path, home: Path) -> dict[str, list[TyposHit]]:
    """What typos finds in the files below `folder`, by path. It writes nothing.

    Of settings it is given those at the top of the repository alone: they exclude files and allow words. Raises
    UserError when they cannot be read.
    """
    command = [own_tool("typos"), "--format", "json", "--isolated", "--hidden", "--no-ignore", "--no-check-filenames"]
    done = run_foreign(
        [*command, *_settings(folder), "."], cwd=folder, home=home, timeout=SECONDS, output_cap=50_000_000
    )
    if done.code not in (0, 2):
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = "it took too long" if done.timed_out else (lines[-1] if lines else f"exit code {done.code}")
        raise UserError(f"typos cannot check this repository: {reason}", "run `typos` there to see why")
    found: dict[str, list[TyposHit]] = {}
    for row in map(json.loads, done.stdout.splitlines()):
        if row.get("type") == "typo" and "line_num" in row:
            hit = TyposHit(row["line_num"], row["byte_offset"], row["typo"], tuple(row["corrections"]))
            found.setdefault(PurePosixPath(row["path"]).as_posix(), []).append(hit)
    return found


def correct(
    path: str, text: str, found: Iterable[TyposHit], names: frozenset[str] = frozenset()
) -> tuple[str, tuple[Misspelling, ...]]:
    """`text` with its misspellings corrected, and what was corrected; `names` (lower case) stay."""
    found = tuple(found)
    if not any(_is_certain(path, text, one) for one in _locate(text, found)):
        return text, ()
    written = prose(path, text)
    if written is None:
        return text, ()
    slips, strong = _find_slips(text, written, {hit.word.lower() for hit in found})  # who mistypes once does so again
    sites = _locate(text, (*found, *slips))
    certain = [one for one in sites if one.word.lower() not in names and _is_certain(path, text, one)]
    counted = Counter(one.word.lower() for one in certain)
    # A word that also stands elsewhere in the file, or within a longer name, is a name itself.
    corrections = {
        word
        for word, times in counted.items()
        if _count(word, text) != _count(word, written) or (word not in strong and _count(word, written) != times)
    }
    few = {word for word, times in counted.items() if times <= MAX_REPEATS or word in strong}
    certain = [one for one in certain if one.word.lower() in few - corrections]
    if not certain or not _is_plausible(written, len(certain)):
        return text, ()
    for one in reversed(certain):
        text = text[: one.start] + one.correction + text[one.start + len(one.word) :]
    return text, tuple(certain)


def _find_slips(text: str, written: str, known: Collection[str]) -> tuple[tuple[TyposHit, ...], frozenset[str]]:
    """Words with two neighbouring letters swapped, which the file itself writes rightly far more often; and those of
    which it does so often enough that no repetition makes a name of them. `known` to the dictionary are left out."""
    counted = Counter(word.lower() for word in WORD.findall(written))
    slips: dict[str, str] = {}
    for word, times in counted.items():
        if len(word) < SWAPPED or word in known or word in BOTH_RIGHT:
            continue
        right = [other for other in _swaps(word) if counted[other] >= EVIDENCE * times and other not in known]
        if len(right) == 1:
            slips[word] = right[0]
    strong = frozenset(word for word, right in slips.items() if counted[right] >= STRONG * counted[word])
    return tuple(_hits(text, slips)), strong


def _hits(text: str, slips: Mapping[str, str]) -> Iterator[TyposHit]:
    for number, line in enumerate(text.split("\n") if slips else (), 1):
        for found in WORD.finditer(line):
            if right := slips.get(found[0].lower()):
                right = right.capitalize() if found[0][0].isupper() else right
                yield TyposHit(number, len(line[: found.start()].encode()), found[0], (right,))


def _swaps(word: str) -> Iterator[str]:
    """What becomes of a word when two neighbouring letters change places."""
    for place in range(len(word) - 1):
        if word[place] != word[place + 1]:
            yield word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def _only_right(hit: TyposHit) -> str:
    """The one correction there is, or of several the one that only swaps two neighbouring letters; "" for none, also
    where swapping two gives the beginning of the one: it is rather that word (`conversino`, not `conversions`)."""
    if len(hit.corrections) == 1:
        (one,) = hit.corrections
        longer = (one.lower().startswith(swap) for swap in _swaps(hit.word.lower()) if len(swap) < len(one))
        return "" if any(longer) else one
    swapped = [one for one in hit.corrections if one.lower() in _swaps(hit.word.lower())]
    return swapped[0] if len(swapped) == 1 and len(hit.word) >= SWAPPED else ""


def _settings(folder: Path) -> list[str]:
    """The option that names the repository's settings for typos."""
    return next((["--config", name] for name in SETTINGS if (folder / name).is_file()), [])


def _is_wanted(path: str) -> bool:
    known = PurePosixPath(path).suffix.lower() in DOCUMENTS or is_code(path)
    return known and not (off_limits(path) or not_our_words(path)) and not _NOT_UTF8.search(path)


def _locate(text: str, found: Iterable[TyposHit]) -> Iterator[Misspelling]:
    """What was found with one correction, in order, at its place in the text."""
    lines = text.encode().split(b"\n")
    starts = list(accumulate((len(line.decode()) + 1 for line in lines), initial=0))
    for hit in sorted(found):
        right = _only_right(hit)
        if hit.line > len(lines) or not _PLAIN.fullmatch(right):
            continue
        start = starts[hit.line - 1] + len(lines[hit.line - 1][: hit.byte].decode(errors="replace"))
        long_enough = len(hit.word) >= MIN_LENGTH or hit.word.lower() in SHORT
        if long_enough and text.startswith(hit.word, start):
            yield Misspelling(start, hit.word, right)


def _is_certain(path: str, text: str, found: Misspelling) -> bool:
    """Whether it stands there as a word of a sentence."""
    word, start, end = found.word, found.start, found.start + len(found.word)
    if word.lower() in DOUBTFUL or not word[1:].islower() or not _AFTER.match(f"{text[end : end + 9]} "[:9]):
        return False
    if start and not _BEFORE.match(text[start - 1]):
        return False
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    before, after = text[first:start], text[end : last if last >= 0 else len(text)]
    line = before + word + after
    heading = PurePosixPath(path).suffix.lower() in MARKDOWN and line.startswith("#")
    if not (heading or word.islower() or _SENTENCE_START.search(before)):
        return False
    if len(WORD.findall(line)) < 2 and not heading:  # a word alone on its line is a name as likely as not
        return False
    alone = any(left.search(before) and right.match(after) for left, right in (_LABEL, _CELL))
    foreign = any(char.isalpha() and not char.isascii() for char in line)
    return not (alone or foreign or _NAMED.search(before) or _OPT_OUT.search(line))


def _is_plausible(written: str, corrections: int) -> bool:
    """Whether the prose is English and the corrections are few enough to be misspellings."""
    words = [word.lower() for word in WORD.findall(written)]
    english = sum(word in _ENGLISH for word in words)
    if len(words) >= 20 and english < len(words) * 0.08:
        return False
    return corrections <= max(3, len(words) * MAX_SHARE)


def _names_in(tree: CommitTree, words: frozenset[str]) -> frozenset[str]:
    """Which of `words` are names of something anywhere in the repository: an option, a key, a function."""
    names = set[str]()
    for entry, text in tree.texts(lambda _: bool(words)):
        names.update(_names(entry.path, text, words - names))
    return frozenset(names)


def _names(path: str, text: str, words: Iterable[str]) -> Iterator[str]:
    lower = text.lower()
    there = [word for word in words if word in lower]  # a first look that costs little
    if not there:
        return
    if is_code(path):
        named, written = "\n".join(identifiers(path, text)), ""
    else:
        named, written = text, prose(path, text) or ""
    yield from (word for word in there if _count(word, named) > _count(word, written))


def _count(word: str, text: str) -> int:
    """How often it stands there, by itself or as a part of snake_case, camelCase and UPPER_CASE."""
    return sum(1 for _ in _parts(word).finditer(text))


@lru_cache(maxsize=256)
def _parts(word: str) -> re.Pattern[str]:
    lower, title, upper = map(re.escape, (word, word.capitalize(), word.upper()))
    return re.compile(rf"(?:(?<![A-Za-z]){lower}|{title})(?![a-z])|(?<![A-Z]){upper}(?![A-Za-z])")


def _to_corrections(text: str, corrections: tuple[Misspelling, ...]) -> tuple[Correction, ...]:
    lines = text.split("\n")
    numbers = [text.count("\n", 0, one.start) for one in corrections]
    return tuple(
        Correction(number + 1, f"{one.word} → {one.correction}", normalise_line(lines[number]))
        for number, one in zip(numbers, corrections, strict=True)
    )


FIXER = Fixer("typos", "spelling", version, fixes)
