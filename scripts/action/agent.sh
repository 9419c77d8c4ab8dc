#!/usr/bin/env bash
# An agent works on one issue, or reviews one pull request. ralph itself writes this step's outputs and summary; the
# exit code is its own.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

given_inputs
without_empty_keys
cd "$GITHUB_WORKSPACE"
case "$RALPH_MODE" in
  work) command=(work --once) what='The work on an issue' ;;
  review) command=(review "--pr=$RALPH_PULL_REQUEST") what='The review' ;;
esac
if [ -n "$RALPH_ISSUE" ]; then command+=("--issue=$RALPH_ISSUE"); fi
if [ -n "$RALPH_AGENT" ]; then command+=("--agent=$RALPH_AGENT"); fi
if [ -n "$RALPH_CONFIG" ]; then command+=("--config=$RALPH_CONFIG"); fi
if [ "$RALPH_FORCE" = true ]; then command+=(--force); fi

code=0
ralph "${command[@]}" --repo "$GITHUB_WORKSPACE" || code=$?
case "$code" in
  0) ;;
  2) printf '::error title=Ralph::%s ended at a limit (exit code 2): the summary says at which\n' "$what" >&2 ;;
  *) printf '::error title=Ralph::%s failed (exit code %d): the summary says why\n' "$what" "$code" >&2 ;;
esac
exit "$code"
