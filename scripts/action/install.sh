#!/usr/bin/env bash
# After the checkout: one environment with all that its settings need, found or installed. The output `python` is the one
# to go on with.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

environment="$(bash "$here/environment.sh")" ||
  fail 1 "ralph_mission could not be installed" "read the log of this step; nothing was done, the next wake tries again"
output python "$environment/bin/python"
RALPH_PYTHON="$environment/bin/python" bash "$here/bubblewrap.sh"
