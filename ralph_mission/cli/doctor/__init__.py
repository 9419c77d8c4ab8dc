"""What `ralph doctor` looks at: a line of it, and the tools of every check on GitHub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from ralph_mission.adapters.git.git import GitError
from ralph_mission.errors import Unset, UserError
from ralph_mission.values import dataclass

UNUSED = "not configured"
Get = Callable[[str], tuple[int, Any]]
"""Status and JSON of a read: "/labels" is below the repository, "//user" below the API. May raise UserError."""


@dataclass(frozen=True, slots=True)
class DoctorLine:
    """One line of the doctor. `status`: ok, note (worth knowing), wrong (fix it)."""

    name: str
    status: str
    found: str
    hint: str = ""

    @property
    def unused(self) -> bool:
        """Whether it is about an optional feature that is switched off."""
        return self.found == UNUSED


@dataclass(frozen=True, slots=True)
class Hub:
    """A repository on GitHub as the checks see it. `workflow`: the text of the one that runs us, "" for none.

    `agents`: the texts of those in which agents act, by the names of their files.
    """

    get: Get
    account: str
    now: datetime
    workflow: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    agents: Mapping[str, str] = field(default_factory=dict)

    @property
    def token(self) -> str:
        """What kind it is: app, workflow, fine-grained, classic, oauth, app-user; "" when unknown."""
        if self.environment.get("GITHUB_APP_PRIVATE_KEY"):
            return "app"
        token = self.environment.get("GITHUB_TOKEN", "")
        return next((kind for prefix, kind in PREFIXES.items() if token.startswith(prefix)), "")

    @property
    def personal(self) -> bool:
        """Whether the token acts in a person's name."""
        return self.token not in ("app", "workflow", "")


PREFIXES = {
    "ghs_": "workflow",
    "github_pat_": "fine-grained",
    "ghp_": "classic",
    "gho_": "oauth",
    "ghu_": "app-user",
}
"""GitHub's own token formats (docs.github.com, "Token types")."""

DoctorLines = Iterable[DoctorLine]

LATER = ("nothing was lost", "the next wake tries again")  # right in a cycle, no help to a person who asks
AGAIN = "then: ralph doctor"
NOW = {
    "forge": f"wait some minutes, {AGAIN} (https://www.githubstatus.com lists outages)",
    "network": f"check the network, the proxy, and GITHUB_API_URL if you set it, {AGAIN}",
}
"""By who must act, if a cycle would only retry."""


def unseen(name: str, where: str) -> DoctorLine:
    """A check that cannot be made with this token; `where` a person sees it."""
    return DoctorLine(name, "note", "cannot be seen with this token", f"look at {where}")


def off(name: str, how: str) -> DoctorLine:
    """What nobody asked for, and how to."""
    return DoctorLine(name, "note", UNUSED, how)


def wrong(name: str, problem: UserError, prefix: str = "") -> DoctorLine:
    """What keeps something from working."""
    return DoctorLine(name, "wrong", f"{prefix}{problem.what}", hint_of(problem))


def attempt(name: str, check: DoctorLines, prefix: str = "broken: ") -> Iterator[DoctorLine]:
    """The lines of a check until it fails, and then why, under this name."""
    try:
        yield from check
    except Unset as unset:
        yield DoctorLine(name, "note", unset.what, unset.next_step)
    except UserError as problem:
        yield wrong(name, problem, prefix)
    except GitError as error:
        yield DoctorLine(name, "wrong", str(error), error.next_step("fix the repository: git fsck"))


def hint_of(problem: UserError) -> str:
    """What to do about it now. Cycles may leave it to the next wake; who asks the doctor wants to know today."""
    clauses = problem.next_step.split("; ")
    rest = [clause for clause in clauses if clause not in LATER]
    return "; ".join([*rest, NOW.get(problem.who, AGAIN)] if len(rest) < len(clauses) else rest)
