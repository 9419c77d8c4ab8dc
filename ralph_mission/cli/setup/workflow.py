"""The workflows that `ralph init` writes for a repository on GitHub: the loop's, and those in which agents act."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.wakers.ways import EVENT, PUBLISH, REVIEW, WORK
from ralph_mission.cli.setup_files import render_template
from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

PLACES: Mapping[str, str] = {
    "cycle": ".github/workflows/ralph-loop.yml",
    "work": ".github/workflows/ralph-work.yml",
    "review": ".github/workflows/ralph-review.yml",
    "publish": ".github/workflows/ralph-publish.yml",
}
"""Where each stands, by the mode of the action that it runs."""
LISTENS: Mapping[str, str] = {"cycle": EVENT, "work": WORK, "review": REVIEW, "publish": PUBLISH}
"""What wakes each."""
UNKNOWN = "this installation does not know which commit of the action it is"
NAMED = "ralph init --action OWNER/NAME@COMMIT (docs/action.md says which)"
LABELS = ("self-hosted",)
_ACTION = compile_regex(r"([A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})@([A-Za-z0-9][A-Za-z0-9._/-]{0,127})")
_STEP = compile_regex(rf"^ +- id: ralph\n +uses: {_ACTION.pattern}(?=\s|$)", re.M)  # as we write it
_LABEL = compile_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA = compile_regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ON_GITHUB = compile_regex(
    r"(?:https?://|ssh://)?(?:[^@/\s]+@)?github\.com[:/]+([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?"
)


@dataclass(frozen=True, slots=True)
class ActionReference:
    """Which action is used: `repository` is owner/name, `ref` a commit, a tag or a branch."""

    repository: str
    ref: str

    @property
    def pinned(self) -> bool:
        """Whether `ref` is a commit, which nobody can move."""
        return bool(_SHA.fullmatch(self.ref))

    def __str__(self) -> str:
        return f"{self.repository}@{self.ref}"


def action_of(text: str | None, present: str = "") -> ActionReference | None:
    """`OWNER/NAME@COMMIT` as given; without one what this installation is, else what our workflow names already.

    None: nobody here knows a commit, and a name is not invented. Raises UserError (usage).
    """
    if text is None:
        return installed_action() or _present_action(present)
    named = _ACTION.fullmatch(text)
    if not named or ".." in text:
        raise UserError(f"--action {text!r} is no action", "write it like owner/name@commit", usage=True)
    action = ActionReference(named[1], named[2])
    if not action.pinned:
        last = f"git ls-remote https://github.com/{action.repository} {action.ref} '{action.ref}^{{}}'"
        raise UserError(
            f"--action {text}: {action.ref} is no commit, and may move",
            f"give the commit, which is in the last line of: {last}",
            usage=True,
        )
    return action


def _present_action(present: str) -> ActionReference | None:
    found = _STEP.search(present)
    return _pinned_action(found[1], found[2]) if found else None


def _pinned_action(repository: str, commit: str) -> ActionReference | None:
    action = ActionReference(repository, commit)
    return action if repository and action.pinned else None


def installed_action() -> ActionReference | None:
    """The commit on GitHub that this installation was made from; None when nobody can tell.

    pip writes it down; an editable installation runs what its clone has checked out.
    """
    origin = _origin()
    url, vcs, folder = (origin.get(key) for key in ("url", "vcs_info", "dir_info"))
    if isinstance(vcs, dict):
        return _pinned_action(on_github(str(url)), str(vcs.get("commit_id")))
    if isinstance(folder, dict) and folder.get("editable") and str(url).startswith("file:///"):
        return _checked_out(Path(url2pathname(urlsplit(str(url)).path)))
    return None


def _checked_out(clone: Path) -> ActionReference | None:
    """A clone's commit, when a remote of it on GitHub is known to have it too."""
    try:
        git = Git.open(clone)
    except UserError:
        return None
    head, top = git.resolve("HEAD"), git.work_tree
    if not head or not top or not top.samefile(clone) or not git.try_text("ls-tree", head, "action.yml"):
        return None  # a repository that something of ours lies in is not ours
    there = (
        repository
        for remote, repository in _remotes(git)
        if git.try_text("for-each-ref", "--count=1", "--contains", head, f"refs/remotes/{remote}/")
    )
    return next((action for repository in there if (action := _pinned_action(repository, head))), None)


def _origin() -> Mapping[str, object]:
    try:
        told = json.loads(distribution("ralph-mission").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError, OSError):
        return {}
    return told if isinstance(told, dict) else {}


def on_github(url: str) -> str:
    """owner/name of a remote on github.com, "" of any other."""
    found = _ON_GITHUB.fullmatch(url)
    return found[1] if found else ""


def github_name(git: Git) -> str:
    """owner/name of the repository on github.com that this is a clone of, `origin` before any other; "" of none."""
    return next((repository for _, repository in _remotes(git) if repository), "")


def _remotes(git: Git) -> list[tuple[str, str]]:
    """Each remote with its owner/name on github.com, "" elsewhere; `origin` before any other."""
    lines = git.try_text("config", "--local", "--get-regexp", r"^remote\..*\.url$").splitlines()
    pairs = [line.split(" ", 1) for line in lines if " " in line]
    named = [(key.removeprefix("remote.").removesuffix(".url"), on_github(url)) for key, url in pairs]
    return sorted(named, key=lambda remote: remote[0] != "origin")


def labels_in(present: str) -> tuple[str, ...]:
    """The labels that a workflow of ours names already; the default where there is none."""
    found = re.search(r"^    runs-on: \[?([A-Za-z0-9._, -]+)\]?$", present, re.M)
    return labels_of(found[1]) if found else LABELS


def labels_of(text: str) -> tuple[str, ...]:
    """A runner's labels, separated by commas or spaces. Raises UserError (usage)."""
    labels = tuple(re.split(r"[,\s]+", text.strip(", \t")))
    strange = [label for label in labels if not _LABEL.fullmatch(label)]
    if strange:
        raise UserError(f"--runner {text!r}: {strange[0]!r} is no label", "write it like self-hosted,linux", usage=True)
    return labels


def runs_on(labels: tuple[str, ...]) -> str:
    """Labels as a workflow says them."""
    return labels[0] if len(labels) == 1 else f"[{', '.join(labels)}]"


def render_workflow(mode: str, action: ActionReference, labels: tuple[str, ...]) -> str:
    """The file of a mode. What goes into it was checked against a pattern: nothing can end a YAML scalar."""
    return render_template(Path(PLACES[mode]).name, RUNNER=runs_on(labels), ACTION=str(action))
