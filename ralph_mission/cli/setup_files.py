"""The files that `ralph init` writes, from the templates in `setup_templates/`, and what becomes of each."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ralph_mission.adapters import files as durable_files
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.observers.commands.recipes import Recipe

State = Literal["new", "replaced", "unchanged", "kept", "in the way"]
OWN_CHECKS = "Your own checks: what they find becomes missions."
EXAMPLE = "# commands: [{name: lint, run: ruff check --output-format sarif, parse: sarif, kind: code-quality}]"


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


# --- ralph.yml ------------------------------------------------------------------------


def render_settings(here: Sequence[Recipe], missing: Sequence[Recipe] = (), wake: str = "auto") -> str:
    """A commented ralph.yml: a command for each recipe whose tool is `here`, commented out when it is `missing`."""
    schedule = "schedule: {low: 6h, medium: 1h, high: 15m}"
    if wake != "auto":
        schedule = f"and what wakes the next cycle.\nschedule: {{low: 6h, medium: 1h, high: 15m, wake: {wake}}}"
    return render_template("ralph.yml", SCHEDULE=schedule, COMMANDS="\n  ".join(_commands(here, missing)))


def _commands(here: Sequence[Recipe], missing: Sequence[Recipe]) -> Iterator[str]:
    """The lines, two spaces less deep than they stand; the first is a comment."""
    if not here and not missing:
        yield from (OWN_CHECKS, EXAMPLE)
        return
    yield f"{OWN_CHECKS} These fit the files of this repository."
    yield "commands:" if here else "# commands:"
    for recipe in here:
        yield from textwrap.indent(f"# {recipe.summary}\n{_item(recipe)}", "  ").splitlines()
    for recipe in missing:
        told = f"{recipe.summary}; its tool is not installed here\n{_item(recipe)}"
        yield from textwrap.indent(told, "  # ").splitlines()


def _item(recipe: Recipe) -> str:
    import yaml

    return yaml.safe_dump([dict(recipe.settings)], sort_keys=False, width=10_000, allow_unicode=True)
