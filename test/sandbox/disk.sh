# Disks that lose what was not synced: ext4 in a file, behind a loop device without a cache. Sourced by bin/sandbox and host-loop.sh.
# shellcheck shell=bash
#
# $STATE/hosts/HOST/   disk-mib (its size; absent: disk/ is a folder of the machine)   disk.img   image/ (where it is mounted)
#                      root-on-disk (mark: the disk holds everything and is the host's /, without an overlay)
#
# The kernel keeps what a host wrote in memory and hands it to the loop device when it is synced, or much later. The device writes past
# the machine's own cache (direct I/O), so the file holds what a disk would hold. A copy of it is the disk after a power cut.

# The kernel commits by itself after ten minutes only, and does not guess which files should have been synced.
# shellcheck disable=SC2034 # for host-loop.sh
IMAGE_OPTIONS=commit=600,noauto_da_alloc

has_image() { [[ -e $1/disk-mib ]]; } # has_image FOLDER
is_root_on_disk() { [[ -e $1/root-on-disk ]]; } # is_root_on_disk FOLDER

disk_choose_image() { # disk_choose_image FOLDER MIB
  [[ $2 =~ ^[1-9][0-9]{1,4}$ ]] || die "DISK_MIB=$2: the size of each host's disk in MiB, from 10 to 99999"
  [[ -e /dev/loop-control ]] || die "no loop devices on this machine (/dev/loop-control): DISK_MIB needs them"
  echo "$2" >"$1/disk-mib"
  [[ ${ROOT_ON_DISK:-0} != 1 ]] || touch "$1/root-on-disk"
  mkdir -p "$1/image"
}

disk_make_image() { # disk_make_image FOLDER: before its first boot, with what is in disk/
  has_image "$1" && [[ ! -e $1/disk.img ]] || return 0
  local seed=$1/seed base=''
  mkdir "$seed"
  if is_root_on_disk "$1"; then base=$(<"$1/base"); else cp -a "$1/disk" "$1/overlay" "$seed"; fi
  truncate -s "$(<"$1/disk-mib")M" "$1/disk.img"
  # shellcheck disable=SC2016 # the inner shell expands it
  unshare --mount --propagation slave bash -ec '
    [[ -z $3 ]] || mount -t overlay seed -o "lowerdir=$3,upperdir=$1/disk,workdir=$1/overlay" "$2"
    mke2fs -q -t ext4 -m 0 -J size=8 -E lazy_itable_init=0,lazy_journal_init=0 -d "$2" "$1/disk.img"
  ' seed "$1" "$seed" "$base" >"$1/mke2fs.log" 2>&1 || die "the disk of $1 cannot be made: $(tail -n 1 "$1/mke2fs.log")"
  rm -rf "$seed"
}

disk_attach() { # disk_attach FOLDER: prints the loop device. The boot before may still be writing through another one, long under load
  is_free() { [[ -z $(losetup --noheadings --output NAME --associated "$1/disk.img") ]]; }
  within 90 is_free "$1" || die "$1/disk.img is still in use"
  if is_root_on_disk "$1"; then attach_high "$1"; else losetup --find --show --direct-io=on "$1/disk.img"; fi
}
# grub-mkconfig takes /dev/loop0 to 9 for images of other systems and looks for their files; from 10 on they are block devices like any other.
attach_high() { # attach_high FOLDER
  local number
  for number in {10..99}; do
    [[ -z $(losetup --noheadings --output NAME "/dev/loop$number" 2>/dev/null) ]] || continue
    losetup --direct-io=on "/dev/loop$number" "$1/disk.img" 2>/dev/null && echo "/dev/loop$number" && return
  done
  die "no free loop device between /dev/loop10 and /dev/loop99"
}

# The state of the disk in one instant: nothing on the host runs while it is copied, and nothing is handed to the disk for our sake.
disk_capture() { # disk_capture HOST FOLDER
  freeze "$1"
  cp --sparse=always "$2/disk.img" "$2/disk.img.cut"
}
freezer_of() { # the host's own cgroup may stand below that of whoever started it
  find /sys/fs/cgroup/freezer -type d -path "*/$NAME/hosts/$1" -prune 2>/dev/null | head -n 1
}
freeze() { # freeze HOST
  local group
  group=$(freezer_of "$1")
  [[ -n $group ]] || die "no freezer cgroup (v1) for $1: without it the disk cannot be caught in one instant"
  echo FROZEN >"$group/freezer.state"
  is_frozen() { [[ $(<"$1/freezer.state") == FROZEN ]]; }
  within 5 is_frozen "$group" || die "$1 does not freeze"
}
thaw() { echo THAWED >"$(freezer_of "$1")/freezer.state"; }
