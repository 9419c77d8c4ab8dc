"""Claims that are true: bug fixes of real repositories, told as an explorer would tell them at the commit before.

`python -m bench.proof_commits FOLDER NAME OUT` finds them in the clone FOLDER/NAME, newest first, by rules that ask the
project's own runner and never the gate; the gate's word on each that was found goes to OUT, as `bench.proof` has it.
Repositories are small libraries whose tests take seconds and need nothing but what is installed; they were looked at
one after the other until forty commits were found. A commit is one of them when

1. its subject speaks of a fix, it has code and tests, and leaves alone what is installed (packages, lock files);
2. with its tests at its parent, the run ends, and cases fail that do not fail before: in themselves, not because a file
   cannot be loaded, the network is closed or the time is over. What they fail with is what an explorer can claim: an
   assertion that does not hold, or an exception on whose way lies code that the commit changes. A test that calls what
   is not there yet fails by an error of its own: that adds a feature, whatever the subject says;
3. those cases pass at the commit;
4. every case that passes at the parent is still there, and passes with the fix as it is written at the parent: the
   commit takes no test away, and contradicts none;
5. all tests of the repository, run at the parent on this machine, come to their end.

Each is told with what the cases fail with, as the runner names it, and the file whose lines change most. Commits that a
rule leaves out are printed with the rule.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.prover import Prover
from ralph_mission.errors import UserError
from ralph_mission.mission.proof.claim import ASSERTION, SHORTEST, CodeClaim, CodeQuote, CodeState, claim_of_patch
from ralph_mission.mission.proof.judge import CaseResult, RunRequest, SuiteReport, is_assertion
from ralph_mission.safety.patch import FileChange, Patch, changed_spans
from ralph_mission.safety.paths import protected_path
from ralph_mission.values import dataclass

LISTED = Path(__file__).with_suffix(".json")
"""The commits: for each repository by its name on GitHub, what its fixes' tests fail with, and which cases prove it."""
REPOSITORIES = {
    name.rpartition("/")[2]: name
    for name in (
        "expressjs/express",
        "expressjs/body-parser",
        "koajs/koa",
        "encode/httpx",
        "pallets/click",
        "python-humanize/humanize",
        "pallets/jinja",
        "andialbrecht/sqlparse",
    )
}
MERGES = ("click",)
"""Who merges a change as several commits: there the merge is the fix."""
FIX = re.compile(r"\b(?:fix(?:e[sd])?|bugs?|regression|correctly|incorrect(?:ly)?|crash(?:es)?)\b", re.IGNORECASE)
PLACES = ("lib/", "src/", "httpx/", "sqlparse/", "index.js")
MOST, MOST_LOOKED_AT, MOST_CODE, MOST_TESTS = 10, 60, 6, 4
"""Commits of a repository, those of which tests are run at most, and files of one."""
OUTSIDE = re.compile(r"timeout of \d+|ENOTFOUND|EAI_AGAIN|getaddrinfo|cannot find module|no module named", re.I)


@dataclass(frozen=True, slots=True)
class FixCommit:
    """A commit that mends a bug and brings a test; `cases` () for each case that fails at its parent, `path` "" for the
    file of code with most changed lines."""

    repository: str
    commit: str
    expected: str = ASSERTION
    cases: tuple[str, ...] = ()
    path: str = ""


def listed_commits() -> tuple[FixCommit, ...]:
    """Those of the committed list, in its order."""
    found = json.loads(LISTED.read_text())
    return tuple(
        FixCommit(
            repository, one["commit"], one.get("expected", ASSERTION), tuple(one.get("cases", ())), one.get("path", "")
        )
        for repository, commits in found.items()
        for one in commits
    )


def claim_of(git: Git, fix: FixCommit) -> tuple[CodeClaim, str]:
    """The claim, and its base: the parent. Raises ValueError for a commit that is no fix with a test."""
    base = git.resolve(f"{fix.commit}^")
    subject = git.text("log", "-1", "--format=%s", fix.commit)
    claim = claim_of_patch(subject, Patch(base, tuple(_changes(git, base, fix.commit))), fix.path)
    if claim is None or not claim.test:
        raise ValueError(f"{fix.commit} has no test, or changes no code")
    quotes = (CodeQuote(claim.path, next(_telling_line(one) for one in claim.change if one.path == claim.path)),)
    return replace(claim, expected=fix.expected, cases=fix.cases, quotes=quotes, guessed=False), base


def _telling_line(change: FileChange) -> str:
    """The longest line that a change takes away, or else one before what it adds."""
    old, new = ((side or b"").decode("utf-8", "surrogateescape").split("\n") for side in (change.old, change.new))
    spans = changed_spans(old, new)
    gone = [line for a, b, _, _ in spans for line in old[a:b]]
    found = max(gone or [line for a, *_ in spans for line in old[max(0, a - 3) : a]], key=len, default="")
    return found if len(found.strip()) >= SHORTEST else max(old, key=len)


def _changes(git: Git, base: str, commit: str) -> Iterator[FileChange]:
    raw = git.run("diff-tree", "-r", "-z", "--no-renames", base, commit).decode("utf-8", "surrogateescape")
    words = raw.split("\0")
    for told, path in zip(words[::2], words[1::2], strict=False):
        old_mode, new_mode, old, new, _ = told.removeprefix(":").split()
        blobs = git.blobs([old, new])
        yield FileChange(
            path, "" if old_mode == "000000" else old_mode, "" if new_mode == "000000" else new_mode,
            blobs.get(old), blobs.get(new),
        )  # fmt: skip  # one value


