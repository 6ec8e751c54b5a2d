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

arguments=(--quiet --directory="$folder/root" --machine="$ID.$host" --hostname="$host" --register=no --keep-unit
  --network-namespace-path="/run/netns/$HUB.$host" --resolv-conf=off --timezone=off --link-journal=no
  --console=read-only --kill-signal=SIGRTMIN+3
  # what containerd, runc and the kubelet need; the kubelet exits without /dev/kmsg, and the real one is the machine's log
  --capability=all --system-call-filter='@known add_key keyctl bpf perf_event_open' --bind=/dev/null:/dev/kmsg
  --bind="$folder/containerd:/var/lib/containerd" --bind="$folder/cni:/var/lib/cni" --bind="$folder/kubelet:/var/lib/kubelet")
[[ ! -e kubelet-program ]] || arguments+=(--bind-ro="$(<kubelet-program):/usr/local/bin/kubelet")
count=${#arguments[@]}

boot() ( # boot N: the disk is mounted in this boot's mount namespace: it vanishes with it, however it ends
  local device=''
  ! has_image "$folder" || device=$(disk_attach "$folder") || exit 1 # no boot without the disk
  ! is_root_on_disk "$folder" || arguments=("${arguments[@]:0:count}" --bind="$device")
  join_boot "$host" "$1"
  exec unshare --mount --propagation slave bash -ec '
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
)

join_hierarchies "$host"
for ((number = 1; ; number++)); do
  clear_boots "$host"
  host_network_up "$host" "$(<number)"
  status=0
  boot "$number" || status=$?
  echo "$(date +%T.%3N) ended with $status"
  [[ $status == 133 ]] || break # 133: the host asked for a reboot
done
exit
}
