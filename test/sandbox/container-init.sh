#!/bin/sh
# Makes a host a container as the nodes of kind are: these lines come before those of host-init.sh.

# systemd-nspawn gives each boot an id of its own, by a mount over the machine's
umount /proc/sys/kernel/random/boot_id
container=docker # systemd writes it into /run/systemd/container
export container

