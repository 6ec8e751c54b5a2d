# What all steps of tuning share: names of files, and reading the keys. Sourced.
# shellcheck shell=bash disable=SC2034 # the variables are for those who source this
[[ ${SET_X:-} != 1 ]] || set -x

IFS=_ read -r _ package _ <<<"${SKYHOOK_RESOURCE_ID:?is set by the agent}"
keys=${SKYHOOK_DIR:?is set by the agent}/configmaps
name=999-$package-tuning

sysctl_file=/etc/sysctl.d/$name.conf
limits_file=/etc/security/limits.d/$name.conf
grub_file=/etc/default/grub.d/$name.cfg
# PATH=VALUE per line: what each setting was before this package first changed it
original_sysctls=${SKYHOOK_ROOT_DIR:?is set by the agent}/kept/$package/original-sysctls
# added to PAM's files for every package of this kind; goes with the last of them
pam_line='session required pam_limits.so # for 999-*-tuning.conf in /etc/security/limits.d'

fail() {
  echo "tuning: $*" >&2
  exit 1
}

trim() { # trim TEXT: without blanks around it, one blank between words, in $trimmed
  local words
  read -r -d '' -a words <<<"$1" || true # ends without the delimiter, so always "fails"
  trimmed=${words[*]}
}

# The file as the agent lays it out is for reading only: the new one replaces it whole, also when the power goes.
write_file() { # write_file PATH: from standard input, unless it says so already
  local path=$1
  mkdir -p "${path%/*}"
  cat >"$path.new"
  if cmp -s "$path.new" "$path"; then
    rm "$path.new"
  else
    chmod 0644 "$path.new"
    sync "$path.new"
    mv "$path.new" "$path"
    echo "wrote $path"
  fi
}

# sysctl.conf -------------------------------------------------------------------------------------------------------------

