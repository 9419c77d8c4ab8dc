"""The `ralph.yml` that `ralph init` writes. What is commented out shows the default."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ralph_mission.observers.recipes import Recipe

HEAD = """\
# How ralph looks after this repository. Every key is optional; a commented one shows its default.
# Check it with `ralph doctor`; every key is listed by `ralph schema config`.

# How soon to look again: nothing new, an opportunity, a bug or an error.
SCHEDULE

# What ralph may do at most. These are the ceilings: lower them as you like.
# limits: {active_missions: 3, actions_per_cycle: 3, auto_prs_per_cycle: 1, auto_pr_lines: 49}

# Who approves and rejects; nobody named: everyone with write access.
# owners: []

# Where memory is kept, on a branch of its own.
# memory: {path: memory/ralph-log.md, branch: ralph-memory}

# How an approved pull request is merged: squash or merge.
# forge: {merge_method: squash}

observers:
  code:
    # Regular expressions by kind of finding.
    # markers: {todo: 'TODO|FIXME|HACK', ts-ignore: '@ts-ignore', any: ': any\\b'}
    # Paths to leave out, as in .gitignore.
    exclude: ['vendor/**', 'node_modules/**', 'dist/**']
  # Outdated and vulnerable packages, by the registries of your lock files and OSV.
  # dependencies: {}
  # Rows of the database at DATABASE_URL: what moved, what is new, what is out of bounds.
  # database: {watches: [{name: price-feed, table: prices, at: created_at, missing: 2h}]}
"""

EXAMPLE = """\
  # Your own checks: what they find becomes missions.
  # commands: [{name: lint, run: ruff check --output-format sarif, parse: sarif, kind: code-quality}]
"""

TAIL = """\

hands:
  # What may change files on its own: misspellings, and ruff's safe fixes.
  # fixers: [typos, ruff]
  # Commands that must pass before a change is proposed.
  # verify: ['make test']
"""


def render(here: Sequence[Recipe], missing: Sequence[Recipe] = (), wake: str = "auto") -> str:
    """The file: a command for each recipe whose tool is `here`, commented out when it is `missing`."""
    schedule = "# schedule: {low: 6h, medium: 1h, high: 15m}"
    if wake != "auto":
        schedule = f"# and what wakes the next cycle.\nschedule: {{low: 6h, medium: 1h, high: 15m, wake: {wake}}}"
    return filled(HEAD, {"SCHEDULE": schedule}) + "".join(_commands(here, missing)) + TAIL


def filled(template: str, words: Mapping[str, str]) -> str:
    """A template with its words in capitals replaced, in one pass: what was put in is not looked at again."""
    return re.sub(rf"\b(?:{'|'.join(words)})\b", lambda word: words[word[0]], template)


def _commands(here: Sequence[Recipe], missing: Sequence[Recipe]) -> Iterator[str]:
    if not here and not missing:
        yield EXAMPLE
        return
    yield "  # Your own checks: what they find becomes missions. These fit the files of this repository.\n"
    yield "  commands:\n" if here else "  # commands:\n"
    for recipe in here:
        yield textwrap.indent(f"# {recipe.summary}\n{_item(recipe)}", "    ")
    for recipe in missing:
        told = f"{recipe.summary}; its tool is not installed here\n{_item(recipe)}"
        yield textwrap.indent(told, "    # ")


def _item(recipe: Recipe) -> str:
    import yaml

    return yaml.safe_dump([dict(recipe.settings)], sort_keys=False, width=10_000, allow_unicode=True)
