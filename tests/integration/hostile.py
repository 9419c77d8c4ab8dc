"""Attacks that a session's program plays, as lines of Python (`tests/cli/loop_world.py` has the words it knows)."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.adapters.workspace.world import state
from tests.cli.loop_world import World, world
from tests.helpers import Result, git

GIT = shutil.which("git")
FILES = {
    "docs/guide.md": "guide\n",
    "src/a.py": "a = 1\n",
    "Makefile": "test:\n\ttrue\n",
    "ralph.yml": "hats: {builder: {triggers: [loop.start], publishes: [build.done], write_allowed: ['src/**']}}\n",
}
WORDS = f"""
def sh(line):
    subprocess.run(line.replace("git ", "{GIT} -c user.name=E -c user.email=e@x.org -c protocol.file.allow=always "),
                   shell=True, check=True)
pathlib.Path("src").mkdir(exist_ok=True)
pathlib.Path("src/work.py").write_text("honest\\n")
"""
SAYS = "\nprint('<event topic=\"build.done\">done</event>')\n"


@dataclass(frozen=True, slots=True)
class Attack:
    """What a session does, and what has to be told as undone."""

    name: str
    script: str
    told: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def attack(name: str, script: str, *told: str) -> Attack:
    """A row of a table: a single line is one of the shell."""
    return Attack(name, script if "\n" in script else f"sh({script!r})", frozenset(told))


def shop(folder: Path, stories: int = 0) -> World:
    """A repository whose only hat may write `src/**`, or one of stories."""
    made = world(folder, {key: text for key, text in FILES.items() if not stories or key != "ralph.yml"})
    if stories:
        made.stories(stories)
    git(made.repo, "branch", "other")
    git(made.repo, "tag", "v1")
    for name in ("hooks", "info"):
        (made.repo / ".git" / name).mkdir(exist_ok=True)
    (made.repo / ".git/info/exclude").write_text("/.ralph/\n")
    (made.aside / "person").write_text("a person's\n")
    return made


def played(here: World, what: Attack, *options: str) -> Result:
    """One session of it, to the end of the run; it may fail, but never as a fault of ours."""
    script = what.script.replace("$PWD/..", "..").replace("../aside", str(here.aside))
    done = here.run_apart(*(options or ("build it", "--max-iterations", "1")), *here.agent(WORDS + script + SAYS))
    assert "Traceback" not in done.err and "bug:" not in done.err, done.err
    return done


def list_reverted(done: Result) -> set[str]:
    """The paths that the run says it has put back."""
    return {row["path"] if isinstance(row, dict) else str(row).split(":")[0] for row in done.json["reverted"]}


def standing(repo: Path) -> dict[str, Any]:
    """Everything that counts but the engine's own folder and what the honest part of a session wrote."""
    seen = state(repo)
    files: Any = seen["files"]
    honest = ("src/work.py", "src/inner/x.py")
    mine = {path: what for path, what in files.items() if not path.startswith(".ralph/") and path not in honest}
    dirty = [line for line in str(seen["dirty"]).split("\n") if ".ralph/" not in line]
    refs = [ref for ref in seen["refs"] if not ref.startswith("refs/heads/main ")]  # where it landed
    index = [line for line in str(seen["index"]).split("\n") if not line.endswith(honest)]
    flags = [line for line in git(repo, "ls-files", "-v").split("\n") if not line.endswith(honest)]
    obeyed: Any = seen["obeyed"]
    obeyed.pop(".git/info/refs", None)  # git's own note for servers
    return {**seen, "files": mine, "dirty": list(filter(None, dirty)), "flags": flags, "refs": refs, "index": index}
