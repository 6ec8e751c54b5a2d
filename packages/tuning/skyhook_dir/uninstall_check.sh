#!/bin/bash
# Is nothing left of this package?
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
wrong=0

while IFS= read -r path; do
  echo "tuning: $path is still there" >&2
  wrong=$((wrong + 1))
done < <(drop_ins && { compgen -G "$sysctl_file" || true; } && { compgen -G "$limits_file" || true; } && { compgen -G "$grub_file*" || true; } &&
  { compgen -G "$original_sysctls" || true; })
if ! compgen -G '/etc/security/limits.d/999-*-tuning.conf' >/dev/null && grep -Fxqs "$pam_line" /etc/pam.d/common-session*; then
  echo "tuning: the PAM files still have the line for limits" >&2
  wrong=$((wrong + 1))
fi
((wrong == 0))
