"""Parses a file to a Config; reports an error in one line: place, problem, and the nearest valid key.

The keys of ralph-orchestrator, whose file has the same name, are accepted with a warning if they have no meaning here.
A file with keys of older versions loads too, and a warning explains their replacement.
"""

from __future__ import annotations

import difflib
import json
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, Protocol, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ralph_mission.config import loop
from ralph_mission.config.settings import GONE_WAKE, Config
from ralph_mission.config.shared import (
    LONGEST_CHAIN,
    OWN,
    LooserSetting,
    SettingsLayer,
    SharedReference,
    matches,
    merge_layers,
    parse_reference,
    problem,
)
from ralph_mission.errors import UserError
from ralph_mission.safety.front_matter import MAX_BYTES, Document, YamlError, parse
from ralph_mission.safety.front_matter import Path as KeyPath
from ralph_mission.values import dataclass

DURATION = "a duration such as 15m, 6h or 14d"
WANTED = {
    "time_delta_parsing": DURATION,
    "time_delta_type": DURATION,
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "dict_type": "keys and values",
    "tuple_type": "a list, even of one",
    "list_type": "a list, even of one",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "string_type": "a text",
}
"""Pydantic's error types whose messages mention Python."""


def explain(error: ValidationError, document: Document, source: str, model: type[BaseModel]) -> UserError:
    """The first of pydantic's errors, in words for people."""
    # A mistyped key comes first: it is often the cause of a missing one.
    first, *others = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    place = _place(first["loc"], document)
    what, next_step = _complaint(first, place, model)
    more = f" (and {len(others)} more)" if others else ""
    return problem(source, document.lines[place], what + more, next_step)


def _place(location: KeyPath, document: Document) -> KeyPath:
    path: KeyPath = ()
    for part in location:  # a location also names a union's branch, which the document does not have
        if (*path, part) in document.lines:
            path = (*path, part)
    return path


def _complaint(error: ErrorDetails, place: KeyPath, model: type[BaseModel]) -> tuple[str, str]:
    name = _dotted_path(place)
    if error["type"] == "extra_forbidden":
        return f"unknown key {name}", _nearest(place, model)
    if error["type"] == "missing":
        missing = error["loc"][-1]
        return f"{name} lacks the key {missing}", f"add {missing}: to it"
    ceiling = error.get("ctx", {}).get("le")
    if place[:1] == ("limits",) and ceiling is not None:
        return (
            f"{name} is {_shown_value(error['input'])}; the ceiling is {ceiling:g}",
            f"lower it to {ceiling:g} or less, or write limits.above_ceilings: true beside it",
        )
    return f"{name} is {_shown_value(error['input'])}", _expected(error)


def _expected(error: ErrorDetails) -> str:
    if error["type"] in WANTED:
        return f"write {WANTED[error['type']]}"
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    return f"it {message}" if message.startswith("should") else message


def _dotted_path(place: KeyPath) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    return text if len(text) <= 100 and text.isprintable() else ascii(text)[:100]


def _shown_value(value: object) -> str:
    text = "empty" if value is None else str(value).lower() if isinstance(value, bool) else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(place: KeyPath, model: type[BaseModel]) -> str:
    known = known_keys(place[:-1], model)
    close = difflib.get_close_matches(str(place[-1]), known, n=1)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(known))}"


def known_keys(parents: KeyPath, model: type[BaseModel]) -> list[str]:
    """The valid keys below `parents`; none if it takes any key, or none at all."""
    models = [model]
    for name in (part for part in parents if isinstance(part, str)):
        fields = [one.model_fields[name] for one in models if name in one.model_fields]
        models = [found for field in fields for found in _models(field.annotation)]
    return [field.alias or name for one in models for name, field in one.model_fields.items()]


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _models(argument)]


