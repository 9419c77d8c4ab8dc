"""Where a checkout keeps the files of its loop, found without asking git: agents ask hundreds of times.

The way to a list of people's that is about to be written: a session may have made it lead elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ralph_mission.adapters.files import safe_paths
from ralph_mission.adapters.storage.loop import files
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import PathChange

IGNORED = b"/.ralph/"
WORKSPACE = "workspace"
"""Below `.ralph/`: where sessions work."""
FOLDERS = (".ralph/agent", ".ralph/apart", ".ralph/cache", ".ralph/cycles", ".ralph/events", ".ralph/forge",
           ".ralph/loop/apart", ".ralph/loop/calls", ".ralph/loop/home", ".ralph/loop/runs",
           ".ralph/missions", ".ralph/outbox", ".ralph/replaced", ".ralph/review", ".ralph/units", ".ralph/work",
           ".ralph/aside", ".ralph/workspace", ".ralph/worktrees")  # fmt: skip  # one list
"""Where a run or a cycle writes, or has sessions write."""


def folder(repo: Path | None, environ: Mapping[str, str]) -> Path:
    """The `.ralph` of a checkout: the one `repo` is in, else the running loop's (`RALPH_RUN_DIR`), else the one
    around us. Nothing is made. Raises UserError outside of a repository."""
    if repo is None and environ.get("RALPH_RUN_DIR"):
        return Path(environ["RALPH_RUN_DIR"]).absolute().parent
    here = (repo or Path()).absolute()
    top = next((place for place in (here, *here.parents) if (place / ".git").exists()), None)
    if top is None:
        what = f"{here} is not in the work tree of a git repository"
        raise UserError(what, "run it there, or give --repo DIR", usage=True)
    return top / ".ralph"


def of_session(repo: Path, environ: Mapping[str, str]) -> Path | None:
    """The `.ralph` of the checkout whose loop plays a session in the clone that `repo` is in; None anywhere else."""
    run = Path(environ["RALPH_RUN_DIR"]).absolute() if environ.get("RALPH_RUN_DIR") else None
    return run.parent if run and repo.absolute().is_relative_to(run.parent / WORKSPACE) else None


def prepare(place: Path) -> None:
    """Make the folder, and keep it out of git when it is new. Raises OSError, and UserError for a link in its place."""
    if found := safe_paths.links(place.parent, FOLDERS):
        raise UserError(f"{place.parent / found[0]} is a link", files.STRANGE)
    if place.is_dir():
        return
    place.mkdir(parents=True, exist_ok=True)
    exclude = _exclude(place.parent)
    lines = (files.read(exclude, 1024 * 1024) or b"") if exclude else b""
    if exclude and IGNORED not in lines.splitlines():
        gap = b"\n" if lines and not lines.endswith(b"\n") else b""
        files.write(exclude, lines + gap + IGNORED + b"\n")


def _exclude(top: Path) -> Path | None:
    """`info/exclude` of the repository, which linked work trees share; None when it is not one we know."""
    git = top / ".git"
    if git.is_file():
        git = top / git.read_text().removeprefix("gitdir:").strip()
        if (git / "commondir").is_file():
            git = git / (git / "commondir").read_text().strip()
    return git / "info" / "exclude" if (git / "HEAD").exists() else None


PUT_BACK = "put back"


def within(path: Path, root: Path) -> tuple[PathChange, ...]:
    """Have nothing on the way to `path` lead out of the work tree `root`; gives what is told of it.

    A person's own link is met before the first session, and refused (`Desk.exclusive`). Raises OSError.
    """
    return tuple(PathChange(name, "made a link", PUT_BACK) for name in safe_paths.keep_within(path, root))
