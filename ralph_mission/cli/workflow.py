"""The workflow that `ralph init` writes for a repository on GitHub: `.github/workflows/ralph-loop.yml`.

Everything that goes into it has been checked against a pattern first: nothing here can end a YAML scalar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ralph_mission.cli.workflow_pieces import written
from ralph_mission.gateways.git import Git
from ralph_mission.trouble import Trouble
from ralph_mission.wakers.facts import EVENT
from ralph_mission.wakers.heartbeat import BASELINE, EVERY

PLACE = ".github/workflows/ralph-loop.yml"
UNKNOWN = "this installation does not know which commit of the action it is"
NAMED = "ralph init --action OWNER/NAME@COMMIT (docs/action.md says which)"
LABELS = ("self-hosted",)
_ACTION = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})@([A-Za-z0-9][A-Za-z0-9._/-]{0,127})")
_STEP = re.compile(rf"^ +- id: ralph\n +uses: {_ACTION.pattern}(?=\s|$)", re.M)  # as we write it
_USES = re.compile(r"^[ -]*uses:[ ]*[\"']?([^\s\"'#]+)", re.M)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ON_GITHUB = re.compile(
    r"(?:https?://|ssh://)?(?:[^@/\s]+@)?github\.com[:/]+([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?"
)


@dataclass(frozen=True, slots=True)
class Action:
    """Which action is used: `repository` is owner/name, `ref` a commit, a tag or a branch."""

    repository: str
    ref: str

    @property
    def pinned(self) -> bool:
        """Whether `ref` is a commit, which nobody can move."""
        return bool(_SHA.fullmatch(self.ref))

    def __str__(self) -> str:
        return f"{self.repository}@{self.ref}"


def action_of(text: str | None, present: str = "") -> Action | None:
    """`OWNER/NAME@COMMIT` as given; without one what this installation is, else what our workflow names already.

    None: nobody here knows a commit, and a name is not invented. Raises Trouble (usage).
    """
    if text is None:
        return installed() or _chosen(present)
    named = _ACTION.fullmatch(text)
    if not named or ".." in text:
        raise Trouble(f"--action {text!r} is no action", "write it like owner/name@commit", usage=True)
    action = Action(named[1], named[2])
    if not action.pinned:
        last = f"git ls-remote https://github.com/{action.repository} {action.ref} '{action.ref}^{{}}'"
        raise Trouble(
            f"--action {text}: {action.ref} is no commit, and may move",
            f"give the commit, which is in the last line of: {last}",
            usage=True,
        )
    return action


def _chosen(present: str) -> Action | None:
    found = _STEP.search(present)
    return _pinned(found[1], found[2]) if found else None


def _pinned(repository: str, commit: str) -> Action | None:
    action = Action(repository, commit)
    return action if repository and action.pinned else None


def installed() -> Action | None:
    """The commit on GitHub that this installation was made from; None when nobody can tell.

    pip writes it down; an editable installation runs what its clone has checked out.
    """
    origin = _origin()
    url, vcs, folder = (origin.get(key) for key in ("url", "vcs_info", "dir_info"))
    if isinstance(vcs, dict):
        return _pinned(on_github(str(url)), str(vcs.get("commit_id")))
    if isinstance(folder, dict) and folder.get("editable") and str(url).startswith("file:///"):
        return _checked_out(Path(url2pathname(urlsplit(str(url)).path)))
    return None


def _checked_out(clone: Path) -> Action | None:
    """A clone's commit, when a remote of it on GitHub is known to have it too."""
    try:
        git = Git.open(clone)
    except Trouble:
        return None
    head, top = git.resolve("HEAD"), git.work_tree
    if not head or not top or not top.samefile(clone) or not git.try_text("ls-tree", head, "action.yml"):
        return None  # a repository that something of ours lies in is not ours
    there = (
        repository
        for remote, repository in _remotes(git)
        if git.try_text("for-each-ref", "--count=1", "--contains", head, f"refs/remotes/{remote}/")
    )
    return next((action for repository in there if (action := _pinned(repository, head))), None)


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


def hosted(git: Git) -> str:
    """owner/name of the repository on github.com that this is a clone of, `origin` before any other; "" of none."""
    return next((repository for _, repository in _remotes(git) if repository), "")


