"""The `ralph.yml` that `ralph init` writes: commented, and fitted to what is found in the repository."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.detection import DetectedProject, detect_project
from ralph_mission.cli.doctor.checks import program
from ralph_mission.cli.setup import files
from ralph_mission.cli.setup.choices import Choices, Surroundings, preset_choices, sections, survey, verifying
from ralph_mission.cli.setup.files import SetupFile, read_text, refuse_link, render_template
from ralph_mission.config.reading import NAME, load

if TYPE_CHECKING:
    from ralph_mission.adapters.observers.commands import Recipe

OWN_CHECKS = "Your own checks: what they find becomes missions."
NO_PROJECT = DetectedProject((), ())
NO_CHOICES, NOTHING_FOUND = Choices(), Surroundings()
EXAMPLE = "# commands: [{name: lint, run: ruff check --no-fix --output-format sarif, parse: sarif, kind: code-quality}]"


def render_usual_settings(git: Git, top: Path) -> str:
    """The ralph.yml that a repository gets when nothing is asked and nothing else was asked for."""
    paths, read = [name for name in git.text("ls-files", "-z").split("\0") if name], read_within(top)
    found = survey(paths, read, files.github_name(git).rpartition("/")[2] or top.name)
    return plan_settings(top, None, False, detect_project(paths, read), preset_choices("", found), found)[0].text


def read_within(top: Path) -> Callable[[str], str]:
    """What reads a file below `top` by its name; "" where there is none, or a link."""

    def read(name: str) -> str:
        place = top / name
        return (read_text(place) or "") if place.is_file() and not place.is_symlink() else ""

    return read


def plan_settings(
    top: Path, wake: str | None, keep: bool, project: DetectedProject, chosen: Choices, found: Surroundings
) -> tuple[SetupFile, list[str]]:
    """The file, with `wake` if it was named, and the names of the owner's own checks in it. `keep`: one that is there
    stays as it is. Raises UserError (usage) for a link, a folder, or a file that cannot be read."""
    from ralph_mission.adapters.observers.commands import fitting

    refuse_link(top / NAME, top)
    present = read_text(top / NAME)
    wake = wake or (load(present).schedule.wake if present else "auto")
    recipes = fitting([path.name for path in top.iterdir()], read_text(top / "pyproject.toml") or "")
    here = [recipe for recipe in recipes if _can_run(recipe, project)]
    text = render_settings(here, [recipe for recipe in recipes if recipe not in here], wake, project, chosen, found)
    load(text)  # what we write, we must be able to read
    return SetupFile(top / NAME, text, keep=keep), [recipe.settings["name"] for recipe in here]


def _can_run(recipe: Recipe, project: DetectedProject) -> bool:
    """Whether its tool is installed, or comes with the packages of the project."""
    from ralph_mission.adapters.observers.commands import search_path

    by_setup = recipe.settings.get("setup") and project.steps
    return bool(by_setup or shutil.which(program(recipe.settings["run"]), path=search_path(os.environ)))


def render_settings(
    here: Sequence[Recipe],
    missing: Sequence[Recipe] = (),
    wake: str = "auto",
    project: DetectedProject = NO_PROJECT,
    chosen: Choices = NO_CHOICES,
    found: Surroundings = NOTHING_FOUND,
) -> str:
    """A commented ralph.yml: a command for each recipe whose tool is `here`, commented out when it is `missing`, and
    the checks that `project` itself names; what was `chosen` of what was `found`."""
    schedule = "schedule: {low: 6h, medium: 1h, high: 15m}"
    if wake != "auto":
        schedule = f"and what wakes the next cycle.\nschedule: {{low: 6h, medium: 1h, high: 15m, wake: {wake}}}"
    return render_template(
        "ralph.yml",
        SCHEDULE=schedule,
        COMMANDS="\n  ".join(_commands(here, missing)),
        SETUP=_setup(project),
        VERIFY=_verify(verifying(project) if chosen.checks is None else chosen.checks),
        **sections(chosen, found),
    )


def _setup(project: DetectedProject) -> str:
    found = f"found here: {', '.join(project.tools)}." if project.tools else "none are known here."
    return f"What installs the packages that checks and agents need, by your lock files; {found}\n  # setup: auto"


def _verify(lines: Sequence[str]) -> str:
    import yaml

    text = yaml.safe_dump([*lines], default_flow_style=True, width=10_000).strip()
    text = f"verify: {text}" if lines else "# verify: ['make test']"
    untried = " Not tried by `ralph init`: one that can never pass holds every fix back." if lines else ""
    return f"Commands that must pass before a change is proposed.{untried}\n  {text}"


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
        text = f"{recipe.summary}; its tool is not installed here\n{_item(recipe)}"
        yield from textwrap.indent(text, "  # ").splitlines()


def _item(recipe: Recipe) -> str:
    import yaml

    return yaml.safe_dump([dict(recipe.settings)], sort_keys=False, width=10_000, allow_unicode=True)
