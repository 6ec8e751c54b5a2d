#!/bin/bash
# Is every profile and script as its key says, is the wanted profile active, and are its settings in force? Those that need
# the reboot that follows may not be yet: INTERRUPT=true leaves the last question to the check after it.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
wrong=0

while IFS= read -r key; do
  name=${key##*/}
  case $name in
    tuned_profile) continue ;;
    *_script) path=$scripts_folder/${name%_script} ;;
    *) path=$profiles_folder/$name/tuned.conf ;;
  esac
  cmp -s "$key" "$path" || { echo "tuned: $path differs from the configMap" >&2 && wrong=$((wrong + 1)); }
done < <(compgen -G "$keys/*" || true)

read_wanted
if ((${#wanted[@]} > 0)); then
  active=$(active_profiles)
  [[ $active == "${wanted[*]}" ]] || { echo "tuned: the active profile is \"$active\", not \"${wanted[*]}\"" >&2 && wrong=$((wrong + 1)); }
  if ! verify; then
    [[ ${INTERRUPT:-} == true ]] || fail "not all settings of ${wanted[*]} are in force"
    echo "not all settings are in force yet; INTERRUPT=true, so they are checked after the interrupt"
  fi
fi
((wrong == 0))
