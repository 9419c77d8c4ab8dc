"""Text that a machine reads and a person does not see: Unicode tricks, terminal escapes, comments.

An invisible code point stays only where a script or an emoji needs it: a variation selector
after an emoji, a joiner between emoji, a joiner between letters of scripts that join.
Sources: Unicode TR36 and TR51, "Trojan Source" (CVE-2021-42574).
"""

from __future__ import annotations

import re

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Code points that show nothing or reorder what is shown, wherever they stand."""

EMOJI = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
EMOJI += "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
JOINING = "\u0620-\u06ff\u0710-\u07ff\u08a0-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff"
NEEDED = re.compile(
    f"(?<=[{EMOJI}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)"  # emoji or text style, keycaps
    f"|(?<=[{EMOJI}\ufe0f])\u200d(?=[{EMOJI}])"  # families, professions, flags
    f"|(?<=[{JOINING}])[\u200c\u200d](?=[{JOINING}])"  # Persian, Indic and Khmer spelling
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"  # Mongolian letter forms
)
ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?|\x9b[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC 8 links, DCS, APC
    r"|\x1b[ -/]*[0-~]?"
)
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\x80-\x84\x86-\x9f]")
BREAK = re.compile("\r\n|[\r\n\v\f\x85\u2028\u2029]")
SURROGATE = re.compile("[\ud800-\udfff]")


def invisible(text: str) -> tuple[str, ...]:
    """The invisible characters of `text` that nothing needs, as `U+200B`, in order."""
    needed = {match.start() for match in NEEDED.finditer(text)}
    found = (match for match in INVISIBLE.finditer(text) if match.start() not in needed)
    return tuple(f"U+{ord(match.group()):04X}" for match in found)


def without_invisible(text: str) -> str:
    """`text` without invisible characters, but for those that a script or an emoji needs."""
    if not INVISIBLE.search(text):
        return text
    needed = {match.start() for match in NEEDED.finditer(text)}
    return INVISIBLE.sub(lambda match: match.group() if match.start() in needed else "", text)


def without_controls(text: str) -> str:
    """`text` without terminal escapes and control characters; every odd line end becomes a newline."""
    plain = CONTROL.sub("", ESCAPE.sub("", text))
    return SURROGATE.sub("\ufffd", BREAK.sub(_newline, plain))


def _newline(match: re.Match[str]) -> str:
    return match.group() if match.group() == "\r\n" else "\n"
