# shellcheck shell=bash
# What the steps of action.yml share. Sourced, never run. Written for bash 3.2, which macOS still has.

# 128 bits that nobody can guess, in hexadecimal.
random() {
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# output NAME VALUE: an output of this step. The delimiter is random, so that no value can forge another output.
output() {
  local mark
  mark="ralph-$(random)"
  printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >>"$GITHUB_OUTPUT"
}

# tell LINE: one line of the job's summary; ours, never somebody else's text.
tell() {
  printf '%s\n\n' "$1" >>"$GITHUB_STEP_SUMMARY"
}

# fail CODE WHAT NEXT: what is wrong and what to do next, on the job's page and in the log; both texts are ours.
fail() {
  printf '::error title=Ralph::%s\n' "$2: $3" >&2
  tell "**Ralph could not start.** $2. Next: $3."
  exit "$1"
}

# A secret that the repository does not have is an empty variable; an agent would take that for its key.
without_empty_keys() {
  local name
  for name in $(compgen -e); do
    case "$name" in *_KEY | *_TOKEN) if [ -z "${!name}" ]; then unset "$name"; fi ;; esac
  done
}

# Inputs of the action by the names that ralph knows. One that was not given leaves what the workflow's `env:` says.
given_inputs() {
  local given
  for given in "${!RALPH_INPUT_@}"; do
    if [ -n "${!given}" ]; then export "${given#RALPH_INPUT_}=${!given}"; fi
    unset "$given"
  done
}

# quietly COMMAND...: run it with the runner deaf to commands: what it prints may quote anybody.
quietly() {
  local mark code=0
  mark="ralph-$(random)"
  printf '::stop-commands::%s\n' "$mark" >&2
  "$@" || code=$?
  printf '\n::%s::\n' "$mark" >&2
  return "$code"
}

# ralph ARGUMENTS...: run it, its document into the scratch folder, the rest to the log. The exit code is its own.
ralph() {
  mkdir -p "$RALPH_SCRATCH/tmp"
  export TMPDIR="$RALPH_SCRATCH/tmp"
  quietly ralph_with_reports "$@"
}

ralph_with_reports() {
  local child report code=0
  "$RALPH_PYTHON" -I -m ralph_mission "$@" --json >"$RALPH_SCRATCH/told.json" &
  child=$!
  # Who cancels a job signals this shell alone, and kills everything ten seconds later.
  trap 'kill -TERM "$child" 2>/dev/null || true' INT TERM
  wait "$child" || code=$?
  while kill -0 "$child" 2>/dev/null; do
    code=0
    wait "$child" || code=$?
  done
  trap - INT TERM
  # A report of our own mistake would be removed with the job.
  for report in "$TMPDIR"/ralph-crash-*.txt "$GITHUB_WORKSPACE"/.ralph/ralph-crash-*.txt; do
    if [ -f "$report" ]; then cat "$report" >&2; fi
  done
  return "$code"
}
