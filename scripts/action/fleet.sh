#!/usr/bin/env bash
# Which repositories of fleet.yml are due? Asked with nothing installed but PyYAML. ralph itself writes this step's outputs
# and summary; the exit code is its own.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

python="$(newest_python)" || fail 1 "No Python 3.11 is installed" "use a runner that has one, such as ubuntu-latest"
"$python" -I -c 'import yaml' 2>/dev/null ||
  fail 1 "PyYAML is not installed for $python" "install it on the runner (ubuntu-latest has it)"
ralph_program=("$python" -I -B "$here/ralph.py")

options=()
if [ -n "${RALPH_CONFIG:-}" ]; then options+=("--config=$RALPH_CONFIG"); fi
# The page in HTML, for the workflow to keep: where the package that escapes its texts is installed too.
page="$RUNNER_TEMP/ralph-fleet.html"
rm -f "$page"
if "$python" -I -c 'import markupsafe' 2>/dev/null; then options+=("--page=$page"); else
  echo "note: no page in HTML, as MarkupSafe is not installed for $python (ubuntu-latest has it)" >&2
fi
cd "$GITHUB_WORKSPACE"
code=0
ralph fleet due --repo "$GITHUB_WORKSPACE" ${options[@]+"${options[@]}"} || code=$?
if [ "$code" -ne 0 ]; then
  printf '::error title=Ralph::The fleet could not be looked at (exit code %d): the log says who must act\n' "$code" >&2
fi
if [ -e "$page" ]; then output page "$page"; fi
exit "$code"
