"""From a file to a Config. The keys of ralph-orchestrator, whose file has the same name, are accepted and only warned
about where they mean nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from ralph_mission.config import loop_keys
from ralph_mission.config.complaints import explain, known_keys, trouble
from ralph_mission.config.gone_keys import advice as advice_of
from ralph_mission.config.gone_keys import drop_gone, gone_in, stricter_in
from ralph_mission.config.settings import GONE_WAKE, Config
from ralph_mission.errors import UserError
from ralph_mission.safety.front_matter import MAX_BYTES, Document, YamlError, parse

NAME = "ralph.yml"

ORCHESTRATOR = frozenset(
    "_suppress_warnings adapters agent agent_priority agents allow_unsafe_paths archive_prompts backpressure "
    "checkpoint_interval context_threshold context_window dry_run enable_metrics events features git_checkpoint hooks "
    "iteration_telemetry max_prompt_size max_tokens metrics_interval output_format output_preview_length plugins "
    "retry_delay robot skills tui verbose".split()
)
"""Top-level keys of ralph-orchestrator's own ralph.yml, of either version, that have no meaning here."""


class SettingsSource(Protocol):
    """A repository, as far as its settings are read from it."""

    @property
    def work_tree(self) -> Path | None:
        """Its files; None when it is bare."""

    def blobs(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """Contents of files in commits, by `commit:path`; without those that are not there."""


def read(git: SettingsSource, path: Path | None = None, commit: str = "", name: str = "") -> Config:
    """The configuration of a repository; all defaults when it has no `ralph.yml`.

    `path` names another file, `commit` the commit to read it from, and `name` another one there, which has to be in
    it. Otherwise the work tree is read, or HEAD when the repository is bare. Raises UserError (usage) when the file is
    not there or says something impossible.
    """
    if path is not None:
        return load(_text(_bytes(path), str(path)), str(path))
    file = name or NAME
    if git.work_tree and not commit:
        raw = _in_work_tree(git.work_tree / file)
    else:
        raw = _committed_settings(git, commit or "HEAD", file)
    if raw is None and name:
        raise UserError(f"{name} is not on the default branch", "commit it there, or name another file", usage=True)
    return load(_text(raw, file), file) if raw is not None else Config()


def load(text: str, source: str = NAME) -> Config:
    """The configuration that `text` says; `source` is how errors call it. Raises UserError (usage)."""
    try:
        document = parse(text)
    except YamlError as error:
        raise trouble(source, error.line, error.what, "fix the file") from None
    if not isinstance(document.value, dict | None):
        raise trouble(source, 1, "is not a mapping of keys to values", "start it with a key such as schedule:")
    try:
        config = Config.model_validate(_drop_ignored(loop_keys.lift_old_keys(drop_gone(document.value or {}))))
    except ValidationError as error:
        raise explain(error, document, source, Config) from None
    config._warnings = tuple(_warnings(document, source))
    return config


def schema() -> dict[str, Any]:
    """The JSON Schema of `ralph.yml`, for editors and checkers."""
    made = Config.model_json_schema()
    older = "|".join(sorted({*ORCHESTRATOR, *loop_keys.FLAT, "RObot", "tasks"}))
    made["patternProperties"] = {f"^({older})$": {"description": "A key of ralph-orchestrator."}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": NAME}


def _in_work_tree(path: Path) -> bytes | None:
    return _bytes(path) if path.exists() or path.is_symlink() else None


def _committed_settings(git: SettingsSource, commit: str, name: str) -> bytes | None:
    place = f"{commit}:{name}"
    return git.blobs([place]).get(place)


def _bytes(path: Path) -> bytes:
    if not path.is_file():  # a folder, a pipe or a device is as good as nothing
        raise UserError(f"{path} is not a file", "name the settings with --config FILE", usage=True)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _text(raw: bytes, source: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(raw) > MAX_BYTES:  # cut within a character
            raise trouble(source, 0, f"longer than {MAX_BYTES // 1024} KiB", "make it shorter") from None
        raise trouble(source, raw[: error.start].count(b"\n") + 1, "is not UTF-8", "save it as UTF-8") from None


def _drop_ignored(value: dict[str, Any], path: tuple[str, ...] = ()) -> dict[str, Any]:
    """`value` without the keys that only warn, and without those that were left empty."""
    empty = set(known_keys(path, Config))
    return {
        key: _drop_ignored(child, (*path, key)) if isinstance(child, dict) else child
        for key, child in value.items()
        if (path or key not in ORCHESTRATOR) and (child is not None or key not in empty)
    }


def _warnings(document: Document, source: str) -> Iterator[str]:
    for line, name, advice in gone_in(document.lines):
        yield f"{source} line {line}: {name} has no effect any more: {advice}; take it out"
    for line, name, usual in stricter_in(document.lines):
        yield f"{source} line {line}: {name} is an older key; it counts where it is stricter than usual ({usual})"
    for path, line in document.lines.items():
        if _foreign(path) and not advice_of(path):
            yield f"{source} line {line}: {'.'.join(map(str, path))} is a key of ralph-orchestrator; not used here"
    schedule = document.value.get("schedule") if isinstance(document.value, dict) else None
    if isinstance(schedule, dict) and schedule.get("wake") == GONE_WAKE:
        line = document.lines["schedule", "wake"]
        yield f"{source} line {line}: environments wake nothing any more, the heartbeat does; see ralph init --wake"


def _foreign(path: tuple[str | int, ...]) -> bool:
    if len(path) == 1:
        return path[0] in ORCHESTRATOR
    below_one = len(path) == 2 and path[0] in (*loop_keys.SECTIONS, "tasks", "RObot")
    inside = below_one or (len(path) == 3 and path[0] == "hats")
    return inside and not loop_keys.is_understood(path)
