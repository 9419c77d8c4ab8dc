"""Shared settings of repositories: `extends` of `ralph.yml`, and merging the files. Pure.

A file's own words come before those that it extends, but where a word is a limit: there it may be stricter, never
looser, as everywhere. What decides whose code runs inside Ralph, and where memory is, no other file may say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.safety.front_matter import Document, Path
from ralph_mission.values import compile_regex, dataclass

LONGEST_CHAIN = 5  # files, the first one included
_PINNED = compile_regex(r"([A-Za-z0-9][\w.-]{0,38}/[\w.-]{1,100})//([^@\s]{1,200})@([0-9a-f]{40}|[0-9a-f]{64})")
_ELSEWHERE = compile_regex(r"[^/\s]+/[^/\s]+//\S*")
OWN = ("extensions", "memory")
"""Sections that a shared file may not have: code that runs inside Ralph, and what the gate reads before all else."""


def problem(source: str, line: int, what: str, next_step: str) -> UserError:
    """A usage error at a line (0: the whole file)."""
    return UserError(f"{source}{f' line {line}' if line else ''}: {what}", next_step, usage=True)


@dataclass(frozen=True, slots=True)
class SharedReference:
    """A settings file in another repository, at one commit."""

    repository: str  # owner/name
    path: str
    commit: str

    def __str__(self) -> str:
        return f"{self.repository}//{self.path}@{self.commit}"


def parse_reference(text: str) -> SharedReference | None:
    """The reference to another repository in `extends`; None for a local path. Raises ValueError if it is not
    pinned."""
    if not _ELSEWHERE.fullmatch(text):
        return None
    found = _PINNED.fullmatch(text)
    if not found or ".." in found[2].split("/") or found[2].startswith("/"):
        raise ValueError("write OWNER/REPO//PATH@COMMIT, with all 40 digits of the commit")
    return SharedReference(*found.groups())


def pinned(text: str) -> str:
    """Raises ValueError for anything `parse_reference` refuses."""
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
    if isinstance(theirs, bool) or not all(isinstance(one, int | float) for one in (own, theirs)):  # no more, no less
        return "" if own == theirs else f"write {str(theirs).lower()}, or take the key out"
    return f"lower it to {theirs:g} or less" if own > theirs else ""


def _no_longer(own: Any, theirs: Any) -> str:
    from pydantic import TypeAdapter

    from ralph_mission.config.fields import Duration

    longest = TypeAdapter(Duration)
    return f"shorten it to {theirs}" if longest.validate_python(own) > longest.validate_python(theirs) else ""


def _no_cheaper(own: Any, theirs: Any) -> str:
    # A price that is too low makes every budget in USD too high.
    from pydantic import TypeAdapter

    from ralph_mission.config.loop import PriceText

    price = TypeAdapter(PriceText)
    mine, least = price.validate_python(own), price.validate_python(theirs)
    cheaper = mine.input < least.input or mine.output < least.output
    return f"write {least.input:g}/{least.output:g} or more" if cheaper else ""


def _among(own: Any, theirs: Any) -> str:
    more = [one for one in own if one not in theirs] if theirs else []
    return f"take out {', '.join(map(str, more))}" if more else "" if own or not theirs else "take the key out"


def _none_more(own: Any, theirs: Any) -> str:
    more = [one for one in _listed(own) if one not in _listed(theirs)]
    return f"take out {', '.join(map(str, more))}" if more else ""


def _stays(*strict: Any) -> Callable[[Any, Any], str]:
    """What stays where the extended file says it: these values, or any that is not empty."""

    def check(own: Any, theirs: Any) -> str:
        return "take the key out" if own != theirs and (theirs in strict if strict else theirs) else ""

    return check


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


LIFTED = ("limits", "above_ceilings")
LIMITS: Mapping[Path, Callable[[Any, Any], str]] = {
    LIFTED: _stays(False),
    ("limits", "*"): _at_most,
    ("publishers", "per_day"): _at_most,
    ("thinker", "usd"): _at_most,
    ("work", "usd_per_issue"): _at_most,
    ("work", "max_iterations"): _at_most,
    ("work", "max_runtime"): _no_longer,
    ("event_loop", "max_iterations"): _at_most,
    ("event_loop", "max_runtime_seconds"): _at_most,
    ("event_loop", "max_cost_usd"): _at_most,
    ("event_loop", "max_consecutive_failures"): _at_most,
    ("loop", "thresholds", "*"): _at_most,
    ("loop", "browser_check"): _stays(),
    ("cost", "prices", "*"): _no_cheaper,
    ("owners",): _among,
    ("telegram", "chats"): _none_more,
    ("telegram", "users"): _none_more,
    ("hands", "auto"): _none_more,
    ("hands", "verify_timeout"): _at_most,
    ("hands", "agent", "sandbox"): _stays("bwrap"),
    ("hands", "agent", "trust"): _stays(False),
    ("hands", "agent", "wrap"): _stays(),
    ("hats", "*", "write_allowed"): _none_more,
    ("completion", "open_tasks"): _stays("reject"),
    ("merge", "checks"): _stays("all"),
}
"""Settings that may only be stricter: from a file's own value and the extended one, the advice if it is looser."""
ADDED: tuple[Path, ...] = (
    ("hands", "verify"),
    ("thinker", "watch_only"),
    ("event_loop", "required_events"),
    ("hats", "*", "write_denied"),
    ("hats", "*", "commands_denied"),
    ("hats", "*", "disallowed_tools"),
)
"""Lists for which more is stricter: both files' entries count."""


