#!/usr/bin/env bash
# First step of the action: refuse inputs that mean nothing, make a scratch folder.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
repository="${RALPH_REPOSITORY:-}"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

case "$RALPH_MODE" in
  cycle | work | review | publish | fleet) ;;
  *) fail 2 "The input mode is none of cycle, work, review, publish, fleet" "write mode: cycle" ;;
esac
# A staged run that was mistyped must not become a real one. Nothing is what a schedule has for `inputs.staged`.
for flag in "$RALPH_STAGED" "$RALPH_FORCE"; do
  case "$flag" in
    true | false | '') ;;
    *) fail 2 "The input staged or force is neither true nor false" "write staged: true" ;;
  esac
done
issue="${RALPH_ISSUE:-}" pull="${RALPH_PULL_REQUEST:-}" agent="${RALPH_AGENT:-}"
for number in "$issue" "$pull"; do
  if ! [[ "$number" =~ ^([1-9][0-9]{0,8})?$ ]]; then
    fail 2 "The input issue or pull-request is no number" "write it like 7"
  fi
done
if ! [[ "$agent" =~ ^([a-z][a-z0-9-]{0,39})?$ ]]; then
  fail 2 "The input agent is no name of an agent" "write agent: claude"
fi
if ! [[ "$repository" =~ ^([A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})?$ ]] || [[ "$repository" =~ /\.\.?$ ]]; then
  fail 2 "The input repository is no name of a repository" "write repository: owner/name"
fi
for extra in ${RALPH_EXTRAS:-}; do
  case "$extra" in
    acp | app | charts | claude | database | llm | mcp | prisma | ui | web | workflows | x) ;;
    *) fail 2 "The input extras names none of acp, app, charts, claude, database, llm, mcp, prisma, ui, web, workflows, x" "write extras: llm web" ;;
  esac
done

# only NAME VALUE MODE...: an input that would be ignored is refused, because somebody meant something by it.
only() {
  local name="$1" value="$2" mode
  shift 2
  case "$value" in '' | false) return ;; esac
  for mode; do
    if [ "$mode" = "$RALPH_MODE" ]; then return; fi
  done
  fail 2 "The input $name means nothing with mode: $RALPH_MODE" "leave it out"
}
only issue "$issue" work publish
only pull-request "$pull" review
only agent "$agent" work review
only repository "$repository" cycle
only staged "$RALPH_STAGED" cycle
only force "$RALPH_FORCE" cycle review
if [ "$RALPH_MODE,$pull" = review, ]; then
  fail 2 "The input pull-request is missing" "write pull-request: NUMBER"
fi
if [ "$RALPH_MODE,$issue" = publish, ]; then
  fail 2 "The input issue is missing" "write issue: NUMBER"
fi

# Git obeys these before any setting, and nothing that a step says can take them away again.
for name in $(compgen -e); do
  case "$name" in
    GIT_DIR | GIT_WORK_TREE | GIT_COMMON_DIR | GIT_INDEX_FILE | GIT_OBJECT_DIRECTORY | GIT_ALTERNATE_OBJECT_DIRECTORIES | \
      GIT_NAMESPACE | GIT_EXEC_PATH | GIT_SSL_NO_VERIFY | GIT_PROXY_COMMAND | GIT_EXTERNAL_DIFF | GIT_SSH | GIT_SSH_COMMAND)
      fail 2 "The variable $name leads git elsewhere" "take it out of the job and out of the runner's .env"
      ;;
  esac
done

output scratch "$(mktemp -d "${RUNNER_TEMP:-/tmp}/ralph-XXXXXXXX")"
