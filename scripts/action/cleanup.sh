#!/usr/bin/env bash
# Last step of the action, whatever happened: nothing of ralph runs any more, and nothing of what it was given stays: the
# report in the scratch folder, and what a killed run left in it; of agents their clones, and in these their homes,
# where a client may have put its key; what a checkout that was cut off left in git's settings.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

# Before the checkout nothing was started that could stay; most wakes end there. What cannot be seen to keeps nothing
# else from being removed, and is told by the exit code.
failed=0
case "${RALPH_CHECKOUT:-}" in
  success | failure | cancelled)
    nothing_runs_here || failed=1
    without_credentials "$GITHUB_WORKSPACE/.git" || failed=1
    ;;
esac
# The checkout ends after us, and writes git's settings into the folder once more: it stays, empty, until the runner
# empties its own temporary folder.
case "$RALPH_SCRATCH" in
  */ralph-????????)
    rm -rf -- "$RALPH_SCRATCH"
    case "${RALPH_CHECKOUT:-}" in success | failure | cancelled) mkdir -m 700 -- "$RALPH_SCRATCH" || failed=1 ;; esac
    ;;
esac
if [ -z "${GITHUB_WORKSPACE:-}" ]; then exit "$failed"; fi
state="$GITHUB_WORKSPACE/.ralph"
if [ -L "$state" ]; then exit "$failed"; fi
rm -rf -- "$state/work" "$state/review"

# Clones of missions stay, without the homes in them.
homeless() {
  local tree part
  for tree in "$1"/*/tree; do
    for part in "$tree" "$tree/.ralph" "$tree/.ralph/loop"; do
      if [ -L "$part" ] || [ ! -d "$part" ]; then continue 2; fi
    done
    rm -rf -- "$tree/.ralph/loop/home" "$tree/.ralph/loop/apart"
  done
}
homeless "$state/missions"
clones="$(clones_of_missions)"
if [ -n "$clones" ]; then homeless "$clones"; fi
exit "$failed"
