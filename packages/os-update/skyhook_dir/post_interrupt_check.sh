#!/bin/bash
# After a reboot none may be required any more. After any other interrupt the requirement stands; the status file says so.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
read_keys

reasons=$(reboot_reasons)
[[ -n $reasons ]] || exit 0
if cmp -s /proc/sys/kernel/random/boot_id "$kept/boot-id"; then
  echo "${reasons//$'\n'/ } requires a reboot, which has not happened yet"
  exit 0
fi
fail "the host was rebooted and still requires a reboot, because of ${reasons//$'\n'/ }"
