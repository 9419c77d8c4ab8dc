"""Which action the workflow of this checkout runs: one that nobody can move, or not yet."""

from __future__ import annotations

from ralph_mission.cli import workflow
from ralph_mission.cli.checks_line import Check, Made
from ralph_mission.gateways.git import Git


def action(git: Git) -> Made:
    """Whether everything that the workflow uses is pinned to a commit; nothing where no workflow belongs."""
    from ralph_mission.wakers.facts import look

    text = look(git.work_tree, "", ()).workflow
    if not text:
        yield from _missing(git)
        return
    used = workflow.uses(text)
    for name in (name for name in dict.fromkeys(used) if workflow.loose(name)):
        yield Check("action", "note", f"the workflow uses {name}, which may move", _pin(name))
    if not any(map(workflow.loose, used)):
        yield Check("action", "ok", f"the workflow uses {', '.join(dict.fromkeys(used))}" if used else "none is used")


def _missing(git: Git) -> Made:
    if not git.work_tree or not workflow.hosted(git):
        return
    known = workflow.installed()
    found = "no workflow here runs it on GitHub"
    yield Check(
        "action", "note", found if known else f"{found}; {workflow.UNKNOWN}", "ralph init" if known else workflow.NAMED
    )


def _pin(name: str) -> str:
    repository, _, ref = name.partition("@")
    repository = "/".join(repository.split("/")[:2])
    last = f"git ls-remote https://github.com/{repository} {ref} '{ref}^{{}}'"
    return f"name its commit instead, which is in the last line of: {last}"
