# Hosts: Debian under systemd with a disk that survives reboots. Sourced by bin/sandbox.
# shellcheck shell=bash
#
# $STATE/hosts/HOST/   number (of its address)   base (path of its base disk)   disk/ (what differs from the base; or disk.img, see disk.sh)
#                      containerd/ cni/ kubelet/ (on the machine's file system: overlay on overlay is refused)   console.log
#                      kubelet-program (path; only a node has it)   is-cut (mark)

host_folder() { echo "$STATE/hosts/$1"; }

require_host() {
  [[ -n ${1:-} ]] || die "no host given. Hosts: $(ls -m "$STATE/hosts" 2>/dev/null || echo none)"
  [[ -d $STATE/hosts/$1 ]] || die "no host $1 in sandbox $SANDBOX. Hosts: $(ls -m "$STATE/hosts" 2>/dev/null || echo none)"
}

host_create() { # host_create HOST: its folder and its address
  local folder number
  [[ $1 =~ ^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$ ]] || die "invalid host name $1: use at most 32 lower-case letters, digits and dashes"
  ! is_component "$1" || die "a host cannot be named $1, which is a component"
  folder=$(host_folder "$1")
  mkdir -p "$folder/root" "$STATE/addresses"
  [[ -z ${DISK_MIB:-} ]] || disk_choose_image "$folder" "$DISK_MIB"
  if [[ $1 =~ ^node-([1-9][0-9]?)$ ]]; then
    number=$((100 + BASH_REMATCH[1]))
    ln -sfn "../hosts/$1" "$STATE/addresses/$number"
  else
    for number in {11..99}; do ln -sn "../hosts/$1" "$STATE/addresses/$number" 2>/dev/null && break; done # only one can create the link
  fi
  echo "$number" >"$folder/number"
  echo "$BASE" >"$folder/base" # a later recipe must not change the disk of this host
  host_empty_disk "$1"
}

host_empty_disk() {
  local folder
  folder=$(host_folder "$1")
  [[ ! -e $folder/disk ]] || rm -rf --one-file-system "$folder"/{disk,disk.img,overlay,containerd,cni,kubelet}
  mkdir -p "$folder"/{disk/etc,overlay,containerd,cni,kubelet}
  echo "$1" >"$folder/disk/etc/hostname"
  printf '127.0.0.1 localhost\n%s %s\n' "$SUBNET.$(<"$folder/number")" "$1" >"$folder/disk/etc/hosts"
}

# PID of the host's systemd in this machine's namespace. It is alone in the cgroup init.scope (below `payload`, if nspawn
# makes one, as on v2), except for a child about to execute another program; so this takes the one with PID 1 in its own namespace.
host_leader() {
  local pid
  for pid in $(cat "$TREE/hosts/$1"/{boot-*/payload/,payload/,}init.scope/cgroup.procs 2>/dev/null || true); do
    grep -qs $'^NSpid:.*\t1$' "/proc/$pid/status" && echo "$pid" && return 0
  done
  return 1
}

