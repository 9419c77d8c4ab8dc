# shellcheck shell=bash
# What the steps of action.yml share. Sourced, never run. Written for bash 3.2, which macOS still has.

# Another repository than the workflow's own is looked after as if it were: only whose run this is stays.
if [ -n "${RALPH_REPOSITORY:-}" ]; then
  export RALPH_CONTROL_REPOSITORY="${GITHUB_REPOSITORY:-}" GITHUB_REPOSITORY="$RALPH_REPOSITORY"
fi
unset RALPH_REPOSITORY

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

# newest_python: the first Python here that ralph runs on.
newest_python() {
  local name python
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if python="$(command -v "$name")" && "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      printf '%s\n' "$python"
      return
    fi
  done
  return 1
}

ralph_program=("${RALPH_PYTHON:-python3}" -I -m ralph_mission)

# ralph ARGUMENTS...: run it, its document into the scratch folder, the rest to the log. The exit code is its own.
ralph() {
  TMPDIR="$(temporary)"
  export TMPDIR
  quietly ralph_with_reports "$@"
}

# temporary: where ralph makes what it needs for a moment, one for all steps: in the scratch folder.
temporary() {
  mkdir -p "$RALPH_SCRATCH/tmp"
  (cd "$RALPH_SCRATCH/tmp" && pwd -P)
}

ralph_with_reports() {
  local child report code=0
  "${ralph_program[@]}" "$@" --json >"$RALPH_SCRATCH/told.json" &
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

# clones_of_missions: where they are on a runner of one's own: in the tool cache, by the place of this checkout
# (`app/agent_jobs.py`), for another runner may be at its own there. Nothing without a checkout.
clones_of_missions() {
  local digest repository
  if [ -z "${RUNNER_TOOL_CACHE:-}" ] || [ ! -d "$GITHUB_WORKSPACE/.git" ]; then return; fi
  digest="$(printf %s "$(cd "$GITHUB_WORKSPACE/.git" && pwd -P)" | { sha256sum 2>/dev/null || shasum -a 256; })"
  repository="$(printf %s "${GITHUB_REPOSITORY:-}" | tr '[:upper:]/' '[:lower:]+')"
  printf '%s\n' "$RUNNER_TOOL_CACHE/ralph/$repository/missions-${digest:0:12}"
}

# started_with OPTIONS...: the processes in whose environment grep finds it; a variable is a line there.
started_with() {
  grep -laz "$@" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

# none_of COMMAND...: end the processes that it names, until it names none. Only Linux tells who they are.
none_of() {
  local left
  if [ ! -r /proc/self/environ ]; then return 0; fi
  for _ in 1 2 3 4 5 6 7 8 9; do
    left="$("$@")" || true
    if [ -z "$left" ]; then return 0; fi
    # shellcheck disable=SC2086 # numbers
    kill -KILL $left 2>/dev/null || true
  done
}

# living_in FOLDER...: the processes with a home or a TMPDIR in there, or with the folder itself for one.
living_in() {
  local folder real inside=() whole=()
  for folder; do
    if [ -z "$folder" ]; then continue; fi
    real="$(cd "$folder" 2>/dev/null && pwd -P)" || real="$folder" # it may be gone, and they not
    case "$real" in *$'\n'*) continue ;; esac # grep would look for each line, and an empty one is everywhere
    inside+=(-e "HOME=$real/" -e "TMPDIR=$real/")
    whole+=(-e "TMPDIR=$real")
  done
  if [ "${#whole[@]}" -eq 0 ]; then return 0; fi
  started_with -F "${inside[@]}"
  started_with -xF "${whole[@]}"
}

# nothing_runs_on FOLDER...: end whoever lives in there: a step that was killed could not. Its children have no variable
# of the runner's, by which that would find them.
nothing_runs_on() {
  none_of living_in "$@"
}

# variable PROCESS NAME: what the process was started with, "" without it. Read whole: a value may quote another.
variable() {
  local each
  while IFS= read -r -d '' each; do
    if [ "${each%%=*}" = "$2" ]; then printf '%s' "${each#*=}"; fi
  done 2>/dev/null <"/proc/$1/environ"
}

# lineage: this process, and those that it descends from, up to the runner's own and the first of all.
lineage() {
  local process="${BASHPID:-$$}"
  while [ "${process:-0}" -gt 0 ]; do
    printf '%s\n' "$process"
    process="$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$process/status" 2>/dev/null)" || break
  done
}

