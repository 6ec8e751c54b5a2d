#!/bin/bash
# Installs tuned if it is not there, and starts it now and at each boot. Remembers how it was, for the uninstall.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"

remember_state() {
  systemctl is-enabled tuned || true
  systemctl is-active tuned || true
  cat /etc/tuned/profile_mode 2>/dev/null || echo manual
  cat /etc/tuned/active_profile 2>/dev/null || true
}

if command -v tuned-adm >/dev/null; then
  if [[ ! -f $packages_before && ! -f $state_before ]]; then
    state=$(remember_state)
    keep "$state_before" <<<"$state"
  fi
else
  # the list first: after a crash it is known all the same what came with tuned
  [[ -f $packages_before ]] || list_packages | keep "$packages_before"
  if is_apt; then
    apt update || echo "the package lists could not be updated, trying the existing ones"
    apt install --no-install-recommends tuned
  else
    "$(rpm_manager)" -y install tuned
  fi
fi
if [[ -f $packages_before && ! -f $packages_installed ]]; then
  list_packages | comm -13 "$packages_before" - | keep "$packages_installed"
fi
systemctl enable --now tuned
