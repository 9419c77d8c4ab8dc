"""`ralph due`: the gate that every wake passes, many times an hour.

Imports neither click nor pydantic nor rich. In a workflow the standard library is all there is, for nothing is
installed yet, and nothing checked out: memory's header and the settings of the default branch come by one request. What
only a person would write, and only a YAML parser can read, is due there: the cycle sees for itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import SPOKEN, acts_on_github, read_shared
from ralph_mission.adapters.git.remote import place as server
from ralph_mission.adapters.storage.memory.due import (
    PAUSED,
    due_by_text,
    due_fast,
    due_on_server,
    last_cycle_at,
    usual_longest,
)
from ralph_mission.cli.spelling import iso, moment, read_words
from ralph_mission.errors import UserError
from ralph_mission.mission import memory as layout
from ralph_mission.mission.lifecycle.comment_commands import read_command
from ralph_mission.values import compile_regex, dataclass

if TYPE_CHECKING:
    from ralph_mission.config.settings import Config

NOT_DUE = 10
LONGEST_WAIT = 60  # seconds
SETTINGS = "ralph.yml"
LOST_WORD = "due: another wake took the place of a person's"
Answer = tuple[bool, datetime | None, str]
"""Whether a cycle is due, the time of the next one, and why."""


@dataclass(frozen=True, slots=True)
class DueQuestion:
    """What was asked of `ralph due`. `wait`: seconds that the due moment may be away and is waited for."""

    repo: str = "."
    config: str | None = None
    now: str | None = None
    json: bool = False
    wait: int = 0


def parse_question(arguments: list[str]) -> DueQuestion | None:
    """The question, when it needs no real parser; None for help, mistakes and abbreviations."""
    words = read_words(arguments, ("repo", "config", "now", "wait"))
    wait = words.get("wait", "0") if words is not None else ""
    if words is None or not (wait.isdecimal() and int(wait) <= LONGEST_WAIT):
        return None
    return DueQuestion(words.get("repo", "."), words.get("config"), words.get("now"), "json" in words, int(wait))


def answer(question: DueQuestion) -> int:
    """Print whether a cycle is due; 0 when it is, 10 when not. Raises UserError."""
    due, next_due_at, reason = ask_with_patience(question)
    if question.json:
        document = {"due": due, "next_due_at": iso(next_due_at), "reason": reason, "spoken": reason == LOST_WORD}
        print(json.dumps(document))
    else:
        print(reason)
    return 0 if due else NOT_DUE


def ask_with_patience(question: DueQuestion, sleep: Callable[[float], None] = time.sleep) -> Answer:
    """As `ask`, after the wait that was allowed when a cycle is due that soon. Raises UserError."""
    due, next_due_at, reason = ask(question)
    if due or reason == PAUSED or next_due_at is None or not question.wait or question.now:
        return due, next_due_at, reason
    remaining = (next_due_at - datetime.now(UTC)).total_seconds()
    if remaining > question.wait:
        return due, next_due_at, reason
    sleep(max(remaining, 0.0))
    return ask(question)


def ask(question: DueQuestion) -> Answer:
    """Of the memory that counts: GitHub's in a workflow or by the settings here, else this repository's.

    Raises UserError.
    """
    now = moment(question.now) or datetime.now(UTC)
    if acts_on_github(os.environ):
        if os.environ.get("RALPH_PAUSED") == "1":  # a cycle would be installed, only to exit at once
            return False, None, "not due: RALPH_PAUSED is set"
        if os.environ.get("GITHUB_EVENT_NAME") in SPOKEN:
            return _ask_who_spoke(question.config or SETTINGS, now)
        return _ask_without_checkout(question.config or SETTINGS, now)
    longest = partial(longest_pause, question)
    if not _names_github(question):
        return due_fast(Path(question.repo), now, **memory_place(question), longest=longest)
    place = server(os.environ)
    return due_on_server(place, cache_folder(place.git_url), now, **memory_place(question), longest=longest)


# --- The settings of a checkout: read only where they may say something else than is usual. ---


def memory_place(question: DueQuestion) -> dict[str, str]:
    """Branch and path of memory where the settings here may name others. Raises UserError."""
    if acts_on_github(os.environ):
        return {}  # an earlier job's files in the workspace are not trusted
    if not question.config and not _mentions(question, "memory"):
        return {}
    memory = _settings(question).memory
    return {"branch": memory.branch, "path": memory.path}


def longest_pause(question: DueQuestion) -> timedelta:
    """The longest pause by the settings here. Raises UserError."""
    if not question.config and not _mentions(question, "schedule") and not _mentions(question, "extends"):
        return usual_longest()
    return _settings(question).schedule.rhythm().longest


def cache_folder(url: str) -> Path:
    """Where the text of a server's memory is kept, by commit."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ralph-due" / hashlib.sha256(url.encode()).hexdigest()[:16]


