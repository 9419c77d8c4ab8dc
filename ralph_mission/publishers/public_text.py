"""Values of facts as they may stand in public: a name is a name, whatever it was made to look like.

A fact may be a cell of a foreign row. So nothing in it calls anybody, leads anywhere, formats anything, or shows other
than what it is. Numbers are numbers again, exactly.
"""

from __future__ import annotations

import html
import re
import unicodedata
from decimal import Decimal

from ralph_mission.safety import text
from ralph_mission.safety.hidden import without_controls, without_invisible

LONGEST = 80  # characters
Fact = str | int | float
_WIDE = re.compile("[\ufe50-\ufe6f\uff01-\uff60]")  # look like @, #, / or a point, and networks take them for these
_MARK_UP = re.compile(r"[@#<>*_`~|\\\[\]{}^]")
_ADDRESS = re.compile(r"(?i)\b[a-z][a-z0-9+.-]*:/+|//+|\bwww\.")
_DOMAIN = re.compile(r"(?<=\S)[.\u3002\uff61](?=[^\W\d_])")
_LEADING = re.compile(r"(?:(?<=\s)|^)[/$](?=[^\W\d_])|\$(?=[^\W\d_])")  # commands of bots, names of shares
_NUMBER = re.compile(r"-?\d{1,40}(\.\d{1,40})?", re.ASCII)
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_PILED = re.compile(f"([{_MARKS}]{{2}})[{_MARKS}]+")


def value(fact: Fact) -> str | Decimal:
    """A fact as a template gets it: a number that is one, else harmless words."""
    if isinstance(fact, float):
        fact = repr(fact)
    if isinstance(fact, int):
        return Decimal(fact)
    return Decimal(fact) if _NUMBER.fullmatch(fact) and str(Decimal(fact)) == fact else words(fact)


def words(said: str) -> str:
    """One line of at most `LONGEST` characters without mentions, tags, addresses, mark-up and tricks. Idempotent."""
    calm = said[: LONGEST * 20]
    for _ in range(5):
        before, calm = calm, _calmer(calm)
        if calm == before:
            return calm
    return text.truncate(re.sub(r"[^\w ]", "", calm), LONGEST)


def _calmer(said: str) -> str:
    plain = _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), html.unescape(said))
    plain = _PILED.sub(r"\1", without_invisible(without_controls(plain)))
    plain = _ADDRESS.sub(" ", _MARK_UP.sub(" ", plain))
    plain = _LEADING.sub("", _DOMAIN.sub(". ", plain))
    return text.inline_words(" ".join(plain.split()), LONGEST)
