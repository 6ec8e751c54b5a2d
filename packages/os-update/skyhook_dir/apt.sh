# apt: Debian, Ubuntu and their kin. Sourced by common.sh.
# shellcheck shell=bash disable=SC2154 # common.sh reads the keys

export DEBIAN_FRONTEND=noninteractive
quiet_apt() { apt-get -q -o DPkg::Lock::Timeout=600 -o APT::Get::Show-User-Simulation-Note=no "$@"; }

apt_mend() { # ends what a crash, a power cut or a failed installation left half done
  [[ -z $(dpkg --audit) ]] || dpkg --configure -a
}

apt_refresh() {
  local try
  for try in 1 2 3 4 5; do # the lists have a lock that apt-get does not wait for
    # without Error-Mode a repository that does not answer is a warning, and its updates are silently missed
    quiet_apt -o APT::Update::Error-Mode=any update && return 0
    ((try == 5)) || sleep $((try * 4))
  done
  fail "apt-get update failed"
}

# Packages to leave alone have no candidate at all, so they do not come along as somebody's dependency either. For `security`
# the security suites come first: where another suite has a version that is newer still, theirs is the candidate.
apt_preferences() { # apt_preferences SCOPE [filtered]: besides the host's own
  local suite
  if [[ ${2:-} == filtered ]] && ((${#hold[@]} > 0)); then
    printf 'Package: %s\nPin: release *\nPin-Priority: -1\n\n' "${hold[*]}"
  fi
  if [[ -f /etc/apt/preferences ]]; then cat /etc/apt/preferences && echo; fi
  [[ $1 == security ]] || return 0
  for suite in "${security_suites[@]}"; do printf 'Package: *\nPin: release a=%s\nPin-Priority: 990\n\n' "$suite"; done
}

with_preferences() { # with_preferences SCOPE FILTERED apt-get-arguments...
  local file status=0
  file=$(mktemp)
  apt_preferences "$1" "$2" >"$file"
  quiet_apt -o Dir::Etc::Preferences="$file" "${@:3}" || status=$?
  rm "$file"
  return "$status"
}

apt_list() { # apt_list SCOPE [filtered]
  local name version origins origin suite simulation
  simulation=$(with_preferences "$1" "${2:-}" --simulate --with-new-pkgs upgrade) || fail "apt-get cannot list the updates"
  # Inst NAME [OLD] (NEW LABEL:RELEASE/SUITE, LABEL:SUITE [ARCH]): new packages, without [OLD], come along on their own
  sed -nE 's/^Inst ([^ ]+) \[[^]]*\] \(([^ ]+)( .*)? \[[^]]*\]\).*/\1 \2\3/p' <<<"$simulation" |
    while read -r name version origins; do
      while [[ $1 == security ]]; do
        origin=${origins%%, *}
        suite=${origin##*[:/]}
        ! matches "$suite" "${security_suites[@]}" || break
        [[ $origins == *', '* ]] || continue 2
        origins=${origins#*, }
      done
      echo "$name $version"
    done
}

apt_install() { # apt_install NAME VERSION...: exactly these, with what they newly depend on; removes nothing
  local -a wanted=()
  while (($# > 0)); do
    wanted+=("$1=$2")
    shift 2
  done
  # a configuration file that somebody changed stays as it is
  with_preferences "$scope" filtered --yes --no-remove --only-upgrade -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
    install "${wanted[@]}"
}

apt_reboot_reasons() { :; } # /run/reboot-required is all that apt's world says