# Never poll a host by entering its PID namespace: see host_exec. These two enter nothing.
host_boot_id() {
  local leader
  leader=$(host_leader "$1") && cat "/proc/$leader/root/proc/sys/kernel/random/boot_id" 2>/dev/null
}
host_bus() { # host_bus HOST busctl-arguments...
  local leader
  leader=$(host_leader "$1") || return 1
  timeout 10 busctl --address="unix:path=/proc/$leader/root/run/dbus/system_bus_socket" -- "${@:2}" 2>/dev/null
}
has_bus() { [[ -e $(<"$(host_folder "$1")/base")/usr/bin/dbus-daemon ]]; } # has_bus HOST: a system bus
host_state() { # the state of the host's systemd: starting, running, degraded, stopping; or off
  local state
  if has_bus "$1"; then
    state=$(host_bus "$1" get-property org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager SystemState) || true
  else
    state=$(cat "/proc/$(host_leader "$1")/root/run/sandbox-state" 2>/dev/null) || true
  fi
  state=${state#s \"} state=${state%\"}
  if [[ -n $state ]]; then echo "$state"; elif is_empty "hosts/$1"; then echo off; else echo starting; fi
}
is_booted() { # is_booted HOST [OLD-LEADER]
  [[ $(host_leader "$1") != "${2:-}" && $(host_state "$1") =~ ^(running|degraded)$ ]]
}

host_start() { # boots it; a second call on a running host does nothing
  is_empty "hosts/$1" || return 0
  disk_make_image "$(host_folder "$1")"
  host_groups_up "$1"
  start_in "$(loop_group "$1")" "$(host_folder "$1")/console.log" env SANDBOX="$SANDBOX" "$HERE/host-loop.sh" "$1"
}
host_wait() { # host_wait HOST [OLD-LEADER]
  within 60 is_booted "$@" || die "$1 did not boot within 60 s, it is $(host_state "$1"): see $(host_folder "$1")/console.log"
}

host_up() { # host_up HOST: a host without Kubernetes
  [[ -d $(host_folder "$1") ]] || host_create "$1"
  hub_up
  host_start "$1"
  host_wait "$1"
}

host_reboot() { # as an administrator or a package does it; returns when the host is up again
  local old
  old=$(host_leader "$1") || die "$1 is off: bin/sandbox start $1"
  is_rebooting() { # a host that still boots refuses; the reply is lost if the bus goes down first
    if [[ $(host_leader "$1") != "$old" ]]; then return; fi
    if has_bus "$1"; then
      host_bus "$1" call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Reboot b false ||
        [[ $(host_state "$1") == stopping ]]
    else
      kill -s RTMIN+5 "$old" # as `systemctl start reboot.target`
    fi
  }
  within 20 is_rebooting "$1" || die "$1 refused the reboot"
  host_wait "$1" "$old"
}

host_crash() { # as if the power were cut. Only a host with its own disk (DISK_MIB) loses what was not synced
  local leader folder
  leader=$(host_leader "$1") || die "$1 is off"
  folder=$(host_folder "$1")
  if has_image "$folder"; then disk_capture "$1" "$folder"; fi
  kill -KILL "$leader"
  if has_image "$folder"; then thaw "$1"; fi
  within 20 is_empty "hosts/$1" || die "$1 did not end within 20 s"
  if has_image "$folder"; then mv "$folder/disk.img.cut" "$folder/disk.img"; fi
}

host_down() { # the host and its disk
  local folder
  folder=$(host_folder "$1")
  kill_group "hosts/$1"
  host_network_down "$1" "$(cat "$folder/number" 2>/dev/null || echo 0)"
  remove_cgroups "hosts/$1"
  find "$STATE/addresses" -lname "../hosts/$1" -delete 2>/dev/null || true
  rm -rf --one-file-system "$folder"
  # the last host of a sandbox without a control plane takes the rest with it
  [[ -e $STATE/control-plane || -n $(ls "$STATE/hosts" 2>/dev/null) ]] || sandbox_down
}

host_wipe() { # the next start finds an empty disk, as after a new installation
  local folder
  folder=$(host_folder "$1")
  is_empty "hosts/$1" || die "$1 is running: bin/sandbox crash $1"
  host_empty_disk "$1"
  [[ ! -e $folder/kubelet-program ]] || node_provision "$1"
}

# A disconnected cable: both ends lose the carrier and packets vanish. It survives a reboot.
host_cut() {
  touch "$(host_folder "$1")/is-cut"
  host_network_connect "$1" "$(<"$(host_folder "$1")/number")" || die "$1 stays connected"
}
host_join() {
  rm -f "$(host_folder "$1")/is-cut"
  host_network_connect "$1" "$(<"$(host_folder "$1")/number")" || die "$1 stays disconnected"
}

# Replaces this process by CMD in all namespaces of the host.
# At shutdown the host's systemd stops (SIGSTOP) every process of its PID namespace. nsenter then stops itself too and reaps
# nothing, and its unreaped child keeps the namespace, and thus the reboot, waiting forever. Hence the process that wakes it.
host_exec() { # host_exec HOST CMD...
  local leader
  leader=$(host_leader "$1") || die "$1 is off: bin/sandbox start $1"
  join_beside "$1" "$leader" # so that `down` finds it
  while kill -CONT $$ 2>/dev/null; do sleep 0.3; done </dev/null >/dev/null 2>&1 &
  # setpriv: the command dies with this process
  exec nsenter --target "$leader" --mount --uts --ipc --net --pid --cgroup --root --wd -- \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
    setpriv --pdeathsig KILL -- "${@:2}"
}
