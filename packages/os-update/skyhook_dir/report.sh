#!/bin/bash
# Writes down what there is to update and whether the host has to be started again; `refresh` asks the repositories first.
# Run by the steps, and by a timer between them. The file is described in README.md.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
read_keys

json_list() { # of the lines of standard input; names of packages need no more escaping than this
  tr -cd '[:alnum:]\n.+:~/_-' | sed '/^$/d' | sort -u | head -n 50 | sed 's/.*/"&"/' | paste -s -d ,
}
count() { grep -c . <<<"$1" || true; }

error=
if [[ ${1:-} == refresh ]]; then ("${manager}_refresh") || error='the repositories could not be asked, so this is what was known before'; fi
available=$(list_updates all)
for_security=$(list_updates security)
if [[ ${allow[*]} != '*' || ${#hold[@]} != 0 ]]; then
  pending=$(list_updates "$scope" filtered)
elif [[ $scope == all ]]; then # each list takes the package manager a second
  pending=$available
else
  pending=$for_security
fi
reasons=$(reboot_reasons)

run=false interrupt=false
message="$(count "$available") updates available, $(count "$for_security") of them for security; $(count "$pending") to install"
[[ -z $pending ]] || run=true
if [[ -n $reasons ]]; then
  interrupt=true
  message+="; a reboot is required"
fi

mkdir -p "${status_file%/*}"
cat >"$status_file.new" <<JSON
{
  "v": 1,
  "package": "$package",
  "checkedAt": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
  "bootId": "$(cat /proc/sys/kernel/random/boot_id)",
  "message": "$message",
  "requests": { "run": $run, "interrupt": $interrupt },
  "facts": {
    "manager": "$manager",
    "scope": "$scope",
    "updates": { "available": $(count "$available"), "security": $(count "$for_security"), "pending": $(count "$pending") },
    "pending": [$(cut -d' ' -f1 <<<"$pending" | json_list)],
    "rebootRequired": $interrupt,
    "rebootRequiredBy": [$(json_list <<<"$reasons")],
    "error": "$error"
  }
}
JSON
chmod 0644 "$status_file.new"
sync "$status_file.new"
mv "$status_file.new" "$status_file"
echo "$message"
[[ -z $error ]] || fail "$error"
