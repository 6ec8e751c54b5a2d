#!/usr/bin/env bash
# Keeps one host running over its reboots, until it powers off or crashes. Started by host_start.
# Usage: host-loop.sh HOST
{ # bash reads it completely before it runs: editing the file under a running host would break it
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"
. "$here/network.sh"
. "$here/disk.sh"
host=$1
folder=$STATE/hosts/$host
cd "$folder"

# Its own cgroup in every hierarchy: nspawn uses the one it is started in, and all hosts would share system.slice.
# It is below that of this shell, whose limits must hold; the named hierarchy is joined already (start_in).
join_cgroups() {
  local controllers path mount parent group file
  while IFS=: read -r _ controllers path; do
    case $controllers in
      name=*) continue ;;
      '') mount=/sys/fs/cgroup/unified ;;
      *) mount=/sys/fs/cgroup/$controllers ;;
    esac
    [[ -e $mount/cgroup.procs ]] || continue
    parent=${path%/}
    parent=$mount${parent%%/skyhookd.*}
    group=$parent/$NAME/hosts/$host
    mkdir -p "$group"
    if [[ -e $group/cpuset.cpus ]]; then # it starts empty and then refuses processes
      for file in "$NAME" "$NAME/hosts" "$NAME/hosts/$host"; do
        cat "$parent/cpuset.cpus" >"$parent/$file/cpuset.cpus"
        cat "$parent/cpuset.mems" >"$parent/$file/cpuset.mems"
      done
    fi
    echo $$ >"$group/cgroup.procs"
  done </proc/self/cgroup
}

# cgroups outlive nspawn, and a kubelet takes 3 s for each stale one of a pod.
clear_cgroups() {
  local path
  { find /sys/fs/cgroup -type d -path "*/$NAME/hosts/$host" -prune 2>/dev/null || true; } | while read -r path; do # other hosts come and go concurrently
    find "$path" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}

arguments=(--quiet --directory="$folder/root" --machine="$ID.$host" --hostname="$host" --register=no --keep-unit
  --network-namespace-path="/run/netns/$HUB.$host" --resolv-conf=off --timezone=off --link-journal=no
  --console=read-only --kill-signal=SIGRTMIN+3
  # what containerd, runc and the kubelet need; the kubelet exits without /dev/kmsg, and the real one is the machine's log
  --capability=all --system-call-filter='@known add_key keyctl bpf perf_event_open' --bind=/dev/null:/dev/kmsg
  --bind="$folder/containerd:/var/lib/containerd" --bind="$folder/cni:/var/lib/cni" --bind="$folder/kubelet:/var/lib/kubelet")
[[ ! -e kubelet-program ]] || arguments+=(--bind-ro="$(<kubelet-program):/usr/local/bin/kubelet")
count=${#arguments[@]}

boot() { # the disk is mounted in this boot's mount namespace: it vanishes with it, however it ends
  local device=''
  ! has_image "$folder" || device=$(disk_attach "$folder") || exit 1 # no boot without the disk
  ! is_root_on_disk "$folder" || arguments=("${arguments[@]:0:count}" --bind="$device")
  unshare --mount --propagation slave bash -ec '
    upper=.
    [[ -z $3 ]] || { upper=image && mount -t ext4 -o "$4" "$3" image && losetup --detach "$3"; } # detached with its last mount
    if [[ -e root-on-disk ]]; then
      mount --bind image root
    else
      mount -t overlay "$1" -o "lowerdir=$2,upperdir=$upper/disk,workdir=$upper/overlay" root
    fi
    shift 4
    exec env SYSTEMD_NSPAWN_LOCK=0 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network systemd-nspawn "$@"
  ' boot "$NAME.$host" "$(<base)" "$device" "$IMAGE_OPTIONS" "${arguments[@]}" /usr/local/sbin/host-init
}

join_cgroups
while :; do
  clear_cgroups
  host_network_up "$host" "$(<number)"
  status=0
  boot || status=$?
  echo "$(date +%T.%3N) ended with $status"
  [[ $status == 133 ]] || break # 133: the host asked for a reboot
done
exit
}