def _mentions(question: DueQuestion, section: str) -> bool:
    place = Path(question.repo) / SETTINGS
    key = rb"^\s*\{?\s*['\"]?%s['\"]?\s*:" % section.encode()
    return place.is_file() and bool(re.search(key, place.read_bytes(), re.M))


def _names_github(question: DueQuestion) -> bool:
    place = Path(question.config) if question.config else Path(question.repo) / SETTINGS
    return place.is_file() and bool(re.search(rb"\bkind\s*:\s*['\"]?github\b", place.read_bytes()))


def _settings(question: DueQuestion) -> Config:
    from ralph_mission.config.reading import read

    return read(Git.open(Path(question.repo)), read_shared, Path(question.config) if question.config else None)


# --- The settings of the default branch, as text. ---

_SECTION = compile_regex(r"^(memory|schedule):[ \t]*(.*(?:\n(?:[ \t#].*)?)*)", re.MULTILINE)
_ODD = compile_regex(r"^(?:[{?]|<<|['\"](?:memory|schedule)\b|(?:memory|schedule)[ \t]+:)", re.MULTILINE)
"""What a line at the margin begins with where a section need not stand as above."""
_EXTENDS = compile_regex(r"^['\"]?extends['\"]?[ \t]*:", re.MULTILINE)
LONGEST_PAUSE = timedelta(days=366)  # that a file may say
_FLOW = compile_regex(r"\{([^{}#]*)\}[ \t]*(?:#.*)?")
_NOTHING = compile_regex(r"[ \t]*(?:#.*)?")
_PAIR = compile_regex(r"[ \t]*(\w+):[ \t]+(['\"]?)([\w./-]+)\2(?:[ \t]+#.*|[ \t]*)")
_PAUSE = compile_regex(r"(\d{1,6})([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Branch and path of memory, and the longest pause between two cycles."""

    branch: str
    path: str
    longest: timedelta


USUAL = MemorySettings(layout.BRANCH, layout.MEMORY, usual_longest())


def _ask_without_checkout(config: str, now: datetime) -> Answer:
    due, next_due_at, reason, text = _ask_memory(config, now)
    last = None if due or reason == PAUSED or not text else last_cycle_at(text)
    if last and _was_word_lost(last, now):
        return True, next_due_at, LOST_WORD
    return due, next_due_at, reason


def _ask_memory(config: str, now: datetime) -> tuple[bool, datetime | None, str, str | None]:
    """The answer by the server's memory alone, and its text. Raises UserError."""
    from ralph_mission.adapters.http.files import read_files

    place, path = server(os.environ), posixpath.normpath(config)
    outside = path.startswith(("../", "/")) or path == ".."  # which the server does not have
    settings, text = read_files(place, f"HEAD:{'' if outside else path}", _name(USUAL))
    memory = USUAL if outside or settings is None else read_memory_settings(settings)
    if memory is None:
        return True, None, f"due: what {path} says of memory or schedule can only be read by the cycle", None
    if _name(memory) != _name(USUAL):
        (text,) = read_files(place, _name(memory))
    return *due_by_text(text, now, lambda: memory.longest), text


def _ask_who_spoke(config: str, now: datetime) -> Answer:
    """A person's word is acted on at once, unless memory is paused; the cycle checks whether anything else is due.

    What the token's own account does wakes nothing. A workflow's own token and an app's start no such run.
    """
    from ralph_mission.adapters.http.files import get_json

    place, account = server(os.environ), None
    if not place.of_app:
        with suppress(UserError):  # the cycle reports the token's problem
            account, _ = get_json(place, "/user")
    if isinstance(account, dict) and str(account.get("id")) == os.environ.get("GITHUB_ACTOR_ID"):
        return False, None, "not due: it was Ralph's own account that did this"
    with suppress(UserError):  # the same
        _, next_due_at, reason, _ = _ask_memory(config, now)
        if reason == PAUSED:  # a cycle would be installed, only to exit at once
            return False, next_due_at, PAUSED
    with suppress(*NO_EVENT):
        _react(_read_event(), "add", EYES)
    return True, None, "due: a person spoke"


NO_EVENT = (UserError, OSError, LookupError, TypeError, ValueError)
"""A reaction is a courtesy: what goes wrong with it is no error."""
EYES = "EYES"
REACTIONS = {"done": "THUMBS_UP", "waits": EYES, "refused": "CONFUSED"}


def answer_order(answers: Mapping[int, str]) -> None:
    """React where the person spoke whose word started this run, by what came of it; `answers` by thread."""
    with suppress(*NO_EVENT):
        event = _read_event()
        number = (event.get("issue") or event["pull_request"])["number"]
        if "comment" in event or "review" in event:
            pull = "pull_request" in event.get("issue", event)
            reaction = choose_reaction(event.get("comment", {}).get("body", ""), answers.get(number), pull)
        else:  # of a tick about Ralph itself no thread tells
            reaction = REACTIONS[answers.get(number, "done")]
        if reaction != EYES:
            _react(event, "remove", EYES)
            _react(event, "add", reaction)


def choose_reaction(words: str, answer: str | None, pull: bool) -> str:
    """The reaction to a comment with these `words`, or to a review, by what came of it.

    A comment of which nothing came was not understood, unless it is a command: another run may have obeyed it. The eyes
    stay on such a one, on what waits, and on guidance, read later. A pull request is approved by no comment.
    """
    command, _ = read_command(words)
    if pull and command == "approve":
        return REACTIONS["refused"]
    if command == "guidance":
        return EYES
    return REACTIONS[answer or ("refused" if words and not command else "waits")]


def _read_event() -> dict[str, Any]:
    event: dict[str, Any] = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_bytes())
    return event


