"""The files that `ralph init` writes beside ralph.yml, from templates in `setup_templates/`; what becomes of each file.

For GitHub they are workflows: the loop's, and those in which agents act. For a host of yours they are systemd units: a
timer that wakes GitHub's loop, a service that watches on its own, a tunnel to the database and GitHub's runner.

Units are templates: the instance is the repository's path (the runner's folder), so `%f` is where it stands, and one
set serves every repository of a host. Credentials stand beside each repository's state, readable by their owner only.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ralph_mission.adapters import files as durable_files
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.wakers import EVENT, PUBLISH, REVIEW, WORK, instance
from ralph_mission.cli.version import find_commit, find_release
from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

State = Literal["new", "replaced", "unchanged", "kept", "in the way"]


@dataclass(frozen=True, slots=True)
class SetupFile:
    """A file to write. `keep`: one that is there stays as it is; `private`: for its owner's eyes."""

    place: Path
    text: str
    keep: bool = False
    private: bool = False

    def state(self, top: Path, force: bool) -> State:
        """What becomes of it. Raises UserError (usage) when it leads out of `top`, or is a folder."""
        refuse_link(self.place, top)
        present = read_text(self.place)
        if present is None:
            return "new"
        if present.replace("\r\n", "\n") == self.text:
            return "unchanged"
        return "kept" if self.keep else "replaced" if force else "in the way"

    def write(self) -> None:
        """All of it or nothing. Raises OSError."""
        durable_files.write(self.place, self.text.encode(), 0o600 if self.private else 0o666)


Planned = tuple[SetupFile, State]


def render_template(name: str, **words: str) -> str:
    """A template with its words in capitals replaced, in one pass: what was put in is not looked at again."""
    text = (files("ralph_mission.cli") / "setup_templates" / name).read_text(encoding="utf-8")
    return re.sub(rf"\b(?:{'|'.join(words)})\b", lambda word: words[word[0]], text) if words else text


def refuse_differing(planned: Iterable[Planned]) -> None:
    """Raises UserError (usage) that names every file that is there and differs."""
    names = [file.place.name for file, state in planned if state == "in the way"]
    if names:
        what = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} there already, and nothing was written"
        raise UserError(what, "commit what is yours, then run it again with --force and look at git diff", usage=True)


def write_planned(planned: Iterable[Planned]) -> None:
    """Write the files that are new or replaced."""
    for file, state in planned:
        if state in ("new", "replaced"):
            file.write()


def read_text(place: Path) -> str | None:
    """A file's text; None when there is none, "" for what is no text. Raises OSError."""
    try:
        return place.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""


def refuse_link(place: Path, top: Path) -> None:
    """Raises UserError (usage) when a file, or a folder above it in `top`, leads elsewhere or is no file."""
    inside = [folder for folder in (place, *place.parents) if top in folder.parents]
    for part in inside or [place]:
        if part.is_symlink():  # what it leads to may be anyone's
            raise UserError(f"{part.name} is a symbolic link", "remove it, then run again", usage=True)
    if place.is_dir():
        raise UserError(f"{place.name} is a folder", "move it away, then run again", usage=True)


# --- workflows ------------------------------------------------------------------------

PLACES: Mapping[str, str] = {
    "cycle": ".github/workflows/ralph-loop.yml",
    "work": ".github/workflows/ralph-work.yml",
    "review": ".github/workflows/ralph-review.yml",
    "publish": ".github/workflows/ralph-publish.yml",
}
"""Where each stands, by the mode of the action that it runs."""
LISTENS: Mapping[str, str] = {"cycle": EVENT, "work": WORK, "review": REVIEW, "publish": PUBLISH}
"""What wakes each."""
UNKNOWN = "this installation does not know its repository on GitHub"
LABELS, HOSTED = ("self-hosted",), ("ubuntu-latest",)
_ACTION = compile_regex(r"([A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})@([A-Za-z0-9][A-Za-z0-9._/-]{0,127})")
_STEP = compile_regex(rf"^ +- id: (?:ralph|fleet)\n +uses: {_ACTION.pattern}(?=\s|$)", re.M)  # as we write it
_LABEL = compile_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA = compile_regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ON_GITHUB = compile_regex(
    r"(?:https?://|ssh://)?(?:[^@/\s]+@)?github\.com[:/]+([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?"
)


