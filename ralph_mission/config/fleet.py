"""`fleet.yml`: repositories, runner and budget. Parses a file to a frozen value, with PyYAML only."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from ralph_mission.config.shared import parse_reference, problem
from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import SHARD, DailyBudget, FleetLimits
from ralph_mission.safety.front_matter import Document, YamlError, parse
from ralph_mission.safety.front_matter import Path as KeyPath
from ralph_mission.values import compile_regex, dataclass

FLEET = "fleet.yml"
INSTALLATION = "installation"
BUDGET = ("usd", "pull_requests", "minutes")
KEYS = ("repositories", "exclude", "runner", "job_minutes", "parallel", "budget", "each", "extends", "onboard")
MOST_MINUTES = 360  # of a job on GitHub's runners
_NAME = compile_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_TOPIC = compile_regex(r"topic:[a-z0-9][a-z0-9-]{0,49}")
_OWNER = compile_regex(r"org:[A-Za-z0-9][A-Za-z0-9-]{0,38}")
_LABEL = compile_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class FleetConfig:
    """What `fleet.yml` says. `names` are owner/name; `owners` and `topics` stand for whatever GitHub lists under them;
    `folders` are repositories of this machine; `exclude` holds patterns of names, such as `acme/old-*`."""

    names: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    installation: bool = False
    folders: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    runner: tuple[str, ...] = ("self-hosted",)
    limits: FleetLimits = FleetLimits()
    extends: str = ""

    @property
    def asks_github(self) -> bool:
        """Whether any repository is on a server."""
        return bool(self.names or self.owners or self.topics or self.installation)

    def excludes(self, name: str) -> bool:
        """Whether a repository is excluded, even if named elsewhere."""
        return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self.exclude)


def load_fleet(text: str, source: str = FLEET) -> FleetConfig:
    """The parsed text; `source`: its name in errors. Raises UserError (usage)."""
    try:
        document = parse(text.removeprefix("\ufeff"))
    except YamlError as error:
        raise problem(source, error.line, error.what, "fix the file") from None
    reader = _FleetReader(document, source)
    settings = reader.mapping((), KEYS)
    places = [reader.place(("repositories", at), one) for at, one in enumerate(reader.texts("repositories"))]
    if not places:
        raise reader.wrong(("repositories",), "names no repositories", "list them under repositories:")
    found = {kind: tuple(dict.fromkeys(value for each, value in places if each == kind)) for kind, _ in places}
    runner = reader.texts("runner") or FleetConfig().runner
    if strange := [label for label in runner if not _LABEL.fullmatch(label)]:
        raise reader.wrong(("runner",), f"{strange[0]!r} is not a label", "write it like [self-hosted, ralph]")
    limits = FleetLimits(
        reader.budget("budget"),
        reader.budget("each"),
        reader.number(("job_minutes",), FleetLimits().job_minutes, 1, MOST_MINUTES),
        reader.number(("parallel",), FleetLimits().parallel, 1, SHARD),
        onboard=reader.flag("onboard"),
    )
    extends = settings.get("extends") or ""
    if not isinstance(extends, str):
        raise reader.wrong(("extends",), "extends is not text", "write it like OWNER/REPO//ralph.yml@COMMIT")
    try:
        pinned = parse_reference(extends)
    except ValueError as error:
        raise reader.wrong(("extends",), f"extends is {extends[:80]!r}", str(error)) from None
    if extends and not pinned and any(kind != "folder" for kind in found):
        what = f"extends is {extends[:80]!r}, which jobs on GitHub do not have"
        raise reader.wrong(("extends",), what, "write OWNER/REPO//PATH@COMMIT")
    return FleetConfig(
        names=found.get("name", ()),
        owners=found.get("org", ()),
        topics=found.get("topic", ()),
        installation=INSTALLATION in found,
        folders=found.get("folder", ()),
        exclude=reader.texts("exclude"),
        runner=runner,
        limits=limits,
        extends=extends,
    )


class _FleetReader:
    """A reader whose errors name lines."""

    def __init__(self, document: Document, source: str) -> None:
        self._document, self._source = document, source

    def wrong(self, path: KeyPath, what: str, next_step: str) -> UserError:
        return problem(self._source, self._document.lines.get(path, 1), what, next_step)

    def mapping(self, path: KeyPath, known: tuple[str, ...]) -> Mapping[str, Any]:
        value: Any = self._document.value
        for part in path:
            value = value.get(part)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(path, f"{_dotted(path)} is not a mapping", "write keys and values")
        for key in value:
            if key not in known:
                close = difflib.get_close_matches(str(key), known, n=1)
                advice = f"did you mean {close[0]}?" if close else f"known here: {', '.join(known)}"
                raise self.wrong((*path, key), f"unknown key {_dotted((*path, key))}", advice)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; one text counts as a list of one."""
        value = self.mapping((), KEYS).get(key)
        listed = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or any(not isinstance(one, str) or not one.strip() for one in listed):
            raise self.wrong((key,), f"{key} is not a list of texts", "write one in each line, after -")
        return tuple(one.strip() for one in listed)

    def place(self, path: KeyPath, text: str) -> tuple[str, str]:
        """A line's kind of repositories, and the name."""
        if text == INSTALLATION:
            return INSTALLATION, text
        for kind, pattern in (("topic", _TOPIC), ("org", _OWNER)):
            if pattern.fullmatch(text):
                return kind, text.partition(":")[2]
        if text.startswith((".", "/", "~")):
            return "folder", text
        if _NAME.fullmatch(text):
            return "name", text
        advice = f"write owner/name, org:NAME, topic:NAME, {INSTALLATION}, or a folder that begins with . or /"
        raise self.wrong(path, f"{text[:80]!r} names no repository", advice)

    def budget(self, key: str) -> DailyBudget:
        settings = self.mapping((key,), BUDGET)
        usd = settings.get("usd")
        if usd is not None and (type(usd) not in (int, float) or not math.isfinite(usd) or usd < 0):
            raise self.wrong((key, "usd"), f"{key}.usd is not an amount", "write US dollars, such as 20")
        pulls, minutes = (
            None if settings.get(name) is None else self.number((key, name), 0, 0, 10_000_000) for name in BUDGET[1:]
        )
        return DailyBudget(None if usd is None else float(usd), pulls, minutes)

    def flag(self, key: str) -> bool:
        value = self.mapping((), KEYS).get(key, False)
        if type(value) is not bool:
            raise self.wrong((key,), f"{key} is {str(value)[:40]}", "write true or false")
        return value

    def number(self, path: KeyPath, usual: int, least: int, most: int) -> int:
        value: Any = self._document.value
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return usual
        if type(value) is not int or not least <= value <= most:
            advice = f"write a whole number between {least} and {most}"
            raise self.wrong(path, f"{_dotted(path)} is {str(value)[:40]}", advice)
        return value


def _dotted(path: KeyPath) -> str:
    text = ".".join(str(part) for part in path) or "it"
    return re.sub(r"[^\w.-]", "?", text)[:80]
