#!/usr/bin/env bash
# Start the review of what ralph proposed. What GitHub starts itself, and what was asked for before, is left alone.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

# Most repositories have nobody to wake: then nothing is started to find that out.
grep -rqs ralph-review-trigger "$GITHUB_WORKSPACE/.github/workflows" || exit 0

options=()
if [ -n "$RALPH_CONFIG" ]; then options+=("--config=$RALPH_CONFIG"); fi
ralph wake --review --repo "$GITHUB_WORKSPACE" ${options[@]+"${options[@]}"}
