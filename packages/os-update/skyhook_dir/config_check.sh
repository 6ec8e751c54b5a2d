#!/bin/bash
# Is nothing left to install, and is the timer at work?
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
read_keys
wrong=0

updates=$(list_updates "$scope" filtered)
if [[ -n $updates ]]; then
  echo "os-update: not installed: ${updates//$'\n'/, }" >&2
  wrong=$((wrong + 1))
fi
if [[ $manager == apt ]]; then
  broken=$(dpkg --audit)
  [[ -z $broken ]] || { echo "os-update: half installed: $broken" >&2 && wrong=$((wrong + 1)); }
fi
if [[ $check_every != never ]]; then
  systemctl --quiet is-active "$unit.timer" || { echo "os-update: $unit.timer is not active" >&2 && wrong=$((wrong + 1)); }
fi
[[ -s $status_file ]] || { echo "os-update: $status_file is missing" >&2 && wrong=$((wrong + 1)); }
((wrong == 0))
