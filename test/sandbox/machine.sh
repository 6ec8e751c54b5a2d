# What this machine must have, checked before anything is created. Sourced by bin/sandbox.
# shellcheck shell=bash

# COMMAND:DEBIAN-PACKAGE. docker-registry is not among them: the package would start a service on this machine.
MACHINE_NEEDS="systemd-nspawn:systemd-container debootstrap:debootstrap openssl:openssl iptables-restore:iptables ip:iproute2 sysctl:procps
 curl:curl busctl:systemd dbus-daemon:dbus-daemon setpriv:util-linux systemd-socket-activate:systemd perl:perl-base nsenter:util-linux flock:util-linux find:findutils tar:tar
 losetup:mount mke2fs:e2fsprogs"

apt_update_once() {
  [[ -n ${apt_is_fresh:-} ]] && return 0
  say "reading Debian's package lists"
  apt-get -q update >"$CACHE/apt.log" 2>&1 || say "apt-get update failed (see $CACHE/apt.log); continuing with the existing package lists"
  apt_is_fresh=1
}

require_packages() { # installs what is missing, as root, without recommended packages
  local need missing=()
  for need in $MACHINE_NEEDS; do
    command -v "${need%%:*}" >/dev/null || missing+=("${need#*:}")
  done
  [[ ${#missing[@]} -eq 0 ]] && return 0
  command -v apt-get >/dev/null || die "missing Debian packages: ${missing[*]}. Install them; this machine has no apt-get"
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
    [[ -e /sys/fs/cgroup/$controller/cgroup.procs ]] || die "no cgroup v1 hierarchy '$controller' under /sys/fs/cgroup. The sandbox is verified \
only with the v1 controllers (hybrid view). With systemd 255 or older, boot this machine with \
systemd.unified_cgroup_hierarchy=0, or use a virtual machine with the v1 controllers."
  done
}

require_disk() { # require_disk GIB FOLDER
  local free_kib
  free_kib=$(df -Pk "$2" | awk 'NR == 2 { print $4 }')
  ((free_kib >= $1 * 1048576)) || die "$2 has $((free_kib / 1048576)) GiB free, the sandbox needs $1 (SKYHOOKD_CACHE=folder moves the cache)"
}

require_inotify() { # require_inotify HOSTS: systemd, dbus, kubelet and containerd of a host hold 17, the control plane 8
  local limit used needed setting=fs.inotify.max_user_instances
  limit=$(sysctl -n "$setting")
  used=$( (find /proc/[0-9]*/fd -lname 'anon_inode:inotify' 2>/dev/null || true) | wc -l) # processes come and go concurrently
  needed=$((used + $1 * 20 + 8))
  ((needed > limit)) || return 0
  say "raising $setting from $limit to $((needed + 128)) until the next boot of this machine: $used are in use, $1 hosts need $((needed - used)) more"
  sysctl -qw "$setting=$((needed + 128))" || die "$setting cannot be raised from here: set it to $((needed + 128)) on the machine"
}

require_machine() { # require_machine HOSTS
  [[ $EUID -eq 0 ]] || die "bin/sandbox must run as root: network namespaces, cgroups and systemd-nspawn need it"
  [[ $(uname -s) == Linux ]] || die "the sandbox needs Linux"
  mkdir -p "$CACHE"
  require_cgroups
  grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || die "the kernel has no overlayfs, which the disks of the hosts need"
  # Go's build cache takes most of the 15 GiB, once
  if [[ -x $BIN/helm ]]; then require_disk 3 "$CACHE"; else require_disk 15 "$CACHE"; fi
  require_disk 3 "$REPOSITORY"
  require_packages
  require_inotify "$1"
}
