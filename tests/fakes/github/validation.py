"""Every reply is parsed with the models that are generated from GitHub's own OpenAPI description."""

from __future__ import annotations

import importlib
from functools import cache
from types import GenericAlias
from typing import Any

from tests.fakes.github.refusal import Unknown
from tests.fakes.github.routing import REPO

MODELS = "githubkit_schemas.v2022_11_28.models"  # of the API version that is served
ISSUE, PULL, COMMIT = REPO + "/issues/{number:int}", REPO + "/pulls/{number:int}", REPO + "/commits/{ref:path}"
COMMENT, ACTIONS = REPO + "/issues/comments/{id:int}", REPO + "/actions"
LABEL, REVIEW, BRANCH = REPO + "/labels/{name}", PULL + "/reviews/{id:int}", REPO + "/branches/{branch:path}"
RULE = "|".join(f"RepositoryRuleDetailedOneof{kind}" for kind in range(25))  # one for each type of rule

# operation -> status -> model; [Model] is a list of them, None a reply without a body
REPLIES: dict[tuple[str, str], dict[int, str | None]] = {
    ("GET", "/user"): {200: "PrivateUser"},
    ("POST", "/graphql"): {200: None},  # not REST: the description does not know it
    ("GET", REPO + "/installation"): {200: "Installation"},
    ("POST", "/app/installations/{id:int}/access_tokens"): {201: "InstallationToken"},
    ("GET", REPO): {200: "FullRepository"},
    ("GET", REPO + "/collaborators/{login}/permission"): {200: "RepositoryCollaboratorPermission"},
    ("POST", REPO + "/dispatches"): {204: None},
    ("GET", BRANCH): {200: "BranchWithProtection"},
    ("GET", REPO + "/rules/branches/{branch:path}"): {200: f"[{RULE}]"},
    ("GET", COMMIT + "/check-runs"): {200: "ReposOwnerRepoCommitsRefCheckRunsGetResponse200"},
    ("GET", COMMIT + "/status"): {200: "CombinedCommitStatus"},
    ("GET", REPO + "/labels"): {200: "[Label]"},
    ("POST", REPO + "/labels"): {201: "Label"},
    ("GET", LABEL): {200: "Label"},
    ("GET", REPO + "/issues"): {200: "[Issue]"},
    ("POST", REPO + "/issues"): {201: "Issue"},
    ("GET", ISSUE): {200: "Issue"},
    ("PATCH", ISSUE): {200: "Issue"},
    ("GET", REPO + "/assignees/{login}"): {204: None},
    ("POST", ISSUE + "/assignees"): {201: "Issue"},
    ("POST", ISSUE + "/labels"): {200: "[Label]"},
    ("DELETE", ISSUE + "/labels/{name}"): {200: "[Label]"},
    ("GET", ISSUE + "/comments"): {200: "[IssueComment]"},
    ("POST", ISSUE + "/comments"): {201: "IssueComment"},
    ("GET", REPO + "/issues/comments"): {200: "[IssueComment]"},
    ("GET", COMMENT): {200: "IssueComment"},
    ("PATCH", COMMENT): {200: "IssueComment"},
    ("GET", ISSUE + "/events"): {200: "[IssueEvent]"},
    ("GET", REPO + "/pulls"): {200: "[PullRequestSimple]"},
    ("POST", REPO + "/pulls"): {201: "PullRequest"},
    ("GET", PULL): {200: "PullRequest"},
    ("PATCH", PULL): {200: "PullRequest"},
    ("GET", PULL + "/reviews"): {200: "[PullRequestReview]"},
    ("GET", PULL + "/comments"): {200: "[PullRequestReviewComment]"},
    ("POST", PULL + "/reviews"): {200: "PullRequestReview"},
    ("GET", REVIEW): {200: "PullRequestReview"},
    ("PUT", REVIEW): {200: "PullRequestReview"},
    ("PUT", PULL + "/merge"): {200: "PullRequestMergeResult"},
    ("POST", REPO + "/git/trees"): {201: "GitTree"},
    ("POST", REPO + "/git/commits"): {201: "GitCommit"},
    ("POST", REPO + "/git/refs"): {201: "GitRef"},
    ("GET", REPO + "/dependabot/alerts"): {200: "[DependabotAlert]"},
    ("GET", REPO + "/code-scanning/alerts"): {200: "[CodeScanningAlertItems]"},
    ("GET", REPO + "/secret-scanning/alerts"): {200: "[SecretScanningAlert]"},
    ("GET", ACTIONS + "/runs/{id:int}"): {200: "WorkflowRun"},
    ("GET", ACTIONS + "/runs"): {200: "ReposOwnerRepoActionsRunsGetResponse200"},
    ("GET", ACTIONS + "/runs/{id:int}/attempts/{attempt:int}/jobs"): {
        200: "ReposOwnerRepoActionsRunsRunIdAttemptsAttemptNumberJobsGetResponse200"
    },
    ("GET", ACTIONS + "/runs/{id:int}/artifacts"): {200: "ReposOwnerRepoActionsRunsRunIdArtifactsGetResponse200"},
    ("GET", ACTIONS + "/jobs/{id:int}/logs"): {302: None},
    ("GET", ACTIONS + "/artifacts/{id:int}/zip"): {302: None},
    ("GET", ACTIONS + "/workflows"): {200: "ReposOwnerRepoActionsWorkflowsGetResponse200"},
    ("GET", ACTIONS + "/workflows/{id}/runs"): {200: "ReposOwnerRepoActionsWorkflowsWorkflowIdRunsGetResponse200"},
}


def check(method: str, template: str, status: int, payload: Any) -> None:
    """Raises Unknown when the description does not allow this reply."""
    models = REPLIES.get((method, template), {})
    if status not in models:
        raise Unknown(f"{method} {template}: nothing says how a {status} looks")
    model = models[status]
    if model is None:
        return
    _parse(model, payload, f"{method} {template} {status}")


def check_error(status: int, payload: Any) -> None:
    """The same of an error."""
    errors = payload.get("errors")
    described = status == 422 and errors is not None
    simple = described and all(isinstance(error, str) for error in errors)
    model = ("ValidationErrorSimple" if simple else "ValidationError") if described else "BasicError"
    _parse(model, payload, f"error {status}")


def _parse(model: str, payload: Any, where: str) -> None:
    from pydantic import ValidationError

    try:
        _adapter(model).validate_python(payload)
    except ValidationError as error:
        raise Unknown(f"{where} is no {model}: {error}") from None


@cache
def _adapter(model: str) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(_type(model))


def _type(model: str) -> Any:
    if model.startswith("[") and model.endswith("]"):
        return GenericAlias(list, (_type(model[1:-1]),))
    if "|" in model:
        first, *rest = (_type(part) for part in model.split("|"))
        for other in rest:
            first |= other
        return first
    return getattr(importlib.import_module(MODELS), model)
