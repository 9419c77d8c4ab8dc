"""What `ralph doctor` looks at on GitHub: the token, what it may do, and the repository's settings. Only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ralph_mission.cli import checks_rules, checks_schedule
from ralph_mission.cli.checks_line import NOW, Check, Get, Hub, Made, attempted, mend, unseen
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.forges.github.api import Api

PERMISSIONS = {"contents": "write", "issues": "write", "pull-requests": "write", "actions": "read"}
"""What a job needs: memory and branches, missions, pulls, and whether a run that held the memory is over."""
PROBES = {
    "contents": "/branches?per_page=1",
    "issues": "/issues?per_page=1",
    "pull-requests": "/pulls?per_page=1",
    "actions": "/actions/runs?per_page=1",
}
SCOPES = {
    "classic": "the token needs the scope `repo` (`public_repo` will do for a public repository)",
    "fine-grained": "the token needs Contents, Issues and Pull requests: Read and write, Actions: Read",
}
KINDS = {"workflow": "the workflow's or an app's own", "app-user": "an app's in a person's name", "oauth": "OAuth"}
METHODS = {"squash": "allow_squash_merge", "merge": "allow_merge_commit"}
ACTIONS = "Settings → Actions → General → Workflow permissions"
PAGES = 10  # of labels that are read at most
Repository = Mapping[str, Any]


def github(hub: Hub) -> tuple[Check, ...]:
    """Every check, in order; none but the first when the repository cannot be reached."""
    try:
        status, repository = hub.get("")
    except Trouble as trouble:
        return (Check("GitHub", "wrong", trouble.what, mend(trouble)),)
    if status != 200 or not isinstance(repository, dict):
        return (_no_entry(status),)
    made = (attempted(name, partial(check, hub, repository)) for name, check in CHECKS.items())
    return tuple(line for lines in made for line in lines)


def asking(api: Api) -> Get:
    """The `get` of the checks over the forge's own requests, with its patience and its limits."""
    from ralph_mission.forges.github.limits import Absent, Forbidden

    def get(path: str) -> tuple[int, Any]:
        try:
            return 200, api.get(path)
        except Absent as absent:
            return absent.status, None
        except Forbidden:
            return 403, None

    return get


def _no_entry(status: int) -> Check:
    if status == 401:
        return Check("token", "wrong", "GitHub does not accept it", "set GITHUB_TOKEN to a valid one")
    if status in (403, 404):
        return Check(
            "repository on GitHub",
            "wrong",
            f"the token may not see it ({status})",
            "check GITHUB_REPOSITORY, and that the token is for this repository",
        )
    return Check("GitHub", "wrong", f"it answers {status}", NOW["forge"])


# --- the token ------------------------------------------------------------------------


def _token(hub: Hub, _: Repository) -> Made:
    kind = KINDS.get(hub.token, hub.token or "of a kind that cannot be told")
    if hub.personal:
        yield Check(
            "token",
            "note",
            f"{kind}, as {hub.account}, whose own pull requests {hub.account} cannot approve",
            "use the workflow's own token, or an account made for the bot",
        )
        return
    yield Check("token", "ok", f"{kind}, as {hub.account}")


def _reading(hub: Hub, repository: Repository) -> Made:
    probes = {name: place for name, place in PROBES.items() if name != "issues" or repository.get("has_issues")}
    missing = [name for name, place in probes.items() if hub.get(place)[0] != 200]
    if missing:
        yield Check("reading", "wrong", f"the token may not read {', '.join(missing)}", _grant(hub, missing))
    else:
        yield Check("reading", "ok", ", ".join(probes))


def _writing(hub: Hub, repository: Repository) -> Made:
    if hub.personal:
        rights = repository.get("permissions")
        if isinstance(rights, dict) and not rights.get("push"):
            yield Check("writing", "wrong", f"{hub.account} may not write here", "give the account the role Write")
        else:
            yield Check(
                "writing",
                "note",
                "what the token itself may write shows when it first does",
                SCOPES.get(hub.token, SCOPES["classic"]),
            )
        return
    granted, where = _granted(hub)
    if granted is None:
        yield Check("writing", "note", f"cannot be tried without writing, and {where}", _grant(hub, PERMISSIONS))
        return
    missing = [name for name, level in PERMISSIONS.items() if not _covers(granted.get(name, "none"), level)]
    if missing:
        yield Check("writing", "wrong", f"{where} does not grant {', '.join(missing)}", _grant(hub, missing))
    else:
        yield Check("writing", "ok", f"{where} grants {', '.join(PERMISSIONS)}")


def _grant(hub: Hub, names: Any) -> str:
    if hub.personal:
        return SCOPES.get(hub.token, SCOPES["classic"])
    lines = ", ".join(f"{name}: {PERMISSIONS[name]}" for name in names)
    return f"give the job `permissions: {{{lines}}}`"


def _covers(given: str, needed: str) -> bool:
    return given == "write" or given == needed


