"""docs/trust.md and the evidence for it, out of figures that were measured, marks of tests and the list of promises."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

from bench import endurance
from bench.load import CASES as CASES_OF_LOAD
from tests.figures import in_doubt, total
from tests.figures_plugin import ATTACK, BENIGN
from tests.promises import PROMISES, Promise
from tools.trust import named
from tools.trust.attacks import CASES, GROUPS
from tools.trust.suites import ROOT, SUITES, Measured

FILE = ROOT / "docs/trust.md"
EVIDENCE = Path(__file__).with_name("evidence.md")
LIMITS = Path(__file__).with_name("limits.md")
LEFT_OUT = Path(__file__).with_name("left_out.md")
MEASURED = Path(__file__).with_name("measured.md")
TITLES = {
    "crash-deaths": "Crashes at every call",
    "crash-faults": "Every fault at every sort of call",
    "crash-recoveries": "Every recovery path",
    "pairs": "Pairs of faults",
    "races": "Races and interleavings",
    "soak": "A soak",
    "agents": "Crashes, faults and races of the issue agent, reviews and missions by agents",
    "model": "A model of the protocol",
    "lives": "The same in larger worlds",
    "attacks": "Models and agents that obey an attacker",
    "real": "Real clients with a model that hunts for secrets",
    "guards": "Guards switched off",
    "load": "Load and endurance",
    "proof": "Claims about code",
}
"""Of the suites whose tables are shown, in this order."""
NOTES = {
    "crash-deaths": "Points: the calls of an undisturbed stage. A runner dies before each of them and, if the call may "
    "change anything, after it. "
    "Left to a person: what is missing at the end and was reported by its own key as refused or in doubt, or depended "
    "on that: announcing a refused merge, and answering the person who closes each pull request about a refused one. "
    "Same world: a case whose world at the restart equals one that already ran to its end is not run a second time; "
    "it takes over that result. This holds for all tables of crashes.",
    "crash-faults": "One case for each kind of fault, kind of call and phase of the transaction (until memory first "
    "moves, in between, and after it last moved), since the same code handles it in every stage. A kind of call is "
    "its method and path without numbers and names, and what a push moves. The seed `CRASH_SEED`, 0 by default, draws "
    "the stage and call that represent them; the weekly run uses the number of its week, so that it hits different "
    "ones each time. It also draws processes that a real SIGKILL kills, and runners after whose death another machine "
    "continues.",
    "pairs": "One pair for each kind of first fault, kind of second fault and kind of the second call, drawn by the "
    "seed `CRASH_SEED`.",
    "races": "Of interleavings that differ only in when a runner learns that its push of memory was too late, one is "
    "run: between two pushes it sees the same branch.",
    "agents": "Calls are chosen as for [every fault](#every-fault-at-every-sort-of-call); the issue agent with a pull "
    "request, and a review, die at each call.",
    "proof": "Real commits that fix a bug, reported as an explorer would at their parents, and false claims derived "
    "from them ([bench/proof_false.py](../../bench/proof_false.py)). Rules that use the project's own test runner, "
    "never the gate, choose the commits ([bench/proof_commits.py](../../bench/proof_commits.py)): newest first, at "
    "most ten per repository. They leave out fixes that no explorer could claim this way: those whose test fails by "
    "an error of its own, or by an exception from files that the fix does not touch.",
    "guards": "Each guard, its replacement, and the test that then fails (`killed_by`): "
    "[tests/guards/rows](../../tests/guards/rows).",
}
"""What has to be known to read the tables of a suite."""
WIDE = 12
"""Columns; a table of more has a line for each figure."""
LONG = 12
"""Rows; of a table of more that can be added up the sum alone is shown."""
Rows = Mapping[str, Mapping[str, int | float]]

SUMMARY = """# Trust

