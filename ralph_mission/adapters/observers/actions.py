"""Finds outdated actions: made for a Node.js that GitHub no longer supports, or left behind by other workflows here.

Only actions whose majors follow the runners' Node.js, with the same inputs, are fixed. Where Renovate or Dependabot is
configured for actions, the first is theirs; the second needs no knowledge about actions, because the repository itself
shows which release works.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date

from ralph_mission.adapters.observers.text import block, count_noun, one_line
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.values import compile_regex, dataclass

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
ASKED: Mapping[str, bytes] = {".github/dependabot": b"github-actions", "package": b'"renovate"'}
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
    said = {path: ASKED.get(path.rpartition(".")[0], b"") for path in settings}
    return any(text in settings[path] for path, text in said.items())


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
    return Signal(
        observer="scanners",
        kind="workflow-fix",
        title=one_line(f"Use {names} in {where}{why}"),
        essence=("workflow-fix", "actions", *sorted(better)),
        severity=Severity.LOW,
        confidence=0.9,
        effort=0.2,
        detail=block("\n".join(more)),
        path=paths[0],
        line=found[0].line,
        facts=tuple(("file", path) for path in paths),
        patch=Patch(commit, tuple(changes)),
        quotes=tuple(Quote(one.text, one.path, one.line, commit) for one in found[:SHOWN]),
    )
