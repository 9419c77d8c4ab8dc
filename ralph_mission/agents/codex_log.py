"""What Codex logs of its tool calls, for those of which it has no event.

Of a command that its own sandbox kept from something `--json` has not a word, though what the command did before that
is done; nor of what is typed into a program that runs on. The log is written to its errors as it happens, where no
session can take it back. An entry begins with a time and a level; what a call gave may fill the lines after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

SPAN = "dispatch_tool_call_with_state"
WANTED = f"error,[{SPAN}]=trace"
"""Its RUST_LOG: the errors that it logs anyway, and all that happens within a tool call."""
ENTRY = re.compile(r"^(?=\d{4}-\d\d-\d\dT[\d:.]+Z +[A-Z]+ )", re.MULTILINE)
RESULT = re.compile(
    rf'\S{{1,50}} +INFO \S{{0,200}}{SPAN}: codex_otel\.log_only: event\.name="codex\.tool_result" '
    r".{0,200}?\btool_name=(\S{1,200}) tool_namespace=functions .{0,300}? arguments="
)
"""A tool of its own, neither a server's nor a connector's, and where its arguments begin: as the model wrote them."""
DENIED = (
    re.compile(r'tools::router: error=.*Rejected\(\\"(`.+?)(?:\\"\)|$)'),  # a text within a text, as Rust quotes it
    re.compile(r"tools::router: error=(patch rejected: .+)"),
    re.compile(r"::violation: (recorded sandbox violation: .+)"),
)
LOOKED_AT = 5_000
"""Characters of an entry that says why: however long the words of a model are, this does not take long."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Tools and what they were given (an object, or a text that is none), what was refused, and errors besides."""

    calls: tuple[tuple[str, object], ...]
    refused: tuple[str, ...]
    errors: str


def read(stderr: str) -> Logged:
    """What stands in the errors of a process."""
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
    """What is no part of a call: its result takes lines, anything else only one."""
    head, _, rest = entry.partition("\n")
    if SPAN not in head or " ERROR " in head.partition(SPAN)[0]:
        return entry
    return "" if RESULT.match(head) else rest
