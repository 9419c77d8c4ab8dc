"""Which files a fixer leaves alone: by whose they are, by how they came to be, by their language."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from ralph_mission.safety.paths import fixer_may_write, unsafe_path

DOCUMENTS = frozenset(".md .markdown .mdx .mkd .rst .adoc .asciidoc .txt .text".split())
"""Suffixes of texts that are prose."""
OTHERS = frozenset(
    """
    vendor vendored _vendor _vendored third_party third-party thirdparty 3rdparty extern external externals contrib
    node_modules bower_components site-packages dist build out target generated gen __generated__ autogen min
    public static assets
    """.split()
)
"""Folders of what someone or something else wrote."""
SAMPLES = frozenset(
    """
    fixture fixtures __fixtures__ snapshot snapshots __snapshots__ testdata test-data test_data golden goldens corpus
    cassettes samples __mocks__ testcases test-cases recordings
    """.split()
)
"""Folders where a mistake may be the point."""
TESTS = frozenset({"test", "tests", "testing", "spec", "specs", "__tests__", "e2e"})
TEST_DATA = frozenset(
    {"data", "files", "resources", "input", "inputs", "output", "outputs", "expected", "cases", "integration"}
)
TRANSLATED = frozenset({"locale", "locales", "i18n", "l10n", "lang", "langs", "translation", "translations", "po"})
PAST = frozenset(
    """
    changelog changelog.d changelogs changes news newsfragments history releases release-notes release_notes relnotes
    whatsnew blog posts _posts archive archives legal licenses licences
    """.split()
)
"""Folders of texts that were true on their day, or whose words are not ours to change."""
LANGUAGES = frozenset(
    "ar az be bg bn bs ca cn cs cy da de el eo es et eu fa fi fil fr ga gl he hi hr hu hy id is it ja jp ka kk km ko kr"
    " lt lv mk ml mn mr ms my nb ne nl nn no pl ps pt ro ru si sk sl sq sr sv sw ta te tg th tl tr tw ua uk ur uz vi"
    " zh".split()
)
"""ISO 639 codes, and the country codes people use in their place."""
_LANGUAGE = re.compile(r"(?:^|[._-])([a-z]{2,3})(?:[-_]?(?:hans|hant|[a-z]{2}))?$")
_PAST_FILE = re.compile(
    r"(?:change|release|history|news|what.?s.?new|relnotes|authors?|contributors|credits|thanks|maintainers|copying"
    r"|licen[sc]e|notice|patents|code.of.conduct|third.?party|robots|humans|cmakelists|requirements|constraints)",
    re.I,
)
_WORD_LIST = re.compile(r"(?<!pass)(?<!key)word|spell|(?<!pre)dict|vocab|typo|stop.?list|ignore", re.I)
_GENERATED_NAME = re.compile(
    r"\.min\.|[._-]generated\.|_pb2|\.pb\.|\.bundle\.|\.lock$|-lock\.|\.snap$|\.map$|\.pot?$|\.svg$|\.d\.ts$", re.I
)
_GENERATED_TEXT = re.compile(
    r"@generated|do not (?:edit|modify|change)|(?:auto(?:matically)?|code)[- ]?generated|generated (?:by|from)"
    r"|sourceMapping",
    re.I,
)


def off_limits(path: str) -> bool:
    """Whether no fixer may touch `path`: protected, unsafe, not ours, generated, or test data."""
    folders = [folder.lower() for folder in PurePosixPath(path).parts[:-1]]
    if unsafe_path(path) or not fixer_may_write(path) or _GENERATED_NAME.search(path):
        return True
    return any(folder in OTHERS | SAMPLES for folder in folders) or _test_data(folders)


def not_our_words(path: str) -> bool:
    """Whether the prose of `path` is a record of the past, a list of names or words, or not English."""
    place = PurePosixPath(path.lower())
    if any(folder in PAST | TRANSLATED for folder in place.parts[:-1]) or _WORD_LIST.search(place.name):
        return True
    if place.suffix not in DOCUMENTS:
        return False
    return bool(_PAST_FILE.match(place.name)) or any(_foreign(part) for part in (*place.parts[:-1], place.stem))


def is_generated(text: str) -> bool:
    """Whether a file says in its first lines that a program wrote it."""
    return bool(_GENERATED_TEXT.search(text[:1000]))


def _test_data(folders: list[str]) -> bool:
    first = next((place for place, folder in enumerate(folders) if folder in TESTS), len(folders))
    return any(folder in TEST_DATA for folder in folders[first:])


def _foreign(part: str) -> bool:
    found = _LANGUAGE.search(part)
    return found is not None and found[1] in LANGUAGES
