"""`.ralph/loop/verdicts.jsonl`: what people said to issues that a reviewer let stand; thresholds are learned from it.

Runs in linked work trees tell theirs to the checkout that they came from: that one stays.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from ralph_mission.adapters.storage.loop import files, state
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import CONVERGED, RunState
from ralph_mission.loop.rules.verdicts import AcceptanceVerdict

NAME = ".ralph/loop/verdicts.jsonl"
CAP = 16 * 1024 * 1024  # bytes of it


def path(root: Path) -> Path:
    """Where the verdicts on runs in the work tree `root` stand."""
    linked = root.parent.name == "worktrees" and root.parent.parent.name == ".ralph"
    return (root.parents[2] if linked else root) / NAME


def say(root: Path, accepted: bool, run_id: str = "") -> tuple[str, AcceptanceVerdict]:
    """Keep a person's word on a run ("": the last one): its id and the verdict. Raises UserError (usage), OSError."""
    run = _run(root, run_id)
    if run.pending.topic != CONVERGED:
        raise UserError(
            f"no reviewer was content with {run.run_id}", "only a run that a reviewer ended is judged", usage=True
        )
    place = path(root)
    if run.run_id in _judged_ids(place):
        raise UserError(f"{run.run_id} is judged already", f"take its line out of {place} first", usage=True)
    verdict = AcceptanceVerdict(run.kind or run.run_id.split("-", 2)[-1], len(run.pending.issues), accepted)
    said = {"kind": verdict.kind, "left": verdict.left, "accepted": accepted, "run": run.run_id}
    files.append(place, json.dumps(said).encode())
    return run.run_id, verdict


def _run(root: Path, run_id: str) -> RunState:
    found = None
    with suppress(codec.UnreadableDocument):
        found = state.load(root)
    if run_id and (found is None or found.run_id != run_id):
        found = state.of_run(root, run_id)
    if found is None:
        raise UserError(f"there is no run {run_id}".rstrip(), "their names are in .ralph/loop/runs", usage=True)
    return found


def _judged_ids(place: Path) -> set[str]:
    found: set[str] = set()
    for line in (files.read(place, CAP) or b"").split(b"\n"):
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            found.add(str(json.loads(line)["run"]))
    return found
