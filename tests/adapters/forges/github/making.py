"""Every kind of effect, with the request in which it is sent."""

from __future__ import annotations

from collections.abc import Callable

from ralph_mission.mission.model.effects import (
    CloseIssue,
    ClosePull,
    EditComment,
    EditReview,
    Effect,
    Label,
    MergePull,
    OpenPull,
    PostReview,
    PushBranch,
    marker,
)
from ralph_mission.mission.model.ledger import key_of
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import KEY, WHEN, comment, new_file, open_issue

Making = Callable[[GitHubWorld, str], tuple[Effect, tuple[str, str]]]


def new_branch(world: GitHubWorld, kind: str) -> PushBranch:
    base = world.forge.default_branch().sha
    return PushBranch(key_of(kind), f"ralph/{kind}", base, "Fix", WHEN, (new_file(f"{kind}.txt", f"{kind}\n"),))


def new_pull(world: GitHubWorld, kind: str) -> OpenPull:
    assert world.forge.perform(new_branch(world, kind)).status == "done"
    key = key_of(kind, "pull")
    return OpenPull(key, "Fix", f"Why not.\n\n{marker(key)}", f"ralph/{kind}", "main", 1)


def opened_pull(world: GitHubWorld, kind: str) -> int:
    """A pull of ours, made without asking the forge: how it makes them is another test's."""
    world.fake.push(f"ralph/{kind}", {f"{kind}.txt": f"{kind}\n".encode()})
    return world.fake.bot("github-actions[bot]").open_pull(f"ralph/{kind}", "main", "Fix", f"x\n\n{marker(KEY)}")


def an_issue(world: GitHubWorld) -> int:
    return world.human("mara").create_issue("Question", labels=("old",))


def opening_issue(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return open_issue(key_of(kind), kind, ()), ("POST", "/issues")


def commenting(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return comment(an_issue(world), key_of(kind)), ("POST", "/issues/*/comments")


def editing_comment(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    number = an_issue(world)
    made = world.forge.perform(comment(number, key_of(kind)))
    return EditComment(KEY, number, made.number, "Anew"), ("PATCH", "/issues/comments/*")


def editing_opening(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    number = world.forge.perform(open_issue(key_of(kind), kind, ())).number
    return EditComment(KEY, number, 0, "Anew"), ("PATCH", "/issues/*")


def labelling(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return Label(KEY, an_issue(world), ("old", "bug")), ("POST", "/issues/*/labels")


def unlabelling(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return Label(KEY, an_issue(world), (), ("old",)), ("DELETE", "/issues/*/labels/*")


def assigning(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return Label(KEY, an_issue(world), assign=("mara",)), ("POST", "/issues/*/assignees")


def closing_issue(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return CloseIssue(KEY, an_issue(world), "completed"), ("PATCH", "/issues/*")


def opening_pull(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return new_pull(world, kind), ("POST", "/pulls")


def closing_pull(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return ClosePull(KEY, opened_pull(world, kind)), ("PATCH", "/pulls/*")


def reviewing(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    number, key = opened_pull(world, kind), key_of(kind)
    head = world.forge.pull(number).head_sha
    return PostReview(key, number, head, f"Fine.\n\n{marker(key)}"), ("POST", "/pulls/*/reviews")


def editing_review(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    effect, _ = reviewing(world, kind)
    assert isinstance(effect, PostReview)
    made = world.forge.perform(effect)
    return EditReview(KEY, effect.pull, made.number, "Anew"), ("PUT", "/pulls/*/reviews/*")


def merging(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    number = opened_pull(world, kind)
    return MergePull(KEY, number, world.forge.pull(number).head_sha, "squash", "Fix"), ("PUT", "/pulls/*/merge")


MAKING = (
    opening_issue,
    commenting,
    editing_comment,
    editing_opening,
    labelling,
    unlabelling,
    assigning,
    closing_issue,
    opening_pull,
    closing_pull,
    reviewing,
    editing_review,
    merging,
)
