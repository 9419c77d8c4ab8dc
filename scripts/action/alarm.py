"""Count a wake of the action that failed before ralph could start: `alarm.py prepare|sweep|checkout`.

Words, counter and issue are those of every alarm (ralph_mission/flows/alarm.py); only the way to GitHub is one that
needs nothing installed. Standard library, and what of ralph_mission needs no more.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from ralph_mission.cli.alarmed import unreached
from ralph_mission.gateways.place import Place, place
from ralph_mission.mission.effects import EditComment, OpenIssue, Receipt
from ralph_mission.trouble import Missing, Trouble

WHAT = {
    "prepare": Trouble("ralph cannot be started: preparing for it fails", "read the step Prepare of the run"),
    "sweep": Trouble("what an earlier job left cannot be removed", "read the step Sweep of the run"),
    "checkout": Trouble("the repository cannot be checked out", "read the step Check out of the run"),
}
PAGES = 10  # of issues and pulls, newest first, in which an alarm is looked for
TIMEOUT = 30  # seconds


@dataclass(frozen=True, slots=True)
class Standing:
    """An issue as far as an alarm looks: open or closed."""

    state: str


class Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody: what comes with the token goes to GitHub alone."""

    def redirect_request(self, *_: Any) -> None:
        """No other place."""


class Bare:
    """As much of a forge as an alarm needs, that is a mutation once and reads that may fail."""

    def __init__(self, where: Place) -> None:
        self.where, self.opener = where, urllib.request.build_opener(Stay())

    def find(self, effect: OpenIssue) -> Receipt | None:
        """The alarm that is there already. Raises OSError."""
        for page in range(1, PAGES + 1):
            threads = self._ask("GET", f"/issues?state=all&per_page=100&page={page}")
            for thread in threads:
                if f" key={effect.key} " in (thread["body"] or "") and _ours(thread):
                    return Receipt(effect.key, "adopted", thread["number"])
            if len(threads) < 100:
                return None
        return None

    def issue(self, number: int) -> Standing:
        """Whether it stands. Raises Missing, OSError."""
        try:
            told = self._ask("GET", f"/issues/{number}")
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                raise Missing(f"there is no issue #{number}", "nothing") from None
            raise
        return Standing(told["state"])

    def perform(self, effect: OpenIssue | EditComment) -> Receipt:
        """Open one issue, or rewrite what it says; nothing else rings."""
        try:
            if isinstance(effect, OpenIssue):
                told = self._ask("POST", "/issues", {"title": effect.title, "body": effect.body})
            else:
                told = self._ask("PATCH", f"/issues/{effect.issue}", {"body": effect.body})
            return Receipt(effect.key, "done", told["number"])
        except urllib.error.HTTPError as error:
            refused = error.code < 500
            return Receipt(effect.key, "failed" if refused else "unknown", detail=f"GitHub answers {error.code}")
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            return Receipt(effect.key, "unknown", detail=type(error).__name__)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.where.api}/repos/{self.where.repository}{path}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {self.where.token}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "ralph_mission",
            },
            method=method,
        )
        with self.opener.open(request, timeout=TIMEOUT) as answer:
            return json.load(answer)


def _ours(thread: dict[str, Any]) -> bool:
    """Whether a bot or somebody of the repository wrote it: a stranger's copy of the marker silences nothing."""
    author = thread["user"] or {}
    return author.get("type") == "Bot" or thread["author_association"] in ("OWNER", "MEMBER", "COLLABORATOR")


def main(failed: str) -> None:
    """Count it. Raises Trouble where GitHub is not named."""
    here = place(os.environ)
    unreached(WHAT[failed], Bare(here), (here.token,), early=failed == "prepare")  # type: ignore[arg-type]  # enough of one


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Trouble as trouble:
        sys.exit(f"the alarm could not be seen to: {trouble.what}")
