"""Misspellings in prose, comments and docstrings, by the dictionary of codespell; text in, text out.

Only what a maintainer would nod at without looking twice: a misspelling with exactly one
correction, that is no name of anything in the file, and that stands where people write for people.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from ralph_mission.gateways.git import Entry
from ralph_mission.hands.fixer import Correction, Fix, Fixer, Tree
from ralph_mission.hands.ignores import WORD, Ignores, ignores
from ralph_mission.hands.lexing import is_code
from ralph_mission.hands.places import generated, not_our_words, off_limits
from ralph_mission.hands.prose import DOCUMENTS, MARKDOWN, canvas, names
from ralph_mission.mission.findings import normalised
from ralph_mission.trouble import Trouble

RULES = 1
"""Counts the changes to what follows here, so that no cache outlives its rules."""
Misspelling = tuple[int, str, str]
"""A line (1-based), what stood there, what stands there now."""

MIN_LENGTH = 5  # shorter words are too often abbreviations ...
SHORT = frozenset(  # ... but not these
    "teh hte thsi tihs htis taht thta tath wich whic wiht wtih wih whne wehn jsut konw knwo kown nkow alos olny onyl"
    " mroe soem evey evry mkae amke veyr vrey yuor witk waht whta ahve hvae sohw doen liek".split()
)
TWO_WORDS = frozenset(  # where a space is missing beyond doubt; the dictionary's other splits are a matter of style
    "afterall andthe aswell atleast alteast beable besure canbe eachother eventhough everytime evrytime fromthe infact"
    " inthe ofthe ofcource onthe tothe wantto withthe".split()
)
# Names, other languages or words of the trade more often than misspellings.
DOUBTFUL = frozenset("adresse claus datas exemple overlayed overwritte programms serie".split())
HEADED = tuple(MARKDOWN)
MAX_REPEATS = 5  # a "misspelling" that a file uses more often is its own word
MAX_SHARE = 3 / 100  # corrections per word: above it the text is not English
_BEFORE = re.compile(r"[\s(*“\[—]")
_AFTER = re.compile(r"[\s*—\]]|[.,;:!?)”…]+(?=[\s)\]”*\0\"]|$)")
_SENTENCE_START = re.compile(r"(?:^|(?<!\bProf)(?<!\bMrs)(?<=[a-z\0)]{2})[.!?:]\s)[\s\0>*+#=|\d.)(-]*$")
_ENGLISH = frozenset(
    "the of and is this that with when if not are it for to be from by has have will can should which you your we "
    "a in".split()
)
_OPT_OUT = re.compile(r"codespell:ignore|spell-?check(?:er)?:\s*(?:disable|ignore)|\bsic\b|cspell:")


def version() -> str:
    """Of the dictionary and of the rules here, for caches."""
    return f"codespell {importlib.metadata.version('codespell')}, rules {RULES}"


def fixes(tree: Tree) -> Iterator[Fix]:
    """One fix per file with misspellings. Raises Trouble when the repository's settings cannot be obeyed."""
    configured = ignores(tree)
    found = list(_suspected(tree, configured))
    taken = _names_in(tree, frozenset(word for _, text in found for word in misspellings(text)))
    for entry, text in found:
        new, corrections = correct(entry.path, text, _ignored(configured, text) | taken)
        if corrections:
            yield Fix(entry.path, entry.mode, text.encode(), new.encode(), _shown(text, corrections))


def correct(path: str, text: str, ignored: frozenset[str]) -> tuple[str, tuple[Misspelling, ...]]:
    """`text` with its misspellings corrected, and what was corrected; `ignored` words (lower case) stay."""
    suspects = misspellings(text) - ignored
    shown = canvas(path, text) if suspects else None
    if shown is None:
        return text, ()
    suspects -= names(path, text, suspects)
    known = (match for match in WORD.finditer(shown) if match[0].lower() in suspects)
    found = [match for match in known if _certain(path, text, shown, match)]
    if not found or not _plausible(shown, len(found)):
        return text, ()
    found = _rare(found)
    return _replaced(text, found), tuple(
        (text.count("\n", 0, match.start()) + 1, match[0], _correction(match[0])) for match in found
    )


def misspellings(text: str) -> frozenset[str]:
    """The words (lower case) of a text, wherever they stand, that the dictionary knows as misspelt."""
    return frozenset(word for found in set(WORD.findall(text)) if (word := found.lower()) in dictionary())


