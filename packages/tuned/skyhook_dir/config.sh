#!/bin/bash
# Puts the profiles and scripts of the keys in place, removes those whose key is gone, and switches to tuned_profile.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"

declare -A source_of=() # by path below /etc/tuned
while IFS= read -r key; do
  name=${key##*/}
  case $name in
    tuned_profile) ;;
    *_script) source_of[$scripts_folder/${name%_script}]=$key ;;
    *) source_of[$profiles_folder/$name]=$key ;;
  esac
done < <(compgen -G "$keys/*" || true)

# What is about to be made is on record before it is made.
before=()
[[ ! -f $deployed ]] || mapfile -t before <"$deployed"
printf '%s\n' "${before[@]}" "${!source_of[@]}" | sed '/^$/d' | sort -u | keep "$deployed"

for path in "${!source_of[@]}"; do
  if [[ $path == "$scripts_folder"/* ]]; then
    install -D -m 0755 "${source_of[$path]}" "$path"
    ln -sfn "${path##*/}" "${path}_script" # profiles may call it by its key, too
  else
    install -D -m 0644 "${source_of[$path]}" "$path/tuned.conf"
  fi
done

read_wanted
if ((${#wanted[@]} > 0)); then
  available=$(available_profiles)
  for profile in "${wanted[@]}"; do
    grep -Fxq -- "$profile" <<<"$available" || fail "profile $profile does not exist; available are ${available//$'\n'/ }"
  done
  tuned-adm profile "${wanted[@]}" # also when it is active already: its file may have changed
fi

# Only now: the profile that was active until here may be one of them.
for path in "${before[@]}"; do
  [[ -n ${source_of[$path]:-} ]] || rm -rf "$path" "${path}_script"
done
printf '%s\n' "${!source_of[@]}" | sed '/^$/d' | sort | keep "$deployed"
