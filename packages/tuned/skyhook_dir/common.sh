# What all steps of tuned share. Sourced.
# shellcheck shell=bash disable=SC2034 # the variables are for those who source this

IFS=_ read -r _ package _ <<<"${SKYHOOK_RESOURCE_ID:?is set by the agent}"
keys=${SKYHOOK_DIR:?is set by the agent}/configmaps

# What an uninstall has to know: it may come without the keys.
kept=${SKYHOOK_ROOT_DIR:?is set by the agent}/kept/$package
packages_before=$kept/packages-before       # the host's packages before tuned was installed
packages_installed=$kept/packages-installed # those that came with it; without this file tuned was there already
state_before=$kept/state-before             # how it was then: enabled, active, automatic or manual, profiles; one per line
deployed=$kept/deployed                     # folders and files below /etc/tuned that came from keys

scripts_folder=/etc/tuned/scripts
# tuned 2.23 moved profiles one level down and no longer reads the old place
if [[ -d /etc/tuned/profiles ]]; then profiles_folder=/etc/tuned/profiles; else profiles_folder=/etc/tuned; fi

fail() {
  echo "tuned: $*" >&2
  exit 1
}

keep() { # keep FILE: from standard input; whole, also when the power goes
  mkdir -p "$kept"
  cat >"$1.new"
  sync "$1.new"
  mv "$1.new" "$1"
}

# Package managers ------------------------------------------------------------------------------------------------------

export DEBIAN_FRONTEND=noninteractive
apt() { apt-get -q -y -o DPkg::Lock::Timeout=600 "$@"; }
is_apt() { command -v apt-get >/dev/null; }
rpm_manager() { command -v dnf || command -v yum || fail "this host has none of apt-get, dnf and yum"; }

list_packages() {
  if is_apt; then
    dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^.i. *//p' | sort -u
  else
    rpm -qa --qf '%{NAME}\n' | sort -u
  fi
}

# tuned itself ----------------------------------------------------------------------------------------------------------

available_profiles() { tuned-adm list | sed -n 's/^- \([^ ]*\).*/\1/p'; } # the summary follows the name
active_profiles() { tuned-adm active | sed -n 's/^Current active profile: *//p'; }

read_wanted() { # the names in the key tuned_profile, in the array wanted; none without the key
  wanted=()
  [[ ! -f $keys/tuned_profile ]] || read -r -d '' -a wanted <"$keys/tuned_profile" || true # always "fails" at the end of the file
}

verify() { # do all settings have the values of the profile?
  local log=/var/log/tuned/tuned.log size=0
  [[ ! -f $log ]] || size=$(stat -c %s "$log")
  tuned-adm verify && return 0
  tail -c "+$((size + 1))" "$log" | grep -F 'verify: failed' >&2 || true # tuned-adm only says where to look
  return 1
}