# Rules of sysctl.d(5): comments begin with # or ;, a name's first separator says what the other one means, and `-` before
# the name means that the setting may be missing or refused.
read_sysctls() { # calls `$1 PATH VALUE OPTIONAL` for each setting; a name may be a pattern, PATH is one below /proc/sys
  local line key value optional path found
  while IFS= read -r line || [[ -n $line ]]; do
    trim "$line"
    [[ -n $trimmed && $trimmed != [\#\;]* ]] || continue
    optional=
    if [[ $trimmed == -* ]]; then optional=yes trimmed=${trimmed#-}; fi
    [[ $trimmed == *=* ]] || fail "sysctl.conf: \"$line\" has no ="
    value=${trimmed#*=} key=${trimmed%%=*}
    trim "$value" && value=$trimmed
    trim "$key" && key=$trimmed
    [[ -n $key && $key != *[[:space:]]* && /$key/ != */../* ]] || fail "sysctl.conf: \"$line\" has no setting before the ="
    if [[ $key =~ ^[^./]*\. ]]; then key=$(tr ./ /. <<<"$key"); fi
    found=
    while IFS= read -r path; do
      [[ -f $path ]] || continue
      found=yes
      "$1" "${path#/proc/sys/}" "$value" "$optional"
    done < <(compgen -G "/proc/sys/$key")
    [[ -n $found || -n $optional ]] || fail "sysctl.conf: this host has no setting ${key//\//.}"
  done <"$keys/sysctl.conf"
}

sysctl_value() { # sysctl_value PATH: in $trimmed, one blank between words
  trim "$(cat "/proc/sys/$1")"
}

same_value() { # same_value ONE OTHER: word by word; numbers by what they are worth (0x10 is 16)
  local -a one other
  local index
  read -r -a one <<<"$1"
  read -r -a other <<<"$2"
  ((${#one[@]} == ${#other[@]})) || return 1
  for index in "${!one[@]}"; do
    [[ ${one[index]} != "${other[index]}" ]] || continue
    [[ ${one[index]} =~ ^-?(0x[0-9a-fA-F]+|[0-9]+)$ && ${other[index]} =~ ^-?(0x[0-9a-fA-F]+|[0-9]+)$ ]] || return 1
    ((one[index] == other[index])) || return 1
  done
}

check_sysctl() { # for read_sysctls: counts in $wrong
  [[ -z $3 ]] || return 0
  sysctl_value "$1"
  same_value "$trimmed" "$2" && return 0
  echo "tuning: ${1//\//.} is \"$trimmed\", not \"$2\"" >&2
  wrong=$((wrong + 1))
}

# ulimit.conf -------------------------------------------------------------------------------------------------------------

read_limits() { # calls `$1 ITEM VALUE` for each limit
  local line item value
  while IFS= read -r line || [[ -n $line ]]; do
    trim "${line%%#*}"
    [[ -n $trimmed ]] || continue
    [[ $trimmed =~ ^([a-z]+)\ ?=\ ?([0-9]+|unlimited)$ ]] || fail "ulimit.conf: \"$line\" is not ITEM=NUMBER or ITEM=unlimited"
    item=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
    [[ $item =~ ^(memlock|nofile|fsize|stack|nproc)$ ]] || fail "ulimit.conf: $item is none of memlock, nofile, fsize, stack, nproc"
    "$1" "$item" "$value"
  done <"$keys/ulimit.conf"
}
print_limit() { echo "* hard $1 $2"; }
limits_text() {
  echo "# written by the package $package"
  read_limits print_limit
}

pam_files() { compgen -G '/etc/pam.d/common-session*' | grep '/[^/.]*$' || true; } # not what editors and dpkg leave
has_pam_limits() { grep -Eq '^[[:space:]]*session[[:space:]].*pam_limits\.so' "$1"; }

# service_NAME.conf -------------------------------------------------------------------------------------------------------

service_keys() { compgen -G "$keys/service_*.conf" || true; }
service_of() { # service_of KEY-FILE: the unit it is for; names may hold dots and underscores
  local service=${1##*/service_}
  service=${service%.conf}
  echo "${service%.service}.service"
}
drop_in_of() { echo "/etc/systemd/system/$1.d/$name.conf"; }
drop_ins() { compgen -G "/etc/systemd/system/*.service.d/$name.conf" || true; }

# grub.conf ---------------------------------------------------------------------------------------------------------------

read_grub() { # one kernel argument per line, in $arguments
  local line
  arguments=()
  while IFS= read -r line || [[ -n $line ]]; do
    trim "$line"
    [[ -n $trimmed && $trimmed != \#* ]] || continue
    [[ $trimmed != *[\'\\]* ]] || fail "grub.conf: \"$line\" has a ' or a \\, which GRUB cannot pass to the kernel; \$ and the like need no quoting"
    local quotes=${trimmed//[^\"]/}
    ((${#quotes} % 2 == 0)) || fail "grub.conf: \"$line\" has an unmatched \""
    arguments+=("$trimmed")
  done <"$keys/grub.conf"
}
# The file is read by a shell, and what that makes of it by GRUB, to whom $ means a variable, and outside of double quotes some more
# characters mean something.
grub_text() {
  local argument char quoted i text=
  read_grub
  for argument in "${arguments[@]}"; do
    quoted=
    for ((i = 0; i < ${#argument}; i++)); do
      char=${argument:i:1}
      case $quoted$char in
        \") quoted=q ;;
        q\") quoted= ;;
        \$ | q\$ | [\;\&\|\<\>{}]) char=\\$char ;;
      esac
      text+=$char
    done
    text+=' '
  done
  echo "# written by the package $package"
  echo "GRUB_CMDLINE_LINUX_DEFAULT='${text% }'"
}
update_boot_loader() {
  command -v update-grub >/dev/null || fail "grub.conf needs update-grub, which this host does not have"
  update-grub
}
remove_grub_file() { # its remains vanish last, so that a crash before the boot loader's update is seen
  [[ ! -f $grub_file ]] || mv "$grub_file" "$grub_file.removed"
  [[ -f $grub_file.removed ]] || return 0
  update_boot_loader
  rm "$grub_file.removed"
}
