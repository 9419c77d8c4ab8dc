#!/usr/bin/env bash
# Last step of the action, whatever happened: the scratch folder with the report, and what a killed run left in it; of
# agents their clones, and in these their homes, where a client may have put its key.
set -euo pipefail
case "$RALPH_SCRATCH" in
  */ralph-????????) rm -rf -- "$RALPH_SCRATCH" ;;
esac
if [ -z "${GITHUB_WORKSPACE:-}" ]; then exit 0; fi
state="$GITHUB_WORKSPACE/.ralph"
if [ -L "$state" ]; then exit 0; fi
rm -rf -- "$state/work" "$state/review"

# Clones of missions stay, without the homes in them. On a runner of one's own they are in the tool cache, by the place
# of this checkout (`bootstrap/coding.clones`): another runner may be at its own there.
homeless() {
  local tree part
  for tree in "$1"/*/tree; do
    for part in "$tree" "$tree/.ralph" "$tree/.ralph/loop"; do
      if [ -L "$part" ] || [ ! -d "$part" ]; then continue 2; fi
    done
    rm -rf -- "$tree/.ralph/loop/home" "$tree/.ralph/loop/apart"
  done
}
homeless "$state/missions"
if [ -n "${RUNNER_TOOL_CACHE:-}" ] && [ -d "$GITHUB_WORKSPACE/.git" ]; then
  digest="$(printf %s "$(cd "$GITHUB_WORKSPACE/.git" && pwd -P)" | { sha256sum 2>/dev/null || shasum -a 256; })"
  repository="$(printf %s "${GITHUB_REPOSITORY:-}" | tr '[:upper:]/' '[:lower:]+')"
  homeless "$RUNNER_TOOL_CACHE/ralph/$repository/missions-${digest:0:12}"
fi