ANY = "*"
_WEIGHT = "thinker.weights says how much its kind of finding counts"
GONE: Mapping[tuple[str, ...], str] = {
    ("observers", "web", ANY, "severity"): _WEIGHT,
    ("hats", ANY, "context"): "name the files in the hat's instructions, or write a hat file",
    ("hats", ANY, "payload"): "say it in the hat's instructions, or write a hat file",
    ("event_loop", "prompt"): "write it into PROMPT.md, or give it to ralph run",
    ("event_loop", "starting_hat"): "give that hat the trigger that starting_event names",
    ("telegram", "checkin_interval_seconds"): "a running loop is reported every five minutes",
    ("RObot", "checkin_interval_seconds"): "a running loop is reported every five minutes",
    ("core", "scratchpad"): "agents keep their notes in .ralph/agent/scratchpad.md",
}
"""The place of each removed key (`*`: in every list item, or below every name), and advice about it."""
_FORGE = "its patience is forge.stale_after, 3 days for a review and 2 for an answer"
_THINKER = "money is bounded by limits.usd_per_cycle"
STRICTER: Mapping[tuple[str, ...], str] = {
    ("schedule", "review"): "the review is woken wherever GitHub does not start it by itself",
    ("observers", "patience"): "an observer has five minutes, or as long as its own commands may take",
    ("observers", "commands", ANY, "output_cap"): "four million bytes are read",
    ("observers", "commands", ANY, "severity"): "a result is as bad as the tool and its kind say",
    ("observers", "database", "address"): "the address stands in DATABASE_URL",
    ("observers", "database", "raw_sql"): "a watch may be SQL of its own",
    ("observers", "database", "watches", ANY, "outlier", "score"): "a value is far out at 3.5 deviations",
    ("observers", "database", "watches", ANY, "outlier", "least"): "a window needs 8 values to be judged",
    ("observers", "dependencies", "advisories"): "OSV is asked; OSV_API_URL names another place",
    ("observers", "dependencies", "every"): "answers are believed for 6 hours",
    ("observers", "dependencies", "most"): "300 packages are asked about in one look",
    ("observers", "dependencies", "seconds"): "one look may ask for a minute",
    ("observers", "forge"): _FORGE,
    ("thinker", "max_findings"): f"a model is asked about 20 findings, and {_THINKER}",
    ("thinker", "max_memory_chars"): f"it reads 4,000 characters of memory, and {_THINKER}",
    ("thinker", "max_tokens"): f"its answer may have 4,000 tokens, and {_THINKER}",
    ("thinker", "seconds"): f"it has 90 seconds, and {_THINKER}",
    ("thinker", "tries"): f"it is asked twice at most, and {_THINKER}",
    ("loop", "stuck"): "a session is warned after three without progress on one story",
    ("hands", "verify_timeout"): "a check may take half an hour",
    ("work", "max_runtime"): "a try may take four hours",
    ("hats", ANY, "max_tokens"): "hats have no token budget here",
    ("event_loop", "max_consecutive_failures"): "the preset of the run says how many",
    ("memories", "budget"): "a prompt holds as many memories as its preset allows",
}
"""Limits of older files, and their defaults: a stricter one is obeyed, any other counts as the default."""


def drop_gone(value: Any, path: KeyPath = ()) -> Any:
    """`value` without removed keys."""
    if isinstance(value, dict):
        return {key: drop_gone(item, (*path, key)) for key, item in value.items() if not _look_up((*path, key), GONE)}
    if isinstance(value, list):
        return [drop_gone(item, (*path, place)) for place, item in enumerate(value)]
    return value


def _look_up(path: KeyPath, older: Mapping[tuple[str, ...], str]) -> str:
    """What is said of an older key at `path`, or ""."""
    return next((advice for known, advice in older.items() if matches(path, known)), "")


NAME = "ralph.yml"

ORCHESTRATOR = frozenset(
    "_suppress_warnings adapters agent agent_priority agents allow_unsafe_paths archive_prompts backpressure "
    "checkpoint_interval context_threshold context_window description dry_run enable_metrics events features "
    "git_checkpoint hooks iteration_telemetry max_prompt_size max_tokens metrics_interval name output_format "
    "output_preview_length plugins "
    "retry_delay robot skills tui verbose".split()
)
"""Top-level keys of ralph-orchestrator's own ralph.yml, of either version, that have no meaning here."""
SHARED = frozenset((*loop.SECTIONS, *loop.FLAT, "hats", "tasks", "RObot"))
"""Those that have one."""


