"""The checks of `ralph doctor` for the workflows in a clone: whether there are any, and what they lack here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import acts_on_github
from ralph_mission.cli.doctor.line import DoctorLine
from ralph_mission.cli.doctor.sources import agent_kind
from ralph_mission.cli.setup.files import PLACES, action_of, github_name, name_action
from ralph_mission.config.settings import Config

AGENT = "in ralph.yml: hands: {agent: {kind: claude}}; store its key under Settings, Secrets and variables, Actions"


def workflows(git: Git, settings: Config) -> Iterator[DoctorLine]:
    """No workflow in a clone of a repository on GitHub, or some that need an agent where none is named."""
    here = _present(git)
    if not here and github_name(git) and git.work_tree:
        command = "ralph init, then commit and push what it writes" if action_of(None) else name_action()
        yield DoctorLine("workflow", "note", "there is none of Ralph's here, so GitHub starts no cycle", command)
    names = [PLACES[mode].rpartition("/")[2] for mode in ("work", "review") if mode in here]
    if names and not agent_kind(settings):
        needs = "need" if len(names) > 1 else "needs"
        yield DoctorLine("agent", "note", f"{' and '.join(names)} {needs} one, and ralph.yml names none", AGENT)


def elsewhere(git: Git, found: Iterable[DoctorLine], environ: Mapping[str, str]) -> Iterator[DoctorLine]:
    """The agents' lines: one that only a workflow uses need not be installed here."""
    apart = bool(_present(git)) and not acts_on_github(environ)
    for one in found:
        if apart and one.status == "wrong" and one.found.startswith("not installed"):
            installs = "the action installs it" if one.name == "agent claude" else "its runner needs it"
            one = replace(one, status="note", found=f"not installed on this machine; in the workflows, {installs}")
        yield one


def unseen_github(git: Git, environ: Mapping[str, str]) -> Iterator[DoctorLine]:
    """A note if there are workflows, but what GitHub needs to be asked is not in the environment."""
    name = github_name(git)
    if not name or not _present(git):
        return
    given = {
        "GITHUB_TOKEN": environ.get("GITHUB_TOKEN") or environ.get("GITHUB_APP_ID"),
        "GITHUB_REPOSITORY": environ.get("GITHUB_REPOSITORY"),
    }
    missing = [variable for variable, value in given.items() if not value]
    what = f"GitHub was not checked: {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not set"
    command = f"GITHUB_REPOSITORY={name} GITHUB_TOKEN=$(gh auth token) ralph doctor"
    yield DoctorLine("GitHub", "note", what, command)


def _present(git: Git) -> tuple[str, ...]:
    """The modes whose workflow is in this checkout."""
    top = git.work_tree
    return tuple(mode for mode, name in PLACES.items() if top is not None and (top / name).is_file())
