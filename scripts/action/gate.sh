#!/usr/bin/env bash
# Is a cycle due? Asked before anything is installed or checked out: Python's standard library is enough.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

# In a fleet the gate of all repositories has seen that somebody spoke in this one: that is acted on whenever it comes.
case "${RALPH_FLEET:-}" in
  *'"spoke":true'*)
    if [ "${RALPH_PAUSED:-}" != 1 ]; then
      output due true
      exit 0
    fi
    ;;
esac

# Without a Python that fits, the installation says what is missing. What Python would compile here is not kept: the
# action's folder is part of the key of its environment, and may be the repository's own.
python="$(newest_python)" || {
  output due true
  exit 0
}
# It reads with the token: what signs for an app is not installed yet.
unset GITHUB_APP_ID GITHUB_APP_PRIVATE_KEY
ralph_program=("$python" -I -S -B "$here/ralph.py")

# A wake that is a few seconds early waits for the due one: turned away, cron would come back in a quarter of an hour.
options=(--wait=60)
if [ -n "${RALPH_CONFIG:-}" ]; then options+=("--config=$RALPH_CONFIG"); fi

code=0
ralph due --repo "$GITHUB_WORKSPACE" "${options[@]}" || code=$?
case "$code" in
  0)
    output due true
    if grep -q '"spoken": true' "$RALPH_SCRATCH/told.json"; then output spoken true; fi
    ;;
  10)
    next="$(sed -n 's/.*"next_due_at": "\([0-9TZ:+-]*\)".*/\1/p' "$RALPH_SCRATCH/told.json")"
    output due false
    output next-due-at "$next"
    output actions-taken 0
    tell "Ralph: nothing was done${next:+, the next cycle is due at $next}."
    ;;
  *) exit "$code" ;;
esac