class SettingsSource(Protocol):
    """A repository, as far as its settings are read from it."""

    @property
    def common_dir(self) -> Path:
        """Where its work trees keep what they share."""

    @property
    def work_tree(self) -> Path | None:
        """Its files; None when it is bare."""

    def blobs(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """Contents of files in commits, by `commit:path`; without those that are not there."""


ReadShared = Callable[[Path, str, str, str], bytes | None]
"""A file of another repository, by a common directory to cache it below, owner/name, commit and path; None when it is
not there. Raises UserError."""
Fetch = Callable[[SharedReference], bytes | None]


@dataclass(frozen=True, slots=True)
class SettingsText:
    """A settings file: its name in errors, its text, and access to the file that it extends.

    `follow` returns the file that `extends` names, relative to this one; it raises UserError.
    """

    source: str
    text: str
    follow: Callable[[str], SettingsText]


def read(
    git: SettingsSource,
    shared: ReadShared,
    path: Path | None = None,
    commit: str = "",
    name: str = "",
    otherwise: str = "",
) -> Config:
    """The configuration of a repository, with what its file extends; all defaults when it has no `ralph.yml`.

    `shared` reads what it extends in another repository. `path` names another file, `commit` the commit to read it
    from, and `name` another one there, which has to be in it. Otherwise the work tree is read, or HEAD when the
    repository is bare. `otherwise`: what a repository without a file extends, in another repository. Raises UserError
    (usage) when the file is not there or says what cannot be.
    """

    def fetch(reference: SharedReference) -> bytes | None:
        return shared(git.common_dir, reference.repository, reference.commit, reference.path)

    file, first = name or NAME, None
    if path is not None:
        first = _on_disk(fetch, path, str(path))
    elif git.work_tree and not commit:
        place = git.work_tree / file
        if place.exists() or place.is_symlink():
            first = _on_disk(fetch, place, file)
    else:
        first = _committed(git, fetch, commit or "HEAD", file, file)
    if first is None and name:
        raise UserError(f"{name} is not on the default branch", "commit it there, or name another file", usage=True)
    if first is None and otherwise and (reference := parse_reference(otherwise)):
        first = SettingsText(NAME, f"extends: {json.dumps(otherwise)}\n", lambda _: _elsewhere(fetch, reference))
    return _load_chain(first) if first else Config()


def load(text: str, source: str = NAME) -> Config:
    """The configuration in `text` itself; `source`: its name in errors. Raises UserError (usage)."""
    return _load_layer(text, source)[0]


def _load_layer(text: str, source: str) -> tuple[Config, SettingsLayer]:
    """One file: its own settings, and its values by today's names."""
    try:
        document = parse(text)
    except YamlError as error:
        raise problem(source, error.line, error.what, "fix the file") from None
    if not isinstance(document.value, dict | None):
        raise problem(source, 1, "is not a mapping of keys to values", "start it with a key such as schedule:")
    unknown = _unknown_to_both(document.value or {})
    value = _drop_ignored(loop.lift_old_keys(drop_gone(document.value or {})), ORCHESTRATOR | unknown)
    try:
        config = Config.model_validate(value)
    except ValidationError as error:
        raise explain(error, document, source, Config) from None
    config._warnings = tuple(_warnings(document, source, unknown))
    return config, SettingsLayer(source, value, document)


def _load_chain(first: SettingsText) -> Config:
    """A file with all files that it extends."""
    own, layer = _load_layer(first.text, first.source)
    layers, config, current = [layer], own, first
    while config.extends:
        current = current.follow(config.extends)
        if current.source in (each.source for each in layers) or len(layers) == LONGEST_CHAIN:
            what = f"extends leads back to itself, or through over {LONGEST_CHAIN} files"
            raise _problem_at(layer, ("extends",), what, "extend one file that extends no other")
        config, layer = _load_layer(current.text, current.source)
        layers.append(layer)
        if section := next((name for name in OWN if name in layer.value), ""):
            what = f"{section} has no place in a file that others extend"
            raise _problem_at(layer, (section,), what, "let each repository say it for itself")
    try:
        merged, origins = merge_layers(layers)
        together = own if len(layers) == 1 else Config.model_validate(merged)
    except LooserSetting as error:
        what = f"{_dotted_path(error.path)} {error.what}"
        raise _problem_at(error.layer, error.path, what, error.next_step) from None
    except ValidationError as error:
        raise explain(error, Document(merged, layers[0].document.lines), first.source, Config) from None
    together._warnings = own.warnings
    together._origins = tuple((path, _value_at(merged, path), file) for path, file in origins.items())
    return together


def _value_at(value: Any, path: KeyPath) -> Any:
    for part in path:
        value = value[part]
    return value


def _problem_at(layer: SettingsLayer, path: KeyPath, what: str, next_step: str) -> UserError:
    return problem(layer.source, layer.document.lines[_place(path, layer.document)], what, next_step)


def schema() -> dict[str, Any]:
    """The JSON Schema of `ralph.yml`, for editors and checkers."""
    document = Config.model_json_schema()
    older = "|".join(sorted({*ORCHESTRATOR, *loop.FLAT, "RObot", "tasks"}))
    document["patternProperties"] = {f"^({older})$": {"description": "A key of ralph-orchestrator."}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": NAME}


def _on_disk(fetch: Fetch, place: Path, source: str) -> SettingsText:
    """A file of this machine; the file it extends is beside it, or in another repository."""

    def follow(named: str) -> SettingsText:
        if reference := parse_reference(named):
            return _elsewhere(fetch, reference)
        following = place.resolve().parent / named
        return _on_disk(fetch, following, os.path.normpath(following))

    return SettingsText(source, _text(_bytes(place), source), follow)


def _committed(git: SettingsSource, fetch: Fetch, commit: str, path: str, source: str) -> SettingsText | None:
    """A file of a commit; the file it extends is in that commit too, or in another repository."""

    def follow(named: str) -> SettingsText:
        if reference := parse_reference(named):
            return _elsewhere(fetch, reference)
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), named))
        found = None if beside.startswith(("../", "/")) else _committed(git, fetch, commit, beside, beside)
        return found or _nothing_there(source, named)

    raw = git.blobs([f"{commit}:{path}"]).get(f"{commit}:{path}")
    return None if raw is None else SettingsText(source, _text(raw, source), follow)


