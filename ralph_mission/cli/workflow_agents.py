"""The workflows beside the loop: issues for the issue agent, pulls of ours for the reviewer, texts for the networks.

As in `workflow`, everything that goes into them has been checked against a pattern first.
"""

from __future__ import annotations

from collections.abc import Mapping

from ralph_mission.cli.workflow import Action, runs_on
from ralph_mission.cli.workflow_pieces import written
from ralph_mission.wakers.facts import PUBLISH, REVIEW, WORK

PLACES: Mapping[str, str] = {
    "work": ".github/workflows/ralph-work.yml",
    "review": ".github/workflows/ralph-review.yml",
    "publish": ".github/workflows/ralph-publish.yml",
}
"""Where each stands, by the mode of the action that it runs."""


def render(mode: str, action: Action, labels: tuple[str, ...]) -> str:
    """The file of a mode."""
    return written(TEMPLATES[mode], {"RUNNER": runs_on(labels), "ACTION": str(action), "DISPATCH": DISPATCHES[mode]})


ISSUE = """\
# Issues that a person hands to an agent: labelled ralph-ready, or agent:NAME for a certain one (agent:claude).
# Whose label and whose issue counts is for ralph to say; what starts this job only spares it the question.
RISK
name: ralph-work

on:
  issues:
    types: [labeled]
  schedule:
    # Second tries, and what an event lost. Where no issue is ready no model is asked.
    - cron: "27 * * * *"
  workflow_dispatch:
    inputs:
      issue:
        description: Number of the issue; without it the oldest that is ready
        type: string
        default: ""
  repository_dispatch:
    types: [DISPATCH]

NOTHING_BY_DEFAULT

jobs:
  work:
    name: One issue
    # A template labels what a stranger writes, too: of such an issue nothing is started.
    if: >-
      github.event_name != 'issues'
      || ((github.event.label.name == 'ralph-ready' || startsWith(github.event.label.name, 'agent:'))
      && contains(fromJSON('["OWNER", "MEMBER", "COLLABORATOR"]'), github.event.issue.author_association))
    runs-on: RUNNER
    timeout-minutes: 300 # a try has four hours
    # One job for an issue, so that no label takes the place of another's; several at once claim one issue each.
    concurrency:
      group: ralph-work-${{ github.event.issue.number || inputs.issue || github.event.client_payload.issue || 'next' }}
      cancel-in-progress: false
    permissions:
      contents: write # the memory branch, ralph/* branches, waking the review by a dispatch
      issues: write # labels and comments of the issue, and where memory stands
      pull-requests: write # opening the pull request
      actions: read # whether a run that held the issue is still alive
KILL_SWITCH
    steps:
      # It checks the repository out itself.
      - id: ralph
        uses: ACTION
AGENT_KEYS
        with:
          mode: work
          issue: ${{ github.event.issue.number || inputs.issue || github.event.client_payload.issue }}
"""

PULL = """\
# What ralph proposes is looked at by an agent that never saw it being made; it comments, and a person approves.
# Forks and branches of other people start nothing; that the pull request is ralph's own, ralph asks GitHub again.
RISK
name: ralph-review

on:
  pull_request:
    types: [opened, reopened, synchronize, labeled]
  workflow_dispatch:
    inputs:
      pull-request:
        description: Number of the pull request
        type: string
        required: true
      force:
        description: Look at it again, even if nothing has changed
        type: boolean
        default: false
  repository_dispatch:
    types: [DISPATCH]

NOTHING_BY_DEFAULT

jobs:
  review:
    name: One pull request
    # The label ralph:review, set by a person, asks for another look.
    if: >-
      github.event_name != 'pull_request'
      || (github.event.pull_request.head.repo.full_name == github.repository
      && startsWith(github.event.pull_request.head.ref, 'ralph/')
      && (github.event.action != 'labeled' || github.event.label.name == 'ralph:review'))
    runs-on: RUNNER
    timeout-minutes: 60
    # One review of a pull request at a time; of those that wait the last one will do.
    concurrency:
      group: >-
        ralph-review-${{
        github.event.pull_request.number || inputs.pull-request || github.event.client_payload.pull_request }}
      cancel-in-progress: false
    permissions:
      contents: write # the memory branch
      issues: write # where memory stands
      pull-requests: write # the one comment review
ALIVE
KILL_SWITCH
    steps:
      # It checks the default branch out itself, and never what the pull request would make of it.
      - id: ralph
        uses: ACTION
AGENT_KEYS
        with:
          mode: review
          pull-request: >-
            ${{ github.event.pull_request.number || inputs.pull-request || github.event.client_payload.pull_request }}
          force: ${{ inputs.force || github.event.label.name == 'ralph:review' }}
"""

TEXTS = """\
# Texts that speak for the project: an issue shows them, a person labels it content:approved, and they are published.
# Whose label counts, and whether the text is still the one that was approved, is for ralph to say.
RISK
name: ralph-publish

on:
  issues:
    types: [labeled]
  workflow_dispatch:
    inputs:
      issue:
        description: Number of the issue
        type: string
        required: true
  repository_dispatch:
    types: [DISPATCH]

NOTHING_BY_DEFAULT

jobs:
  publish:
    name: One text
    if: github.event_name != 'issues' || github.event.label.name == 'content:approved'
    runs-on: RUNNER
    timeout-minutes: 20
    # One job for an issue; the memory branch keeps it apart from a cycle.
    concurrency:
      group: ralph-publish-${{ github.event.issue.number || inputs.issue || github.event.client_payload.issue }}
      cancel-in-progress: false
    permissions:
      contents: write # the memory branch
      issues: write # the receipts, labels, and where memory stands
      pull-requests: read # whether anything of ralph's is there
ALIVE
KILL_SWITCH
    steps:
      # It checks the repository out itself.
      - id: ralph
        uses: ACTION
        with:
          mode: publish
          issue: ${{ github.event.issue.number || inputs.issue || github.event.client_payload.issue }}
          # Each network is optional; store what it needs in Settings, Secrets and variables, Actions.
          twitter-api-key: ${{ secrets.TWITTER_API_KEY }}
          twitter-api-secret: ${{ secrets.TWITTER_API_SECRET }}
          twitter-access-token: ${{ secrets.TWITTER_ACCESS_TOKEN }}
          twitter-access-token-secret: ${{ secrets.TWITTER_ACCESS_TOKEN_SECRET }}
          telegram-bot-token: ${{ secrets.TELEGRAM_BOT_TOKEN }}
          telegram-channel-id: ${{ secrets.TELEGRAM_CHANNEL_ID }}
          discord-webhook-url: ${{ secrets.DISCORD_WEBHOOK_URL }}
"""

TEMPLATES = {"work": ISSUE, "review": PULL, "publish": TEXTS}
DISPATCHES = {"work": WORK, "review": REVIEW, "publish": PUBLISH}
