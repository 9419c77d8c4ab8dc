"""Finds outdated actions: made for a Node.js that GitHub no longer supports, or left behind by other workflows here;
and those that are not pinned to a commit where a repository pins its actions.

Only actions whose majors follow the runners' Node.js, with the same inputs, are fixed. Where Renovate or Dependabot is
configured for actions, the first is theirs; the second needs no knowledge about actions, because the repository itself
shows which release works. A pin changes nothing of what runs: it names the commit that the tag names now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import HEADS, REPOSITORY, Remote
from ralph_mission.adapters.http.guard import GuardedWeb
from ralph_mission.adapters.observers.looking import block, one_line
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

LAG = 2  # majors
USED = 2  # lines elsewhere that show that the newer one works here
NODE_24: Mapping[str, int] = {
    "actions/cache": 5,
    "actions/checkout": 5,
    "actions/setup-go": 6,
    "actions/setup-java": 5,
    "actions/setup-node": 5,
    "actions/setup-python": 6,
    "gradle/actions/setup-gradle": 5,
    "gradle/actions/wrapper-validation": 5,
}
"""The first major made for Node.js 24, by `runs.using` of `action.yml` at their tags."""
ENDED = date(2026, 9, 23)
"""The day that GitHub announced for the end of Node.js 20 on its runners."""
OWN_RUNNER = "self-hosted"
"""In a workflow: its runner's version decides which Node.js there is, not GitHub's day."""
SHOWN = 8  # lines of workflows
OTHERS = "and v{0.better} in other workflows here"
BOT_FILE = compile_regex(
    r"\.github/dependabot\.ya?ml|(?:\.git(?:hub|lab)/)?(?:renovate\.json5?|\.renovaterc(?:\.json5?)?)|package\.json"
)
BOT_TEXT: Mapping[str, bytes] = {".github/dependabot": b"github-actions", "package": b'"renovate"'}
"""What the file of that name must hold to speak of actions; Renovate's own files need not."""
ANNOUNCED = "https://github.blog/changelog/2025-09-19-deprecation-of-node-20-on-github-actions-runners/"
USES = compile_regex(
    r"(?m)^(?P<lead>[ \t]*(?:-[ \t]+)?uses:[ \t]*[\"']?"
    rf"(?P<action>{'|'.join(NODE_24)})@v)"
    r"(?P<major>\d{1,3})(?=[\"']?[ \t]*(?:#.*)?\r?$)"
)


@dataclass(frozen=True, slots=True)
class LaggingUse:
    """A line with an old major of an action, and the one used elsewhere."""

    path: str
    line: int
    text: str
    action: str
    major: int
    better: int
    ended: bool = False  # its Node.js is


def is_bot_file(path: str) -> bool:
    """Whether it may say that a bot updates actions: Renovate's settings, Dependabot's, package.json."""
    return BOT_FILE.fullmatch(path) is not None


def is_updated_by_bot(settings: Mapping[str, bytes]) -> bool:
    """Whether Renovate or Dependabot is configured for actions; `settings`: the files that `is_bot_file` names."""
    texts = {path: BOT_TEXT.get(path.rpartition(".")[0], b"") for path in settings}
    return any(text in settings[path] for path, text in texts.items())


def lagging_uses(workflows: Mapping[str, str], judge_node: bool = False) -> Iterator[LaggingUse]:
    """The outdated uses in a repository's workflows, by path; `judge_node`: also those made for an ended Node.js."""
    used = Counter(
        (found["action"], int(found["major"])) for text in workflows.values() for found in USES.finditer(text)
    )
    newest: dict[str, int] = {}
    for (action, major), number in used.items():
        if number >= USED:
            newest[action] = max(major, newest.get(action, 0))
    for path, text in workflows.items():
        for found in USES.finditer(text):
            action, major = found["action"], int(found["major"])
            here = newest.get(action, 0)
            ended = judge_node and major < NODE_24[action] and OWN_RUNNER not in text
            if ended or major <= here - LAG:
                line = text.count("\n", 0, found.start()) + 1
                whole = text.split("\n")[line - 1].strip()
                better = max(here, NODE_24[action]) if ended else here
                yield LaggingUse(path, line, whole, action, major, better, ended)


