#!/bin/bash
# Is nothing left of the keys, and of tuned only what was there before? Then the record of it goes, too.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
wrong=0

if [[ -f $deployed ]]; then
  while IFS= read -r path; do
    [[ ! -e $path ]] || { echo "tuned: $path is still there" >&2 && wrong=$((wrong + 1)); }
  done <"$deployed"
fi
if [[ -f $packages_before ]] && command -v tuned-adm >/dev/null; then
  echo "tuned: the program that this package installed is still there" >&2
  wrong=$((wrong + 1))
fi
((wrong == 0))
rm -rf "$kept"
