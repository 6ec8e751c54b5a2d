#!/bin/bash
# After a restart or a reboot: are the settings, the limits of running services and the kernel's arguments in force?
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
wrong=0

[[ ! -f $keys/sysctl.conf ]] || read_sysctls check_sysctl

# proc(5)'s names of the limits that a unit sets in the same unit of measure
declare -A shown_as=([NOFILE]='Max open files' [NPROC]='Max processes' [MEMLOCK]='Max locked memory' [STACK]='Max stack size'
  [FSIZE]='Max file size' [CORE]='Max core file size' [DATA]='Max data size' [AS]='Max address space')
check_service() { # check_service KEY-FILE
  local service pid limit expected actual
  service=$(service_of "$1")
  pid=$(systemctl show --property=MainPID --value -- "$service")
  if ((pid == 0)); then
    echo "$service is not running, nothing to compare"
    return
  fi
  while IFS= read -r limit; do
    [[ -n ${shown_as[$limit]:-} ]] || continue
    expected=$(systemctl show --property="Limit$limit" --value -- "$service")
    actual=$(awk -v name="${shown_as[$limit]}" 'index($0, name) == 1 { print $(split(name, words, " ") + 2) }' "/proc/$pid/limits")
    [[ ${expected/infinity/unlimited} == "$actual" ]] && continue
    echo "tuning: $service has Limit$limit $actual instead of $expected: it was not restarted, or is not allowed to" >&2
    wrong=$((wrong + 1))
  done < <(sed -n 's/^[[:space:]]*Limit\([A-Z]*\)[[:space:]]*=.*/\1/p' "$1" | sort -u)
}
while IFS= read -r key; do check_service "$key"; done < <(service_keys)

if [[ -f $keys/grub.conf ]]; then
  read_grub
  trim "$(tr -d '"' </proc/cmdline)" # GRUB moves quotes to where it likes them
  for argument in "${arguments[@]}"; do
    [[ " $trimmed " == *" ${argument//\"/} "* ]] || { echo "tuning: the kernel runs without $argument" >&2 && wrong=$((wrong + 1)); }
  done
fi
((wrong == 0))
