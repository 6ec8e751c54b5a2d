# What this machine must have, checked before anything is built. Sourced by bin/sandbox.
# shellcheck shell=bash

# COMMAND:DEBIAN-PACKAGE. docker-registry is not among them: the package would start a service on this machine.
MACHINE_NEEDS="systemd-nspawn:systemd-container debootstrap:debootstrap openssl:openssl iptables-restore:iptables ip:iproute2 sysctl:procps
 curl:curl busctl:systemd dbus-daemon:dbus-daemon setpriv:util-linux systemd-socket-activate:systemd perl:perl-base nsenter:util-linux flock:util-linux find:findutils tar:tar
 losetup:mount mke2fs:e2fsprogs"

apt_update_once() {
  [[ -n ${apt_is_fresh:-} ]] && return 0
  say "reading Debian's package lists"
  apt-get -q update >>"$BUILD_LOG" 2>&1 || say "apt-get update failed (see $BUILD_LOG); continuing with the existing package lists"
  apt_is_fresh=1
}

# Everything that is wrong is told at once, before anything is installed or built.
lacks=() missing_packages=()
lack() { lacks+=("$*"); } # lack TEXT: what is missing, and how to mend it

find_missing_packages() { # find_missing_packages WHAT-IS-BUILT...
  local need
  for need in $MACHINE_NEEDS; do
    command -v "${need%%:*}" >/dev/null || missing_packages+=("${need#*:}")
  done
  if wants programs "$@" && [[ -n $("$HERE/build-binaries.sh" --plan) ]] && ! command -v go >/dev/null; then
    missing_packages+=(golang-go) # of any version: build/toolchain.sh
  fi
  if wants node "$@" && [[ ! -e $REPOSITORY/node_modules/.installed ]] && ! command -v npm >/dev/null &&
    ! python3 -m pip --version >/dev/null 2>&1; then
    missing_packages+=(python3-pip) # the same
  fi
  [[ ${#missing_packages[@]} -eq 0 ]] || command -v apt-get >/dev/null ||
    lack "these programs are missing, by the names of their Debian packages: ${missing_packages[*]}. This machine has no apt-get: install them"
}
install_missing_packages() { # as root, without recommended packages
  install_packages() {
    DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing_packages[@]}" >&2
  }
  install_packages || { apt_update_once && install_packages; } || die "apt-get could not install ${missing_packages[*]}"
}

require_cgroups() {
  local missing
  missing=$(missing_controllers | tr '\n' ' ')
  if [[ -n $missing && $CGROUPS == v2 ]]; then
    lack "cgroup v2 under /sys/fs/cgroup has no controllers ${missing% }: in a container, give it a cgroup namespace of its own with them; else remove cgroup_disable= from the kernel's command line"
  elif [[ -n $missing ]]; then
    lack "cgroup v1 under /sys/fs/cgroup has no controllers ${missing% }: mount them there, or boot this machine with cgroup v2"
  elif [[ $EUID -eq 0 && ! -w ${TREE%/*}/cgroup.procs ]]; then
    lack "${TREE%/*} is read-only: a container needs a writable cgroup namespace of its own (docker run --privileged --cgroupns=private)"
  fi
}

require_disk() { # require_disk GIB FOLDER
  local free_kib
  free_kib=$(df -Pk "$2" | awk 'NR == 2 { print $4 }')
  ((free_kib >= $1 * 1048576)) ||
    lack "$2 has $((free_kib / 1048576)) GiB free, the sandbox needs $1: free some, or move the cache with SKYHOOKD_CACHE=folder"
}

# SANDBOXES=n: so many are started at once, as by the tests; each must leave room for the others, which hold nothing yet.
require_inotify() { # require_inotify HOSTS: systemd, dbus, kubelet and containerd of a host hold 17, the control plane 8
  local limit used needed setting=fs.inotify.max_user_instances
  [[ $EUID -eq 0 ]] || return 0
  limit=$(</proc/sys/fs/inotify/max_user_instances)
  used=$( (find /proc/[0-9]*/fd -lname 'anon_inode:inotify' 2>/dev/null || true) | wc -l) # processes come and go concurrently
  needed=$((used + ${SANDBOXES:-1} * ($1 * 20 + 8)))
  ((needed > limit)) || return 0
  say "raising $setting from $limit to $((needed + 128)) until the next boot of this machine: $used are in use, ${SANDBOXES:-1} sandboxes of $1 hosts need $((needed - used)) more"
  { echo $((needed + 128)) >/proc/sys/fs/inotify/max_user_instances; } 2>/dev/null ||
    lack "$setting cannot be raised from here: set it to $((needed + 128)) on the machine"
}

wants() { # wants PART PART...: whether the first is among the others
  local part
  for part in "${@:2}"; do [[ $part != "$1" ]] || return 0; done
  return 1
}

require_machine() { # require_machine HOSTS WHAT-IS-BUILT...: node, base, registry, programs. Finds missing_packages
  local text
  [[ $(uname -s) == Linux ]] || die "the sandbox needs Linux, this is $(uname -s): run it in a virtual machine"
  mkdir -p "$CACHE"
  [[ $EUID -eq 0 ]] || lack "you are not root, which network namespaces, cgroups and systemd-nspawn need: call it with sudo"
  require_cgroups
  grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null ||
    lack "the kernel has no overlayfs, which the disks of the hosts need: load the module overlay"
  # Go's build cache takes most of the 15 GiB, once
  if [[ -x $BIN/helm ]]; then require_disk 3 "$CACHE"; else require_disk 15 "$CACHE"; fi
  require_disk 3 "$REPOSITORY"
  require_inotify "$1"
  find_missing_packages "${@:2}"
  if wants base "${@:2}" && [[ ! -d $BASE ]] && ! debian_mirror >/dev/null; then
    lack "apt names no Debian source to make the hosts from: set DEBIAN_MIRROR to the URL of one (the folder that holds dists/ and pool/)"
  fi
  if wants registry "${@:2}" && [[ ! -x $REGISTRY_PROGRAM ]] && ! command -v apt-get >/dev/null; then
    lack "the registry's program comes from Debian, and this machine has no apt-get: put the program docker-registry at $REGISTRY_PROGRAM"
  fi
  if ((${#lacks[@]} > 0)); then
    say "this machine cannot boot hosts:"
    for text in "${lacks[@]}"; do say "  - $text"; done
    exit 1
  fi
}