def name_action() -> str:
    """What a person types when nobody here knows the action's repository: with this installation's commit, if known."""
    commit = find_commit(64)
    return (
        f"ralph init --action OWNER/NAME@{commit or 'COMMIT'}, where OWNER/NAME is your copy of Ralph on GitHub that "
        "has that commit: public, or private with Settings, Actions, General, Access for repositories of the same owner"
    )


@dataclass(frozen=True, slots=True)
class ActionReference:
    """Which action is used: `repository` is owner/name, `ref` a commit, a tag or a branch."""

    repository: str
    ref: str

    @property
    def pinned(self) -> bool:
        """Whether `ref` is a commit, which nobody can move."""
        return bool(_SHA.fullmatch(self.ref))

    def __str__(self) -> str:
        return f"{self.repository}@{self.ref}"


def action_of(text: str | None, present: str = "") -> ActionReference | None:
    """`OWNER/NAME@COMMIT` as given; without one what this installation is, else what our workflow names already.

    None: nobody here knows a commit, and a name is not invented. Raises UserError (usage).
    """
    if text is None:
        return installed_action() or present_action(present)
    named = _ACTION.fullmatch(text)
    if not named or ".." in text:
        raise UserError(f"--action {text!r} is not an action", "write it like owner/name@commit", usage=True)
    action = ActionReference(named[1], named[2])
    if not action.pinned:
        last = f"git ls-remote https://github.com/{action.repository} {action.ref} '{action.ref}^{{}}'"
        raise UserError(
            f"--action {text}: {action.ref} is not a commit, and may move",
            f"give the commit, which is in the last line of: {last}",
            usage=True,
        )
    return action


def present_action(present: str) -> ActionReference | None:
    """The commit of the action that a workflow of ours names; None where it names none."""
    found = _STEP.search(present)
    return _pinned_action(found[1], found[2]) if found else None


def _pinned_action(repository: str, commit: str) -> ActionReference | None:
    action = ActionReference(repository, commit)
    return action if repository and action.pinned else None


def installed_action() -> ActionReference | None:
    """The commit on GitHub that this installation was made from; None when nobody can tell.

    pip writes it down, a release knows it; an editable installation runs what its clone has checked out.
    """
    origin = _origin()
    url, vcs, folder = (origin.get(key) for key in ("url", "vcs_info", "dir_info"))
    if isinstance(vcs, dict):
        return _pinned_action(on_github(str(url)), str(vcs.get("commit_id")))
    if isinstance(folder, dict) and folder.get("editable") and str(url).startswith("file:///"):
        return _checked_out(Path(url2pathname(urlsplit(str(url)).path)))
    address, commit = find_release()
    return _pinned_action(on_github(address), commit)


def _checked_out(clone: Path) -> ActionReference | None:
    """A clone's commit, when a remote of it on GitHub is known to have it too."""
    try:
        git = Git.open(clone)
    except UserError:
        return None
    head, top = git.resolve("HEAD"), git.work_tree
    if not head or not top or not top.samefile(clone) or not git.try_text("ls-tree", head, "action.yml"):
        return None  # a repository that something of ours lies in is not ours
    there = (
        repository
        for remote, repository in _remotes(git)
        if git.try_text("for-each-ref", "--count=1", "--contains", head, f"refs/remotes/{remote}/")
    )
    return next((action for repository in there if (action := _pinned_action(repository, head))), None)


def _origin() -> Mapping[str, object]:
    try:
        origin = json.loads(distribution("ralph-mission").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError, OSError):
        return {}
    return origin if isinstance(origin, dict) else {}


def on_github(url: str) -> str:
    """owner/name of a remote on github.com, "" of any other."""
    found = _ON_GITHUB.fullmatch(url)
    return found[1] if found else ""


