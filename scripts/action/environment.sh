#!/usr/bin/env bash
# Prints the folder of a Python environment with this very ralph_mission and what the settings of $GITHUB_WORKSPACE
# need; installs it when there is none. `environment.sh --place` only says where it would be.
#
# It is $RUNNER_TOOL_CACHE/ralph-mission/KEY. KEY is a hash of the lock files, of every source file of the package, of
# the Pythons of this machine, of $RALPH_EXTRAS and of the settings ($RALPH_CONFIG, else ralph.yml): another version of
# any of them is another environment. KEY is a link that appears when its target is whole (install.py), so no job ever
# sees half an environment, and two look-ups of a file are all that a warm start needs.
set -euo pipefail
export LC_ALL=C
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
action="$(dirname "$(dirname "$here")")"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"
workspace="${GITHUB_WORKSPACE:-}" settings="${RALPH_CONFIG:-ralph.yml}"
if command -v sha256sum >/dev/null; then digest=(sha256sum); else digest=(shasum -a 256); fi

extras=()
while read -r extra; do
  if [ -n "$extra" ]; then extras+=("$extra"); fi
done < <(printf '%s\n' ${RALPH_EXTRAS:-} | sort -u)

# Names and hashes; what Python compiled beside them is no source.
sources() {
  cd "$action"
  find pyproject.toml requirements*.lock scripts/action/install.py ralph_mission -type f ! -name '*.py[co]' -print0 |
    sort -z | xargs -0 "${digest[@]}"
}

pythons() {
  local name python
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if python="$(command -v "$name")"; then readlink -f "$python"; fi
  done
}

# What decides about extras: those that were asked for, what the settings say, whether there are workflows.
needs() {
  printf '%s\n' ${extras[@]+"${extras[@]}"}
  if [ -z "$workspace" ]; then return; fi
  if [ -f "$workspace/$settings" ]; then "${digest[@]}" <"$workspace/$settings"; fi
  if [ -d "$workspace/.github/workflows" ]; then echo workflows; fi
}

key() {
  { uname -sm && pythons && needs && sources; } | "${digest[@]}" | cut -c1-32
}

place="${RUNNER_TOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}}/ralph-mission/$(key)"
if [ "${1-}" != --place ] && ! { [ -x "$place/bin/python" ] && [ -x "$place/bin/ralph" ]; }; then
  python="$(newest_python)" || {
    echo 'Python 3.11 or newer is needed: install it, or use actions/setup-python before this action' >&2
    exit 1
  }
  "$python" -I "$here/install.py" "$action" "$place" "$workspace" "${RALPH_CONFIG:-}" ${extras[@]+"${extras[@]}"} >&2
fi
[ "${1-}" = --place ] || touch "$place.used" # what nobody uses for a month is removed by the next installation
printf '%s\n' "$place"
