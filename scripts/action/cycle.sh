#!/usr/bin/env bash
# One cycle. ralph itself writes this step's outputs and summary; the exit code is its own.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

given_inputs
without_empty_keys
cd "$GITHUB_WORKSPACE"
options=()
if [ -n "$RALPH_CONFIG" ]; then options+=("--config=$RALPH_CONFIG"); fi
if [ "$RALPH_STAGED" = true ]; then options+=(--staged); fi
if [ "$RALPH_FORCE" = true ]; then options+=(--force); fi

code=0
ralph cycle --repo "$GITHUB_WORKSPACE" ${options[@]+"${options[@]}"} || code=$?
if [ "$code" -ne 0 ]; then
  printf '::error title=Ralph::The cycle failed (exit code %d): the summary says who must act\n' "$code" >&2
fi
exit "$code"
