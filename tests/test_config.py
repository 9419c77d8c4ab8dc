"""ralph.yml: everything that can be wrong with it is one line that says where and what instead."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.config.loop import FixerCommand
from ralph_mission.config.reading import GONE, STRICTER, load, read, schema
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.mission.model.ledger import Rhythm
from ralph_mission.mission.model.mission import Limits
from tests.helpers import commit, git, make_repo

EXAMPLE = r"""
schedule: {low: 6h, medium: 1h, high: 15m, wake: auto}
limits: {active_missions: 3, actions_per_cycle: 3, auto_prs_per_cycle: 1, auto_pr_lines: 49, dispatches_per_day: 48, usd_per_cycle: 2, usd_per_day: 10}
memory: {path: memory/ralph-log.md, branch: ralph-memory}
owners: [mara]
forge: {kind: auto, merge_method: squash, stale_after: 14d}
observers:
  code: {markers: {todo: 'TODO|FIXME|HACK', ts-ignore: '@ts-ignore', any: ': any\b'}, exclude: ['vendor/**']}
  commands:
    - {name: types, run: npx tsc --noEmit, parse: {regex: '^(?P<path>.+)\((?P<line>\d+),\d+\): error (?P<code>TS\d+): (?P<message>.+)$'}, kind: bug}
    - {name: lint, run: ruff check --output-format sarif, parse: sarif, kind: code-quality}
  dependencies: {}
  database:
    backend: sqlalchemy
    watches:
      - {name: top-apr, model: ChainParams, top: {order_by: apr, take: 5}, kind: content}
  web:
    - {name: rivals, url: 'https://example.org/feed.xml', kind: feed, match: 'risk|score'}
  social: {every: 24h}
thinker: {kind: rules}
hands: {fixers: [typos, ruff], agent: {kind: claude, fallback: [codex], sandbox: bwrap}, verify: ['make test']}
completion: {open_tasks: reject}
publishers: {twitter: {}, telegram: {}, discord: {}, templates: {anomaly: '…'}, quiet_hours: '22:00-07:00'}
"""  # noqa: E501  # the documented example, line for line


def refused(text: str) -> UserError:
    """The complaint about a file."""
    with pytest.raises(UserError) as caught:
        load(text)
    assert caught.value.exit_code == 2
    assert caught.value.who == "you"
    assert "\n" not in caught.value.what + caught.value.next_step
    return caught.value


def test_no_key_is_required() -> None:
    assert load("") == Config()
    assert load("# nothing\n") == Config()


def test_the_defaults_are_the_built_in_limits_and_rhythm() -> None:
    assert Config().limits.limits() == Limits()
    assert Config().schedule.rhythm() == Rhythm()


def test_the_documented_example_loads_and_all_of_it_is_used() -> None:
    config = load(EXAMPLE)
    assert config.warnings == ()
    assert config.owners == ("mara",)
    assert [command.name for command in config.observers.commands] == ["types", "lint"]


def test_warnings_name_the_line() -> None:
    assert load("owners: []\nplugins: {}\n").warnings == (
        "ralph.yml line 2: plugins is a key of ralph-orchestrator; not used here",
    )


def test_keys_of_ralph_orchestrator_only_warn() -> None:
    config = load(
        "hats:\n  builder:\n    triggers: [x]\n    concurrency: 3\nevent_loop:\n  checkpoint_interval: 5\n"
        "RObot: {telegram: {bot_token: x}}\nplugins: []\ncli: {pty_mode: true}\n"
    )
    assert [line.removesuffix(" is a key of ralph-orchestrator; not used here") for line in config.warnings] == [
        "ralph.yml line 4: hats.builder.concurrency",
        "ralph.yml line 6: event_loop.checkpoint_interval",
        "ralph.yml line 7: RObot.telegram",
        "ralph.yml line 8: plugins",
        "ralph.yml line 9: cli.pty_mode",
    ]


def test_unknown_keys_of_a_file_of_ralph_orchestrator_only_warn() -> None:
    config = load("name: Shop\nmodel: sonnet\nhats_dir: hats\nevent_loop: {max_iterations: 7}\n")
    assert config.event_loop.max_iterations == 7
    assert config.warnings == (
        "ralph.yml line 1: name is a key of ralph-orchestrator; not used here",
        "ralph.yml line 3: hats_dir is unknown; not used here",
        "ralph.yml line 2: model is unknown; not used here",
    )


@pytest.mark.parametrize(
    "text",
    [
        "model: sonnet\nevent_loop: {}\nowners: []\n",  # a file with a key of ours: nothing is guessed
        "model: sonnet\n",  # nobody's
        "max_iteration: 3\ncli: {backend: claude}\n",  # a limit, mistyped
        "limts: {}\nevent_loop: {}\n",
        "LIMITS: {auto_prs_per_cycle: 0}\ncli: {backend: claude}\n",  # in the wrong case
        "Owners: [mara]\ncli: {backend: claude}\n",
        "auto_prs_per_cycle: 0\ncli: {backend: claude}\n",  # one level too high
        "THREADS_PER_WEEK: 0\ncli: {backend: claude}\n",
        "usd_per_issue: 1\ncli: {backend: claude}\n",
    ],
)
def test_any_other_unknown_key_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="unknown key"):
        load(text)


PRESET = """
event_loop:
  prompt_file: "PROMPT.md"
  completion_promise: "DEBUG_COMPLETE"
  required_events: ["fix.applied", "fix.verified"]
  max_iterations: 30
  max_runtime_seconds: 7200
  max_cost_usd: 12.5
  max_consecutive_failures: 5
  cooldown_delay_seconds: 2
  starting_event: "debug.start"
  checkpoint_interval: 5
