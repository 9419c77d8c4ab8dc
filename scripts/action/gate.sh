#!/usr/bin/env bash
# Is a cycle due? Asked before anything is checked out, by looking at the memory branch on the server.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

code=0
ralph due --repo "$GITHUB_WORKSPACE" || code=$?
case "$code" in
  0) output due true ;;
  10)
    next="$(sed -n 's/.*"next_due_at": "\([0-9TZ:+-]*\)".*/\1/p' "$RALPH_SCRATCH/told.json")"
    output due false
    output next-due-at "$next"
    output actions-taken 0
    tell "Ralph: nothing was done${next:+, the next cycle is due at $next}."
    ;;
  *) exit "$code" ;;
esac
