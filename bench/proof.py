"""Does the gate of claims about code hold? `python -m bench.proof [--clones FOLDER] [--out FILE] [--repository NAME]`

FOLDER holds clones of the repositories of `proof_commits.json`, by the last part of their names (`make proof`). True
claims are bug fixes of theirs as an explorer would tell them at the commit before: the fix's own test, the fix as the
change. All of them should be proven. False claims are made of the first true one of each repository of FALSE_OF
(`proof_false.py`): none may be.
Nothing of the repositories is kept here but the ids of commits. It takes a minute or more for each claim; what was
judged stands in FILE, one JSON object a line, and is not judged again. FILE is of this commit of ours, unless named.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from rich.console import Console
from rich.table import Table

from bench.proof_commits import FixCommit, claim_of, listed_commits
from bench.proof_false import false_claims
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.prover import Prover
from ralph_mission.app import workplaces
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.mission.proof.claim import CodeClaim
from ralph_mission.values import dataclass
from tools.trust.suites import ROOT, commit

PLACE = Path.home() / ".cache/ralph-bench/proof"
SHORT = 90.0  # seconds for the tests of a claim: some false ones never end
AT_ONCE = 3  # repositories
FALSE_OF = ("expressjs/express", "expressjs/body-parser", "koajs/koa", "python-humanize/humanize")
"""Whose first true claim false ones are made of: tests by Mocha, twice, by Node's own runner and by pytest."""


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
    parser.add_argument("--out", metavar="FILE", type=Path, default=PLACE / f"proof-{commit(ROOT)}.jsonl")
    parser.add_argument("--figures", metavar="FILE", type=Path, help="Where the tables go as JSON.")
    parser.add_argument("--repository", default="", help="One of them alone.")
    parser.add_argument(
        "--only", choices=("true", "false", "none"), default="", help="One kind of claims alone; none: the tables."
    )
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    rows = list(_read(asked.out))
    if asked.only != "none":
        known = {(row.repository, row.commit, row.kind) for row in rows}
        listed = dict.fromkeys(fix.repository for fix in listed_commits())
        wanted = [name for name in listed if asked.repository in ("", name.rpartition("/")[2])]
        todo = {
            name: [one for one in _claims(asked.clones, name) if one.is_wanted(asked.only, known)] for name in wanted
        }
        total = sum(map(len, todo.values()))
        print(f"{total} claims to judge, {len(rows)} are judged", file=sys.stderr, flush=True)
        for row in _judged(asked.clones, todo):
            rows.append(row)
            write_row(row, asked.out, f"[{len(rows)} of {total + len(known)}] ")
    Console(width=120).print(*_tables(rows))
    if asked.figures:
        asked.figures.write_text(json.dumps(_figures(rows)))
    return int(any(row.kind != "true" and not row.rule for row in rows))


def write_row(row: JudgedRow, place: Path, number: str = "") -> None:
    """Keep what was judged, and say it."""
    with place.open("a") as file:
        file.write(json.dumps({name: getattr(row, name) for name in JudgedRow.__slots__}) + "\n")
    said = f"{row.repository} {row.commit[:10]} {row.kind}: {row.rule or 'proven'} {row.why}".rstrip()
    print(f"{number}{said} ({row.seconds:.0f} s)", file=sys.stderr, flush=True)


def _read(place: Path) -> Iterator[JudgedRow]:
    lines = place.read_text().splitlines() if place.exists() else []
    return (JudgedRow(**json.loads(line)) for line in lines)


@dataclass(frozen=True, slots=True)
class BenchClaim:
    """One claim to be judged, about the commit `base`. `kind` as in `JudgedRow`."""

    fix: FixCommit
    kind: str
    claim: CodeClaim
    base: str

    def is_wanted(self, only: str, known: Collection[tuple[str, str, str]]) -> bool:
        """Whether it is of the kind that is asked for, and was not judged."""
        asked = only != ("false" if self.kind == "true" else "true")
        return asked and (self.fix.repository, self.fix.commit, self.kind) not in known


def _claims(folder: Path, repository: str) -> Iterator[BenchClaim]:
    """All claims of a repository: the false ones at the end."""
    prover = prover_of(folder, repository.rpartition("/")[2])
    fixes = [fix for fix in listed_commits() if fix.repository == repository]
    for fix in fixes:
        yield BenchClaim(fix, "true", *claim_of(prover.git, fix))
    if repository in FALSE_OF:
        claim, base = claim_of(prover.git, fixes[0])
        for kind, one in false_claims(claim, partial(prover.read, base)).items():
            yield BenchClaim(fixes[0], kind, one, base)


def _judged(folder: Path, todo: Mapping[str, Sequence[BenchClaim]]) -> Iterator[JudgedRow]:
    """As they are done: a few repositories at a time, one claim of each."""

    def judge(claims: Sequence[BenchClaim], told: SimpleQueue[JudgedRow]) -> None:
        for one in claims:
            prover = prover_of(folder, one.fix.repository.rpartition("/")[2])
            told.put(judge_row(prover, one.fix, one.kind, one.claim, one.base))

    told: SimpleQueue[JudgedRow] = SimpleQueue()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        working = {pool.submit(judge, claims, told) for claims in todo.values()}
        while working or not told.empty():
            with suppress(Empty):
                yield told.get(timeout=1)
            for done in [one for one in working if one.done()]:
                working.remove(done)
                done.result()


def prover_of(folder: Path, name: str) -> Prover:
    """The gate for a clone in FOLDER, with what is kept of it between two calls."""
    git = Git.open(folder / name)
    if not (folder / name).exists():
        known = next(fix.repository for fix in listed_commits() if fix.repository.endswith(f"/{name}"))
        raise UserError(f"{folder / name} is missing", f"git clone https://github.com/{known} {folder / name}")
    place = PLACE / name
    setup = workplaces.project_setup(Config(), git, place / "setup")
    return Prover(git, setup, short=SHORT)


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
    true = [(row.repository, row) for row in rows if row.kind == "true"]
    false = [(row.kind, row) for row in rows if row.kind != "true"]
    return {
        "bug fixes with their tests": _added_up(true, "proven"),
        "false claims": _added_up(false, "let through"),
    }


def _added_up(rows: Sequence[tuple[str, JudgedRow]], passed: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name, row in rows:
        figures = found.setdefault(name, {"claims": 0, passed: 0, "runs": 0, "seconds": 0})
        for figure, more in (("claims", 1), (passed, int(not row.rule)), ("runs", row.runs), ("seconds", row.seconds)):
            figures[figure] += round(more)
    return found


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
