#!/bin/bash
# Is everything written down as the keys say, do the settings have their values, and does systemd know the drop-ins?
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
wrong=0

expect_file() { # expect_file PATH: holds what standard input says
  cmp -s - "$1" && return 0
  echo "tuning: $1 differs from the configMap" >&2
  wrong=$((wrong + 1))
}

if [[ -f $keys/sysctl.conf ]]; then
  expect_file "$sysctl_file" <"$keys/sysctl.conf"
  read_sysctls check_sysctl
fi
if [[ -f $keys/ulimit.conf ]]; then
  text=$(limits_text)
  expect_file "$limits_file" <<<"$text"
  while IFS= read -r file; do
    has_pam_limits "$file" || { echo "tuning: $file has no pam_limits" >&2 && wrong=$((wrong + 1)); }
  done < <(pam_files)
fi
while IFS= read -r key; do
  service=$(service_of "$key")
  drop_in=$(drop_in_of "$service")
  expect_file "$drop_in" <"$key"
  known=$(systemctl show --property=DropInPaths --value -- "$service")
  [[ " $known " == *" $drop_in "* ]] || { echo "tuning: systemd does not use $drop_in: check that $service exists" >&2 && wrong=$((wrong + 1)); }
done < <(service_keys)
if [[ -f $keys/grub.conf ]]; then
  text=$(grub_text)
  expect_file "$grub_file" <<<"$text"
fi
((wrong == 0))