def _remotes(git: Git) -> list[tuple[str, str]]:
    """Each remote with its owner/name on github.com, "" elsewhere; `origin` before any other."""
    lines = git.try_text("config", "--local", "--get-regexp", r"^remote\..*\.url$").splitlines()
    pairs = [line.split(" ", 1) for line in lines if " " in line]
    named = [(key.removeprefix("remote.").removesuffix(".url"), on_github(url)) for key, url in pairs]
    return sorted(named, key=lambda remote: remote[0] != "origin")


def uses(text: str) -> tuple[str, ...]:
    """What the steps of a workflow use, in order."""
    return tuple(found[1] for found in _USES.finditer(text))


def loose(used: str) -> bool:
    """Whether what a step uses may change without a commit here: neither of this repository nor pinned."""
    return not used.startswith(("./", "docker://")) and not _SHA.fullmatch(used.rpartition("@")[2])


def labels_in(present: str) -> tuple[str, ...]:
    """The labels that a workflow of ours names already; the default where there is none."""
    found = re.search(r"^    runs-on: \[?([A-Za-z0-9._, -]+)\]?$", present, re.M)
    return labels_of(found[1]) if found else LABELS


def labels_of(text: str) -> tuple[str, ...]:
    """A runner's labels, separated by commas or spaces. Raises Trouble (usage)."""
    labels = tuple(re.split(r"[,\s]+", text.strip(", \t")))
    strange = [label for label in labels if not _LABEL.fullmatch(label)]
    if strange:
        raise Trouble(f"--runner {text!r}: {strange[0]!r} is no label", "write it like self-hosted,linux", usage=True)
    return labels


def runs_on(labels: tuple[str, ...]) -> str:
    """Labels as a workflow says them."""
    return labels[0] if len(labels) == 1 else f"[{', '.join(labels)}]"


def render(action: Action, labels: tuple[str, ...]) -> str:
    """The file."""
    words = {
        "RUNNER": runs_on(labels),
        "ACTION": str(action),
        "EVENT": EVENT,
        "EVERY": EVERY,
        "BASELINE": BASELINE,
    }
    return written(CYCLE, words)


CYCLE = """\
# Ralph looks after this repository: a heartbeat, a hand on the button, or a wake of its own making.
# A wake that comes before the next cycle is due ends within seconds and changes nothing.
RISK
name: ralph-loop

on:
  schedule:
    # The heartbeat asks every 15 minutes whether a cycle is due, off the full hour, when GitHub is busiest.
    - cron: "EVERY"
    # The baseline: every 6 hours, whatever else gets lost.
    - cron: "BASELINE"
  workflow_dispatch:
    inputs:
      staged:
        description: Change nothing, say what would happen
        type: boolean
        default: false
      force:
        description: Run even when no cycle is due
        type: boolean
        default: false
  repository_dispatch:
    types: [EVENT]

NOTHING_BY_DEFAULT

jobs:
  cycle:
    name: One cycle
    runs-on: RUNNER
    timeout-minutes: 60
    # One cycle at a time, and never one cut off half-way. A wake that is lost this way the heartbeat makes up for.
    concurrency:
      group: ralph-loop
      cancel-in-progress: false
    permissions:
      contents: write # the memory branch, ralph/* branches, waking itself by a dispatch
      issues: write # one issue for each mission, labels, comments
      pull-requests: write # opening, answering and, once approved, merging pull requests
ALIVE
KILL_SWITCH
    steps:
      # It checks the repository out itself, and only when a cycle is due.
      - id: ralph
        uses: ACTION
        with:
          staged: ${{ inputs.staged }}
          force: ${{ inputs.force }}
          # Each of these enables what it is for and is optional: Settings, Secrets and variables, Actions.
          anthropic-api-key: ${{ secrets.ANTHROPIC_API_KEY }}
          database-url: ${{ secrets.DATABASE_URL }}
          twitter-api-key: ${{ secrets.TWITTER_API_KEY }}
          twitter-api-secret: ${{ secrets.TWITTER_API_SECRET }}
          twitter-access-token: ${{ secrets.TWITTER_ACCESS_TOKEN }}
          twitter-access-token-secret: ${{ secrets.TWITTER_ACCESS_TOKEN_SECRET }}
          twitter-bearer-token: ${{ secrets.TWITTER_BEARER_TOKEN }}
          telegram-bot-token: ${{ secrets.TELEGRAM_BOT_TOKEN }}
          telegram-channel-id: ${{ secrets.TELEGRAM_CHANNEL_ID }}
          discord-webhook-url: ${{ secrets.DISCORD_WEBHOOK_URL }}
          discord-bot-token: ${{ secrets.DISCORD_BOT_TOKEN }}
"""
