#!/usr/bin/env bash
# On GitHub's Ubuntu runners: what keeps agents apart, where the settings name an agent. They have no bubblewrap, and
# their AppArmor lets only programs with a profile make namespaces. What cannot be had is one line, no failure: ralph
# itself lets no agent play without.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

if [ "${RUNNER_ENVIRONMENT:-}" != github-hosted ] || [ "${RUNNER_OS:-}" != Linux ]; then exit 0; fi

named() {
  local program='import sys; from ralph_mission.app.extras import names_agent; sys.exit(not names_agent(sys.argv[1:]))'
  [ -n "${RALPH_AGENT:-}" ] ||
    "$RALPH_PYTHON" -I -c "$program" "$GITHUB_WORKSPACE" ${RALPH_CONFIG:+"$RALPH_CONFIG"} 2>/dev/null
}

works() {
  bwrap --unshare-all --ro-bind / / true 2>/dev/null
}

get() {
  command -v bwrap >/dev/null || sudo -n apt-get install --yes --quiet bubblewrap ||
    { sudo -n apt-get update --quiet && sudo -n apt-get install --yes --quiet bubblewrap; }
}

# This program alone may make user namespaces; nothing else about it changes.
allow() {
  printf '%s\n' 'abi <abi/4.0>,' 'include <tunables/global>' \
    'profile ralph-bwrap /usr/bin/bwrap flags=(unconfined) {' '  userns,' '}' |
    sudo -n tee /etc/apparmor.d/ralph-bwrap >/dev/null
  sudo -n apparmor_parser --replace /etc/apparmor.d/ralph-bwrap
}

if works || ! named; then exit 0; fi
missing=
get >&2 || missing='the package bubblewrap could not be installed'
if [ -z "$missing" ] && ! works; then
  allow >&2 || missing='an AppArmor profile for /usr/bin/bwrap could not be loaded'
  if [ -z "$missing" ] && ! works; then missing='bwrap may make no namespaces here'; fi
fi
if [ -n "$missing" ]; then
  printf '::warning title=Ralph::%s: no agent plays on this runner (docs/agents.md#isolation)\n' "$missing" >&2
  tell "No agent plays on this runner: $missing."
fi