def github_name(git: Git) -> str:
    """owner/name of the repository on github.com that this is a clone of, `origin` before any other; "" of none."""
    return next((repository for _, repository in _remotes(git) if repository), "")


def _remotes(git: Git) -> list[tuple[str, str]]:
    """Each remote with its owner/name on github.com, "" elsewhere; `origin` before any other."""
    lines = git.try_text("config", "--local", "--get-regexp", r"^remote\..*\.url$").splitlines()
    pairs = [line.split(" ", 1) for line in lines if " " in line]
    named = [(key.removeprefix("remote.").removesuffix(".url"), on_github(url)) for key, url in pairs]
    return sorted(named, key=lambda remote: remote[0] != "origin")


def labels_in(present: str) -> tuple[str, ...]:
    """The labels that a workflow of ours names already, if any."""
    found = re.search(r"^    runs-on: \[?([A-Za-z0-9._, -]+)\]?$", present, re.M)
    return labels_of(found[1]) if found else ()


def labels_of(text: str) -> tuple[str, ...]:
    """A runner's labels, separated by commas or spaces. Raises UserError (usage)."""
    labels = tuple(re.split(r"[,\s]+", text.strip(", \t")))
    strange = [label for label in labels if not _LABEL.fullmatch(label)]
    if strange:
        raise UserError(
            f"--runner {text!r}: {strange[0]!r} is not a label", "write it like self-hosted,linux", usage=True
        )
    return labels


def runs_on(labels: tuple[str, ...]) -> str:
    """Labels as a workflow says them."""
    return labels[0] if len(labels) == 1 else f"[{', '.join(labels)}]"


HEARTBEAT = """\
# The heartbeat asks every 15 minutes whether a cycle is due, off the full hour, when GitHub is busiest.
    - cron: "7,22,37,52 * * * *"
    # The baseline: every 6 hours, whatever else gets lost.
    - cron: "41 */6 * * *\""""
HOSTED_HEARTBEAT = """\
# The schedule checks once an hour whether a cycle is due: GitHub bills at least a minute per job on its runners.
    # What people write does not wait for it.
    - cron: "37 * * * *\""""
WAKES: Mapping[str, int] = {"cycle": 720, "work": 120}
"""Jobs a month that cron starts on GitHub's runners, by the lines above: once an hour, every six hours."""
CYCLES, MINUTES = 120, 3
"""Cycles a month where nothing is urgent (every six hours), and what one with its installation takes."""


def is_hosted(labels: Sequence[str]) -> bool:
    """Whether these are GitHub's own runners, made for every job."""
    return any(re.match(r"(?:ubuntu|macos|windows)-", label) for label in labels) and "self-hosted" not in labels


def monthly_cost(modes: Collection[str]) -> str:
    """What these workflows take in a month on GitHub's runners."""
    brief = sum(WAKES.get(mode, 0) for mode in modes) - CYCLES
    return (
        f"on GitHub's runners that is about {brief + CYCLES * MINUTES} minutes a month ({CYCLES} cycles of about "
        f"{MINUTES} minutes, {brief} jobs of one minute with nothing to do): free in a public repository, taken from "
        "the included minutes in a private one (on a runner of your own: ralph init --runner self-hosted --force)"
    )


def is_public(repository: str, api: str, seconds: float = 3.0) -> bool | None:
    """Whether anybody may read owner/name; None when nobody can tell."""
    from ralph_mission.adapters.http.client import NoAnswer, open_session

    if not repository:
        return None
    try:
        with open_session(seconds) as session:
            status = session.request("GET", f"{api}/repos/{repository}").status_code
    except NoAnswer:
        return None
    return {200: True, 404: False}.get(status)


NODE = """\
      # The project's packages are installed and checked with it.
      - uses: actions/setup-node@49933ea5288caeca8642d1e84afbd3f7d6820020 # v4.4.0
        with:
          node-version: "@NODE@"
"""
NEEDS_NODE = ("cycle", "work")
"""Modes that run a project's own checks."""


