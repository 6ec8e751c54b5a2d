#!/bin/bash
# Removes profiles and scripts of the keys, and tuned with what came with it if this package installed it; otherwise tuned
# goes back to the state it was found in. Needs no keys.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"

if [[ ! -d $kept ]]; then
  echo "this host has no record of this package"
  exit 0
fi

# The settings of the profile go before its files do.
if command -v tuned-adm >/dev/null && systemctl --quiet is-active tuned; then
  if [[ -f $state_before ]]; then
    mapfile -t state <"$state_before"
    read -r -a profiles <<<"${state[3]:-}"
    if [[ ${state[2]} == auto ]]; then
      tuned-adm auto_profile
    elif ((${#profiles[@]} == 0)) || ! tuned-adm profile "${profiles[@]}"; then
      tuned-adm off # there was none, or it was this package's own, put there by an earlier version
    fi
  else
    tuned-adm off
  fi
fi

if [[ -f $deployed ]]; then
  while IFS= read -r path; do rm -rf "$path" "${path}_script"; done <"$deployed"
  if [[ -d $scripts_folder ]]; then rmdir --ignore-fail-on-non-empty "$scripts_folder"; fi
fi

remove_with_apt() {
  local -a unneeded
  apt remove tuned
  # of what came with it only what nothing else has come to need; and nothing that was unneeded before
  mapfile -t unneeded < <(apt-get -q -s autoremove | awk '$1 == "Remv" { print $2 }' | sort -u | comm -12 "$packages_installed" -)
  if ((${#unneeded[@]} > 0)); then apt remove "${unneeded[@]}"; fi
}

if [[ ! -f $packages_before ]]; then
  if [[ -f $state_before ]]; then
    [[ ${state[1]:-active} != inactive ]] || systemctl stop tuned
    [[ ${state[0]:-enabled} != disabled ]] || systemctl disable tuned
  fi
elif command -v tuned-adm >/dev/null; then
  systemctl disable --now tuned
  if is_apt; then remove_with_apt; else "$(rpm_manager)" -y remove tuned; fi
fi