def merge_layers(layers: Sequence[SettingsLayer]) -> tuple[dict[str, Any], dict[Path, str]]:
    """The settings of files that extend each other, nearest first, and the file that each value comes from.

    Raises LooserSetting.
    """
    merged: dict[str, Any] = {}
    origins: dict[Path, str] = {}
    for layer in reversed(layers):
        if layer is not layers[-1] and _lifts(layer.value) and not _lifts(merged):
            what = "is true, which only the file that it extends may say"
            raise LooserSetting(layer, LIFTED, what, "take the key out")
        merged = _overlay(layer, (), merged, layer.value, origins)
    return merged, origins


def _lifts(value: Mapping[str, Any]) -> bool:
    limits = value.get(LIFTED[0])
    return isinstance(limits, Mapping) and limits.get(LIFTED[1]) is True


def _overlay(
    layer: SettingsLayer, path: Path, theirs: Mapping[str, Any], own: Mapping[str, Any], origins: dict[Path, str]
) -> dict[str, Any]:
    merged = dict(theirs)
    for key, value in own.items():
        place, before = (*path, key), theirs.get(key)
        if before is not None:
            _refuse_looser(layer, place, value, before, origins)
        if isinstance(value, Mapping):
            merged[key] = _overlay(layer, place, before if isinstance(before, Mapping) else {}, value, origins)
            if not merged[key]:
                origins[place] = layer.source
            continue
        for below in [one for one in origins if len(one) > len(place) and one[: len(place)] == place]:
            del origins[below]
        if before and any(matches(place, known) for known in ADDED):
            more = [one for one in _listed(value) if one not in _listed(before)]
            merged[key] = [*_listed(before), *more]
            origins[place] = f"{origins[place]}, {layer.source}" if more else origins[place]
        else:
            merged[key], origins[place] = value, layer.source
    return merged


def _refuse_looser(layer: SettingsLayer, path: Path, own: Any, theirs: Any, origins: Mapping[Path, str]) -> None:
    check = next((rule for known, rule in LIMITS.items() if matches(path, known)), None)
    if check and (next_step := check(own, theirs)):
        value = ", ".join(map(str, theirs)) if isinstance(theirs, list) else theirs
        file = next(source for place, source in origins.items() if place[: len(path)] == path)
        raise LooserSetting(layer, path, f"allows more than {file}, which says {value}", next_step)


def matches(path: Path, known: Path) -> bool:
    """Whether a path is `known`, in which `*` stands for any list item and any name."""
    return len(path) == len(known) and all(name in ("*", part) for part, name in zip(path, known, strict=True))