def _granted(hub: Hub) -> tuple[Mapping[str, str] | None, str]:
    """What the workflow gives its job, and where that stands; None when it is not known."""
    import yaml

    if not hub.workflow:
        return None, "no workflow here runs it"
    try:
        document = yaml.safe_load(hub.workflow)
        jobs = [job for job in document["jobs"].values() if isinstance(job, dict)]
    except (yaml.YAMLError, TypeError, KeyError, AttributeError, RecursionError):
        return None, "the workflow cannot be read"
    default = _default(hub) if "permissions" not in document else document["permissions"]
    grants = [given for job in jobs if (given := _levels(job.get("permissions", default))) is not None]
    if not grants:
        return None, "the workflow says nothing of permissions"
    most = max(
        grants, key=lambda given: sum(_covers(given.get(name, ""), level) for name, level in PERMISSIONS.items())
    )
    return most, "the workflow"


def _levels(permissions: Any) -> Mapping[str, str] | None:
    if isinstance(permissions, dict):
        return {str(name): str(level) for name, level in permissions.items()}
    if permissions in ("write-all", "read-all"):
        return dict.fromkeys(PERMISSIONS, permissions.removesuffix("-all"))
    return None


def _default(hub: Hub) -> Any:
    """What a workflow gets that asks for nothing."""
    status, told = hub.get("/actions/permissions/workflow")
    level = told.get("default_workflow_permissions") if status == 200 and isinstance(told, dict) else None
    return {"write": "write-all", "read": {"contents": "read"}}.get(str(level))


# --- settings -------------------------------------------------------------------------


def _repository(hub: Hub, repository: Repository) -> Made:
    private = repository.get("private")
    found = f"{repository.get('full_name')}, {'private' if private else 'public'}"
    if repository.get("archived") or repository.get("disabled"):
        word = "archived" if repository.get("archived") else "disabled by GitHub"
        yield Check("repository on GitHub", "wrong", f"{found}, {word}", "Settings → General → Danger Zone")
        return
    yield Check("repository on GitHub", "ok", found)
    if not repository.get("has_issues"):
        yield Check("issues", "wrong", "they are switched off", "Settings → General → Features → Issues")


def _merging(hub: Hub, repository: Repository) -> Made:
    allowed = repository.get(METHODS.get(hub.merge_method, ""))
    if allowed is None:
        yield unseen("merging", "Settings → General → Pull Requests")
    elif allowed:
        yield Check("merging", "ok", f"by {hub.merge_method}")
    else:
        other = next((name for name, key in METHODS.items() if repository.get(key)), "")
        instead = f", or set forge.merge_method: {other} in ralph.yml" if other else ""
        yield Check(
            "merging",
            "wrong",
            f"{hub.merge_method} is not allowed here",
            f"allow it in Settings → General → Pull Requests{instead}",
        )


def _opening_pulls(hub: Hub, _: Repository) -> Made:
    if hub.personal:
        return  # the setting binds the workflow's own token alone
    status, told = hub.get("/actions/permissions/workflow")
    if status != 200 or not isinstance(told, dict):
        yield unseen("opening pull requests", f"{ACTIONS}: Allow GitHub Actions to create and approve pull requests")
    elif told.get("can_approve_pull_request_reviews"):
        yield Check("opening pull requests", "ok", "workflows may")
    else:
        yield Check(
            "opening pull requests",
            "wrong",
            "workflows may not",
            f"tick {ACTIONS} → Allow GitHub Actions to create and approve pull requests",
        )


def _labels(hub: Hub, _: Repository) -> Made:
    from ralph_mission.forges.github.labels import LABELS
    from ralph_mission.mission.work_terms import READY

    there = {name.casefold() for name in _names(hub)}
    missing = [name for name in LABELS if name.casefold() not in there]
    if READY in missing:
        found, mend = f"nobody can set {READY}, since it is not there yet", f"gh label create {READY}"
        yield Check(f"label {READY}", "note", found, f"{mend}, or Issues → Labels → New label")
    if missing:
        yield Check("labels", "note", f"made when first needed: {', '.join(missing)}")
    else:
        yield Check("labels", "ok", f"all {len(LABELS)}")


def _names(hub: Hub) -> Iterator[str]:
    for page in range(1, PAGES + 1):
        status, labels = hub.get(f"/labels?per_page=100&page={page}")
        if status != 200 or not isinstance(labels, list):
            raise Trouble(f"GitHub answers {status} to the labels", "", who="forge")
        yield from (str(label.get("name")) for label in labels)
        if len(labels) < 100:
            return


CHECKS: dict[str, Callable[[Hub, Repository], Made]] = {
    "token": _token,
    "repository on GitHub": _repository,
    "reading": _reading,
    "writing": _writing,
    "opening pull requests": _opening_pulls,
    "merging": _merging,
    "default branch": checks_rules.default_branch,
    "branches ralph/*": checks_rules.our_branches,
    "memory branch": checks_rules.memory_branch,
    "labels": _labels,
    "runner": checks_schedule.runner,
    "workflow": checks_schedule.workflow,
    "schedule": checks_schedule.schedule,
}
"""Each by the name of its line when it cannot be made."""