def _react(event: Mapping[str, Any], action: str, content: str) -> None:
    """`add` or `remove` a reaction to what an event is about."""
    from ralph_mission.adapters.http.files import ask_graphql

    by_gate = {**os.environ, "GITHUB_APP_ID": "", "GITHUB_APP_PRIVATE_KEY": ""}  # only who added one can remove it
    (there, *_) = (event[name] for name in ("comment", "review", "issue", "pull_request") if name in event)
    ask_graphql(server(by_gate), *name_reaction(there["node_id"], action, content), tries=1)


def name_reaction(node: str, action: str, content: str) -> tuple[str, dict[str, Any]]:
    """The mutation, and its variables, that does this."""
    order = f"mutation($input: {action.title()}ReactionInput!) {{ {action}Reaction(input: $input) "
    return f"{order}{{ reaction {{ content }} }} }}", {"input": {"subjectId": node, "content": content}}


LOST = ("cancelled", "failure")
"""Ends of a run that did not act on what started it. GitHub lets one run of a concurrency group wait, and cancels it
for the next one."""


def _was_word_lost(since: datetime, now: datetime) -> bool:
    """Whether a run started by a person after `since`, the last cycle, ended without one."""
    from ralph_mission.adapters.http.files import get_json

    place, workflow = server(os.environ), os.environ.get("GITHUB_WORKFLOW_REF", "").partition("@")[0].rpartition("/")[2]
    if not workflow:
        return False
    query = f"created={since:%Y-%m-%d}..{now:%Y-%m-%d}&exclude_pull_requests=true&per_page=100"
    below = f"/repos/{place.repository}/actions/workflows/{workflow}/runs?{query}"
    try:
        runs = [run for end in LOST for run in get_json(place, f"{below}&status={end}")[0]["workflow_runs"]]
        return any(run["event"] in SPOKEN and datetime.fromisoformat(run["created_at"]) > since for run in runs)
    except (UserError, LookupError, TypeError, ValueError):  # the token may not see them
        return False


def _name(memory: MemorySettings) -> str:
    return f"refs/heads/{memory.branch}:{memory.path}"


def read_memory_settings(text: str) -> MemorySettings | None:
    """What settings say of memory; None where that takes packages which are not installed.

    Settings that cannot be read say nothing here: the cycle then says what is wrong.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if _EXTENDS.search(text):  # a pause may be in the file that it extends
        memory = read_memory_settings(_EXTENDS.sub("#", text))
        return memory and replace(memory, longest=LONGEST_PAUSE)
    if plain := _plain_settings(text):
        return plain
    try:
        from ralph_mission.config.reading import load

        settings = load(text)
    except ImportError:
        return None
    except UserError:
        return USUAL
    return MemorySettings(settings.memory.branch, settings.memory.path, settings.schedule.rhythm().longest)


def _plain_settings(text: str) -> MemorySettings | None:
    """The values of sections of plain words, as most people and `ralph init` write them; None for others."""
    first = next((line for line in text.split("\n") if not _NOTHING.fullmatch(line)), "")
    if first[:1].isspace() or _ODD.search(text):
        return None
    words: dict[str, dict[str, str]] = {"memory": {}, "schedule": {"low": "6h", "medium": "1h", "high": "15m"}}
    for name, body in _SECTION.findall(text):
        flow = _FLOW.fullmatch(body.strip())
        lines = flow[1].split(",") if flow else body.split("\n")
        pairs = [_PAIR.fullmatch(line) for line in lines if not _NOTHING.fullmatch(line)]
        if not pairs or any(pair is None for pair in pairs):
            return None
        words[name] |= {pair[1]: pair[3] for pair in pairs if pair}
    pauses = [_PAUSE.fullmatch(words["schedule"][name]) for name in ("low", "medium", "high")]
    if any(pause is None for pause in pauses):
        return None
    longest = max(int(pause[1]) * SECONDS[pause[2]] for pause in pauses if pause)
    memory = words["memory"]
    return MemorySettings(
        memory.get("branch", USUAL.branch), memory.get("path", USUAL.path), timedelta(seconds=longest)
    )
