#!/bin/sh
# First program of a host, before its systemd. Becomes /usr/local/sbin/host-init in the base disk.

# systemd-nspawn mounts the v1 controllers read-only where there is no user namespace. systemd then ignores MemoryMax and
# CPUQuota without a word, and containerd starts nothing.
for mount in /sys/fs/cgroup /sys/fs/cgroup/*; do
  mountpoint -q "$mount" && mount -o remount,rw,bind "$mount"
done
# A cpuset cgroup starts without processors and refuses every process unless it is a clone of its parent.
[ -e /sys/fs/cgroup/cpuset/cgroup.clone_children ] && echo 1 >/sys/fs/cgroup/cpuset/cgroup.clone_children

# These settings are the machine's, shared by all hosts and read-only here (net.* is not: a host has its own network).
# The host gets plain copies: writing them works, touches nobody else, and is forgotten at reboot as it should be.
copy_of() { # copy_of PATH: mounts a writable copy over it
  copy=/run/host-settings/$(echo "$1" | tr / _)
  cp -r --no-preserve=all "$1" "$copy" 2>/dev/null
  mount --bind "$copy" "$1"
}
mkdir -p /run/host-settings
copy_of /proc/sys/vm
copy_of /sys/kernel/mm/transparent_hugepage
for name in panic panic_on_oops pid_max threads-max sched_autogroup_enabled numa_balancing keys/root_maxkeys keys/root_maxbytes; do
  [ -e "/proc/sys/kernel/$name" ] && copy_of "/proc/sys/kernel/$name"
done

exec /lib/systemd/systemd "$@"
