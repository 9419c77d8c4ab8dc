"""Codex: `codex exec --json`, one event a line. It runs commands in its own sandbox.

`--json` does not report commands that this sandbox blocked, although what they did before remains done; nor input typed
into a running program. Those are read from its log, which goes to standard error live, where no session can remove it.
An entry begins with a time and a level; a call's output may fill the following lines.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.client import RUNS, Client, Invocation, Login, SessionPlace, may_write
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.adapters.sandbox.shims import find_refusals
from ralph_mission.loop.model.state import Session, SessionUsage
from ralph_mission.values import compile_regex, dataclass

SPAN = "dispatch_tool_call_with_state"
WANTED = f"error,[{SPAN}]=trace"
"""Its RUST_LOG: the errors that it logs anyway, and all events within a tool call."""
ENTRY = compile_regex(r"^(?=\d{4}-\d\d-\d\dT[\d:.]+Z +[A-Z]+ )", re.MULTILINE)
RESULT = compile_regex(
    rf'\S{{1,50}} +INFO \S{{0,200}}{SPAN}: codex_otel\.log_only: event\.name="codex\.tool_result" '
    r".{0,200}?\btool_name=(\S{1,200}) tool_namespace=functions .{0,300}? arguments="
)
"""A built-in tool, not a server's or a connector's, and the start of its arguments, as the model wrote them."""
DENIED = (
    compile_regex(r'tools::router: error=.*Rejected\(\\"(`.+?)(?:\\"\)|$)'),  # a text within a text, as Rust quotes it
    compile_regex(r"tools::router: error=(patch rejected: .+)"),
    compile_regex(r"::violation: (recorded sandbox violation: .+)"),
)
LOOKED_AT = 5_000
"""Characters of an entry with a reason: bounds the time for a model's long texts."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Tools with their input (an object, or other text), refusals, and other errors."""

    calls: tuple[tuple[str, object], ...]
    refused: tuple[str, ...]
    errors: str


def read(stderr: str) -> Logged:
    """The log in a process's standard error."""
    entries = ENTRY.split(stderr)
    return Logged(
        tuple(call for entry in entries for call in _call(entry)),
        tuple(dict.fromkeys(why for entry in entries for why in _refusals_in(entry))),
        "".join(map(_errors, entries)),
    )


def _call(entry: str) -> Iterator[tuple[str, object]]:
    if found := RESULT.match(entry):
        yield found[1], _parse_arguments(entry[found.end() :])


def _parse_arguments(text: str) -> object:
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return text.partition(" output=")[0]


def _refusals_in(entry: str) -> Iterator[str]:
    head = entry.partition("\n")[0][:LOOKED_AT]
    return (found[1].replace('\\\\\\"', '"') for denied in DENIED if (found := denied.search(head)))


def _errors(entry: str) -> str:
    """Errors outside calls: a call's result takes several lines, anything else one."""
    head, _, rest = entry.partition("\n")
    if SPAN not in head or " ERROR " in head.partition(SPAN)[0]:
        return entry
    return "" if RESULT.match(head) else rest


KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
OPENAI = "https://api.openai.com/v1"
LOGIN = Login("CODEX_HOME", ".codex", "auth.json", "run `codex login`", f"set {KEY}")
FORM = ".ralph-form.json"
RETRIES = 1  # the loop waits and retries
STEPS = ("agent_message", "command_execution", "file_change", "mcp_tool_call", "web_search")
"""Items that took a model's answer each; it reports no other number of turns."""
CALLS = STEPS[1:]
LOG = "RUST_LOG"


