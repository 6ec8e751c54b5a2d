#!/bin/bash
# Is nothing of this package left?
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
wrong=0

for path in "$unit_folder/$unit".{timer,service} "$kept" "$status_file"; do
  [[ ! -e $path ]] || { echo "os-update: $path is still there" >&2 && wrong=$((wrong + 1)); }
done
if systemctl --quiet is-active "$unit.timer"; then
  echo "os-update: $unit.timer is still active" >&2
  wrong=$((wrong + 1))
fi
((wrong == 0))
