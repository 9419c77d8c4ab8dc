"""What the workflows that `ralph init` writes have in common, said once."""

from __future__ import annotations

from collections.abc import Mapping

from ralph_mission.cli.template import filled

PIECES: Mapping[str, str] = {
    "RISK": """\
# Do not use self-hosted runners in a public repository: anyone's pull request could run code on them.""",
    "NOTHING_BY_DEFAULT": """\
# Nothing by default; each job asks for what it needs.
permissions: {}""",
    "ALIVE": """\
      actions: read # whether a run that held the memory is still alive""",
    "KILL_SWITCH": """\
    env:
      # The kill switch: set the repository variable RALPH_PAUSED to 1, and nothing more is done.
      RALPH_PAUSED: ${{ vars.RALPH_PAUSED }}""",
    "AGENT_KEYS": """\
        env:
          # The key of your agent by its own name; store it in Settings, Secrets and variables, Actions.
          ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}
          # OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}""",
}
"""By the word that stands for it in a template."""


def written(template: str, words: Mapping[str, str]) -> str:
    """A template with these pieces, and then with the words of one repository: those are not looked at again."""
    return filled(filled(template, PIECES), words)
