#!/usr/bin/env bash
# Last step of the action, whatever happened: the scratch folder with the report, and what a killed run left in it.
set -euo pipefail
case "$RALPH_SCRATCH" in
  */ralph-????????) rm -rf -- "$RALPH_SCRATCH" ;;
esac