def _suspected(tree: Tree, configured: Ignores) -> Iterator[tuple[Entry, str]]:
    """The files in which there is something to correct, as far as they can tell by themselves."""
    for entry, text in tree.texts(_wanted(configured)):
        if tree.out_of_time:
            return
        if not generated(text) and correct(entry.path, text, _ignored(configured, text))[1]:
            yield entry, text


def _wanted(configured: Ignores) -> Callable[[str], bool]:
    def wanted(path: str) -> bool:
        known = PurePosixPath(path).suffix.lower() in DOCUMENTS or is_code(path)
        return known and not (off_limits(path) or not_our_words(path) or configured.skipped(path))

    return wanted


def _ignored(configured: Ignores, text: str) -> frozenset[str]:
    return configured.words | configured.within(text)


def _names_in(tree: Tree, words: frozenset[str]) -> frozenset[str]:
    """Which of `words` are names of something anywhere in the repository: an option, a key, a function."""
    everywhere = tree.texts(lambda _: True) if words else ()
    return frozenset(word for entry, text in everywhere for word in names(entry.path, text, words))


def _shown(text: str, corrections: tuple[Misspelling, ...]) -> tuple[Correction, ...]:
    lines = text.split("\n")
    return tuple(Correction(at, f"{old} → {new}", normalised(lines[at - 1])) for at, old, new in corrections)


@cache
def dictionary() -> dict[str, str]:
    """Misspelling -> its only correction, of codespell's `clear` dictionary. Raises Trouble without codespell."""
    # Read as data: the program itself is not needed for text in, text out.
    spec = importlib.util.find_spec("codespell_lib")
    if spec is None or spec.origin is None:
        raise Trouble("the fixer codespell is not installed", "install the package's requirements again")
    rows = Path(spec.origin).with_name("data").joinpath("dictionary.txt").read_text("utf-8").splitlines()
    entries = (row.partition("->")[::2] for row in rows)
    return {wrong: right for wrong, right in entries if _clear(wrong, right)}


def _clear(wrong: str, right: str) -> bool:
    letters = wrong.replace("'", "")
    if not letters.isalpha() or not wrong.islower() or wrong in DOUBTFUL:
        return False
    if not right.replace("'", "").isalpha() or not right.islower():  # several, with a reason, a name, or two words
        return wrong in TWO_WORDS and "," not in right
    return len(wrong) >= MIN_LENGTH or wrong in SHORT


def _certain(path: str, text: str, shown: str, match: re.Match[str]) -> bool:
    word, start, end = match[0], match.start(), match.end()
    before_fits = start == 0 or _BEFORE.match(shown[start - 1])
    after_fits = end == len(shown) or _AFTER.match(shown, end)
    if not (before_fits and after_fits and word[1:].islower()):
        return False
    first, last = _line_around(shown, start)
    heading = path.lower().endswith(HEADED) and text.startswith("#", first)
    return _OPT_OUT.search(text, first, last) is None and _in_sentence(shown[first:last], start - first, word, heading)


def _line_around(text: str, position: int) -> tuple[int, int]:
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, end if end >= 0 else len(text)


def _in_sentence(line: str, column: int, word: str, heading: bool) -> bool:
    if any(char.isalpha() and not char.isascii() for char in line):
        return False
    if len(WORD.findall(line)) < 2 and not heading:  # a word alone on its line is a name as likely as not
        return False
    return word.islower() or heading or bool(_SENTENCE_START.search(line[:column]))


def _plausible(shown: str, corrections: int) -> bool:
    """Whether the prose is English and the corrections are few enough to be misspellings."""
    words = [word.lower() for word in WORD.findall(shown)]
    english = sum(word in _ENGLISH for word in words)
    if len(words) >= 20 and english < len(words) * 0.08:
        return False
    return corrections <= max(3, len(words) * MAX_SHARE)


def _rare(found: list[re.Match[str]]) -> list[re.Match[str]]:
    counted: dict[str, int] = {}
    for match in found:
        counted[match[0].lower()] = counted.get(match[0].lower(), 0) + 1
    return [match for match in found if counted[match[0].lower()] <= MAX_REPEATS]


def _replaced(text: str, found: list[re.Match[str]]) -> str:
    def parts() -> Iterator[str]:
        done = 0
        for match in found:
            yield text[done : match.start()] + _correction(match[0])
            done = match.end()
        yield text[done:]

    return "".join(parts())


def _correction(word: str) -> str:
    right = dictionary()[word.lower()]
    return right[0].upper() + right[1:] if word[0].isupper() else right


FIXER = Fixer("codespell", "spelling", version, fixes)