cli: {backend: claude, prompt_mode: arg, pty_mode: false, idle_timeout_secs: 120}
core: {specs_dir: .ralph/specs/, guardrails: [Search first], scratchpad: {enabled: true, path: notes.md}}
memories: {enabled: true, inject: auto, budget: 2000, filter: {recent: 3}}
tasks: {enabled: true}
backpressure: {gates: [{name: test, command: cargo test}]}
RObot: {enabled: true, timeout_seconds: 600, checkin_interval_seconds: 300}
hats:
  investigator:
    name: "🔎 Investigator"
    description: Finds the cause.
    triggers: ["debug.start", "fix.verified"]
    publishes: ["fix.propose", "DEBUG_COMPLETE"]
    default_publishes: fix.propose
    disallowed_tools: [Edit]
    instructions: |
      ## INVESTIGATOR
    max_activations: 3
  quiet: {triggers: [x], publishes: , description: ~}
"""


def test_a_preset_of_ralph_orchestrator_loads_unchanged() -> None:
    config = load(PRESET)
    loop, hat = config.event_loop, config.hats["investigator"]
    assert (loop.max_iterations, loop.max_runtime_seconds, loop.max_cost_usd) == (30, 7200, 12.5)
    assert (loop.completion_promise, loop.starting_event) == ("DEBUG_COMPLETE", "debug.start")
    assert loop.cooldown_delay_seconds == 2
    assert (hat.triggers, hat.default_publishes) == (("debug.start", "fix.verified"), "fix.propose")
    assert (hat.disallowed_tools, hat.instructions) == (("Edit",), "## INVESTIGATOR\n")
    assert config.hats["quiet"].publishes == ()
    assert config.core.guardrails == ("Search first",)
    assert config.memories.characters(8000) == 8000
    assert config.cli.backend == "claude"
    jsonschema.validate(yaml.safe_load(PRESET.replace("publishes: , description: ~", "")), schema())


def test_keys_of_its_first_version_mean_the_same_and_the_newer_place_wins() -> None:
    loop = load("max_iterations: 7\nmax_cost: 3\nprompt_file: A.md\nevent_loop: {prompt_file: B.md}").event_loop
    assert (loop.max_iterations, loop.max_cost_usd, loop.prompt_file) == (7, 3, "B.md")


@pytest.mark.parametrize(("inject", "characters"), [("auto", 8000), ("manual", 0), ("none", 0)])
def test_memories_are_injected_only_when_asked(inject: str, characters: int) -> None:
    assert load(f"memories: {{inject: {inject}}}").memories.characters(8000) == characters


def test_what_models_cost_and_what_a_loop_may_leave() -> None:
    config = load(
        "cost: {prices: {small: {input: 0.25, output: 1.25}}}\n"
        "loop: {browser_check: npx test, thresholds: {refactor: 2, debug: learn}, hats: 'hats/*.toml'}"
    )
    assert config.cost.prices["small"].output == 1.25
    assert load("cost: {prices: {small: 0.25/1.25}}").cost == config.cost
    assert config.loop.thresholds == {"refactor": 2, "debug": "learn"}
    assert load("loop: {thresholds: learn}").loop.thresholds == "learn"


def test_a_section_left_empty_is_its_default() -> None:
    assert load("schedule:\nobservers:\n  code:\nowners:\n") == Config()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("6h", 21600), ("15m", 900), ("14d", 1209600), ("2w", 1209600), ("90s", 90), ("PT6H", 21600), ("900", 900)],
)
def test_durations_are_written_as_people_write_them(text: str, seconds: int) -> None:
    assert load(f"schedule: {{low: {text}}}").schedule.low == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "what", "next_step"),
    [
        ("schedul: {}", "line 1: unknown key schedul", "did you mean schedule?"),
        ("owners: []\nschedule:\n  hgh: 1m\n", "line 3: unknown key schedule.hgh", "did you mean high?"),
        ("observers: {databse: {}}", "unknown key observers.databse", "did you mean database?"),
        ("schedul:\n", "unknown key schedul", "did you mean schedule?"),
        ("qqq: 1", "unknown key qqq", "known here: "),
        ("observers: {commands: [{name: x, run: y, pasre: sarif}]}", "commands[0].pasre", "did you mean parse?"),
        ("observers: {commands: [{name: x, parse: sarif}]}", "observers.commands[0] lacks the key run", "add run"),
        ("observers: {commands: [{name: x, run: y, parse: {regx: z}}]}", "[0].parse.regx", "did you mean regex?"),
        (
            "observers: {commands: [{name: x, run: y, parse: sarif}, {name: x, run: z, parse: sarif}]}",
            "observers.commands is",
            "a name of its own",
        ),
        ("limits: {active_missions: 4}", "limits.active_missions is 4; the ceiling is 3", "lower it to 3 or less"),
        ("limits: {usd_per_day: 10.5}", "limits.usd_per_day is 10.5; the ceiling is 10", "lower it to 10"),
        ("limits: {auto_pr_lines: 50}", "the ceiling is 49", "lower it"),
        ("limits: {dispatches_per_day: 49}", "the ceiling is 48", "lower it"),
        ("limits: {active_missions: 0}", "limits.active_missions is 0", "greater than or equal to 1"),
        ("limits: {usd_per_cycle: -1}", "limits.usd_per_cycle is -1", "greater than or equal to 0"),
        ("limits: {usd_per_cycle: .nan}", "limits.usd_per_cycle is nan", "a number"),
        ("limits: {usd_per_cycle: .inf}", "limits.usd_per_cycle is inf", "a number"),
        ("limits: {usd_per_cycle: true}", "limits.usd_per_cycle is true", "a number"),
        ("limits: {active_missions: true}", "limits.active_missions is true", "a whole number"),
        ("limits: {active_missions: 2.5}", "limits.active_missions is 2.5", "a whole number"),
        ("limits: {active_missions: '2'}", "limits.active_missions is '2'", "a whole number"),
        ("schedule: {low: soon}", "schedule.low is 'soon'", "15m, 6h or 14d"),
        ("schedule: {low: 0s}", "schedule.low is '0s'", "15m"),
        ("schedule: {low: 5s}", "schedule.low is '5s'", "between 1m and 366d"),
        ("schedule: {low: 99999999999999999999d}", "schedule.low", "15m, 6h or 14d"),
        ("schedule: {wake: never}", "schedule.wake is 'never'", "'heartbeat'"),
        ("memory: {path: ../log.md}", "memory.path", "relative path"),
        ("memory: {path: /etc/x.md}", "memory.path", "relative path"),
        ("memory: {path: .git/x.md}", "memory.path", "relative path"),
        ("memory: {path: README.md}", "memory.path", "something else there"),
        ("memory: {path: memory/journal/x.md}", "memory.path", "something else there"),
        ("memory: {branch: ralph/memory}", "memory.branch", "ralph's changes"),
        ("memory: {branch: HEAD}", "memory.branch", "ralph's changes"),
        ("memory: {branch: -x}", "memory.branch is '-x'", "it should match"),
        ("memory: {branch: a..b}", "memory.branch", "it should match"),
        ("owners: mara", "owners is 'mara'", "a list"),
        ("forge: {kind: gitlab}", "forge.kind is 'gitlab'", "'local'"),
        ("hands: {verify: ['make test', '']}", "hands.verify[1] is ''", "at least 1 character"),
        ("hands: {verify: [' ']}", "hands.verify[0] is ' '", "at least 1 character"),
        ("completion: {open_task: trust}", "unknown key completion.open_task", "did you mean open_tasks?"),
        ("completion: {open_tasks: maybe}", "completion.open_tasks is 'maybe'", "'trust'"),
        ("loop: {hat: a}", "unknown key loop.hat", "did you mean hats?"),
        ("loop: {thresholds: {debug: -1}}", "loop.thresholds.debug is -1", "greater than or equal to 0"),
        ("cost: {prices: {small: {input: 1}}}", "cost.prices.small lacks the key output", "add output"),
        ("cost: {price: {}}", "unknown key cost.price", "did you mean prices?"),
        ("hands: {agent: {knd: claude}}", "unknown key hands.agent.knd", "did you mean kind?"),
        ("event_loop: {max_iterations: many}", "event_loop.max_iterations is 'many'", "a whole number"),
        ("event_loop: 3", "event_loop is 3", "keys and values"),
        ("hats: {a: {triggers: 3}}", "hats.a.triggers is 3", "a list"),
        ("thinker: {kind: lmm}", "thinker.kind is 'lmm'", "rules"),
        ("thinker: {kind: llm}", "thinker is", "needs a model: name one"),
        ("thinker: {model: 'mystery:x'}", "thinker.model is 'mystery:x'", "anthropic:NAME"),
        ("thinker: {weights: {bug: .nan}}", "thinker.weights.bug is nan", "a number"),
        ("thinker: {weights: {bug: -1}}", "thinker.weights.bug is -1", "greater than or equal to 0"),
        ("- a list", "is not a mapping", "start it with a key"),
        ("just words", "is not a mapping", "start it with a key"),
        ("limits: &a {active_missions: 2}\nschedule: *a", "anchors and aliases", "fix the file"),
        ("owners: !!python/object/apply:os.system [id]", "tags are not supported", "fix the file"),
        ("owners: []\nowners: [mara]", "line 2: the key owners stands here twice", "fix the file"),
        ("limits: {usd_per_day: 1, usd_per_day: 2}", "the key usd_per_day stands here twice", "fix the file"),
        ("owners: [\n", "ralph.yml line 2: ", "fix the file"),
        ("owners: []\n---\nowners: []", "more than one document", "fix the file"),
        ("owners: ['\0']", "a character that YAML does not allow", "fix the file"),
        ("[" * 5000, "nested more than", "fix the file"),
        ("# " + "x" * 300_000, "longer than 256 KiB", "fix the file"),
        ("owners: [2026-99-99]", "cannot be read: 2026-99-99", "fix the file"),
        ("? [a]\n: 1", "a key must be a plain word", "fix the file"),
    ],
)
def test_a_mistake_is_named_with_what_is_right(text: str, what: str, next_step: str) -> None:
    problem = refused(text)
    assert problem.what.startswith("ralph.yml")
    assert what in problem.what
    assert next_step in problem.next_step


@pytest.mark.parametrize("name", ["auto_prs_per_cycle", "dispatches_per_day", "usd_per_cycle", "usd_per_day"])
def test_what_may_be_forbidden_altogether_may_be_zero(name: str) -> None:
    assert getattr(load(f"limits: {{{name}: 0}}").limits.limits(), name) == 0


def test_an_owner_lifts_the_ceilings_in_words_that_say_so() -> None:
    lifted = load("limits: {usd_per_day: 50, above_ceilings: true}").limits.limits()
    assert (lifted.usd_per_day, lifted.usd_per_cycle) == (50, 2)
    assert "above_ceilings: true" in refused("limits: {above_ceilings: false, usd_per_day: 50}").next_step


def test_a_control_character_in_a_key_is_not_echoed() -> None:
    assert "\x1b" not in refused('"\\e[31mred": 1').what


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().owners = ("eve",)  # type: ignore[misc]  # which is the point


def test_a_repository_without_a_file_has_the_defaults(tmp_path: Path) -> None:
    assert read(Git.open(make_repo(tmp_path)), read_shared) == Config()


def test_the_work_tree_is_read_when_there_is_one(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]")
    assert read(Git.open(repo), read_shared).owners == ("mara",)


def test_a_bare_repository_is_read_at_its_default_branch(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "work")
    commit(repo, {"ralph.yml": "owners: [ines]"})
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare.git")
    assert read(Git.open(tmp_path / "bare.git"), read_shared).owners == ("ines",)


def test_another_file_can_be_named(tmp_path: Path) -> None:
    place = tmp_path / "other.yml"
    place.write_text("owners: [ben]")
    assert read(Git.open(make_repo(tmp_path / "r")), read_shared, place).owners == ("ben",)


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read(Git.open(make_repo(tmp_path)), read_shared, tmp_path / "gone.yml")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("raw", [b"owners: [\xff]", b"\xff\xfe\x00"])
def test_what_is_not_utf8_is_refused_with_its_line(tmp_path: Path, raw: bytes) -> None:
    (make_repo(tmp_path) / "ralph.yml").write_bytes(raw)
    with pytest.raises(UserError, match="line 1: is not UTF-8"):
        read(Git.open(tmp_path), read_shared)


def test_a_byte_order_mark_and_crlf_are_fine(tmp_path: Path) -> None:
    (make_repo(tmp_path) / "ralph.yml").write_bytes(b"\xef\xbb\xbfowners:\r\n  - mara\r\n")
    assert read(Git.open(tmp_path), read_shared).owners == ("mara",)


def test_a_folder_in_its_place_is_one_clear_line(tmp_path: Path) -> None:
    (make_repo(tmp_path) / "ralph.yml").mkdir()
    with pytest.raises(UserError, match="is not a file"):
        read(Git.open(tmp_path), read_shared)


def test_the_schema_accepts_the_documented_example() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(yaml.safe_load(EXAMPLE), schema())


@pytest.mark.parametrize("value", [{"schedul": {}}, {"limits": {"active_missions": 0}}, {"forge": {"kind": "x"}}])
def test_the_schema_refuses_what_loading_refuses(value: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, schema())


def test_every_key_is_described() -> None:
    made = schema()
    bare = [
        f"{owner}.{name}"
        for owner, thing in [("", made), *made["$defs"].items()]
        for name, said in thing.get("properties", {}).items()
        if not _description(said, made)
    ]
    assert bare == []


def _description(said: dict[str, Any], made: dict[str, Any]) -> str:
    # Pydantic leaves out a description that its model's docstring repeats.
    model = made["$defs"].get(said.get("$ref", "").rpartition("/")[2], {})
    return str(said.get("description") or model.get("description", ""))


def test_a_way_of_waking_that_is_gone_loads_with_a_warning() -> None:
    config = load("schedule: {wake: environment}\n")
    assert config.schedule.wake == "auto"
    assert config.warnings == (
        "ralph.yml line 1: environments no longer wake anything, the heartbeat does: ralph init --wake auto",
    )


@pytest.mark.parametrize("path", GONE, ids=".".join)
def test_a_key_that_is_gone_loads_and_says_what_became_of_it(path: tuple[str, ...]) -> None:
    document: Any = {}
    inner = 1
    for name in reversed(path[1:]):
        inner = [inner] if name == "*" and path[0] == "observers" else {"any" if name == "*" else name: inner}
    document = {path[0]: inner}
    if path[:2] == ("observers", "commands"):
        document["observers"]["commands"][0] |= {"name": "a", "run": "a", "parse": "sarif"}
    elif path[:2] == ("observers", "web"):
        document["observers"]["web"][0] |= {"name": "a", "kind": "feed", "url": "https://example.org/feed"}
    elif "watches" in path:
        document["observers"]["database"]["watches"][0] |= {"name": "a", "model": "A", "value": "v", "at": "t"}
    (warning,) = load(yaml.safe_dump(document)).warnings
    assert "no longer has an effect: " in warning and warning.endswith("; take it out")


STRICT = """
schedule: {review: never}
observers:
  patience: 2m
  commands: [{name: a, run: a, parse: sarif, output_cap: 5000, severity: low}]
  database:
    address: TIDES_DATABASE_URL
    watches: [{name: a, model: A, value: v, at: t, outlier: {score: 4, least: 10}}]
  dependencies: {advisories: false, every: 1d, most: 3, seconds: 20}
  forge: {stale_after: 20d, review_after: 5d, answer_after: 4d}
