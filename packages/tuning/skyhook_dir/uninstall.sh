#!/bin/bash
# Takes everything away that config wrote, and gives settings back their former values. Needs no keys: files go by their name.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"

rm -f "$sysctl_file"
# shellcheck source=SCRIPTDIR/restore_sysctls.sh
source "$STEP_ROOT/restore_sysctls.sh"
restore_sysctls true

# shellcheck source=SCRIPTDIR/remove_limits.sh
source "$STEP_ROOT/remove_limits.sh"

while IFS= read -r drop_in; do
  rm "$drop_in"
  rmdir --ignore-fail-on-non-empty "$(dirname "$drop_in")"
done < <(drop_ins)
systemctl daemon-reload

remove_grub_file
