"""Plays files of other people's loops with an agent that knows the way: `python -m tools.played_files FOLDER`.

Below FOLDER: settings of ralph-orchestrator, prd.json and check lists, equal files once. Each is committed to a
repository of its own, read by the loader of `ralph run` and played. The scripted agent takes the shortest way of events
to the promise; of a list it marks the story that it was given. Nothing of FOLDER is run or changed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import ralph_mission.loop.stories.prd as form
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.app import run
from ralph_mission.app.embedding import RunHandle
from ralph_mission.app.run_options import RunOptions, resolve_run
from ralph_mission.config.reading import read
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import RunSpec
from ralph_mission.loop.model.state import START, VERDICT, LoopEvent
from ralph_mission.loop.rules import routing

SETTINGS, STORIES, BOXES = "settings", "prd.json", "check list"
NAMES = (
    (SETTINGS, re.compile(r"\.ya?ml$"), re.compile(r"^event_loop:", re.MULTILINE)),
    (STORIES, re.compile(r"^prd[^/]*\.json$"), re.compile(r"")),
    (BOXES, re.compile(r"^(@?fix_plan|tasks|todo|implementation_plan)\.md$", re.IGNORECASE), re.compile(r"[-*] \[ \]")),
)
SKIPPED = {".git", "node_modules"}
OUTCOMES = ("complete", "endless", "ended", "refused")
"""Ended: in another way than complete. Endless: a persistent loop, as long as it was played."""
LONGEST = 1_000_000  # bytes
SESSIONS = 30  # of settings: more than any way has
FOREVER = 3  # sessions of a persistent loop, which has no end
FIRST_COMMIT = "git init -qb main && git add -A && git -c user.name=a -c user.email=a@b.example commit -qm begin"
MARK = f"""
import json, os, sys
from dataclasses import replace
from pathlib import Path
import {form.__name__} as form
place = Path(sys.argv[1])
item = json.loads(Path(os.environ["RALPH_RUN_DIR"], "state.json").read_text())["state"]["item"]
text = place.read_text()
prd = form.parse_prd(text)
stories = tuple(replace(one, passes=one.passes or one.id == item) for one in prd.stories)
place.write_text(form.update_progress(text, replace(prd, stories=stories)))
"""
"""What marks the story of a session."""


def find_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of each kind below `folder`; equal ones once."""
    seen = set[bytes]()
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - SKIPPED)
        for path in (Path(top, name) for name in sorted(names)):
            for kind, name, content in NAMES:
                if not name.search(path.name) or not path.is_file() or path.stat().st_size > LONGEST:
                    continue
                raw = path.read_bytes()
                if raw not in seen and content.search(raw.decode(errors="replace")):
                    seen.add(raw)
                    yield kind, path


def play_file(kind: str, path: Path) -> tuple[str, str]:
    """One of `OUTCOMES`, and how it ended or why it is refused."""
    with tempfile.TemporaryDirectory(prefix="ralph-played-") as scratch:
        repo, script = Path(scratch, "repo"), Path(scratch, "script.json")
        repo.mkdir()
        name = {SETTINGS: "ralph.yml", STORIES: "prd.json"}.get(kind, path.name)
        (repo / name).write_bytes(path.read_bytes())
        (repo / "PROMPT.md").write_text("Write played.txt.\n")
        subprocess.run(FIRST_COMMIT, shell=True, cwd=repo, check=True)
        try:
            options, hats = _script_for_settings(repo) if kind == SETTINGS else _script_for_list(repo, name)
            script.write_text(json.dumps({"hats": hats}))
            result = RunHandle(replace(options, repo=repo, agent="scripted", command=str(script))).result()
        except (UserError, form.UnreadablePrd) as problem:
            return "refused", str(problem).replace(f"{repo}/", "")
    ending = result.ending
    if ending.reason == "iterations" and options.iterations == FOREVER and not any(o.failure for o in result.outputs):
        return "endless", ""
    return ("complete" if ending.reason == "complete" else "ended"), f"{ending.reason}: {ending.detail}"


def _script_for_list(repo: Path, name: str) -> tuple[RunOptions, dict[str, Any]]:
    """Options for a run through the stories of a list, and its script."""
    prd = form.parse_prd((repo / name).read_text("utf-8-sig"))
    mark = shlex.join([sys.executable, "-c", MARK, name])
    step = {"run": ['echo "$RALPH_ITERATION" >> played.txt', mark], "text": "Done."}
    return RunOptions(prd_file=repo / name, iterations=2 * len(prd.stories) + 2, runtime=3600.0), {"*": [step]}


def _script_for_settings(repo: Path) -> tuple[RunOptions, dict[str, Any]]:
    """Options for a run with the hats of `ralph.yml`, and its script."""
    spec = resolve_run(RunOptions(repo, task="Write played.txt."), read(Git.open(repo), read_shared), repo, None).spec
    play: dict[str, list[dict[str, Any]]] = {}
    for hat, topic in find_way(spec):
        step: dict[str, Any] = {"append": {"played.txt": f"{topic}\n"}}
        payload = json.dumps({"issues": []}) if topic == VERDICT else "played.txt"
        step |= {"event": {"topic": topic, "payload": payload}} if topic else {"text": spec.preset.promise}
        play.setdefault(hat, []).append(step)
    play.setdefault("*", [{"append": {"played.txt": "x\n"}, "text": spec.preset.promise}])
    return RunOptions(task="Write played.txt.", iterations=FOREVER if spec.persistent else SESSIONS), play


def find_way(spec: RunSpec) -> Sequence[tuple[str, str]]:
    """The hats to the promise, by the fewest sessions, each with its event; "" is the promise on the last line."""
    promise, hats, start = spec.preset.promise, spec.hats, START
    decided = routing.has_reviewer(hats) or any(promise in hat.publishes for hat in hats)
    ways: list[tuple[str, frozenset[str], tuple[tuple[str, str], ...]]] = [(start, frozenset(), ())]
    known = {(start, frozenset[str]())}
    for event, emitted, way in ways:  # it grows meanwhile: breadth first
        hat = routing.find_hat(hats, LoopEvent(event))
        missing = {*spec.required_events} - emitted
        if not missing and (hat is None or not decided):
            return (*way, (hat.name if hat else "*", ""))
        if hat is None:
            continue
        for topic in hat.publishes:
            if "*" in topic or (topic in (promise, VERDICT) and missing - {topic}):
                continue
            step = (*way, (hat.name, topic))
            if topic in (promise, VERDICT):
                return step
            state = (topic, emitted | {topic})
            if state not in known:
                known.add(state)
                ways.append((*state, step))
    return (("*", ""),)


def main(folder: Path) -> int:
    """Play everything below `folder`, and print the counts."""
    counts = Counter[tuple[str, str]]()
    for kind, path in find_files(folder):
        with mock.patch.object(run.PausingClock, "sleep"):  # no pause between sessions
            outcome, why = play_file(kind, path)
        counts[kind, outcome] += 1
        if outcome in ("ended", "refused"):
            print(f"{outcome}: {path.relative_to(folder)}: {why}")
    for kind in (SETTINGS, STORIES, BOXES):
        print(f"{kind}: {', '.join(f'{counts[kind, outcome]} {outcome}' for outcome in OUTCOMES)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