thinker: {max_findings: 5, max_memory_chars: 0, max_tokens: 600, seconds: 9, tries: 1}
loop: {stuck: 1}
hands: {verify_timeout: 60}
work: {max_runtime: 30m}
hats: {a: {triggers: [x], max_tokens: 900}}
event_loop: {max_consecutive_failures: 2}
memories: {budget: 100}
"""


def _older_limits(config: Config) -> list[object]:
    """What the keys of `STRICT` come to."""
    lookups, thinker = config.observers, config.thinker
    (command,), packages, forge = lookups.commands, lookups.dependencies, lookups.forge
    assert lookups.database and packages
    outlier = lookups.database.watches[0].outlier
    assert outlier
    return [
        *(config.schedule.review, lookups.patience, command.output_cap, command.severity, lookups.database.address),
        *(outlier.score, outlier.least, packages.advisories, packages.every, packages.most, packages.seconds),
        *(forge.stale_after, forge.review_after, forge.answer_after, thinker.max_findings, thinker.max_memory_chars),
        *(thinker.max_tokens, thinker.seconds, thinker.tries, config.loop.stuck, config.hands.verify_timeout),
        *(config.work.max_runtime, config.hats["a"].max_tokens, config.event_loop.max_consecutive_failures),
        config.memories.characters(8000),
    ]


def test_a_limit_of_an_older_file_is_kept_where_it_is_stricter() -> None:
    day, minute = timedelta(days=1), timedelta(minutes=1)
    assert _older_limits(load(STRICT)) == [
        *("never", 2 * minute, 5000, "low", "TIDES_DATABASE_URL", 4, 10, False, day, 3, 20),
        *(20 * day, 5 * day, 4 * day, 5, 0, 600, 9, 1, 1, 60, 30 * minute, 900, 2, 400),
    ]
    named = [tuple(line.split(": ", 1)[1].split(" ", 1)[0].split(".")) for line in load(STRICT).warnings]
    patterns = {tuple("*" if part.isdigit() or part == "a" else part for part in name) for name in named}
    assert patterns == STRICTER.keys() - {("observers", "database", "raw_sql")}


def test_a_limit_of_an_older_file_that_is_looser_counts_as_what_is_usual() -> None:
    day, minute = timedelta(days=1), timedelta(minutes=1)
    loose = """
