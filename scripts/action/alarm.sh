#!/usr/bin/env bash
# A wake ended before ralph itself could start. The third one in a row opens an issue: silence must never mean death.
# Any Python will do that ralph could be installed with; without one nobody is left to tell it but the job's page.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

python="$(bash "$here/environment.sh" --python)"
quietly "$python" -I -B "$here/alarm.py" "$RALPH_FAILED"
