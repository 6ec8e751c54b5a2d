# The whole sandbox: up, down, status. Sourced by bin/sandbox.
# shellcheck shell=bash

# Removes every trace, whatever came before: it looks for what carries the sandbox's name and needs no file of $STATE.
# The hosts' disks are mounted in namespaces of their own and vanish with their processes.
sandbox_down() {
  echo $$ >/sys/fs/cgroup/systemd/cgroup.procs # out of the tree, if this is an `up` that failed
  kill_group ''
  networks_down
  remove_cgroups
  rm -rf /run/systemd/nspawn/propagate/"$ID".*
  rm -rf --one-file-system "$STATE"
}
