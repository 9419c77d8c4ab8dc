"""A repository with main checked out, and what a merge makes of its work tree."""

from __future__ import annotations

from pathlib import Path

from tests.adapters.forges.conftest import LocalWorld
from tests.contract.forge_world import Opened, merge_pull
from tests.helpers import git, make_repo


def checked_out(path: Path) -> Path:
    """A repository with main checked out."""
    return make_repo(path, {"README.md": "# Sample\n", ".gitignore": "*.log\n", "a/b.txt": "b\n"})


def state(repo: Path) -> tuple[str, str]:
    return git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")


def in_sync(tree: Path, world: LocalWorld) -> bool:
    """Whether the tree shows the tip of main and nothing else."""
    return state(tree) == (world.git.resolve("refs/heads/main"), "")


def refusal(world: LocalWorld, opened: Opened, tree: Path) -> str:
    """Why the merge was refused, having seen that it changed nothing at all."""
    before = state(tree), world.git.resolve("refs/heads/main")
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.status == "failed"
    assert (state(tree), world.git.resolve("refs/heads/main")) == before
    assert world.forge.pull(opened.number).state == "open"
    return receipt.detail