def lagging_actions(workflows: Mapping[str, bytes], commit: str, judge_node: bool = False) -> Signal | None:
    """One finding with a fix for all of them, or None. `workflows`: ordinary files; `judge_node` as `lagging_uses`."""
    texts = {path: content.decode("utf-8", "surrogateescape") for path, content in workflows.items()}
    found = list(lagging_uses(texts, judge_node))
    if not found:
        return None
    better = {one.action: str(one.better) for one in found}
    old = {(one.action, str(one.major)) for one in found}
    changes = []
    for path in dict.fromkeys(one.path for one in found):
        new = USES.sub(
            lambda use: use["lead"] + (better[use["action"]] if (use["action"], use["major"]) in old else use["major"]),
            texts[path],
        )
        changes.append(FileChange(path, REGULAR, REGULAR, workflows[path], new.encode("utf-8", "surrogateescape")))
    paths = [change.path for change in changes]
    names = " and ".join(f"{action} v{major}" for action, major in better.items())
    where = paths[0] if len(paths) == 1 else count_noun(len(paths), "workflow")
    ended = [one for one in found if one.ended]
    why = ": older ones need a Node.js that GitHub no longer supports" if ended else ", as other workflows here do"
    lines = [
        f"{one.path}:{one.line}: {one.action} v{one.major}, "
        + ("made for Node.js 20 or older" if one.ended else OTHERS.format(one))
        for one in found
    ]
    more = [*lines[:SHOWN], *([f"... and {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else [])]
    if ended:
        more.append(f"GitHub announced the end of Node.js 20 on its runners for {ENDED}. Such actions run on another")
        more.append(f"Node.js than they were made for, with a warning in each run. {ANNOUNCED}")
    patch = Patch(commit, tuple(changes))
    signal = workflow_fix(f"Use {names} in {where}{why}", ("actions", *sorted(better)), more, patch)
    return replace(signal, line=found[0].line, quotes=_quotes(found, commit))


def workflow_fix(title: str, essence: Sequence[str], lines: Iterable[str], patch: Patch) -> Signal:
    """A change of workflows that alters nothing else."""
    return Signal(
        observer="scanners",
        kind="workflow-fix",
        title=one_line(title),
        essence=("workflow-fix", *essence),
        severity=Severity.LOW,
        confidence=0.9,
        effort=0.2,
        detail=block("\n".join(lines)),
        path=patch.paths[0],
        facts=tuple(("file", path) for path in patch.paths),
        patch=patch,
    )


USE = compile_regex(
    r"(?m)^(?P<lead>[ \t]*(?:-[ \t]+)?uses:[ \t]+)(?P<mark>[\"']?)(?P<action>[\w.-]+/[\w./-]+)@(?P<ref>[\w./-]+)"
    r"(?P=mark)(?P<comment>[ \t]*(?:#[^\r\n]*)?)(?=\r?$)"
)
COMMIT = compile_regex(r"[0-9a-f]{40}")
VERSION = compile_regex(r"v?\d+(?:\.\d+){0,2}")
NO_COMMENT = compile_regex(rf"[ \t]*(?:#[ \t]*{VERSION.pattern}[ \t]*)?")
"""What a pin may replace after a use: nothing, or the version that it says anyway."""
OFFICIAL = ("actions/", "github/")
"""GitHub's own: many repositories pin all others alone."""
BY_TAG = compile_regex(r"slsa-framework/.*|.*\.ya?ml")
"""What is left as it is: some prove what they built by the tag they were called with, often as workflows."""
PINNED, TO_LOOSE = 3, 3
"""Pinned uses that make a practice, and how many of them for each that is not."""
OURS = ".github/workflows/ralph-"
"""Where `ralph init` writes workflows, with pins: they are nobody's practice."""
PIN_ASKED = compile_regex(rb"(?m)^[^#\n]*\bhash-pin\b")
PIN_FILE = compile_regex(r"(?:\.github/)?zizmor\.ya?ml")
PINNING_BOT = compile_regex(
    r"suzuki-shunsuke/pinact-action|stacklok/frizbee|step-security/secure-repo|sethvargo/ratchet"
)
ASKED_MOST = 20  # actions in one look
BELIEVED = timedelta(days=1)
OLDEST = timedelta(days=7)  # of an answer that is used while the server cannot be reached
PATIENCE = 20.0  # seconds for one answer
FOLDER, GITHUB, TAGS = "action-tags", "https://github.com", "refs/tags/"


@dataclass(frozen=True, slots=True)
class LooseUse:
    """A line that uses an action by a name that may move: a tag or a branch."""

    path: str
    line: int
    text: str
    action: str
    ref: str
    pinnable: bool  # a version, with nothing after it that a pin would lose

    @property
    def repository(self) -> str:
        """OWNER/NAME of the action, without the folder in it."""
        return "/".join(self.action.split("/")[:2])


@dataclass(frozen=True, slots=True)
class ActionTags:
    """What the tags of public actions name, asked of `server` by git without a token; believed for a day.

    `owner`: of the repository that uses them, "" if unknown. `allow`: hosts that may be private.
    """

    git: Git
    cache: FileCache
    server: str = GITHUB
    owner: str = ""
    allow: Collection[str] = ()

    @staticmethod
    def build(git: Git, cache: Path | None, environ: Mapping[str, str]) -> ActionTags:
        """As a runner's environment says: the server of the workflow's own repository, which may be private."""
        server, owner = environ.get("GITHUB_SERVER_URL", "").rstrip("/"), environ.get("GITHUB_REPOSITORY", "")
        cache_files = FileCache(cache / FOLDER if cache else None, 200)
        allow = (urlsplit(server).netloc,) if server else ()
        return ActionTags(git, cache_files, server or GITHUB, owner.partition("/")[0], allow)

    def commits(self, uses: Iterable[LooseUse], now: datetime) -> dict[LooseUse, tuple[str, str]]:
        """The commits that uses run now, with the version in full, such as `v4.2.1`.

        Left out: those without such a tag, with a branch of that name elsewhere, or of an action that strangers cannot
        read, and all after the first twenty tags. Raises UserError if the server does not answer.
        """
        uses = [use for use in uses if use.pinnable]
        tags = list(dict.fromkeys((use.repository, use.ref) for use in uses))[:ASKED_MOST]
        found = {tag: _commit_of(self._refs(*tag, now), tag[1]) for tag in tags}
        return {use: pin for use in uses if (pin := found.get((use.repository, use.ref)))}

    def _refs(self, repository: str, ref: str, now: datetime) -> Mapping[str, str]:
        question, old, age = cache_key(self.server, repository, ref), dict[str, str](), OLDEST
        with suppress(TypeError, KeyError, ValueError, AttributeError):
            known = self.cache.get(question)
            old = {str(name): str(oid) for name, oid in known["refs"].items()}
            age = now - datetime.fromisoformat(known["asked"])
            if timedelta() <= age < BELIEVED:
                return old
        found: Mapping[str, str] = {}
        if REPOSITORY.fullmatch(repository):
            there = Remote(self.git, f"{self.server}/{repository}.git", keep=False, patience=PATIENCE)
            try:
                if self.server != GITHUB:  # which is public, and may be reached by a proxy alone
                    GuardedWeb(self.allow, PATIENCE).admit(self.server)
                found = there.commits(f"{TAGS}{ref}*", f"{HEADS}{ref}")
            except UserError as problem:
                if problem.who == "network" and timedelta() <= age < OLDEST:
                    return old
                if problem.who == "network":
                    raise
        self.cache.put(question, {"asked": now.isoformat(), "refs": found})
        self.cache.tidy()
        return found


def _commit_of(refs: Mapping[str, str], tag: str) -> tuple[str, str] | None:
    commit = refs.get(f"{TAGS}{tag}", "")
    if not COMMIT.fullmatch(commit) or refs.get(f"{HEADS}{tag}", commit) != commit:
        return None
    same = (ref.removeprefix(TAGS) for ref, oid in refs.items() if oid == commit)
    full = [name for name in same if name.startswith(f"{tag}.") and VERSION.fullmatch(name)]
    return commit, max(full, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], default=tag)


def is_pin_file(path: str) -> bool:
    """Whether it may ask for pins: zizmor's settings."""
    return PIN_FILE.fullmatch(path) is not None


def asks_for_pins(settings: Mapping[str, bytes]) -> bool:
    """Whether zizmor's settings say that actions are to be pinned; `settings`: the files that `is_pin_file` names."""
    return any(is_pin_file(path) and PIN_ASKED.search(text) for path, text in settings.items())


def loose_uses(
    workflows: Mapping[str, bytes],
    named: Collection[tuple[str, int]],
    settings: Mapping[str, bytes],
    demand: bool = False,
    own: str = "",
) -> list[LooseUse]:
    """The uses that this repository would have pinned, of those that zizmor `named` (path and line).

    All of them on `demand` of the settings, else those of others or of GitHub, if nearly all of their kind are pinned.
    Where Renovate or another bot is configured that pins, there are none. `settings`: files that `is_bot_file` names.
    `own`: the repository's owner, who need not mistrust their own actions.
    """
    texts = {path: content.decode("utf-8", "surrogateescape") for path, content in workflows.items()}
    renovate = {path: text for path, text in settings.items() if "dependabot" not in path}
    if is_updated_by_bot(renovate) or any(PINNING_BOT.search(text) for text in texts.values()):
        return []
    uses = [(path, found) for path, text in texts.items() for found in USE.finditer(text)]
    counted = Counter(
        (found["action"].startswith(OFFICIAL), bool(COMMIT.fullmatch(found["ref"])))
        for path, found in uses
        if not path.startswith(OURS)
    )
    result = []
    for path, found in uses:
        action, line = found["action"], texts[path].count("\n", 0, found.start()) + 1
        official = action.startswith(OFFICIAL)
        usual = counted[official, True] >= max(PINNED, TO_LOOSE * counted[official, False])
        foreign = not (own and action.lower().startswith(f"{own.lower()}/"))
        loose = not (COMMIT.fullmatch(found["ref"]) or BY_TAG.fullmatch(action))
        if not loose or (path, line) not in named or not (demand or (usual and foreign)):
            continue
        pinnable = VERSION.fullmatch(found["ref"]) and NO_COMMENT.fullmatch(found["comment"])
        result.append(LooseUse(path, line, found[0].strip(), action, found["ref"], bool(pinnable)))
    return result


def pin_actions(
    workflows: Mapping[str, bytes],
    uses: Sequence[LooseUse],
    commits: Mapping[LooseUse, tuple[str, str]],
    commit: str,
    demand: bool,
) -> Iterator[Signal]:
    """One finding with a fix for all uses that have a commit, and one line about the others; `demand`: by settings."""
    why = "as the settings of zizmor ask" if demand else "as others here are"
    if pinned := [use for use in uses if use in commits]:
        yield _pins(workflows, pinned, commits, commit, why)
    if left := [use for use in uses if use not in commits]:
        yield _unpinned(left, commit, why)


def _pins(
    workflows: Mapping[str, bytes],
    uses: Sequence[LooseUse],
    commits: Mapping[LooseUse, tuple[str, str]],
    commit: str,
    why: str,
) -> Signal:
    pins = {(use.path, use.line): commits[use] for use in uses}
    changes = []
    for path in dict.fromkeys(use.path for use in uses):
        lines = workflows[path].decode("utf-8", "surrogateescape").split("\n")
        for number, line in enumerate(lines, 1):
            if (path, number) in pins and (found := USE.match(line)):
                sha, version = pins[path, number]
                pinned = f"{found['lead']}{found['mark']}{found['action']}@{sha}{found['mark']} # {version}"
                lines[number - 1] = pinned + line[found.end() :]
        new = "\n".join(lines).encode("utf-8", "surrogateescape")
        changes.append(FileChange(path, REGULAR, REGULAR, workflows[path], new))
    actions = sorted({use.action for use in uses})
    names = " and ".join(actions[:2]) if len(actions) < 3 else count_noun(len(actions), "action")
    paths = [change.path for change in changes]
    where = paths[0] if len(paths) == 1 else count_noun(len(paths), "workflow")
    rows = [f"{use.path}:{use.line}: {use.action}@{use.ref} is {' at '.join(commits[use][::-1])}" for use in uses]
    more = [f"... and {len(rows) - SHOWN} more lines"] if len(rows) > SHOWN else []
    detail = "The commit is the one that the tag names now, so the same code runs; a tag can be moved, a commit cannot."
    title = f"Pin {names} to {'a commit' if len(pins) == 1 else 'commits'} in {where}, {why}"
    signal = workflow_fix(title, ("pins", *actions), [*rows[:SHOWN], *more, detail], Patch(commit, tuple(changes)))
    return replace(signal, line=uses[0].line, quotes=_quotes(uses, commit))


def _unpinned(uses: Sequence[LooseUse], commit: str, why: str) -> Signal:
    named = sorted({f"{use.action}@{use.ref}" for use in uses})
    first, more = uses[0], f" and {len(named) - 1} more" if len(named) > 1 else ""
    return Signal(
        observer="scanners",
        kind="workflow",
        title=one_line(
            f"{named[0]}{more} {'are' if more else 'is'} not pinned to {'commits' if more else 'a commit'}, {why}"
        ),
        essence=("workflow", "pins", *named),
        severity=Severity.LOW,
        confidence=0.8,
        effort=0.5,
        detail=block("\n".join(f"{use.path}:{use.line}: {use.action}@{use.ref}" for use in uses[:SHOWN])),
        path=first.path,
        line=first.line,
        quotes=_quotes(uses, commit),
    )


def _quotes(uses: Iterable[LooseUse | LaggingUse], commit: str) -> tuple[Quote, ...]:
    return tuple(Quote(one.text, one.path, one.line, commit) for one in list(uses)[:SHOWN])
