"""The workflows of this checkout beside the loop: what they may, where they run, what they use, who wakes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ralph_mission.cli.checks_github import PERMISSIONS
from ralph_mission.cli.checks_line import Check, Made
from ralph_mission.cli.checks_schedule import runs_on
from ralph_mission.cli.workflow import loose, uses
from ralph_mission.wakers.facts import PUBLISH, REVIEW, WORK, listener, listening
from ralph_mission.wakers.review import OF_WORKFLOWS, by_dispatch


def present(work_tree: Path | None) -> Mapping[str, str]:
    """Their texts by the names of their files; those that are not there are left out."""
    found = (listener(work_tree, event) for event in (WORK, REVIEW, PUBLISH))
    return {name: text for name, text in found if name}


def flows(work_tree: Path | None) -> Made:
    """A line for each that is there, and one for whatever is wrong with it."""
    for name, text in present(work_tree).items():
        wrong = [*_permissions(name, text), *_pins(name, text)]
        labels = ", ".join(dict.fromkeys(label for labels in runs_on(text) for label in labels))
        yield from wrong or [Check(_named(text), "ok", f"{name}: least permissions, pinned, runs on {labels}")]


def reviewing(wanted: str, account: str, work_tree: Path | None) -> Made:
    """What starts the review of a pull that `account` opens; `wanted` is `schedule.review`."""
    if not listening(work_tree, REVIEW):
        yield Check("review", "ok", "by people alone; ralph init --review has an agent look first")
        return
    standing = by_dispatch(wanted, account, work_tree)
    if wanted == "never" and account == OF_WORKFLOWS:
        mend = "schedule: {review: auto} in ralph.yml, or give the action a token of another account"
        yield Check("review", "note", f"nothing starts it: what {account} opens starts no workflow", mend)
    elif wanted == "always" and account != OF_WORKFLOWS:
        found = f"by a dispatch and by GitHub: what {account} opens starts workflows"
        yield Check("review", "note", f"{found}; the second does nothing", "schedule: {review: auto} in ralph.yml")
    else:
        yield Check("review", "ok", standing.reason)


def _named(text: str) -> str:
    return "publishing workflow" if PUBLISH in text else "agents' workflow"


def _needed(text: str) -> Mapping[str, str]:
    """What its job needs: publishing only looks at pulls."""
    return PERMISSIONS | ({"pull-requests": "read"} if PUBLISH in text else {})


def _least(needed: Mapping[str, str]) -> str:
    return "permissions: {} at its top, and for the job: " + ", ".join(f"{name}: {at}" for name, at in needed.items())


def _permissions(name: str, text: str) -> Iterator[Check]:
    document, needed, title = _read(text), _needed(text), _named(text)
    jobs = [job for job in document.get("jobs", {}).values() if isinstance(job, dict)]
    given = [job["permissions"] for job in jobs if isinstance(job.get("permissions"), dict)]
    if document.get("permissions") != {} or len(given) < len(jobs):
        yield Check(title, "wrong", f"{name} leaves permissions to the repository's settings", _least(needed))
        return
    for permissions in given:
        missing = [each for each, level in needed.items() if permissions.get(each) not in (level, "write")]
        more = [each for each, level in permissions.items() if level not in ("none", needed.get(each))]
        if missing:
            yield Check(title, "wrong", f"{name} does not grant {', '.join(missing)}", _least(needed))
        elif more:
            yield Check(title, "note", f"{name} grants more than it needs: {', '.join(more)}", _least(needed))


def _pins(name: str, text: str) -> Iterator[Check]:
    for used in dict.fromkeys(filter(loose, uses(text))):
        mend = "name its commit instead: ralph init writes it so"
        yield Check(_named(text), "note", f"{name} uses {used}, which may move", mend)


def _read(text: str) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return {}
    return document if isinstance(document, dict) and isinstance(document.get("jobs"), dict) else {}
