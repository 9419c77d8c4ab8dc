"""Branch protection and rulesets that would stop a push of ours or a merge. Who may pass them cannot be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ralph_mission.cli.checks_line import Check, Hub, Made, unseen

RULES = "Settings → Rules"
BRANCHES = "Settings → Branches"
OURS = "ralph/any"  # stands for the branches of missions; rules are asked for by name, there or not
PUSH = {
    "creation": "making it",
    "update": "pushing to it",
    "pull_request": "pushing without a pull request",
    "required_status_checks": "pushing before checks have passed",
    "required_deployments": "pushing before a deployment",
    "required_signatures": "commits without a signature",
    "branch_name_pattern": "its name, perhaps",
    "commit_message_pattern": "commit messages, perhaps",
    "commit_author_email_pattern": "the author's address, perhaps",
    "committer_email_pattern": "the committer's address, perhaps",
    "file_path_restriction": "some paths",
    "file_extension_restriction": "some kinds of files",
    "workflows": "pushing before a workflow has run",
    "code_scanning": "pushing before a scan",
}
"""Ruleset rules that a push of ours runs into, by GitHub's names. `deletion`, `non_fast_forward` do not matter."""


def default_branch(hub: Hub, repository: Mapping[str, Any]) -> Made:
    """Whether an approved pull can be merged through the API."""
    name = str(repository.get("default_branch"))
    rules, protection = _rules(hub, name), _protection(hub, name)
    if rules is None:
        yield unseen("default branch", RULES)
    obstacles = [*_obstacles(hub, rules or {}), *_lock(protection or {})]
    for found, mend in obstacles:
        yield Check("default branch", "wrong", f"{name}: {found}", mend)
    if (count := _approvals(rules or {}, protection or {})) > 1:
        yield Check("default branch", "note", f"{name} needs {count} approvals before anything is merged")
    if not obstacles:
        yield _protected(hub, name, protection is not None)


def _protection(hub: Hub, name: str) -> Mapping[str, Any] | None:
    """A branch's own protection; None when there is none, or none that can be seen."""
    status, protection = hub.get(f"/branches/{quote(name, safe='')}/protection")
    return protection if status == 200 and isinstance(protection, dict) else None


def _obstacles(hub: Hub, rules: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "merge_queue" in rules:
        yield (
            "merges wait in a queue, and Ralph merges at once",
            f"take the merge queue out in {RULES}, or merge by hand",
        )
    if "update" in rules:
        yield "only those who may pass its rules can merge", f"let Ralph's account bypass the rule in {RULES}"
    if "required_linear_history" in rules and hub.merge_method == "merge":
        yield "its history must be linear", "set forge.merge_method: squash in ralph.yml"
    allowed = _parameters(rules, "pull_request").get("allowed_merge_methods")
    if isinstance(allowed, list) and allowed and hub.merge_method not in allowed:
        yield f"its rules allow merging by {', '.join(map(str, allowed))} alone", "set forge.merge_method in ralph.yml"


def _lock(protection: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if (protection.get("lock_branch") or {}).get("enabled"):
        yield "it is locked: nobody can merge", f"unlock it in {BRANCHES}"
    if protection.get("restrictions"):
        yield "only those who are named may push or merge", f"name Ralph's account in {BRANCHES}"


def _approvals(rules: Mapping[str, Any], protection: Mapping[str, Any]) -> int:
    reviews = protection.get("required_pull_request_reviews") or {}
    counts = (said.get("required_approving_review_count") for said in (_parameters(rules, "pull_request"), reviews))
    return max((count for count in counts if isinstance(count, int)), default=0)


def _protected(hub: Hub, name: str, seen: bool) -> Check:
    status, branch = hub.get(f"/branches/{quote(name, safe='')}")
    if status != 200 or not isinstance(branch, dict):
        return unseen("default branch", BRANCHES)
    if not branch.get("protected"):
        return Check("default branch", "ok", f"{name}, not protected; Ralph never pushes to it")
    if not seen:
        return Check("default branch", "note", f"{name} is protected; how, cannot be seen with this token",
                     f"look at {BRANCHES}: Ralph's account must be able to merge what is approved")  # fmt: skip
    return Check("default branch", "ok", f"{name}, protected; nothing there keeps an approved pull from being merged")


def our_branches(hub: Hub, _: Mapping[str, Any]) -> Made:
    """Whether a mission's branch can be pushed."""
    rules = _rules(hub, OURS)
    if rules is None:
        yield unseen("branches ralph/*", RULES)
    elif stops := _stops(rules):
        yield Check("branches ralph/*", "wrong", f"rules forbid {stops}", f"exclude `ralph/**` in {RULES}")
    else:
        yield Check("branches ralph/*", "ok", "no rule stops a push")


def memory_branch(hub: Hub, _: Mapping[str, Any]) -> Made:
    """Whether memory can be pushed. Where it was before, whoever pushed it may pass the rules."""
    name = hub.memory_branch
    rules = _rules(hub, name)
    status, branch = hub.get(f"/branches/{quote(name, safe='')}")
    there = status == 200 and isinstance(branch, dict)
    if rules is None:
        yield unseen("memory branch", RULES)
    elif stops := _stops(rules):
        yield Check("memory branch", "note" if there else "wrong", f"rules forbid {stops} on {name}",
                    f"exclude `{name}` in {RULES}")  # fmt: skip
    elif there and branch.get("protected"):
        yield Check("memory branch", "note", f"{name} is protected: a push may be refused (GH006)",
                    f"take it out of the rule in {BRANCHES}, unless its pushes go through")  # fmt: skip
    else:
        yield Check("memory branch", "ok", f"{name}, {'there' if there else 'not there yet'}; no rule stops a push")


def _rules(hub: Hub, branch: str) -> Mapping[str, Any] | None:
    """The active rules for a branch by their type; None when they cannot be seen."""
    status, rules = hub.get(f"/rules/branches/{quote(branch, safe='')}")
    if status != 200 or not isinstance(rules, list):
        return None
    return {str(rule.get("type")): rule for rule in rules if isinstance(rule, dict)}


def _parameters(rules: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return (rules.get(kind) or {}).get("parameters") or {}


def _stops(rules: Mapping[str, Any]) -> str:
    return ", ".join(words for kind, words in PUSH.items() if kind in rules)
