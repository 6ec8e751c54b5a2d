#!/usr/bin/env bash
# Every check that needs no root and no cluster, in one go; each prints only when it has something to say.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=0
started=$SECONDS

run() { # run NAME COMMAND...
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    printf 'ok: %s\n' "$name"
  else
    printf '%s\nfailed: %s\n' "$output" "$name"
    failed=1
  fi
}

run format biome format .
run types tsc --noEmit
run 'lint and layers' oxlint --type-aware --deny-warnings
run 'unused code' knip --no-progress
# Three workers, however few processors: many tests wait for sockets and timers.
run 'unit tests' vitest run --project unit --reporter=default --maxWorkers=3
echo "checked in $((SECONDS - started)) s"
exit $failed
