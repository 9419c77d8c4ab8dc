#!/usr/bin/env bash
# What ralph.yml names and the environment lacks is installed beside it, in an environment of its own for these extras:
# which ones they are can only be read after the checkout. The output `python` is the one to go on with.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

arguments=("$GITHUB_WORKSPACE")
if [ -n "${RALPH_CONFIG:-}" ]; then arguments+=("$RALPH_CONFIG"); fi
program='import sys; from ralph_mission.app.extras import main; main(sys.argv[1:])'
missing="$("$RALPH_PYTHON" -I -c "$program" "${arguments[@]}")" || missing=""
if [ -z "$missing" ]; then
  output python "$RALPH_PYTHON"
  exit
fi
export RALPH_EXTRAS="${RALPH_EXTRAS:-} $missing"
environment="$(bash "$here/environment.sh")" ||
  fail 1 "What ralph.yml needs could not be installed: $missing" \
    "read the log of this step; nothing was done, the next wake tries again"
output python "$environment/bin/python"
