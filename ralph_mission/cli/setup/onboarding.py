"""`ralph init --pull-request`: the files on a branch of their own, and what a first cycle would do with them as the
text of one pull request. The checkout stays as it is, and nothing is sent: a person pushes, whose own credentials may
add workflows.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ralph_mission.adapters import files as durable_files
from ralph_mission.adapters.forges.local import branches
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.report.progress import speaking
from ralph_mission.adapters.workspace.land import Objects, User
from ralph_mission.adapters.workspace.snapshot import REGULAR, File
from ralph_mission.app.cycle import refuse_links
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.cli.options import open_app, run_cycle
from ralph_mission.cli.setup import files
from ralph_mission.cli.setup.settings import render_usual_settings
from ralph_mission.config.reading import NAME
from ralph_mission.errors import UserError
from ralph_mission.mission import execute
from ralph_mission.mission.fleet.model import CONFIGURE
from ralph_mission.mission.fleet.plan import ASKING
from ralph_mission.mission.lifecycle.waiting import AGAIN
from ralph_mission.mission.model.effects import OpenPull, PushBranch
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.safety.patch import FileDelta, edits
from ralph_mission.safety.secrets import redact
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

if TYPE_CHECKING:
    from ralph_mission.app.cycle import App
    from ralph_mission.mission.model.cycle import CycleReport, CycleSummary, ObserverLine, ThreadLine

BRANCH = CONFIGURE
TITLE = ASKING
TEXT = "onboarding.md"
LONGEST = 60_000  # characters: GitHub takes 65,536
THREAD = 6_000  # characters of an issue's or pull request's text; of a longer one the title is shown
MARKERS = compile_regex(r"<!--.*?-->\s*", re.DOTALL)
ROLES: Mapping[str, str] = {
    NAME: "the settings, each with a comment",
    files.PLACES["cycle"]: "the workflow that runs a cycle when one is due",
    files.PLACES["work"]: "the workflow in which an agent works on labelled issues",
    files.PLACES["review"]: "the workflow in which an agent reviews Ralph's pull requests",
    files.PLACES["publish"]: "the workflow that publishes approved texts",
}


@dataclass(frozen=True, slots=True)
class Onboarding:
    """The branch that holds the files, on the commit `base`, and the text of the pull request, which is kept at `text`
    for a person to read. `steps` are the commands that bring it to GitHub."""

    branch: str
    commit: str
    base: str
    text: Path
    steps: tuple[str, ...] = field(default=())


def prepare_pull_request(git: Git, top: Path, texts: Mapping[str, str], steps: Sequence[str]) -> Onboarding:
    """Commit `texts` by path to the branch, and look at what a first cycle would do with them.

    `steps` are what only a person can do. The branch begins at the default branch, whatever is checked out. Raises
    UserError: no commit yet, no default branch, or a branch of that name that holds more or is checked out.
    """
    known = branches.tips(git)
    branches.refuse_blocked_namespace(known)
    if not known and not git.resolve("HEAD"):
        raise UserError("there is no commit yet", "commit something first", usage=True)
    base = branches.published_default(git).sha
    if where := branches.checked_out_at(git, BRANCH):
        raise UserError(f"the branch {BRANCH} is checked out in {where}", "switch to another one there", usage=True)
    commit = _commit(git, base, texts)
    old = git.resolve(f"refs/heads/{BRANCH}")
    if old and not _is_replaceable(git, old, texts):
        raise UserError(
            f"the branch {BRANCH} has other changes", f"look at it, then: git branch -D {BRANCH}", usage=True
        )
    body = render_text(*_staged_cycle(top, texts.get(NAME, "")), texts, steps)
    place = git.state_dir / TEXT
    durable_files.write(place, body.encode())
    if not git.move_ref(f"refs/heads/{BRANCH}", commit, old):
        raise UserError(f"the branch {BRANCH} was moved meanwhile", "run it again")
    return Onboarding(BRANCH, commit, base, place, tuple(_commands(git, place, top)))


def propose_settings(app: App, extends: str) -> tuple[CycleReport, CycleSummary]:
    """For a fleet: ask by a pull request with `ralph.yml` whether to look after this repository. It is asked once, for
    there is one pull request on a branch ever, closed ones included. Returns what a first cycle would do.

    Raises UserError: a link where we write, no work tree, stopped by the kill switch, or refused by the forge.
    """
    refuse_links(app.git)
    top = app.git.work_tree
    if top is None:
        raise UserError("a bare repository has no place for settings", "leave it out of the fleet, or clone it")
    if app.ports.switch():
        raise UserError("RALPH_PAUSED is set", "unset it, then run again")
    text = f"# Settings of the fleet; what stands below them counts here alone.\nextends: {json.dumps(extends)}\n"
    if not extends:
        text = render_usual_settings(app.git, top)
    report, summary = _staged_cycle(top, text)
    default, key = app.forge.default_branch(), key_of("onboarding", BRANCH)
    when = datetime.fromisoformat(app.git.text("show", "--no-patch", "--format=%cI", default.sha))
    changed = (FileDelta(NAME, REGULAR, edits(b"", text.encode())),)
    body = redact(render_text(report, summary, {NAME: text}, ()), app.secrets)
    pull = OpenPull(key, TITLE, body, BRANCH, default.name, 0)  # no marker: it is found by its branch, and is no work
    if app.forge.find(pull) is None:
        for effect in (PushBranch(key_of(key, "branch"), BRANCH, default.sha, TITLE, when, changed), pull):
            receipt = execute.perform_effect(app.ports, effect)
            if receipt.status == "failed" and not (effect is not pull and app.forge.branch(BRANCH)):
                raise UserError(f"the pull request was refused: {receipt.detail}", "see docs/fleet.md", who="forge")
    return report, summary


def _commit(git: Git, base: str, texts: Mapping[str, str]) -> str:
    files = {path: File(REGULAR, git.write_blob(text.encode())) for path, text in texts.items()}
    message = f"{TITLE}\n\nThe pull request describes what a first cycle would do."
    return Objects(git).commit(base, files, message, datetime.now(UTC), User.of(git).identity)


def _is_replaceable(git: Git, tip: str, texts: Mapping[str, str]) -> bool:
    """Whether the branch holds one commit that changes nothing but files that we write."""
    parent = git.resolve(f"{tip}^")
    changed = set(Objects(git).paths_between(parent, tip)) if parent else {""}
    return git.try_text("log", "-1", "--format=%s", tip) == TITLE and changed <= {*ROLES, *texts}


def _staged_cycle(top: Path, settings: str) -> tuple[CycleReport, CycleSummary]:
    """A cycle of this checkout with those settings that changes nothing, here or elsewhere."""
    with tempfile.TemporaryDirectory(prefix="ralph-") as folder:
        config = Path(folder) / NAME
        config.write_text(settings or (files.read_text(top / NAME) or ""), encoding="utf-8")
        with speaking(sys.stderr, environment_secrets()) as progress:
            return run_cycle(open_app(top, config, "local", staged=True, progress=progress), staged=True, force=True)


def _commands(git: Git, text: Path, top: Path) -> Iterable[str]:
    name = files.github_name(git)
    if not name:
        return [f"git merge {BRANCH}"]
    query = urlencode({"expand": "1", "title": TITLE})
    where = text.relative_to(top) if text.is_relative_to(top) else text
    return [
        f"git push -u origin {BRANCH}",
        f"gh pr create --head {BRANCH} --title {shlex.quote(TITLE)} --body-file {shlex.quote(str(where))}",
        f"or, without gh: https://github.com/{name}/compare/{BRANCH}?{query} with the text of {where}",
    ]


# --- the text -------------------------------------------------------------------------


def render_text(report: CycleReport, summary: CycleSummary, texts: Iterable[str], steps: Iterable[str]) -> str:
    """The text of the pull request, in Markdown and at most `LONGEST` characters."""
    from ralph_mission.adapters.report.step_summary import harmless, section

    opened = _nothing_opened(report, summary) if not summary.threads else ""
    whole = io.StringIO()
    whole.write(
        "Merge this, and Ralph looks after this repository: small fixes become pull requests that you merge, "
        "everything bigger becomes an issue that asks first. Close it, and nothing happens.\n\n"
    )
    added = (f"`{path}`: {ROLES.get(path, 'as `ralph init` writes it')}" for path in texts)
    for heading, lines in (
        ("What this adds", added),
        ("What only you can do", map(harmless, steps)),
    ):
        whole.write("\n".join(section(heading, lines)) + "\n\n")
    whole.write(f"### What the first cycle would open\n\n{opened}")
    for thread in summary.threads:
        part = _thread(thread, harmless(thread.title))
        whole.write(part if whole.tell() + len(part) < LONGEST * 3 // 4 else f"- {harmless(thread.title)}\n\n")
    observers = (f"{line.name}: {harmless(_describe_observer(line))}" for line in report.observers)
    rest = [
        *section("What would be held back", (harmless(one) for one in summary.held if not one.startswith(AGAIN))),
        "",
        *section("What it would only watch", map(harmless, summary.watched)),
        "",
        *section("What was looked at", observers),
    ]
    whole.write("\n".join(["", *rest]))
    return whole.getvalue()[:LONGEST].rstrip() + "\n"


def _nothing_opened(report: CycleReport, summary: CycleSummary) -> str:
    """Why nothing is opened: there is nothing, or what there is is held back, or not everything was looked at."""
    cut = [line.name for line in report.observers if line.status == "unavailable" or line.unchecked]
    blind = f" Not everything could be looked at: {', '.join(cut)}, see below." if cut else ""
    if summary.held:
        return f"Nothing, as what it would open is held back, see below.{blind}"
    return f"Nothing. It found nothing worth an issue or a pull request.{blind}"


def _describe_observer(line: ObserverLine) -> str:
    """What an observer saw, and what it could not."""
    found = line.detail or (count_noun(line.signals, "result") if line.status == "ok" else line.status)
    blind = "could not look: " if line.status == "unavailable" else ""
    return "; ".join((f"{blind}{found}", *(f"not checked: {one}" for one in line.unchecked)))


def _thread(thread: ThreadLine, title: str) -> str:
    body = MARKERS.sub("", thread.body).strip()
    if len(body) > THREAD:
        return f"- {title}\n\n"
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>\n\n"