# --- the choice -----------------------------------------------------------------------


def find_commits(prover: Prover, repository: str) -> Iterator[tuple[FixCommit, str]]:
    """Commits that were looked at, newest first, each with the rule that leaves it out: "" for one of those wanted."""
    found = looked = 0
    how = "--first-parent" if repository.rpartition("/")[2] in MERGES else "--no-merges"
    log = prover.git.text("log", how, "--format=%H %s", "HEAD").splitlines()
    for commit, _, subject in (line.partition(" ") for line in log):
        if not FIX.search(subject):
            continue
        fix = FixCommit(repository, commit)
        try:
            claim, base = claim_of(prover.git, fix)
        except ValueError:
            continue
        if not _is_in_reach(claim):
            continue
        try:
            chosen = _look(prover, fix, claim, base)
        except UserError as problem:
            chosen = f"it cannot be set up: {problem.what}"
        yield (chosen, "") if isinstance(chosen, FixCommit) else (fix, chosen)
        found, looked = found + isinstance(chosen, FixCommit), looked + 1
        if found == MOST or looked == MOST_LOOKED_AT:
            return


def _is_in_reach(claim: CodeClaim) -> bool:
    small = len(claim.change) <= MOST_CODE and len(claim.test) <= MOST_TESTS
    return small and claim.path.startswith(PLACES) and not any(protected_path(one.path) for one in claim.patch_changes)


def _look(prover: Prover, fix: FixCommit, claim: CodeClaim, base: str) -> FixCommit | str:
    """The commit with what its cases fail with; else the rule that leaves it out."""
    tool = prover.tool(claim, base)
    if tool is None:
        return "nobody knows how its tests are run"
    old = tuple(one.path for one in claim.test if one.old is not None)
    with prover.open_workspace(claim, base, tool) as workspace:
        told = workspace.run(RunRequest(CodeState.BASE, claim.test_files))
        before = workspace.run(RunRequest(CodeState.PLAIN, old)) if old else SuiteReport(())
        was = {case.id: case.status for case in before.cases}
        fails = [case for case in told.cases if case.status in ("failed", "error") and was.get(case.id) != case.status]
        if told.ended or any(case.phase == "load" for case in fails):
            return "2: its tests cannot be run at the parent, or do not end"
        every = len(fails)
        fails = [case for case in fails if case.phase == "call" and not OUTSIDE.search(case.message)]
        if not fails:
            return "2: no case fails at the parent in itself"
        changed = {one.path for one in claim.change}
        fails = [case for case in fails if is_assertion(case) or changed & {path for path, _ in case.frames}]
        if not fails:
            return "2: its test fails by an error of its own, or of other code"
        after = {case.id: case.status for case in workspace.run(RunRequest(CodeState.CHANGED, claim.test_files)).cases}
        if any(after.get(case.id) != "passed" for case in fails):
            return "3: a case of it does not pass at the commit"
        if gone := [name for name, status in was.items() if status == "passed" and name not in after]:
            return f"4: it takes {gone[0]} away"
        contrary = _contrary(replace(workspace, claim=replace(claim, test=())), old, was)
        if not contrary and workspace.run(RunRequest(CodeState.PLAIN, ())).ended:
            return "5: all tests of the repository cannot be run at the parent"
    return contrary or _told(fix, claim, fails, every)


def _contrary(workspace: object, old: tuple[str, ...], was: Mapping[str, str]) -> str:
    from ralph_mission.adapters.projects.prover import ProofWorkspace

    assert isinstance(workspace, ProofWorkspace)
    kept = {case.id: case.status for case in workspace.run(RunRequest(CodeState.CHANGED, old)).cases} if old else {}
    broken = [name for name, status in was.items() if status == "passed" and kept.get(name) != "passed"]
    return f"4: {broken[0]} passes at the parent as it stands there, and not with the fix" if broken else ""


def _told(fix: FixCommit, claim: CodeClaim, fails: list[CaseResult], every: int) -> FixCommit:
    """Of several reasons the first, with the cases that fail for it, of `every` one that fails."""
    kinds = [ASSERTION if is_assertion(case) else case.error for case in fails]
    cases = tuple(case.id for case, kind in zip(fails, kinds, strict=True) if kind == kinds[0])
    changed = {one.path for one in claim.change}
    inner = [path for path, _ in fails[0].frames if path in changed]
    path = inner[-1] if kinds[0] != ASSERTION and inner and claim.path not in inner else ""
    return replace(fix, expected=kinds[0], cases=cases if len(cases) < every else (), path=path)


def main() -> None:
    """Look at one repository, and put what was found into the list in place of what stood there."""
    from bench.proof import judge_row, prover_of, write_row

    folder, name, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    repository = REPOSITORIES[name]
    found: list[dict[str, object]] = []
    prover = prover_of(folder, name)
    for fix, why in find_commits(prover, repository):
        print(f"{repository} {fix.commit[:10]}: {why or f'chosen, {fix.expected}'}", flush=True)
        if why:
            continue
        usual = FixCommit(repository, fix.commit)
        told = {n: getattr(fix, n) for n in ("expected", "cases", "path") if getattr(fix, n) != getattr(usual, n)}
        found.append({"commit": fix.commit, **told})
        LISTED.write_text(json.dumps({**json.loads(LISTED.read_text()), repository: found}, indent=1) + "\n")
        write_row(judge_row(prover, fix, "true", *claim_of(prover.git, fix)), out)  # while its set-up is still there


if __name__ == "__main__":
    main()