What Ralph promises, how that was tested, with figures, and what the tests do not show. Every table, test and attack
behind it, with commit and day, is in the [evidence](../tools/trust/evidence.md), which each release carries as
`trust-evidence.md`."""
TRIED = {
    "crashes by stage": ("cases", "a runner dies before or after a call of a cycle"),
    "pairs": ("pairs", "two faults, one after the other"),
    "interleavings": ("interleavings", "two or three runners interleave"),
    "soak": ("cycles", "cycles with deaths, faults, wrong clocks and other runners"),
    "crashes of the issue agent": ("cases", "a runner dies, or a call fails, while an agent works on an issue"),
    "crashes of reviews": ("cases", "a runner dies while a pull request is reviewed"),
    "model": ("states", "all states of a model of the protocol in a small world"),
    "obeying planner": ("cases", "a model obeys the attacker when it ranks findings"),
    "obeying agent": ("cases", "an agent obeys the attacker when it changes code"),
    "patches by two opinions": ("allowed", "automatic patches, judged by a second opinion"),
    ATTACK: ("inputs", "hostile inputs that must be held back or made harmless"),
    BENIGN: ("inputs", "harmless inputs that must pass"),
    "guard mutants": ("guards", "a guard is switched off, and a test must fail"),
}
"""By table: the column that counts what was tried, and what that is."""
FAULTS = ("cases", "an answer of a server is lost, late, refused or wrong, or somebody else comes in between")
"""The same for the crash enumeration's faults, whose tables are named as those of its deaths."""
WRONG = ("duplicates", "cap_breaches", "not_converged", "wrong", "forbidden", "breaches", "survived", "untried")
"""Columns in which a published figure is 0, as is `lost` where it stands beside breaches of caps."""
INTRODUCTION = """# Evidence

Written by `python -m tools.trust`: the figures were measured at the commits named below; every named test exists.
`python -m tools.trust all` measures everything again. [The summary](../../docs/trust.md) is one page.
[The end](#what-is-not-covered) lists what is not covered."""
SINCE = "Product changes since a suite was measured: `git diff --stat COMMIT -- ralph_mission action.yml`."


