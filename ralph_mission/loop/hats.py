"""Hats, and the patterns in which they take turns. An event decides who is next, never a model.

Hats are defined in hat files (TOML) and under `hats:` in `ralph.yml`, whose keys `config` reads.

    [hat]      name, model, max_tokens; besides: agent, description, triggers, publishes, default_publishes,
               instructions
    [context]  load
    [tools]    denied; besides: commands
    [files]    write_allowed, write_denied
    [exit]     emit_event, payload

The keys after "besides" are ours. A tool written as `Bash(git push:*)`, or with a space, is a command.

In `plan-build-review`: plan.complete -> builder · build.complete -> reviewer · review.verdict with issues -> fixer,
without -> the end · fix.complete -> reviewer · verification.failed -> builder, with what failed. In every pattern the
hat that writes also listens to plan.complete, which the engine emits when work is left, and the first to task.resume.

The presets are data too: one row for each of the original tools, with their numbers.

- loop: 100 sessions, 4 hours, 3 failures in a row, 3 redispatches, LOOP_COMPLETE.
- fresh: 20 sessions, 100 turns and 45 minutes each, 3 retries 5 seconds apart, stuck after 3, TASK_COMPLETE;
  its only overall limit is the product, 15 hours.
- prd: 10 sessions, 2 seconds between them, COMPLETE, one commit per story; their product
  likewise: 10 times 45 minutes.
- issue: 50 sessions per issue, else as loop.
- hats, and one row per pattern: as loop, until the reviewer has no critical issues left (at most 100 sessions).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import LoopPreset, RunLimits
from ralph_mission.loop.model.state import (
    CONVERGED,
    PLANNED,
    RESUME,
    START,
    VERDICT,
    VERIFICATION_FAILED,
    Hat,
    LoopEvent,
)
from ralph_mission.loop.rules.routing import ALIASES, find_hat
from ralph_mission.values import compile_regex, dataclass

Found = tuple[Hat, tuple[str, ...]]
"""A hat, and warnings about keys without effect."""
NAME = compile_regex(r"[\w][\w .-]{0,59}")
COMMAND = compile_regex(r"Bash\((.+?)(?::\*)?\)")


def parse_hats(text: str, where: str) -> Found:
    """Parse a hat file; returns the hat and warnings. Raises UserError that names the file and the key."""
    try:
        return from_toml(tomllib.loads(text), where)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{where} is not TOML: {error}", "fix that line", usage=True) from None


def from_toml(value: Mapping[str, Any], where: str) -> Found:
    """A hat from TOML. Missing triggers and events are those of the built-in hat of its name."""
    flat = {f"{section}.{key}": item for section, keys in value.items()
            for key, item in (keys.items() if isinstance(keys, dict) else ())}  # fmt: skip  # one table
    loose = tuple(key for key, item in value.items() if not isinstance(item, dict))
    fields = _parse_fields(flat, where)
    if "name" not in fields:
        raise _wrong_value(where, "hat.name", "a name")
    emitted = fields.pop("emit_event", "")
    if emitted:
        fields["publishes"] = tuple(dict.fromkeys((*fields.get("publishes", ()), emitted)))
    unknown = [key for key in (*flat, *loose) if key not in TOML]
    warnings = tuple(f"{where}: {key} means nothing here{_suggest(key, tuple(TOML))}" for key in unknown)
    return _make_hat(fields), warnings


def from_settings(name: str, value: Mapping[str, Any]) -> Hat:
    """A hat from an entry of `hats:` in ralph.yml, which was read by its settings; `name` is its key."""
    fields = {("tools_denied" if key == "disallowed_tools" else key): item for key, item in value.items()}
    return _make_hat({**fields, "name": name})


def complaints(
    hats: Sequence[Hat], persistent: bool, promise: str = "LOOP_COMPLETE", required: Sequence[str] = ()
) -> tuple[str, ...]:
    """The problems of a set of hats, each in a sentence.

    Duplicate names, a topic (except the promise) that no hat listens to, a `required` one that no hat emits, an
    unreachable hat, no hat to start with, a persistent loop that no hat resumes.
    """
    return (
        *_find_doubles(hats),
        *_find_unheard(hats, promise),
        *_find_unemitted(hats, [topic for topic in required if topic != promise]),
        *_unreached_hats(hats, promise),
        *_unheard_starts(hats, persistent),
    )


# --- reading ----------------------------------------------------------------------------


def _make_hat(fields: dict[str, Any]) -> Hat:
    """Denied tools that are commands are denied as commands; missing triggers and events are the built-in hat's."""
    tools = fields.get("tools_denied", ())
    commands = tuple(found for tool in tools if (found := _parse_command(tool)))
    fields["tools_denied"] = tuple(tool for tool in tools if not _parse_command(tool))
    fields["commands_denied"] = tuple(dict.fromkeys((*fields.get("commands_denied", ()), *commands)))
    usual = HATS.get(fields["name"])
    if usual is not None:
        fields = {"triggers": usual.triggers, "publishes": usual.publishes} | fields
    return Hat(**fields)


