# What this machine must have, checked before anything is made. Sourced by bin/sandbox.
# shellcheck shell=bash

# COMMAND:DEBIAN-PACKAGE. docker-registry is not among them: as a package it would start a service on this machine.
MACHINE_NEEDS="systemd-nspawn:systemd-container debootstrap:debootstrap openssl:openssl iptables-restore:iptables ip:iproute2 sysctl:procps
 curl:curl busctl:systemd systemd-socket-activate:systemd perl:perl-base nsenter:util-linux flock:util-linux find:findutils tar:tar
 losetup:mount mke2fs:e2fsprogs"

apt_update_once() {
  [[ -n ${apt_is_fresh:-} ]] && return 0
  say "reading Debian's package lists"
  apt-get -q update >"$CACHE/apt.log" 2>&1 || say "apt-get update complained (see $CACHE/apt.log); going on with what it has"
  apt_is_fresh=1
}

require_packages() { # installs what is missing, as root, without recommended packages
  local need missing=()
  for need in $MACHINE_NEEDS; do
    command -v "${need%%:*}" >/dev/null || missing+=("${need#*:}")
  done
  [[ ${#missing[@]} -eq 0 ]] && return 0
  command -v apt-get >/dev/null || die "missing: ${missing[*]} (names of Debian packages), and there is no apt-get to install them with"
  say "installing ${missing[*]}"
  install_packages() {
    DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}" >"$CACHE/apt-install.log" 2>&1
  }
  install_packages || { apt_update_once && install_packages; } ||
    die "apt-get could not install ${missing[*]}: $(tail -n 3 "$CACHE/apt-install.log")"
}

require_cgroups() {
  # Without the v1 controllers a kubelet in nspawn registers but starts no pod, and limits of units do nothing.
  local controller
  for controller in systemd memory cpu pids; do
    [[ -e /sys/fs/cgroup/$controller/cgroup.procs ]] || die "no cgroup v1 hierarchy '$controller' under /sys/fs/cgroup. The sandbox was verified \
on the hybrid view (v1 controllers) only and does not pretend to work elsewhere. With systemd 255 or older boot this machine with \
systemd.unified_cgroup_hierarchy=0, or use a virtual machine that has the v1 controllers."
  done
}

require_disk() { # require_disk GIB FOLDER
  local free_kib
  free_kib=$(df -Pk "$2" | awk 'NR == 2 { print $4 }')
  ((free_kib >= $1 * 1048576)) || die "$((free_kib / 1048576)) GiB are free at $2, $1 are needed (SKYHOOKD_CACHE=folder moves the cache)"
}

require_inotify() { # require_inotify HOSTS: systemd, dbus, kubelet and containerd of a host hold 17, the control plane 8
  local limit used needed setting=fs.inotify.max_user_instances
  limit=$(sysctl -n "$setting")
  used=$( (find /proc/[0-9]*/fd -lname 'anon_inode:inotify' 2>/dev/null || true) | wc -l) # processes come and go meanwhile
  needed=$((used + $1 * 20 + 8))
  ((needed > limit)) || return 0
  say "raising $setting from $limit to $((needed + 128)) until the machine's next boot: $used are in use, $1 hosts need $((needed - used)) more"
  sysctl -qw "$setting=$((needed + 128))" || die "it may not be raised from here: have it set on the machine"
}

require_machine() { # require_machine HOSTS
  [[ $EUID -eq 0 ]] || die "root is needed: network namespaces, cgroups and booting hosts (systemd-nspawn) are root's alone"
  [[ $(uname -s) == Linux ]] || die "Linux is needed"
  mkdir -p "$CACHE"
  require_cgroups
  grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || die "the kernel has no overlayfs, the disks of the hosts are made of it"
  # Go's build cache takes most of the 15 GiB, once
  if [[ -x $BIN/helm ]]; then require_disk 3 "$CACHE"; else require_disk 15 "$CACHE"; fi
  require_disk 3 "$REPOSITORY"
  require_packages
  require_inotify "$1"
}
