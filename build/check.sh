#!/usr/bin/env bash
# Every check that needs no root and no cluster. A check prints its output only if it fails; what is skipped stands last.
# Usage: check.sh [--static]   --static: without tests, for `make test`
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
failed=0
started=$SECONDS

run() { # run NAME COMMAND...: says at once whether it passed, and its output if it did not
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    printf 'ok: %s\n' "$name"
  else
    printf '%s\nfailed: %s\n' "$output" "$name"
    return 1
  fi
}

shell_scripts() {
  local failed=0
  shellcheck -x -S warning bin/sandbox .ci/run build/*.sh test/*/*.sh || failed=1
  shellcheck -x -P SCRIPTDIR packages/*/skyhook_dir/*.sh || failed=1
  return "$failed"
}

# From Debian: npm's package downloads the program from elsewhere when it runs.
has_shellcheck() {
  command -v shellcheck >/dev/null && return 0
  [[ $EUID == 0 ]] && command -v apt-get >/dev/null || return 1
  local install=(apt-get -qqy -o DPkg::Lock::Timeout=300 install --no-install-recommends shellcheck)
  "${install[@]}" >/dev/null 2>&1 || { apt-get -qq update && "${install[@]}"; } >/dev/null 2>&1
}

has_shellcheck; shellcheck_found=$?

# One after another, beside the unit tests.
static_checks() {
  local failed=0
  # The type checker needs 2 GB with its garbage collector, too.
  export GOGC=off
  run format biome format . || failed=1
  run 'generated files' node build/generate.ts --check || failed=1
  # each file with the types of the tsconfig.json that includes it
  run 'types and lint' oxlint --type-aware --type-check --deny-warnings || failed=1
  run 'unused code' knip --no-progress || failed=1
  run 'unused code of the product' knip --no-progress --production || failed=1
  run 'docs and comments' node build/checks/main.ts || failed=1
  run 'packages and Skyhooks' node src/cli/main.ts validate packages samples test/fixtures/skyhooks || failed=1
  if ((shellcheck_found == 0)); then run 'shell scripts' shell_scripts || failed=1; fi
  return "$failed"
}

if [[ ${1:-} == --static ]]; then
  static_checks
  exit
fi
static_checks &
run 'unit tests' env SKIP_LONG=1 vitest run --project unit --project integration --project model --reporter=default --maxWorkers=2 || failed=1
wait $! || failed=1
((shellcheck_found == 0)) || echo 'skipped: shell scripts: shellcheck is missing (as root: apt-get install shellcheck)'
# src/packages/operator-compat/python-repr.integration.test.ts
python3 -c '' 2>/dev/null || echo 'skipped: one test that compares names of flags with Python: python3 is missing'
echo 'skipped: whole searches, long unit tests, and tests on real parts: make test runs them, as root'
echo "checked in $((SECONDS - started)) s"
exit $failed
