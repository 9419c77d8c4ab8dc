#!/usr/bin/env bash
# The texts of one issue, if somebody approved them. ralph itself writes this step's outputs and summary; the exit code
# is its own.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

given_inputs
without_empty_keys
cd "$GITHUB_WORKSPACE"
command=(publish "--issue=$RALPH_ISSUE")
if [ -n "$RALPH_CONFIG" ]; then command+=("--config=$RALPH_CONFIG"); fi

code=0
ralph "${command[@]}" --repo "$GITHUB_WORKSPACE" || code=$?
if [ "$code" -ne 0 ]; then
  printf '::error title=Ralph::Publishing failed (exit code %d): the summary says why\n' "$code" >&2
fi
exit "$code"
