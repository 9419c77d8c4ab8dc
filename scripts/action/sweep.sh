#!/usr/bin/env bash
# Before the repository is checked out: what an earlier job left in the workspace has no say in this one.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

no_earlier_run
nothing_runs_here
plain_repository "$GITHUB_WORKSPACE/.git"
