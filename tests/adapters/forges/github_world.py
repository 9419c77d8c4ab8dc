"""A GitHub forge in a clone, before a fake GitHub over a real bare repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ralph_mission.adapters.forges.github import GitHubForge, connect
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import RepositoryPlace
from tests.fakes.github.people import Person
from tests.fakes.github.server import FakeGitHub
from tests.helpers import copy_bare, git, make_repo


@dataclass
class GitHubWorld:
    """The contract's `World` for GitHub."""

    fake: FakeGitHub
    clone: Path
    token: str
    notes: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.forge = self.connected()

    @cached_property
    def git(self) -> Git:
        """The bare repository behind it, opened when a test looks there."""
        return Git.open(self.fake.bare)

    def connected(self, token: str = "", staged: bool = False, timeout: float = 300, pace: float = 0) -> GitHubForge:
        """The forge of a new cycle. Time passes when it sleeps; nobody waits."""
        place = RepositoryPlace(self.fake.repository, self.fake.api_url, self.fake.url, token or self.token)
        return connect(
            Git.open(self.clone),
            place,
            now=lambda: self.fake.clock.now,
            note=self.notes.append,
            staged=staged,
            sleep=self.sleep,
            pace=pace,
            timeout=timeout,
        )

    def sleep(self, seconds: float) -> None:
        """As if `seconds` had passed."""
        self.slept.append(seconds)
        self.fake.clock.advance(seconds)

    def human(self, login: str) -> Person:
        """Somebody with write access."""
        return self.fake.person(login)

    def push(self, branch: str, files: Mapping[str, bytes | None]) -> str:
        """Somebody's commit on top of a branch, made from main when there is none."""
        return self.fake.push(branch, files)


@contextmanager
def github(folder: Path) -> Iterator[GitHubWorld]:
    """A fake GitHub and a clone of its repository, as its own Actions see it."""
    clone = make_repo(folder / "clone")
    with FakeGitHub(copy_bare(clone, folder / "bare.git")) as fake:
        yield GitHubWorld(fake, clone, fake.token())


def bare_repository(folder: Path) -> Path:
    """A bare repository with README.md on main."""
    return copy_bare(make_repo(folder / "start"), folder / "bare.git")


def clone_of(bare: Path, place: Path) -> Path:
    """A clone without a remote, as far behind as a checkout may be."""
    git(bare, "clone", "--quiet", str(bare), str(place))
    git(place, "remote", "remove", "origin")
    return place


def kept_file(world: GitHubWorld) -> Path:
    """Where the forge keeps what it read for its next cycle."""
    return world.clone / ".git" / "ralph" / "github.json"