def node_version(top: Path) -> str:
    """The version of Node.js that a repository names in a file of its own, else the newest that is supported long."""
    found = [(read_text(top / name) or "").strip().removeprefix("v") for name in (".nvmrc", ".node-version")]
    return next(filter(compile_regex(r"\d+(?:\.\d+){0,2}").fullmatch, found), "lts/*")


def render_workflow(mode: str, action: ActionReference, labels: tuple[str, ...], node: str = "") -> str:
    """The file of a mode, with this version of Node.js ("" for none), with which a project is built.

    What goes into it was checked against a pattern: nothing can end a YAML scalar.
    """
    often = {True: (HOSTED_HEARTBEAT, "*/6"), False: (HEARTBEAT, "*")}[is_hosted(labels)]
    words = {"RUNNER": runs_on(labels), "ACTION": str(action), "HEARTBEAT": often[0], "HOURS": often[1]}
    text = render_template(Path(PLACES[mode]).name, **words)
    step = NODE.replace("@NODE@", node)
    return text.replace("    steps:\n", f"    steps:\n{step}", 1) if node and mode in NEEDS_NODE else text


ENVIRONMENT = ".ralph/ralph.env"  # in the work tree
FOLDER = ".ralph/units"  # in the work tree, unless another one is named
TUNNEL_SETTINGS = ".ralph/tunnel.env"  # in the work tree
TUNNEL, RUNNER, READER = "ralph-tunnel@.service", "ralph-runner@.service", "ralph-reader.sql"
ROLE = "ralph_reader"


def program() -> str:
    """The absolute path of this very `ralph`: a unit knows no other PATH."""
    beside = Path(sys.executable).with_name("ralph")
    return str(beside) if beside.exists() else shutil.which("ralph") or str(beside)


def timer() -> dict[str, str]:
    """File name -> text: what asks every minute and dispatches when a cycle is due."""
    service, clock = "ralph-wake@.service", "ralph-wake@.timer"
    return {service: render_template(service, PROGRAM=_word(program())), clock: render_template(clock)}


def service() -> dict[str, str]:
    """File name -> text: `ralph watch` for as long as the host is up."""
    name = "ralph-watch@.service"
    return {name: render_template(name, PROGRAM=_word(program()))}


def host() -> dict[str, str]:
    """File name -> text: the tunnel to a database, a role there that only reads, the runner."""
    return {name: render_template(name) for name in (TUNNEL, RUNNER, READER)}


def commands(files: Mapping[str, str], folder: Path, repo: Path) -> tuple[str, str]:
    """What a person types to install them for their own user: link (once a host), then switch on."""
    units = [shlex.quote(str(folder / name)) for name in files]
    unit = "ralph-wake@{}.timer" if "ralph-wake@.timer" in files else "ralph-watch@{}.service"
    name = shlex.quote(unit.format(instance(repo)))
    return f"systemctl --user link {' '.join(units)}", f"systemctl --user enable --now {name}"


def host_steps(folder: Path, repo: Path) -> Iterator[str]:
    """What only a person can do for `host`, in order, one line each; docs/clock.md says more."""
    tunnel, runner, reader = (shlex.quote(str(folder / name)) for name in (TUNNEL, RUNNER, READER))
    yield f"where the database is, as its superuser: psql -v ON_ERROR_STOP=1 -d NAME -f {reader}"
    yield f"then give the role a password, in psql: \\password {ROLE}"
    yield f"name that host in {repo / TUNNEL_SETTINGS}, and let ssh know its key: ssh USER@HOST true"
    yield f"systemctl --user link {tunnel} {runner}"
    yield f"systemctl --user enable --now {shlex.quote(f'ralph-tunnel@{instance(repo)}.service')}"
    yield f"set DATABASE_URL to postgresql://{ROLE}:PASSWORD@127.0.0.1:5432/NAME where the runner keeps secrets"
    yield "configure GitHub's runner in a folder of its own (docs/clock.md), then:"
    yield 'systemctl --user enable --now "ralph-runner@$(systemd-escape --path FOLDER).service"'


def _word(path: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", path):
        raise UserError("the path of ralph holds a control character", "install it elsewhere", usage=True)
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