def _invocation(session: Session, place: SessionPlace) -> Invocation:
    options = [word for name, value in _settings(session, place) for word in ("-c", f"{name}={value}")]
    arguments = ["exec", "--json", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check"]
    arguments += ["-s", _sandbox(session, place), *options, *(("-m", session.model) if session.model else ())]
    if RUNS in session.hat.tools_denied:
        arguments += ["--disable", "shell_tool", "--disable", "unified_exec"]
    files = {FORM: session.schema} if session.schema else {}
    if session.schema:
        arguments += ["--output-schema", str(place.home.resolve() / FORM)]
    return Invocation((*arguments, "-"), session.prompt, {LOG: WANTED}, files)


def asking_options(session: Session, place: SessionPlace) -> tuple[str, ...]:
    """Arguments for a Codex that asks us before each command: its sandbox, and the URL that gets the key."""
    mode = json.dumps(_sandbox(session, place))
    settings = [*_provider(place), ("sandbox_mode", mode), ("approval_policy", '"untrusted"')]
    return tuple(word for name, value in settings for word in ("-c", f"{name}={value}"))


def _provider(place: SessionPlace) -> Iterator[tuple[str, str]]:
    """The model's URL and key, as settings in TOML: set here, so that nothing else can redirect the key. The URL of a
    login is known to Codex: ChatGPT has another than the API."""
    logged_in = LOGIN.variable in place.env
    address = place.env.get(ADDRESS) or ("" if logged_in else OPENAI)
    named = f"base_url={json.dumps(address)}," if address else ""
    key = "requires_openai_auth=true" if logged_in else f'env_key="{KEY}"'
    retries = f"request_max_retries={RETRIES},stream_max_retries={RETRIES}"
    yield "model_provider", '"ralph"'
    yield "model_providers.ralph", f'{{name="ralph",{named}{key},wire_api="responses",{retries}}}'


def _settings(session: Session, place: SessionPlace) -> Iterator[tuple[str, str]]:
    """Values as TOML."""
    yield from _provider(place)
    yield "approval_policy", '"never"'
    yield "web_search", '"disabled"'
    yield "analytics.enabled", "false"  # it sends statistics to its makers, and hangs if that is blocked
    yield "otel.metrics_exporter", '"none"'
    yield "features.plugins", "false"  # its makers' catalogue, which it would request from three hosts at every start
    yield "shell_environment_policy.ignore_default_excludes", "false"  # no *KEY* for its commands
    yield "shell_environment_policy.exclude", json.dumps([LOG])
    yield "sandbox_workspace_write.exclude_slash_tmp", "true"
    if not place.trusted:
        yield "project_doc_max_bytes", "0"  # the repository's `.codex` is not read until a person trusts it


def _sandbox(session: Session, place: SessionPlace) -> str:
    """Its own sandbox does not work inside ours; forbidden changes of a hat are still reverted afterwards."""
    if place.sandboxed:
        return "danger-full-access"
    return "workspace-write" if may_write(session.hat) else "read-only"


def _read(output: Gave) -> AgentReply:
    text, error, usage, turns = "", "", SessionUsage(), 0
    items: dict[str, reading.Json] = {}
    for event in reading.documents(output.stdout):
        item = reading.inner(event, "item")
        if item.get("type") in CALLS:
            items[reading.as_text(item.get("id"))] = item
        match event.get("type"):
            case "item.completed":
                turns += item.get("type") in STEPS
                text = reading.as_text(item.get("text")) if item.get("type") == "agent_message" else text
            case "turn.completed":
                usage += _usage(reading.inner(event, "usage"))
            case "turn.failed":
                error = reading.as_text(reading.inner(event, "error").get("message")) or "error"
    logged = read(output.stderr.decode(errors="replace"))
    unheard = tuple(_unheard(logged.calls, items.values()))
    spent = SessionUsage(0, usage.input_tokens, usage.output_tokens, turns=turns + len(unheard))
    printed = "\n".join(reading.as_text(item.get("aggregated_output")) for item in items.values())
    refused = tuple(map(reading.line, (*logged.refused, *find_refusals(printed))))
    calls = (*map(_describe_call, items.values()), *unheard)
    return AgentReply(text, error, spent, refused=refused, calls=calls, errors=logged.errors.encode(), recorded=True)


def _unheard(logged: Iterable[tuple[str, object]], items: Iterable[reading.Json]) -> Iterator[str]:
    """The calls in its log without an event."""
    counts = Counter(map(_known_as, items))
    for tool, arguments in logged:
        known = reading.as_text(arguments.get("cmd")) if isinstance(arguments, dict) else ""
        counts[known or tool] -= 1
        if counts[known or tool] < 0:
            yield reading.describe_call(tool, arguments)


def _known_as(item: reading.Json) -> str:
    """Its identity in the log: a shell's command, or the tool that changes files."""
    command = reading.as_text(item.get("command"))
    if not command:
        return "apply_patch" if item.get("type") == "file_change" else ""
    try:
        return shlex.split(command)[-1]
    except ValueError:
        return command


def _describe_call(item: reading.Json) -> str:
    """A command, or the files of a change; reported at its start, to include those that never end."""
    arguments = {
        name: value for name, value in item.items() if name in ("command", "changes", "tool", "arguments", "query")
    }
    return reading.describe_call(reading.as_text(item.get("type")), arguments)


def _usage(counts: reading.Json) -> SessionUsage:
    """`input_tokens` includes cached ones, `output_tokens` those of reasoning."""
    return SessionUsage(0, reading.as_count(counts.get("input_tokens")), reading.as_count(counts.get("output_tokens")))


CLIENT = Client(
    "codex", ("codex",), _invocation, _read, keys=(KEY,), endpoints=(ADDRESS,), fresh=(".codex", ".agents"),
    install="npm install --global @openai/codex", login=LOGIN,
)  # fmt: skip  # one value
