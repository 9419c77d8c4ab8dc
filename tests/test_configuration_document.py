"""The document of `ralph.yml` says what the schema says: no key that is not there, no default that is another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.config import reading
from ralph_mission.config.settings import Config

DOCUMENT = (Path(__file__).resolve().parent.parent / "docs" / "configuration.md").read_text()
ROWS = re.findall(r"^\| `([a-z_.]+)` \| (.*?) \| ", DOCUMENT, re.MULTILINE)
OF_THEIRS = {"hats", "event_loop", "cli", "core", "memories", "tasks", "RObot"}
"""Keys of ralph-orchestrator, which another part of the document names."""


@pytest.fixture(scope="module")
def keys() -> Mapping[str, Any]:
    """Each key by its path, with its default; what stands in lists has no path."""
    schema = reading.schema()
    return dict(_keys(schema, schema["$defs"], ""))


def _keys(node: Mapping[str, Any], defs: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for part in (node, *node.get("anyOf", ())):
        part = defs[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        for name, value in part.get("properties", {}).items():
            yield f"{path}{name}", value.get("default")
            yield from _keys(value, defs, f"{path}{name}.")


@pytest.mark.parametrize(("key", "told"), ROWS)
def test_a_row_names_a_key_and_its_default(keys: Mapping[str, Any], key: str, told: str) -> None:
    assert key in keys
    plain = told.strip("`")
    if re.fullmatch(r"\d+[mhdw]", plain):
        unit = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}[plain[-1]]
        assert _duration(keys[key]) == timedelta(**{unit: int(plain[:-1])})
    elif re.fullmatch(r"\d+", plain):
        assert keys[key] == int(plain)
    elif plain == "none":
        assert not keys[key] or isinstance(keys[key], dict)  # a section without a word of the owner's
    elif told.startswith("`") and plain != "forge.stale_after" and "," not in plain:
        assert keys[key] == plain
    elif "," in plain:
        named = keys[key] if isinstance(keys[key], list) else list(keys[key])
        assert named == re.findall(r"[a-z-]+", plain)


def _duration(value: str) -> timedelta:
    days, hours, minutes = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?)?", value).groups(default="0")  # type: ignore[union-attr]  # a default is one
    return timedelta(days=int(days), hours=int(hours), minutes=int(minutes))


def test_every_key_has_a_row_or_a_part_of_its_own(keys: Mapping[str, Any]) -> None:
    prose = re.sub(r"^```.*?^```", "", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`([A-Za-z_.]+)`", prose)) | {"thinker"}  # the row of its kind leads to the others
    ours = {field.alias or name for name, field in Config.model_fields.items()}
    for key in (key for key in keys if key.partition(".")[0] in ours):
        above = any(f"{key}.".startswith(f"{one}.") for one in named)
        assert above or any(one.startswith(f"{key}.") for one in named), key
    assert named >= OF_THEIRS