def _parse_command(tool: str) -> str:
    found = COMMAND.fullmatch(tool.strip())
    return found[1].strip() if found else tool.strip() if " " in tool.strip() else ""


def _parse_fields(value: Mapping[str, Any], where: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, item in value.items():
        if key in TOML and item is not None:
            name, read, expected = TOML[key]
            try:
                fields[name] = read(item)
            except TypeError:
                raise _wrong_value(where, key, expected) from None
    return fields


def _suggest(word: str, known: Sequence[str]) -> str:
    last = {name.rpartition(".")[2]: name for name in known}
    near = get_close_matches(word, known, 1) or get_close_matches(word.rpartition(".")[2], last, 1)
    return f", did you mean {last.get(near[0], near[0])}?" if near else ""


def _wrong_value(where: str, key: str, expected: str) -> UserError:
    return UserError(f"{where}: {key} must be {expected}", "see docs/hats.md", usage=True)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _name(value: object) -> str:
    name = _text(value).strip()
    if not NAME.fullmatch(name):
        raise TypeError
    return name


def _texts(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise TypeError
    return tuple(items)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


A_TEXT, A_LIST = (_text, "a text"), (_texts, "a list of texts")
TOML: Mapping[str, tuple[str, Callable[[object], Any], str]] = {
    "hat.name": ("name", _name, "a name of letters, digits, spaces, dots and dashes"),
    "hat.description": ("description", *A_TEXT),
    "hat.triggers": ("triggers", *A_LIST),
    "hat.publishes": ("publishes", *A_LIST),
    "hat.default_publishes": ("default_publishes", *A_TEXT),
    "hat.instructions": ("instructions", *A_TEXT),
    "hat.agent": ("agent", *A_TEXT),
    "hat.model": ("model", *A_TEXT),
    "hat.max_tokens": ("max_tokens", _count, "a whole number"),
    "context.load": ("context", *A_LIST),
    "tools.denied": ("tools_denied", *A_LIST),
    "tools.commands": ("commands_denied", *A_LIST),
    "files.write_allowed": ("write_allowed", *A_LIST),
    "files.write_denied": ("write_denied", *A_LIST),
    "exit.emit_event": ("emit_event", *A_TEXT),
    "exit.payload": ("payload", *A_LIST),
}


# --- what is wrong with a set -------------------------------------------------------------


def _find_doubles(hats: Sequence[Hat]) -> Iterator[str]:
    names = [hat.name for hat in hats]
    yield from (f"two hats are called {name}" for name in dict.fromkeys(names) if names.count(name) > 1)


def _find_unheard(hats: Sequence[Hat], promise: str) -> Iterator[str]:
    triggers = tuple(trigger for hat in hats for trigger in hat.triggers)
    for hat in hats:
        for topic in dict.fromkeys((*hat.publishes, *filter(None, (hat.default_publishes,)))):
            if topic not in (promise, CONVERGED) and not _meet((topic,), triggers):
                yield f"{hat.name} publishes {topic}, to which no hat listens{_suggest(topic, triggers)}"


def _find_unemitted(hats: Sequence[Hat], required: Sequence[str]) -> Iterator[str]:
    if not hats or not all(hat.publishes for hat in hats):  # who publishes nothing by name may emit anything
        return
    topics = tuple(topic for hat in hats for topic in (*hat.publishes, hat.default_publishes) if topic)
    for topic in required:
        if not _meet((topic,), topics):
            yield f"no hat publishes {topic}, which required_events asks for{_suggest(topic, topics)}"


def _unreached_hats(hats: Sequence[Hat], promise: str) -> Iterator[str]:
    emitted = {START, RESUME, VERIFICATION_FAILED, promise, *ALIASES.get(START, ())}
    topics = (*emitted, *(topic for hat in hats for topic in (*hat.publishes, hat.default_publishes) if topic))
    for hat in hats:
        if not hat.triggers:
            yield f"{hat.name} has no triggers, so it never runs"
        elif not _meet(topics, hat.triggers):
            hint = _suggest(hat.triggers[0], topics)
            yield f"nothing triggers {hat.name}: no hat emits {' or '.join(hat.triggers)}{hint}"


def _unheard_starts(hats: Sequence[Hat], persistent: bool) -> Iterator[str]:
    if hats and find_hat(hats, LoopEvent(START)) is None:
        yield f"no hat listens to {START}, so the first session has none"
    if hats and persistent and find_hat(hats, LoopEvent(RESUME)) is None:
        yield f"no hat listens to {RESUME}, so the session that looks for more work has none"


def _meet(topics: Sequence[str], triggers: Sequence[str]) -> bool:
    """Whether any of the topics matches a trigger; published topics may be patterns too."""
    return any(fnmatchcase(topic, trigger) or fnmatchcase(trigger, topic) for topic in topics for trigger in triggers)


BUILT, FIXED, TESTED, DIAGNOSED = "build.complete", "fix.complete", "tests.written", "diagnosis.complete"
BEGIN = (START, RESUME)
WORK = (PLANNED, VERIFICATION_FAILED)
DOCS = ("docs/**", "doc/**")
TESTS = (
    "tests/**", "test/**", "spec/**", "**/__tests__/**", "**/test_*.py", "**/*_test.*", "**/*.test.*", "**/*.spec.*",
    "**/conftest.py",
)  # fmt: skip  # one list
PLANS = ("PLAN.md", "plans/**")
WRITING = ("Edit", "MultiEdit", "Write", "NotebookEdit")
"""Tools that change files, as coding agents name them."""
WEB = ("WebFetch", "WebSearch")
"""Tools that access the web, likewise."""
DENIED = ("git push --force", "git reset --hard", "git clean -fdx", "git rebase", "rm -rf /", "sudo")
"""Commands that no unattended session may run, besides `shims.DANGEROUS`."""


@dataclass(frozen=True, slots=True)
class HatPattern:
    """Hats that take turns at a kind of task. `fits`: when to use it."""

    name: str
    hats: tuple[Hat, ...]
    fits: str


PLANNER = Hat(
    "planner", BEGIN, (PLANNED,),
    description="decides what is to be done, in small steps",
    instructions="Read what the objective touches before you decide anything. Write the plan as tasks "
    "(`ralph agent task add`), each small enough for one session, with what it needs first, how to see that it is "
    "done, and what must stay as it is. Say which files each of them touches. A plan costs little: when one exists and "
    "does not work, write another. Build nothing.",
    write_allowed=PLANS, commands_denied=DENIED,
)  # fmt: skip  # who, what, where
BUILDER = Hat(
    "builder", WORK, (BUILT,),
    description="builds one planned step",
    instructions="Take the first step that is ready and build exactly that, in the manner of the code around it. "
    "When you were called because checks failed, fix their cause and leave the checks alone. Run the checks, commit, "
    "close the task. Do not judge your own work: somebody else does.",
    write_denied=(*DOCS, *TESTS), commands_denied=DENIED, payload=("the files changed", "how it was checked"),
)  # fmt: skip  # as above
REVIEWER = Hat(
    "reviewer", (BUILT, FIXED), (VERDICT,),
    description="judges what was built, and changes nothing",
    instructions="You have not seen this being written, and you owe nobody anything. Read the change and what it "
    "touches, run it and its tests, try the cases that its author did not think of. Report what breaks, what is "
    "missing and what contradicts the objective or the plan, each with file, line and kind, and how severe it is: "
    "critical must be fixed, major should be, minor may stay. Matters of taste are no issues.",
    write_allowed=(), tools_denied=WRITING, commands_denied=DENIED, payload=("issues",),
)  # fmt: skip  # as above
EXPLORER = Hat(
    "explorer", (), (),
    description="reads code for bugs, and brings a test that shows each",
    instructions="Read the files that are named below, and what they call, for behaviour that is wrong: a case that is "
    "not handled, a limit that is off by one, a state that is left behind, an error that is swallowed. Run what you "
    "suspect, and drop what you cannot show. A claim counts only with a test that fails today because of it, by an "
    "assertion or by the exception that you name, and passes with the smallest change that fixes it. Matters of taste, "
    "missing features and tests of how code is written are no bugs. None is a good answer.",
    write_allowed=(), tools_denied=WRITING, commands_denied=DENIED,
)  # fmt: skip  # as above
"""In no pattern: used by a cycle, see `mission/proof`."""
RESEARCHER = Hat(
    "researcher", (), (),
    description="reads sources, and says what they say with a quote of each",
    instructions="Answer what is asked from the pages that are shown, and from the repository where it is about that. "
    "Say one thing in each section, plainly, with the words of the page that show it, copied to the letter. What no "
    "page says you do not say, however well you know it. You have no network of your own: ask for the pages that you "
    "need. None is a good answer.",
    write_allowed=(), tools_denied=(*WRITING, *WEB), commands_denied=DENIED,
)  # fmt: skip  # as above
"""Used by a cycle; every section is checked, see `mission/proof/exploring.py`."""
WRITER = Hat(
    "writer", (), (),
    description="writes a text from what it is given, and from nothing else",
    instructions="Write what is wanted for the people who read there: short, plain, and interesting because of what "
    "it tells. Use what you are given and nothing besides: no figure, name, date or address of your own, no promise, "
    "no praise that the material does not show. No mentions, no tags, no mark-up.",
    write_allowed=(), tools_denied=(*WRITING, *WEB), commands_denied=DENIED,
)  # fmt: skip  # as above
"""Used by a cycle; every text is checked, see `mission/publishing/content.py`."""
FIXER = Hat(
    "fixer", (VERDICT,), (FIXED,),
    description="fixes what the reviewer found",
    instructions="Fix every issue of the verdict, the critical ones first, and nothing besides. Show the fault with "
    "a test before you fix it where that can be done. When an issue is none, leave the code and say why.",
    commands_denied=DENIED, payload=("what was fixed", "what was left and why"),
)  # fmt: skip  # as above
TESTER = Hat(
    "tester", BEGIN, (TESTED,),
    description="writes the tests that say what is wanted",
    instructions="Write tests for what the objective asks, through the interfaces that its users see: what must "
    "hold, its limits, and what must be refused. Run them: those for what is not built yet must fail, and for that "
    "reason only. Do not build it.",
    write_allowed=TESTS, commands_denied=DENIED, payload=("the tests", "why they fail now"),
)  # fmt: skip  # as above
DEBUGGER = Hat(
    "debugger", BEGIN, (DIAGNOSED,),
    description="finds the cause of a fault and shows it with a test",
    instructions="Make the fault happen, reliably, in the smallest test that shows it. Then narrow it down: one "
    "assumption at a time, each tried and not believed. Name the cause, with file and line, and what else it can "
    "break. Do not fix it.",
    write_allowed=TESTS, commands_denied=DENIED, payload=("the cause with file and line", "the failing test"),
)  # fmt: skip  # as above
REFACTORER = Hat(
    "refactorer", (TESTED, *WORK), (BUILT,),
    description="changes the shape of code and nothing of what it does",
    instructions="Change one thing about the shape of the code at a time, run the tests after each, commit each. What "
    "it does stays the same: when a test has to change, stop and say so. Features and faults are not yours.",
    write_denied=(*DOCS, *TESTS), commands_denied=DENIED, payload=("what changed its shape", "how it was checked"),
)  # fmt: skip  # as above
GUARD = replace(
    TESTER,
    description="writes tests for what the code does now",
    instructions="Before anything is moved, write tests for what the code in question does now, right or wrong, as "
    "its callers see it. They pass today and must pass afterwards. Do not change the code.",
    payload=("the tests", "what they hold on to"),
)

HATS: Mapping[str, Hat] = {hat.name: hat for hat in (PLANNER, BUILDER, REVIEWER, FIXER, TESTER, DEBUGGER, REFACTORER)}
"""The hats that a user's own is compared with, by name. A pattern may have others, such as `GUARD`."""

PATTERNS: Mapping[str, HatPattern] = {
    pattern.name: pattern
    for pattern in (
        # No other hat here writes tests, so its builder may.
        HatPattern("plan-build-review", (PLANNER, replace(BUILDER, write_denied=DOCS), REVIEWER, FIXER),
                "a feature of several steps"),
        HatPattern("test-first", (TESTER, replace(BUILDER, triggers=(TESTED, *WORK)), REVIEWER, FIXER),
                "behaviour that tests can describe"),
        HatPattern("refactor", (GUARD, REFACTORER, REVIEWER, FIXER), "another shape, the same behaviour"),
        HatPattern("debug", (DEBUGGER, replace(FIXER, triggers=(DIAGNOSED, VERDICT, *WORK)), REVIEWER),
                "a bug with an unknown cause"),
    )
}  # fmt: skip  # one table
"""Every pattern by its name."""
PATTERN_ALIASES: Mapping[str, str] = {
    "pbr": "plan-build-review", "feature": "plan-build-review", "tdd": "test-first", "refactoring": "refactor",
    "debugging": "debug", "bugfix": "debug",
}  # fmt: skip  # one table


WITHOUT_HATS = ("loop", "fresh", "prd", "issue")
"""Patterns that only set limits and habits."""


def find_pattern(name: str) -> HatPattern:
    """The pattern of this name or alias. Raises UserError that names the nearest."""
    return _find_named("pattern", name, PATTERNS, WITHOUT_HATS, ("ralplan", "ultrawork", "team"))


Named = TypeVar("Named", HatPattern, LoopPreset)


def _find_named(
    kind: str, name: str, known: Mapping[str, Named], others: Sequence[str] = (), teams: Sequence[str] = ()
) -> Named:
    key = name.strip().lower().replace("_", "-")
    found = known.get(PATTERN_ALIASES.get(key, key))
    if found is None:
        near = get_close_matches(key, (*known, *PATTERN_ALIASES, *others), 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join((*known, *teams, *others))}"
        raise UserError(f"no {kind} {name!r}", hint, usage=True)
    return found


SESSION = 45 * 60.0
"""Seconds for a session."""
LOOP = RunLimits(iterations=100, runtime=4 * 3600.0, failures=3, redispatches=3)
FRESH = RunLimits(iterations=20, runtime=20 * SESSION, session=SESSION, turns=100, stuck=3, retries=3, retry_pause=5.0)
PRD = RunLimits(iterations=10, runtime=10 * SESSION, session=SESSION, pause=2.0)
ISSUE = replace(LOOP, iterations=50)
PERSISTENT = replace(LOOP, iterations=10_000, runtime=86_400.0, usd=50.0, unpriced=True)
"""Limits of a loop over issues: 10,000 sessions, a day, $50."""
IDLE_PAUSE, ISSUE_PAUSE, ERROR_PAUSE = 300.0, 30.0, 60.0
"""Seconds to wait: if there is no issue, between issues, after an error."""

PRESETS: Mapping[str, LoopPreset] = {
    preset.name: preset
    for preset in (
        LoopPreset("loop", LOOP, "LOOP_COMPLETE"),
        LoopPreset("fresh", FRESH, "TASK_COMPLETE"),
        LoopPreset("prd", PRD, "COMPLETE", stories=True),
        LoopPreset("issue", ISSUE, "LOOP_COMPLETE"),
        LoopPreset("hats", LOOP, "LOOP_COMPLETE"),
        *(LoopPreset(pattern.name, LOOP, "LOOP_COMPLETE", hats=pattern.hats) for pattern in PATTERNS.values()),
    )
}  # fmt: skip  # one table
"""Every preset by its name. `fresh` uses stories if there is a prd.json, which the caller finds out."""


def find_preset(name: str) -> LoopPreset:
    """The preset of this name, or of a pattern's alias. Raises UserError that names the nearest."""
    return _find_named("preset", name, PRESETS)