# among PROCESS: whether it is where we are, and not in a container, where a workspace may be called as ours is.
among() {
  [ "$(readlink "/proc/$1/ns/pid" 2>/dev/null)" = "$(readlink /proc/self/ns/pid)" ]
}

# earlier_runs: who works for a step of an earlier job in this workspace: before the checkout none of this job's does,
# whatever scratch folder the workflow itself names to all of them. Neither we nor who started us are among them, and
# another user's processes have no say in whom root is to end.
earlier_runs() {
  local process ours
  ours=" $(lineage | tr '\n' ' ') "
  for process in $(started_with -xF -e "GITHUB_WORKSPACE=$GITHUB_WORKSPACE"); do
    case "$ours" in *" $process "*) continue ;; esac
    if ! [ -O "/proc/$process" ] || ! among "$process"; then continue; fi
    case "$(variable "$process" RALPH_SCRATCH)" in
      "" | "${RALPH_SCRATCH:-}") ;;
      *) printf '%s\n' "$process" ;;
    esac
  done
}

# no_earlier_run: end what a runner that was killed itself left, and what lives in its scratch folder, which nobody else
# can name any more.
no_earlier_run() {
  local process folder folders=()
  for process in $(earlier_runs); do
    folder="$(variable "$process" TMPDIR)" || continue # it ended meanwhile
    case "$folder" in */ralph-????????/tmp) folders+=("$folder") ;; esac
  done
  none_of earlier_runs
  nothing_runs_on ${folders[@]+"${folders[@]}"}
}

# nothing_runs_here: end what an earlier run of ralph left running in this checkout, its clones or its scratch folder.
nothing_runs_here() {
  nothing_runs_on "$GITHUB_WORKSPACE/.ralph" "$(clones_of_missions)" "${RALPH_SCRATCH:-}" \
    ${RALPH_SCRATCH:+"$RALPH_SCRATCH/tmp"}
}

# settings_of FILE COMMAND...: git's own way to read and write one file of settings, wherever we are.
settings_of() {
  local file="$1"
  shift
  git -C / config --file "$file" "$@"
}

# plain_repository FOLDER: of git's own files there only those keep a say that hold history. An earlier job may have
# left hooks, filters, another server for ours, borrowed objects, an index that hides a change, a token of its own.
plain_repository() {
  local written key value kept
  if [ -L "$1" ] || [ -f "$1" ]; then rm -f -- "$1"; fi
  if [ ! -d "$1" ]; then return 0; fi
  # Whoever lacks objects on purpose (a partial clone, one that borrows) can no longer say so: it is made anew.
  if [ -e "$1/objects/info/alternates" ] || compgen -G "$1/objects/pack/*.promisor" >/dev/null; then
    rm -rf -- "$1"
    return 0
  fi
  rm -rf -- "$1/hooks" "$1/info" "$1/index" "$1/config.worktree" "$1/commondir" "$1/modules"
  written="$(mktemp "$1/config-XXXXXXXX")"
  kept='^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)'
  kept="$kept"'|extensions\.(objectformat|refstorage)|remote\.origin\.(url|fetch))$'
  while IFS=$'\n' read -r -d '' key value; do
    case "$key=$value" in *://*@*) continue ;; esac
    if [[ "$key" =~ $kept ]]; then settings_of "$written" --add "$key" "$value"; fi
  done < <(settings_of "$1/config" --no-includes --list --null 2>/dev/null)
  mv -f -- "$written" "$1/config"
}

# without_credentials FOLDER: what a checkout that was killed left in git's settings there, and the file it named there.
without_credentials() {
  local key path
  if [ ! -f "$1/config" ]; then return 0; fi
  while IFS= read -r path; do
    case "${path#"${RUNNER_TEMP:-/nowhere}"/}" in
      */*) ;;
      git-credentials-*.config) rm -f -- "$path" ;;
    esac
  done < <(settings_of "$1/config" --get-regexp '^includeif\..*\.path$' 2>/dev/null | cut -d ' ' -f 2-)
  while IFS= read -r key; do
    settings_of "$1/config" --unset-all "$key" || true
  done < <(settings_of "$1/config" --name-only --get-regexp '^(includeif|credential|http)\.' 2>/dev/null | sort -u)
}
