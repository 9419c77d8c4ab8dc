"""Does the gate of claims about code hold? `python -m bench.proof [--clones FOLDER] [--out FILE] [--repository NAME]`

FOLDER holds clones of the repositories of `proof_commits.json`, by the last part of their names (`make proof`). True
claims are bug fixes of theirs as an explorer would tell them at the commit before: the fix's own test, the fix as the
change. All of them should be proven. False claims are made of the first true one of each repository
(`proof_false.py`): none may be.
Nothing of the repositories is kept here but the ids of commits. It takes a minute or more for each claim; what was
judged stands in FILE, one JSON object a line, and is not judged again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.proof_commits import FixCommit, claim_of, listed_commits
from bench.proof_false import false_claims
from ralph_mission.adapters.cache import FileCache
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.prover import Prover
from ralph_mission.app import sandboxes
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.mission.proof.claim import CodeClaim
from ralph_mission.values import dataclass

PLACE = Path.home() / ".cache/ralph-bench/proof"
SHORT = 90.0  # seconds for the tests of a claim: some false ones never end
FALSE_OF = 1
"""True claims of each repository that false ones are made of."""


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One claim and what the gate said: `rule` "" for proven. `kind` "true", or what is wrong with it."""

    repository: str
    commit: str
    kind: str
    rule: str
    why: str
    seconds: float
    runs: int


def main() -> int:
    """Judge what is left to judge, and print both tables; 1 when a false claim was let through."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clones", metavar="FOLDER", type=Path, default=PLACE / "clones")
    parser.add_argument("--out", metavar="FILE", type=Path, default=PLACE / "proof.jsonl")
    parser.add_argument("--figures", metavar="FILE", type=Path, help="Where the tables go as JSON.")
    parser.add_argument("--repository", default="", help="One of them alone.")
    parser.add_argument(
        "--only", choices=("true", "false", "none"), default="", help="One kind of claims alone; none: the tables."
    )
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    known = {(row.repository, row.commit, row.kind): row for row in _read(asked.out)}
    for repository in dict.fromkeys(fix.repository for fix in listed_commits()):
        if asked.repository in ("", repository.rpartition("/")[2]) and asked.only != "none":
            for row in _judged(repository, asked.clones, asked.only, frozenset(known)):
                known[row.repository, row.commit, row.kind] = row
                write_row(row, asked.out)
    rows = list(known.values())
    Console(width=120).print(*_tables(rows))
    if asked.figures:
        asked.figures.write_text(json.dumps(_figures(rows)))
    return int(any(row.kind != "true" and not row.rule for row in rows))


def write_row(row: JudgedRow, place: Path) -> None:
    """Keep what was judged, and say it."""
    with place.open("a") as file:
        file.write(json.dumps({name: getattr(row, name) for name in JudgedRow.__slots__}) + "\n")
    print(f"{row.repository} {row.commit[:10]} {row.kind}: {row.rule or 'proven'} {row.why}", file=sys.stderr)


def _read(place: Path) -> Iterator[JudgedRow]:
    lines = place.read_text().splitlines() if place.exists() else []
    return (JudgedRow(**json.loads(line)) for line in lines)


def _judged(repository: str, folder: Path, only: str, known: frozenset[tuple[str, str, str]]) -> Iterator[JudgedRow]:
    prover = prover_of(folder, repository.rpartition("/")[2])
    git = prover.git
    fixes = [fix for fix in listed_commits() if fix.repository == repository]
    for number, fix in enumerate(fixes):
        claim, base = claim_of(git, fix)
        claims = {} if only == "false" else {"true": claim}
        if number < FALSE_OF and only != "true":
            claims |= false_claims(claim, partial(prover.read, base))
        for kind, one in claims.items():
            if (repository, fix.commit, kind) not in known:
                yield judge_row(prover, fix, kind, one, base)


def prover_of(folder: Path, name: str) -> Prover:
    """The gate for a clone in FOLDER, with what is kept of it between two calls."""
    git = Git.open(folder / name)
    if not (folder / name).exists():
        known = next(fix.repository for fix in listed_commits() if fix.repository.endswith(f"/{name}"))
        raise UserError(f"{folder / name} is missing", f"git clone https://github.com/{known} {folder / name}")
    place = PLACE / name
    setup = sandboxes.project_setup(Config(), git, place / "setup")
    return Prover(git, setup, FileCache(place / "suites", most=200), short=SHORT)


def judge_row(prover: Prover, fix: FixCommit, kind: str, claim: CodeClaim, base: str) -> JudgedRow:
    """What the gate says of one claim."""
    started = time.monotonic()
    try:
        outcome = prover.prove(claim, base)
    except UserError as problem:
        return JudgedRow(fix.repository, fix.commit, kind, "set-up", str(problem)[:200], time.monotonic() - started, 0)
    refusal = outcome.verdict.refusal
    said = (refusal.rule, refusal.why) if refusal else ("", "")
    return JudgedRow(fix.repository, fix.commit, kind, *said, round(time.monotonic() - started, 1), len(outcome.runs))


def _figures(rows: list[JudgedRow]) -> dict[str, dict[str, dict[str, int]]]:
    """As `tools.trust` keeps them."""
    true, false = Counter[str](), Counter[str]()
    passed, through = Counter[str](), Counter[str]()
    for row in rows:
        every, let = (true, passed) if row.kind == "true" else (false, through)
        every[row.repository if row.kind == "true" else row.kind] += 1
        let[row.repository if row.kind == "true" else row.kind] += not row.rule
    return {
        "bug fixes with their tests": {name: {"claims": true[name], "proven": passed[name]} for name in true},
        "false claims": {name: {"claims": false[name], "let through": through[name]} for name in false},
    }


def _tables(rows: list[JudgedRow]) -> tuple[Table, Table]:
    true = Table("repository", "true claims", "proven", "refused, and why", "seconds each", title="True claims")
    for repository in dict.fromkeys(row.repository for row in rows):
        own = [row for row in rows if row.repository == repository and row.kind == "true"]
        refused = Counter(row.rule for row in own if row.rule)
        told = ", ".join(f"{number} {rule}" for rule, number in refused.items())
        mean = sum(row.seconds for row in own) / len(own) if own else 0.0
        true.add_row(repository, str(len(own)), str(sum(not row.rule for row in own)), told, f"{mean:.0f}")
    false = Table("what is wrong", "claims", "let through", "refused by", title="False claims")
    for kind in dict.fromkeys(row.kind for row in rows if row.kind != "true"):
        own = [row for row in rows if row.kind == kind]
        rules = Counter(row.rule for row in own if row.rule)
        told = ", ".join(f"{number} {rule}" for rule, number in rules.items())
        false.add_row(kind, str(len(own)), str(sum(not row.rule for row in own)), told)
    return true, false


if __name__ == "__main__":
    sys.exit(main())
