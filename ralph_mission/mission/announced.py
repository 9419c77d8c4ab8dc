"""Which change our own issue told people of: a branch and a pull are later made of exactly that, or not at all.

Memory keeps the change until it can be sent, and memory grants nothing. So the issue names it by a digest, on a
line of its own; a yes to the issue's text is a yes to that digest. What others say is no such line: a text that was
made harmless has none (`safety.detect.SEAL`), and what is shown to the letter stands in code, which is not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict

from ralph_mission.mission.effects import OpenPull, PushBranch
from ralph_mission.mission.ledger import key_of
from ralph_mission.safety.markdown import prose

_ANNOUNCEMENT = re.compile(r"^the change (is|would be) ((?:`[0-9a-f]{16}`(?:, )?)+)\r?$", re.MULTILINE)

Change = PushBranch | OpenPull
LATER = ("issue", "patch_ids", "touches")  # fields that effects of earlier versions were announced without


def change_digest(effect: Change) -> str:
    """Sixteen hex digits over all that would be sent, but for the date."""
    said = asdict(effect).items()
    content = {name: value for name, value in said if name != "date" and (value or name not in LATER)}
    return key_of("change", type(effect).__name__, json.dumps(content, sort_keys=True))


def announcement_line(effects: Iterable[Change], asked: bool) -> str:
    """The line of an issue that names what will be sent or, where a person is asked, would be; "" for nothing."""
    digests = ", ".join(f"`{change_digest(effect)}`" for effect in effects)
    return f"the change {'would be' if asked else 'is'} {digests}" if digests else ""


def announced_digests(body: str, asked: bool) -> frozenset[str]:
    """The digests that a text of ours names: of what needs no yes, or of what needs one."""
    verb, lines = "would be" if asked else "is", list(_ANNOUNCEMENT.finditer(body))
    shown = prose(body) if lines else ""  # of our own line only the digests are code
    ours = (line for line in lines if line[1] == verb and shown.startswith("the change", line.start()))
    return frozenset(found for line in ours for found in re.findall("[0-9a-f]{16}", line[2]))