def document(suites: Mapping[str, Measured]) -> str:
    """The page: promises, what was tried and went wrong, what that does not show."""
    promises = "\n".join(f"{number}. {one.says}" for number, one in enumerate(PROMISES, 1))
    parts = (
        SUMMARY,
        "## Promises\n\n" + promises.replace("#what-is-not-covered", "#what-this-does-not-show"),
        "## What was tried\n\n" + _table(("What", "Tried", "Went wrong"), _tried(suites)),
        _proven(suites["proof"].tables) if "proof" in suites else "",
        "## What this does not show\n\n" + LIMITS.read_text("utf-8").strip(),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _tried(suites: Mapping[str, Measured]) -> Iterator[tuple[str, ...]]:
    """A row for each thing that was tried, with the sums of its tables and of what should not have been."""
    sums: dict[str, tuple[int, int]] = {}
    for one in suites.values():
        for name, rows in one.tables.items():
            if name in TRIED:
                column, says = TRIED[name] if one.name != "crash-faults" else FAULTS
                tried = sum(int(row.get(column, 0)) for row in rows.values())
                held = sum(int(row["held"]) for row in rows.values()) if "held" in rows[next(iter(rows))] else tried
                wrong = sum(int(row.get(figure, 0)) for row in rows.values() for figure in WRONG) + tried - held
                before = sums.get(says, (0, 0))
                sums[says] = (before[0] + tried, before[1] + wrong)
    yield from ((says, f"{tried:,}", str(wrong)) for says, (tried, wrong) in sums.items())


def _proven(tables: Mapping[str, Rows]) -> str:
    """What became of claims about code."""
    true, false = tables["bug fixes with their tests"], tables["false claims"]
    proven, claims = (sum(int(row[column]) for row in true.values()) for column in ("proven", "claims"))
    wrong, made = (sum(int(row[column]) for row in false.values()) for column in ("let through", "claims"))
    return (
        "## Claims about code\n\nReal bug fixes of other projects, claimed at the commit before them as "
        f"[`explore`](observers.md#explore) would: {proven} of {claims} were proven, in {len(true)} repositories. "
        f"Of false claims derived from them, {wrong} of {made} passed."
    )


def evidence(suites: Mapping[str, Measured]) -> str:
    """Everything behind the page."""
    parts = (
        INTRODUCTION,
        _measured(suites),
        _promises(suites),
        *_enumerations(suites),
        _attacks(suites.get("attacks")),
        _known_bugs(),
        MEASURED.read_text("utf-8").strip(),
        "## What is not covered\n\n" + LEFT_OUT.read_text("utf-8").strip(),
    )
    return "\n\n".join(parts) + "\n"


def _measured(suites: Mapping[str, Measured]) -> str:
    rows = [(one.name, f"`{one.command}`", f"`{one.commit}`", one.day, str(one.minutes)) for one in suites.values()]
    missing = ", ".join(name for name in SUITES if name not in suites)
    parts = (
        _table(("suite", "command", "commit", "day", "minutes"), rows),
        SINCE,
        missing and f"Not measured yet: {missing}.",
    )
    return "\n\n".join(("## Measured", *(part for part in parts if part)))


def _promises(suites: Mapping[str, Measured]) -> str:
    there = {name for one in suites.values() for name, rows in one.tables.items() if rows}
    rows = [(one.name, one.says, "<br>".join(_checks(one, there))) for one in PROMISES]
    return "## Promises\n\n" + _table(("", "promise", "checked by"), rows)


def _checks(promise: Promise, there: Container[str]) -> Iterator[str]:
    """The tests, and the tables that bear on it, whether they are there yet or not."""
    yield from (f"`{check}`" for check in promise.checks)
    if promise.tables:
        named = (table if table in there else f"{table} (not measured yet)" for table in promise.tables)
        yield f"tables: {', '.join(named)}"


def _enumerations(suites: Mapping[str, Measured]) -> Iterator[str]:
    for name, title in TITLES.items():
        if name in suites:
            tables = suites[name].tables
            shown = (_figures(name, table, rows) for table, rows in tables.items() if table not in (ATTACK, BENIGN))
            yield "\n\n".join((f"## {title}", *filter(None, [NOTES.get(name)]), *shown))


def _figures(suite: str, name: str, rows: Rows) -> str:
    """A table of figures; where they can be added up, with the sum first, and that alone when there are many."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    whole = all(isinstance(value, int) for row in rows.values() for value in row.values())
    every = total({column: int(value) for column, value in row.items()} for row in rows.values())
    shown = (
        [(f"**all {len(rows)}**", *(f"**{every[column]}**" for column in columns))] if whole and len(rows) > 1 else []
    )
    place = ""
    if shown and len(rows) > LONG:
        place = f"Each of the {len(rows)}: [figures/{suite}.json](figures/{suite}.json)."
    else:
        shown += [(row, *(str(figures.get(column, "")) for column in columns)) for row, figures in sorted(rows.items())]
    lines = [("", *(column.replace("_", " ") for column in columns)), *shown]
    if len(columns) > WIDE:
        lines = list(zip(*lines, strict=True))
    made = _table(lines[0], lines[1:])
    return "\n\n".join(part for part in (f"### {name}", made, place, _sentence(in_doubt(every)), _bounds(name)) if part)


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _bounds(name: str) -> str:
    """What in the code bounds the figures of a load."""
    found = {case.title: case.bounds for case in CASES_OF_LOAD} | endurance.BOUNDS
    return "Bounded by:\n\n" + "\n".join(f"- {bound}" for bound in found[name]) if name in found else ""


def _attacks(measured: Measured | None) -> str:
    held = measured.tables.get(ATTACK, {}) if measured else {}
    benign = measured.tables.get(BENIGN, {}) if measured else {}
    rates = (_rate("inputs held back or made harmless", held), _rate("benign inputs let through", benign))
    parts = ["## Attacks", "\n".join(rates) if measured else "The rates are not measured yet; the tests exist."]
    parts.append(_false_alarms(benign))
    for group, (title, numbers) in GROUPS.items():
        rows = [(str(number), CASES[number], _of(held, number), _where(number)) for number in numbers]
        parts.append(f"### {group}. {title}\n\n" + _table(("", "case", "held", "tests in"), rows))
    return "\n\n".join(part for part in parts if part)


def _rate(says: str, rows: Rows) -> str:
    inputs, held = (int(sum(row[figure] for row in rows.values())) for figure in ("inputs", "held"))
    return f"- {says}: {held} of {inputs}"


def _false_alarms(rows: Rows) -> str:
    shown = [(kind, str(row["inputs"]), str(int(row["inputs"] - row["held"]))) for kind, row in sorted(rows.items())]
    return "### False alarms\n\n" + _table(("benign", "inputs", "false alarms"), shown) if shown else ""


def _of(held: Rows, number: int) -> str:
    row = held.get(f"{number:02}")
    return f"{row['held']} of {row['inputs']}" if row else "not measured"


def _where(number: int) -> str:
    return "<br>".join(f"`{file.removeprefix('tests/')}`" for file in named.attacked().get(number, ()))


def _known_bugs() -> str:
    rows = [(says, f"`{test.removeprefix('tests/')}`") for test, says in named.known_bugs().items()]
    return "## Faults of comparable tools\n\n" + _table(("fault", "test"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
