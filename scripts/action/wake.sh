#!/usr/bin/env bash
# Start the loop's workflow. Sent once: when the answer is lost, the heartbeat comes anyway.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/action/lib.sh
source "$here/lib.sh"

case "$GITHUB_TOKEN" in
  *[!A-Za-z0-9_.-]* | '') fail 2 'The input github-token holds no token' 'leave it out, or give a token' ;;
esac
repository="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY"

# The token reaches curl by its standard input: arguments can be read by every process of the machine.
ask() {
  printf 'header = "Authorization: Bearer %s"\n' "$GITHUB_TOKEN" |
    curl --disable --config - --silent --show-error --max-time 60 --header 'X-GitHub-Api-Version: 2022-11-28' "$@"
}

# What this wake is for, told to people: whoever is woken asks the gate, which reads memory itself. All that comes is
# taken, or curl would fail where the range is not heeded; what came before a failure counts.
head="$(ask --header 'Accept: application/vnd.github.raw+json' --range 0-2000 \
  "$repository/contents/memory/ralph-log.md?ref=ralph-memory" |
  { head -c 2000 && cat >/dev/null; } | sed -n '2,/^---$/p')" || true
generation="$(printf '%s\n' "$head" | sed -n 's/^generation: \([0-9]\{1,9\}\)$/\1/p' | head -n 1)"
due="$(printf '%s\n' "$head" | sed -n 's/^next_due_at: \([0-9TZ:+.-]\{1,40\}\)$/\1/p' | head -n 1)"
granted="$(printf '%s\n' "$head" | sed -n 's/^wake: \([a-z]\{1,5\}\)$/\1/p' | head -n 1)"
counted="$(printf '%s\n' "$head" | sed -n 's/^dispatches: \([0-9]\{1,6\}\)$/\1/p' | head -n 1)"
day="$(printf '%s\n' "$head" | sed -n 's/^today: "\([0-9-]\{10\}\)"$/\1/p' | head -n 1)"

# Each due time has one wake, and a day so many, whoever sends them: a new day owes one, unless no day has any. A day
# that a clock ahead of ours began is not over either.
if [ "$granted" = false ] && { ! [[ "$day" < "$(date -u +%Y-%m-%d)" ]] || [ "${counted:-0}" = 0 ]; }; then
  tell "Ralph: nobody was woken, today's wakes are used up."
  exit 0
fi
# A wake that is too early starts nothing, and the one of a later cycle is on its way.
later="$(($(date +%s) + 60))"
soon="$(date -u -d "@$later" +%Y-%m-%dT%H:%M:%S 2>/dev/null || date -u -r "$later" +%Y-%m-%dT%H:%M:%S)"
if [[ "${due:0:19}" > "$soon" ]]; then
  tell 'Ralph: nobody was woken, no cycle is due.'
  exit 0
fi
payload="{\"not_before\": \"$due\", \"generation\": ${generation:-0}}"

status="$(ask --output /dev/null --write-out '%{http_code}' --header 'Accept: application/vnd.github+json' \
  --data "{\"event_type\": \"ralph-loop-trigger\", \"client_payload\": $payload}" "$repository/dispatches")" || true
case "$status" in
  204) tell 'Ralph: the loop was woken.' ;;
  401 | 403 | 404) fail 1 "The token may not wake the loop (HTTP $status)" 'give the job permissions: contents: write' ;;
  *) fail 1 "GitHub could not be asked to wake the loop (HTTP $status)" 'nothing: the next heartbeat comes anyway' ;;
esac
