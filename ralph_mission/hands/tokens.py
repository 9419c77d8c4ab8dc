"""Rewrites version tokens of manifests: exactly those, byte for byte nothing else. Text in, text out."""

from __future__ import annotations

import json
import re
import tomllib

from packaging.utils import canonicalize_name

from ralph_mission.safety.bumps import SECTIONS


def python_pins(text: str, name: str, old: str, new: str) -> str:
    """`text` of a requirements file or a pyproject.toml with every `name==old` made `name==new`."""
    spelled = re.sub(r"-", "[-_.]", canonicalize_name(name))
    pin = re.compile(
        rf"(?<![\w.-])(?P<before>{spelled}\s*+(?:\[[^\]\n]*\])?\s*+===?\s*){re.escape(old)}(?![\w.*+!-])", re.IGNORECASE
    )
    return "".join(_outside_comments(line, pin, new) for line in text.splitlines(keepends=True))


def npm_pins(text: str, name: str, old: str, new: str) -> str:
    """`text` of a package.json with every exact `old` of `name` made `new`; as it was when more would change."""
    pin = re.compile(rf'(?P<before>"{re.escape(name)}"\s*:\s*"=?v?){re.escape(old)}(?=")')
    changed = pin.sub(rf"\g<before>{new}", text)
    return changed if changed == text or _only_sections(text, changed) else text


def manifest_is_sound(path: str, text: str) -> bool:
    """Whether a manifest can still be read after a token was changed."""
    try:
        if path.endswith(".json"):
            json.loads(text)
        elif path.endswith(".toml"):
            tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _outside_comments(line: str, pin: re.Pattern[str], new: str) -> str:
    code, mark, comment = line.partition("#")
    return pin.sub(rf"\g<before>{new}", code) + mark + comment


def _only_sections(old: str, new: str) -> bool:
    before, after = json.loads(old), json.loads(new)
    return {k: v for k, v in before.items() if k not in SECTIONS} == {
        k: v for k, v in after.items() if k not in SECTIONS
    }
