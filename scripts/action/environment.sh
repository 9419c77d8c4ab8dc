#!/usr/bin/env bash
# Prints the folder of a Python environment with this very ralph_mission in it; installs it when there is none.
# `environment.sh --place` only says where it would be.
#
# It is $RUNNER_TOOL_CACHE/ralph-mission/KEY. KEY is a hash of the lock files ($RALPH_EXTRAS names those besides
# requirements.lock), of every source file of the package and of the Pythons of this machine: another version of any of them is another environment. KEY is a link that
# appears when its target is whole (install.py), so no job ever sees half an environment, and two look-ups of a
# file are all that a warm start needs.
set -euo pipefail
export LC_ALL=C
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
action="$(dirname "$(dirname "$here")")"
pythons=()
for name in python3 python3.14 python3.13 python3.12 python3.11; do
  if found="$(command -v "$name")"; then pythons+=("$found"); fi
done

if command -v sha256sum >/dev/null; then digest=(sha256sum); else digest=(shasum -a 256); fi

extras=()
while read -r extra; do
  if [ -n "$extra" ]; then extras+=("$extra"); fi
done < <(printf '%s\n' ${RALPH_EXTRAS:-} | sort -u)
locks=(requirements.lock)
for extra in ${extras[@]+"${extras[@]}"}; do locks+=("requirements-$extra.lock"); done

# Names and hashes; what Python compiled beside them is no source.
sources() {
  cd "$action"
  find pyproject.toml "${locks[@]}" scripts/action/install.py ralph_mission -type f ! -name '*.py[co]' -print0 |
    sort -z | xargs -0 "${digest[@]}"
}

key() {
  { uname -sm && readlink -f ${pythons[@]+"${pythons[@]}"} /dev/null && sources; } | "${digest[@]}" | cut -c1-32
}

newest() {
  for python in ${pythons[@]+"${pythons[@]}"}; do
    if "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s\n' "$python"
      return
    fi
  done
  echo 'Python 3.11 or newer is needed: install it, or use actions/setup-python before this action' >&2
  return 1
}

place="${RUNNER_TOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}}/ralph-mission/$(key)"
if [ "${1-}" != --place ] && ! { [ -x "$place/bin/python" ] && [ -x "$place/bin/ralph" ]; }; then
  python="$(newest)"
  "$python" -I "$here/install.py" "$action" "$place" ${extras[@]+"${extras[@]}"} >&2
fi
[ "${1-}" = --place ] || touch "$place.used" # what nobody uses for a month is removed by the next installation
printf '%s\n' "$place"
