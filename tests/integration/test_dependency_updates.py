"""A whole cycle over a repository whose dependencies are behind: one pull, of nothing but versions, unasked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge
from tests import packages_world as world
from tests.fakes.registry import Registry, serving
from tests.helpers import cli_here, git, make_repo
from tests.integration.dying import dying

CONFIG = "observers: {dependencies: {}}\nhands: {fixers: []}\n"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(world.young()) as served:
        yield served


def cycle(repo: Path, registry: Registry, cached: bool = True) -> dict:
    if not cached:
        shutil.rmtree(repo / ".ralph" / "cache")
    told = {"OSV_API_URL": registry.url, "PIP_INDEX_URL": registry.index, "npm_config_registry": registry.node}
    done = cli_here("cycle", "--json", "--force", repo=repo, env=told)
    assert done.code == 0, done.err
    return done.json


def cycle_here(repo: Path, registry: Registry) -> None:
    shutil.rmtree(repo / ".ralph" / "cache", ignore_errors=True)
    told = {"OSV_API_URL": registry.url, "PIP_INDEX_URL": registry.index, "npm_config_registry": registry.node}
    done = cli_here("cycle", "--json", "--force", repo=repo, env=told)
    assert done.code == 0, done.err


@pytest.mark.long  # ten seconds
def test_patch_bumps_become_one_pull_that_is_merged_when_approved(tmp_path: Path, registry: Registry) -> None:
    files = world.locked_by_uv(tmp_path / "uv", registry)
    repo = make_repo(tmp_path / "repo", {**files, "ralph.yml": CONFIG})
    world.grow(registry)
    registry.advise("GHSA-1111-2222-3333", "PyPI", "buoy", ["1.4.2"], "1.4.3")
    report = cycle(repo, registry)
    allowed = [d for d in report["decisions"] if d["kind"] == "dependency-patch"]
    assert [(d["action"], d["tier"], d["verdict"]) for d in allowed] == [("open-fix", "low", "allow")]
    assert report["urgency"] == "high"
    (pull,) = cli_here("pr", "list", "--json", repo=repo).json["pulls"]
    assert pull["title"] == "Apply 4 patch-level updates in 2 files"
    changed = git(repo, "diff", "--name-only", "main", pull["head"]).splitlines()
    assert changed == ["pyproject.toml", "uv.lock"]
    added = git(repo, "diff", "-U0", "main", pull["head"], "--", "pyproject.toml").splitlines()[5:]
    assert added == ['-  "buoy==1.4.2",  # pinned, see above', '+  "buoy==1.4.4",  # pinned, see above']
    registry.python["buoy"]["1.4.5"] = {}
    again = cycle(repo, registry, cached=False)  # newer still: what is at work is not proposed beside it
    assert not any(d["kind"] == "dependency-patch" for d in again["decisions"])
    assert cli_here("pr", "approve", str(pull["number"]), repo=repo).code == 0
    cycle(repo, registry)
    assert 'name = "buoy"\nversion = "1.4.4"' in git(repo, "show", "main:uv.lock")
    (decision,) = (d for d in cycle(repo, registry)["decisions"] if d["kind"] == "dependency-patch")
    assert decision["verdict"] == "allow"  # buoy 1.4.5, now that its line is free


def test_larger_steps_are_one_list(tmp_path: Path, registry: Registry) -> None:
    repo = make_repo(tmp_path / "repo", {"requirements.txt": "anchor==0.3.2\n", "ralph.yml": CONFIG})
    world.grow(registry)
    (decision,) = (d for d in cycle(repo, registry)["decisions"] if d["verdict"] == "allow")
    assert (decision["kind"], decision["action"], decision["tier"]) == ("dependency", "monitor", "low")
    assert cli_here("pr", "list", "--json", repo=repo).json["pulls"] == []


def test_settings_for_a_bot_are_a_pull_request_after_a_yes_and_a_name_with_a_scope_stays_whole(
    tmp_path: Path, registry: Registry
) -> None:
    files = {
        ".github/CONTRIBUTING.md": "# Fine\n",
        "package.json": '{"dependencies": {"@harbour/pilot": "0.2.0", "buoy": "1.0.0"}}\n',
        "ralph.yml": CONFIG,
    }
    repo = make_repo(tmp_path / "repo", files)
    registry.npm["@harbour/pilot"]["0.3.0"] = {}
    registry.npm["buoy"] = {"1.0.0": {}, "2.0.0": {}}
    (decision,) = (d for d in cycle(repo, registry)["decisions"] if d["verdict"] == "allow")
    assert (decision["kind"], decision["action"], decision["tier"]) == ("update-bot", "open-proposal", "high")
    assert cli_here("pr", "list", "--json", repo=repo).json["pulls"] == []
    (issue,) = cli_here("issue", "list", "--json", repo=repo).json["issues"]
    shown = cli_here("issue", "show", str(issue["number"]), repo=repo).out
    assert "\n@harbour/pilot  0.2.0  0.3.0  major  production    0 files\n" in shown
    assert cli_here("issue", "label", str(issue["number"]), "ralph:approved", repo=repo).code == 0
    cycle(repo, registry)
    (pull,) = cli_here("pr", "list", "--json", repo=repo).json["pulls"]
    assert git(repo, "diff", "--name-only", "main", pull["head"]).splitlines() == [".github/dependabot.yml"]


def test_a_newer_release_makes_no_second_pull_beside_one_that_was_cut_off(tmp_path: Path, registry: Registry) -> None:
    repo = make_repo(tmp_path / "repo", {"requirements.txt": "buoy==1.4.2\n", "ralph.yml": CONFIG})
    registry.python["buoy"]["1.4.3"] = {}
    with dying(2, ((LocalForge, "perform"),)) as death:  # the branch stands, and nothing was written down
        cycle_here(repo, registry)
    assert death.moments[-1] == "after LocalForge.perform(PushBranch)" and git(repo, "branch", "--list", "ralph/*")
    registry.python["buoy"]["1.4.9"] = {}
    for _ in range(2):
        cycle_here(repo, registry)
    (pull,) = cli_here("pr", "list", "--json", repo=repo).json["pulls"]
    assert pull["state"] == "open"
    assert "buoy==1.4.9" in git(repo, "show", f"{pull['head']}:requirements.txt")  # what was judged is what is sent
