# What all steps of os-update and its timer share: names, and reading the keys. Sourced.
# shellcheck shell=bash disable=SC2034 # the variables are for those who source this

IFS=_ read -r _ package _ <<<"${SKYHOOK_RESOURCE_ID:?is set by the agent}"
root=${SKYHOOK_ROOT_DIR:?is set by the agent}
keys=${SKYHOOK_DIR:?is set by the agent}/configmaps

# A copy of scripts and keys for the timer, laid out like the package's folder, which agents collect.
kept=$root/kept/$package
status_file=$root/status/$package.json
unit=skyhook-os-update-${root##*/}-$package # two Skyhooks may have packages of one name
unit_folder=/etc/systemd/system

fail() {
  echo "os-update: $*" >&2
  exit 1
}

read_words() { # read_words KEY DEFAULT...: the words of the key, without # comments, in the array words
  local text
  words=("${@:2}")
  [[ -f $keys/$1 ]] || return 0
  text=$(sed 's/#.*//' "$keys/$1")
  read -r -d '' -a words <<<"$text" || true # always "fails" at the end of the text
}

read_word() { # read_word KEY DEFAULT: its only word, in $word
  read_words "$1" "$2"
  ((${#words[@]} == 1)) || fail "the key $1 must have one word, not ${#words[@]}"
  word=${words[0]}
}

read_keys() { # in scope, manager, check_every, allow, hold, security_suites
  read_word scope security && scope=$word
  [[ $scope =~ ^(security|all)$ ]] || fail "the key scope must be security or all, not \"$scope\""
  read_word manager auto && manager=$word
  [[ $manager =~ ^(auto|apt|dnf)$ ]] || fail "the key manager must be auto, apt or dnf, not \"$manager\""
  read_words check_every 6h && check_every=${words[*]}
  [[ $check_every == never ]] || systemd-analyze timespan "$check_every" >/dev/null 2>&1 ||
    fail "the key check_every must be never or a time such as 6h or 1d, not \"$check_every\""
  read_words allow '*' && allow=("${words[@]}")
  read_words hold && hold=("${words[@]}")
  read_words security_suites '*-security' && security_suites=("${words[@]}")
  if [[ $manager == auto ]]; then
    # a host of one family may have the other's tool as well: its own is the one that knows packages
    if command -v apt-get >/dev/null && [[ -s /var/lib/dpkg/status ]]; then
      manager=apt
    elif command -v dnf >/dev/null; then
      manager=dnf
    else
      fail "this host has neither apt-get nor dnf"
    fi
  fi
}

matches() { # matches NAME PATTERN...
  local name=$1 pattern
  for pattern in "${@:2}"; do
    # shellcheck disable=SC2053 # a pattern it is
    [[ $name != $pattern ]] || return 0
  done
  return 1
}

# Why the host has to be started again, a word per line; nothing when it does not have to.
reboot_reasons() {
  if [[ -e /run/reboot-required ]]; then
    if [[ -s /run/reboot-required.pkgs ]]; then cat /run/reboot-required.pkgs; else echo /run/reboot-required; fi
  fi
  # A kernel that was put there since the boot. Not simply a newer one than the one that runs: who boots an older kernel on
  # purpose must not be asked for a reboot for ever.
  local boot
  boot=$(systemctl show --property=UserspaceTimestamp --value)
  find /boot -maxdepth 1 -name 'vmlinuz-*' -newerct "$boot" -printf '%f\n'
  "${manager}_reboot_reasons"
}

# shellcheck source=SCRIPTDIR/apt.sh
source "${STEP_ROOT:?is set by the agent}/apt.sh"
# shellcheck source=SCRIPTDIR/dnf.sh
source "$STEP_ROOT/dnf.sh"

# The updates of SCOPE that the host's repositories offer, as `NAME VERSION` lines, from what is known without the network.
list_updates() { # list_updates SCOPE [filtered]: filtered by allow and hold
  local name version lines
  lines=$("${manager}_list" "$@") || exit 1 # a list that could not be read is not an empty one
  while read -r name version; do
    [[ -n $name ]] || continue
    if [[ ${2:-} != filtered ]] || { matches "${name%:*}" "${allow[@]}" && ! matches "${name%:*}" "${hold[@]}"; }; then
      echo "$name $version"
    fi
  done <<<"$lines"
}
