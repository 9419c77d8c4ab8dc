"""Branch protection and rulesets that would stop a push of ours or a merge. Who may pass them cannot be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ralph_mission.cli.checks_line import Check, Hub, Made, unseen
from ralph_mission.report.lines import counted

Rules = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rules of a branch by GitHub's names; two rulesets may each have one of the same kind."""
JOB = "github-actions[bot]"  # whose the job's own token is
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


@dataclass(frozen=True, slots=True)
class Demands:
    """What a branch asks of a pull before it is merged, by its rulesets and by its own protection together."""

    approvals: int = 0
    checks: tuple[str, ...] = ()
    signed: bool = False

    def __str__(self) -> str:
        names = f"the check{'' if len(self.checks) == 1 else 's'} {', '.join(self.checks)}"
        approvals = counted(self.approvals, "approval")
        asked = ((self.approvals, approvals), (self.checks, names), (self.signed, "signed commits"))
        return ", ".join(words for there, words in asked if there)


def default_branch(hub: Hub, repository: Mapping[str, Any]) -> Made:
    """Whether an approved pull can be merged through the API, and what it takes."""
    name = str(repository.get("default_branch"))
    seen, protection, branch = _rules(hub, name), _protection(hub, name), _branch(hub, name)
    if seen is None:
        yield unseen("default branch", RULES)
    rules = seen or {}
    demands = _demands(rules, protection or {}, branch or {})
    obstacles = [*_obstacles(hub, rules), *_lock(protection or {}), *_unsigned(hub, demands)]
    for found, mend in obstacles:
        yield Check("default branch", "wrong", f"{name}: {found}", mend)
    yield from _notes(hub, name, demands)
    if not obstacles:
        yield _protected(name, branch, protection is not None, demands)


def _protection(hub: Hub, name: str) -> Mapping[str, Any] | None:
    """A branch's own protection; None when there is none, or none that can be seen."""
    status, protection = hub.get(f"/branches/{quote(name, safe='')}/protection")
    return protection if status == 200 and isinstance(protection, dict) else None


def _branch(hub: Hub, name: str) -> Mapping[str, Any] | None:
    status, branch = hub.get(f"/branches/{quote(name, safe='')}")
    return branch if status == 200 and isinstance(branch, dict) else None


def _demands(rules: Rules, protection: Mapping[str, Any], branch: Mapping[str, Any]) -> Demands:
    reviews = [*_parameters(rules, "pull_request"), protection.get("required_pull_request_reviews") or {}]
    counts = [said.get("required_approving_review_count") for said in reviews]
    signed = "required_signatures" in rules or bool((protection.get("required_signatures") or {}).get("enabled"))
    approvals = max((count for count in counts if isinstance(count, int)), default=0)
    return Demands(approvals, tuple(dict.fromkeys(_checks(rules, branch))), signed)


def _checks(rules: Rules, branch: Mapping[str, Any]) -> Iterator[str]:
    """Names of the checks that must pass. Those of a branch's own protection stand in the branch, for all to read."""
    for said in _parameters(rules, "required_status_checks"):
        yield from (str(check.get("context")) for check in said.get("required_status_checks") or ())
    required = (branch.get("protection") or {}).get("required_status_checks") or {}
    yield from map(str, required.get("contexts") or ())


def _obstacles(hub: Hub, rules: Rules) -> Iterator[tuple[str, str]]:
    if "merge_queue" in rules:
        yield (
            "merges wait in a queue, and Ralph merges at once",
            f"take the merge queue out in {RULES}, or merge by hand",
        )
    if "update" in rules:
        yield "only those who may pass its rules can merge", f"let Ralph's account bypass the rule in {RULES}"
    if "required_linear_history" in rules and hub.merge_method == "merge":
        yield "its history must be linear", "set forge.merge_method: squash in ralph.yml"
    for allowed in (said.get("allowed_merge_methods") for said in _parameters(rules, "pull_request")):
        if isinstance(allowed, list) and allowed and hub.merge_method not in allowed:
            only = ", ".join(map(str, allowed))
            yield f"its rules allow merging by {only} alone", "set forge.merge_method in ralph.yml"


def _lock(protection: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if (protection.get("lock_branch") or {}).get("enabled"):
        yield "it is locked: nobody can merge", f"unlock it in {BRANCHES}"
    if protection.get("restrictions"):
        yield "only those who are named may push or merge", f"name Ralph's account in {BRANCHES}"


def _unsigned(hub: Hub, demands: Demands) -> Iterator[tuple[str, str]]:
    # A squash is one commit that GitHub makes and signs; a merge brings ours along, which nobody has signed.
    if demands.signed and hub.merge_method == "merge":
        yield "it takes signed commits only, and Ralph's are not", "set forge.merge_method: squash in ralph.yml"


def _notes(hub: Hub, name: str, demands: Demands) -> Iterator[Check]:
    if demands.approvals > 1:
        yield Check("default branch", "note", f"{name} needs {demands.approvals} approvals before anything is merged")
    if demands.checks and hub.account == JOB:
        found = f"{name} needs {Demands(checks=demands.checks)}; no workflow starts for pulls of the job's own token"
        yield Check("default branch", "note", found, "if a workflow makes them: give the action another github-token")


def _protected(name: str, branch: Mapping[str, Any] | None, seen: bool, demands: Demands) -> Check:
    if branch is None:
        return unseen("default branch", BRANCHES)
    if not branch.get("protected"):
        return Check("default branch", "ok", f"{name}, not protected; Ralph never pushes to it")
    takes = f"; a merge takes {demands}" if str(demands) else ""
    if not seen and (branch.get("protection") or {}).get("enabled", True):  # not by rulesets alone, which all may read
        found = f"{name} is protected; how, cannot be seen with this token{takes}"
        return Check(
            "default branch",
            "note",
            found,
            f"look at {BRANCHES}: Ralph's account must be able to merge what is approved",
        )
    return Check(
        "default branch", "ok", f"{name}, protected{takes}; nothing there keeps an approved pull from being merged"
    )


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
    rules, branch = _rules(hub, name), _branch(hub, name)
    if rules is None:
        yield unseen("memory branch", RULES)
    elif stops := _stops(rules):
        yield Check(
            "memory branch",
            "note" if branch else "wrong",
            f"rules forbid {stops} on {name}",
            f"exclude `{name}` in {RULES}",
        )
    elif branch and branch.get("protected"):
        yield Check(
            "memory branch",
            "note",
            f"{name} is protected: a push may be refused (GH006)",
            f"take it out of the rule in {BRANCHES}, unless its pushes go through",
        )
    else:
        yield Check("memory branch", "ok", f"{name}, {'there' if branch else 'not there yet'}; no rule stops a push")


def _rules(hub: Hub, branch: str) -> Rules | None:
    """The active rules for a branch by their type, of every ruleset; None when they cannot be seen."""
    status, told = hub.get(f"/rules/branches/{quote(branch, safe='')}?per_page=100")
    if status != 200 or not isinstance(told, list):
        return None
    rules: dict[str, list[Mapping[str, Any]]] = {}
    for rule in told:
        rules.setdefault(str(rule.get("type")), []).append(rule)
    return rules


def _parameters(rules: Rules, kind: str) -> list[Mapping[str, Any]]:
    return [rule.get("parameters") or {} for rule in rules.get(kind, ())]


def _stops(rules: Rules) -> str:
    return ", ".join(words for kind, words in PUSH.items() if kind in rules)