def _elsewhere(fetch: Fetch, reference: SharedReference) -> SettingsText:
    """A file of another repository; the file it extends is in the same commit too, or in yet another one."""
    source = f"{reference.repository}//{reference.path}@{reference.commit[:12]}"

    def follow(named: str) -> SettingsText:
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(reference.path), named))
        if further := parse_reference(named):
            return _elsewhere(fetch, further)
        if beside.startswith(("../", "/")):
            return _nothing_there(source, named)
        return _elsewhere(fetch, replace(reference, path=beside))

    raw = fetch(reference)
    return SettingsText(source, _text(raw, source), follow) if raw is not None else _nothing_there(NAME, str(reference))


def _nothing_there(source: str, named: str) -> NoReturn:
    raise problem(source, 0, f"extends names {named}, which is not there", "correct the path or the commit")


def _bytes(path: Path) -> bytes:
    if not path.is_file():  # a folder, a pipe or a device counts as missing
        raise UserError(f"{path} is not a file", "name the settings with --config FILE", usage=True)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _text(raw: bytes, source: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(raw) > MAX_BYTES:  # cut within a character
            raise problem(source, 0, f"longer than {MAX_BYTES // 1024} KiB", "make it shorter") from None
        raise problem(source, raw[: error.start].count(b"\n") + 1, "is not UTF-8", "save it as UTF-8") from None


NULL_IS_OFF = (("observers", "dependencies"),)
"""Keys whose null switches off what is on by default. Any other null means the default."""


MISTYPED = 0.75  # difflib's ratio from which on an unknown key counts as a known one with a slip


def _drop_ignored(value: dict[str, Any], ignored: frozenset[str], path: tuple[str, ...] = ()) -> dict[str, Any]:
    """`value` without top-level keys that only cause warnings, and without empty ones (except `NULL_IS_OFF`)."""
    empty = set(known_keys(path, Config)) - {known[-1] for known in NULL_IS_OFF if known[:-1] == path}
    return {
        key: _drop_ignored(child, ignored, (*path, key)) if isinstance(child, dict) else child
        for key, child in value.items()
        if (path or key not in ignored) and (child is not None or key not in empty)
    }


LIMITING = ("limits", "merge", "hands", "work", "publishers")
"""Sections whose keys are limits, which must not go unheard where they are written one level too high."""


def _unknown_to_both(value: Mapping[Any, Any]) -> frozenset[str]:
    """Top-level keys that nobody knows, in a file of ralph-orchestrator alone, which ignores them.

    None in a file with a key of ours, and none that resembles a key with a meaning, in whatever case: that could be a
    mistyped or misplaced limit.
    """
    known = SHARED.union(known_keys((), Config))
    names = {name for name in value if isinstance(name, str)}
    if names & (known - SHARED) or not names & (ORCHESTRATOR | SHARED):
        return frozenset()
    meant = {name.casefold() for name in known.union(*(known_keys((section,), Config) for section in LIMITING))}
    return frozenset(
        name
        for name in names - known - ORCHESTRATOR
        if not difflib.get_close_matches(name.casefold(), meant, 1, MISTYPED)
    )


def _warnings(document: Document, source: str, unknown: frozenset[str]) -> Iterator[str]:
    lines = [(path, f"{source} line {line}: {'.'.join(map(str, path))}") for path, line in document.lines.items()]
    for path, key in lines:
        if advice := _look_up(path, GONE):
            yield f"{key} no longer has an effect: {advice}; take it out"
    for path, key in lines:
        if usual := _look_up(path, STRICTER):
            yield f"{key} is an older key; it counts where it is stricter than usual ({usual})"
    for path, key in lines:
        if _foreign(path) and not _look_up(path, GONE):
            yield f"{key} is a key of ralph-orchestrator; not used here"
    for name in sorted(unknown):
        yield f"{source} line {document.lines[name,]}: {_dotted_path((name,))} is unknown; not used here"
    schedule = document.value.get("schedule") if isinstance(document.value, dict) else None
    if isinstance(schedule, dict) and schedule.get("wake") == GONE_WAKE:
        line = document.lines["schedule", "wake"]
        yield f"{source} line {line}: environments no longer wake anything, the heartbeat does: ralph init --wake auto"


def _foreign(path: tuple[str | int, ...]) -> bool:
    if len(path) == 1:
        return path[0] in ORCHESTRATOR
    below_one = len(path) == 2 and path[0] in (*loop.SECTIONS, "tasks", "RObot")
    inside = below_one or (len(path) == 3 and path[0] == "hats")
    return inside and not loop.is_understood(path)