schedule: {review: always}
observers:
  patience: 9m
  commands: [{name: a, run: a, parse: sarif, output_cap: 50000000, severity: high}]
  database: {watches: [{name: a, model: A, value: v, at: t, outlier: {score: 1, least: 4}}]}
  dependencies: {advisories: true, every: 1h, most: 3000, seconds: 600}
  forge: {stale_after: 1d, review_after: 1d, answer_after: 1d}
thinker: {max_findings: 50, max_memory_chars: 40000, max_tokens: 32000, seconds: 600, tries: 2}
loop: {stuck: 100}
hands: {verify_timeout: 7200}
work: {max_runtime: 9h}
hats: {a: {triggers: [x]}}
event_loop: {max_consecutive_failures: 50}
memories: {budget: 100000}
"""
    assert _older_limits(load(loose)) == [
        *("always", 5 * minute, 4_000_000, "high", "DATABASE_URL", Decimal("3.5"), 8, True, day / 4, 300, 60),
        *(day, 3 * day, 2 * day, 20, 4000, 4000, 90, 2, 3, 1800, 240 * minute, 0, 50, 8000),
    ]


def test_sql_that_an_older_file_forbids_stays_forbidden() -> None:
    watch = "{name: a, sql: select 1 as v, value: v, threshold: {above: 1}}"
    text = f"observers: {{database: {{raw_sql: false, watches: [{watch}]}}}}"
    assert "raw_sql: false forbids its sql" in str(refused(text).next_step)
    assert load(text.replace("false", "true")).observers.database


@pytest.mark.parametrize("word", ["false", "off", "no", "'false'", "0", "maybe"])
def test_a_switch_of_ralph_orchestrator_is_off_however_it_is_written(word: str) -> None:
    config = load(
        f"RObot: {{enabled: {word}}}\ntelegram: {{chats: [1], users: [2]}}\n"
        f"memories: {{enabled: {word}}}\ntasks: {{enabled: {word}}}\n"
    )
    assert (config.telegram.chats, config.telegram.users, config.memories.inject) == ((), (), "none")
    assert config.completion.open_tasks == ("reject" if word == "maybe" else "trust")


@pytest.mark.parametrize("word", ["true", "yes", "on", "~"])
def test_a_switch_of_ralph_orchestrator_is_on_unless_it_says_otherwise(word: str) -> None:
    config = load(f"RObot: {{enabled: {word}}}\ntelegram: {{chats: [1]}}\nmemories: {{enabled: {word}}}\n")
    assert (config.telegram.chats, config.memories.inject) == ((1,), "auto")


def test_a_limit_in_its_older_place_counts_where_the_newer_one_is_empty() -> None:
    assert load("max_cost: 5\nevent_loop: {max_cost_usd: }\n").event_loop.max_cost_usd == 5


def test_what_ralph_orchestrator_says_in_its_own_way_means_the_same() -> None:
    theirs = load(
        "hats: {a: {name: A, subscribes_to: x, instructions: One., extra_instructions: [Two.]}}\n"
        "memories: {enabled: false}\ntasks: {enabled: false}\n"
        "RObot: {enabled: false, timeout_seconds: 5}\ntelegram: {chats: [1]}\n"
        "cli: {command: play, args: [-a], prompt_flag: -p}\n"
    )
    ours = load(
        'hats: {a: {description: A, triggers: [x], instructions: "One.\\n\\nTwo."}}\n'
        "memories: {inject: none}\ncompletion: {open_tasks: trust}\ntelegram: {timeout_seconds: 5}\n"
    )
    assert theirs.warnings == ()
    assert theirs.cli.args == ("-c", 'exec "$@" "$(cat)"', "sh", "play", "-a", "-p")
    assert theirs.model_copy(update={"cli": ours.cli}) == ours


def test_a_fixer_may_be_a_command_beside_the_names() -> None:
    fixers = load("hands: {fixers: [codespell, typos, {name: imports, run: isort src}]}").hands.fixers
    assert fixers == ("typos", FixerCommand(name="imports", run="isort src"))


@pytest.mark.parametrize("text", ["observers: {dependencies: null}\n", "observers:\n  dependencies:\n"])
def test_null_switches_off_asking_about_dependencies(text):
    assert load(text).observers.dependencies is None
    assert load("observers: {docs: null}\n").observers.docs == load("").observers.docs
