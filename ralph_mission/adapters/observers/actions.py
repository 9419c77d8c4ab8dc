"""Finds outdated actions: two or more majors older than in other workflows of the repository.

This needs no knowledge about actions: the repository itself shows which release works. Only actions whose majors follow
the runners' Node.js, without changing inputs, are fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ralph_mission.adapters.observers.text import block, count_noun, one_line
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.values import compile_regex, dataclass

LAG = 2  # majors
USED = 2  # lines elsewhere that show that the newer one works here
USES = compile_regex(
    r"(?m)^(?P<lead>[ \t]*(?:-[ \t]+)?uses:[ \t]*[\"']?"
    r"(?P<action>actions/(?:checkout|setup-node|setup-python|setup-go))@v)"
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


def lagging_uses(workflows: Mapping[str, str]) -> Iterator[LaggingUse]:
    """The outdated uses in a repository's workflows, by path."""
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
            if major <= newest.get(action, 0) - LAG:
                line = text.count("\n", 0, found.start()) + 1
                whole = text.split("\n")[line - 1].strip()
                yield LaggingUse(path, line, whole, action, major, newest[action])


def lagging_actions(workflows: Mapping[str, bytes], commit: str) -> Signal | None:
    """One finding with a fix for all of them, or None. `workflows`: ordinary files."""
    texts = {path: content.decode("utf-8", "surrogateescape") for path, content in workflows.items()}
    found = list(lagging_uses(texts))
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
    lines = (f"{one.path}:{one.line}: v{one.major}, and v{one.better} in other workflows here" for one in found)
    return Signal(
        observer="scanners",
        kind="workflow-fix",
        title=one_line(f"Use {names} in {where}, as other workflows here do"),
        essence=("workflow-fix", "actions", *sorted(better)),
        severity=Severity.LOW,
        confidence=0.9,
        effort=0.2,
        detail=block("\n".join(lines)),
        path=paths[0],
        line=found[0].line,
        facts=tuple(("file", path) for path in paths),
        patch=Patch(commit, tuple(changes)),
        quotes=tuple(Quote(one.text, one.path, one.line, commit) for one in found[:5]),
    )
