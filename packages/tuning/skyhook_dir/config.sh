#!/bin/bash
# Makes the host what the keys say: now where that is possible, and at each boot. What a key no longer says is undone.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"

# Sysctls: first tried, then written down, so that a value that the kernel refuses does not come back at each boot.
declare -A wanted=() recorded=()
if [[ -f $original_sysctls ]]; then
  while IFS='=' read -r path _; do recorded[$path]=yes; done <"$original_sysctls"
fi
set_sysctl() {
  local path=$1 value=$2 optional=$3 before
  wanted[$path]=yes
  if [[ -z ${recorded[$path]:-} ]] && before=$(cat "/proc/sys/$path" 2>/dev/null); then
    trim "$before"
    mkdir -p "${original_sysctls%/*}"
    printf '%s\n' "$path=$trimmed" >>"$original_sysctls"
    sync "$original_sysctls"
    recorded[$path]=yes
  fi
  if printf '%s\n' "$value" 2>/dev/null >"/proc/sys/$path"; then
    echo "${path//\//.} = $value"
  elif [[ -n $optional ]]; then
    echo "${path//\//.}: the kernel rejects \"$value\", ignored because of the - before the name"
  else
    fail "${path//\//.}: the kernel rejects \"$value\""
  fi
}
if [[ -f $keys/sysctl.conf ]]; then
  read_sysctls set_sysctl
  write_file "$sysctl_file" <"$keys/sysctl.conf"
else
  rm -f "$sysctl_file"
fi
is_unwanted() { [[ -z ${wanted[$1]:-} ]]; }
# shellcheck source=SCRIPTDIR/restore_sysctls.sh
source "$STEP_ROOT/restore_sysctls.sh"
restore_sysctls is_unwanted

if [[ -f $keys/ulimit.conf ]]; then
  declare -A option=([memlock]=l [nofile]=n [fsize]=f [stack]=s [nproc]=u)
  try_limit() { (ulimit "-SH${option[$1]}" "$2") || fail "ulimit.conf: this host does not allow $1=$2"; }
  read_limits try_limit
  text=$(limits_text) # a substitution in a redirection would hide its failure
  write_file "$limits_file" <<<"$text"
  while IFS= read -r file; do
    has_pam_limits "$file" || (cat "$file" && echo "$pam_line") | write_file "$file"
  done < <(pam_files)
else
  # shellcheck source=SCRIPTDIR/remove_limits.sh
  source "$STEP_ROOT/remove_limits.sh"
fi

declare -A services=()
while IFS= read -r key; do
  service=$(service_of "$key")
  services[$service]=yes
  write_file "$(drop_in_of "$service")" <"$key"
done < <(service_keys)
while IFS= read -r drop_in; do
  service=$(basename "$(dirname "$drop_in")" .d)
  [[ -n ${services[$service]:-} ]] || { rm "$drop_in" && rmdir --ignore-fail-on-non-empty "$(dirname "$drop_in")"; }
done < <(drop_ins)
systemctl daemon-reload

if [[ -f $keys/grub.conf ]]; then
  [[ -d ${grub_file%/*} ]] || fail "grub.conf needs ${grub_file%/*}, which this host does not have"
  text=$(grub_text)
  write_file "$grub_file" <<<"$text"
  update_boot_loader
else
  remove_grub_file
fi
