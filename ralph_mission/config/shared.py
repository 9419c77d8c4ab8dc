"""Settings that repositories share: `extends` of `ralph.yml`, and what comes of both files. Pure.

A file's own words come before those that it extends, but where a word is a limit: there it may be stricter, never
looser, as everywhere. What decides whose code runs inside Ralph, and where memory is, no other file may say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ralph_mission.safety.front_matter import Document, Path
from ralph_mission.values import compile_regex, dataclass

LONGEST_CHAIN = 5  # files, the first one included
_PINNED = compile_regex(r"([A-Za-z0-9][\w.-]{0,38}/[\w.-]{1,100})//([^@\s]{1,200})@([0-9a-f]{40}|[0-9a-f]{64})")
_ELSEWHERE = compile_regex(r"[^/\s]+/[^/\s]+//\S*")
OWN = ("extensions", "memory")
"""Sections that a shared file may not have: code that runs inside Ralph, and what the gate reads before all else."""


@dataclass(frozen=True, slots=True)
class SharedReference:
    """A settings file in another repository, at one commit."""

    repository: str  # owner/name
    path: str
    commit: str

    def __str__(self) -> str:
        return f"{self.repository}//{self.path}@{self.commit}"


def parse_reference(text: str) -> SharedReference | None:
    """What `extends` names in another repository; None for a local path. Raises ValueError when it is not pinned."""
    if not _ELSEWHERE.fullmatch(text):
        return None
    found = _PINNED.fullmatch(text)
    if not found or ".." in found[2].split("/") or found[2].startswith("/"):
        raise ValueError("write OWNER/REPO//PATH@COMMIT, with all 40 digits of the commit")
    return SharedReference(*found.groups())


def pinned(text: str) -> str:
    """Raises ValueError for what `parse_reference` refuses."""
    parse_reference(text)
    return text


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """One file's settings: what errors call it, its values by today's names, and the document as it stands."""

    source: str
    value: Mapping[str, Any]
    document: Document


class LooserSetting(Exception):
    """A file allows more than what it extends: where, and what to do instead."""

    def __init__(self, layer: SettingsLayer, path: Path, what: str, next_step: str) -> None:
        super().__init__(what)
        self.layer, self.path, self.what, self.next_step = layer, path, what, next_step


def _at_most(own: Any, theirs: Any) -> str:
    return f"lower it to {theirs:g} or less" if own > theirs else ""


def _among(own: Any, theirs: Any) -> str:
    more = [one for one in own if one not in theirs] if theirs else []
    return f"take out {', '.join(map(str, more))}" if more else "" if own or not theirs else "take the key out"


def _none_more(own: Any, theirs: Any) -> str:
    more = [one for one in own if one not in theirs]
    return f"take out {', '.join(map(str, more))}" if more else ""


def _as_strict(own: Any, theirs: Any) -> str:
    return "take the key out" if theirs == "all" and own != "all" else ""


LIMITS: Mapping[Path, Callable[[Any, Any], str]] = {
    ("limits", "*"): _at_most,
    ("publishers", "per_day"): _at_most,
    ("thinker", "usd"): _at_most,
    ("work", "usd_per_issue"): _at_most,
    ("work", "max_iterations"): _at_most,
    ("owners",): _among,
    ("hands", "auto"): _none_more,
    ("merge", "checks"): _as_strict,
}
"""What may only be stricter: given a file's own value and the one that it extends, what to do where it is looser."""
ADDED = (("hands", "verify"), ("thinker", "watch_only"))
"""Lists in which more is stricter: both files' entries count."""


def merge_layers(layers: Sequence[SettingsLayer]) -> tuple[dict[str, Any], dict[Path, str]]:
    """The settings of files that extend each other, nearest first, and the file that each value comes from.

    Raises LooserSetting.
    """
    merged: dict[str, Any] = {}
    origins: dict[Path, str] = {}
    for layer in reversed(layers):
        merged = _overlay(layer, (), merged, layer.value, origins)
    return merged, origins


def _overlay(
    layer: SettingsLayer, path: Path, theirs: Mapping[str, Any], own: Mapping[str, Any], origins: dict[Path, str]
) -> dict[str, Any]:
    merged = dict(theirs)
    for key, value in own.items():
        place, before = (*path, key), theirs.get(key)
        if isinstance(value, Mapping):
            merged[key] = _overlay(layer, place, before if isinstance(before, Mapping) else {}, value, origins)
            if not merged[key]:
                origins[place] = layer.source
            continue
        for below in [one for one in origins if len(one) > len(place) and one[: len(place)] == place]:
            del origins[below]
        if before is not None:
            _refuse_looser(layer, place, value, before, origins)
        if place in ADDED and before:
            more = [one for one in value if one not in before]
            merged[key] = [*before, *more]
            origins[place] = f"{origins[place]}, {layer.source}" if more else origins[place]
        else:
            merged[key], origins[place] = value, layer.source
    return merged


def _refuse_looser(layer: SettingsLayer, path: Path, own: Any, theirs: Any, origins: Mapping[Path, str]) -> None:
    check = LIMITS.get(path) or LIMITS.get((*path[:-1], "*"))
    if check and (next_step := check(own, theirs)):
        shown = ", ".join(map(str, theirs)) if isinstance(theirs, list) else theirs
        raise LooserSetting(layer, path, f"allows more than {origins[path]}, which says {shown}", next_step)
