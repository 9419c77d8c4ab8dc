#!/usr/bin/env bash
# First step of the action: refuse inputs that mean nothing, find or install the environment, make a scratch folder.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

case "$RALPH_MODE" in
  cycle | wake) ;;
  *) fail 2 "The input mode is neither cycle nor wake" "write mode: cycle" ;;
esac
# A staged run that was mistyped must not become a real one. Nothing is what a schedule has for `inputs.staged`.
for flag in "$RALPH_STAGED" "$RALPH_FORCE"; do
  case "$flag" in
    true | false | '') ;;
    *) fail 2 "The input staged or force is neither true nor false" "write staged: true" ;;
  esac
done
if [ "$RALPH_MODE" = wake ]; then exit 0; fi

environment="$(bash "$here/environment.sh")" ||
  fail 1 "ralph_mission could not be installed" "read the log of this step; nothing was done, the next wake tries again"
output python "$environment/bin/python"
output scratch "$(mktemp -d "${RUNNER_TEMP:-/tmp}/ralph-XXXXXXXX")"
