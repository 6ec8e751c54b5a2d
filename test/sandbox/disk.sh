# Disks that lose what was not synced: ext4 in a file, behind a loop device without a cache. Sourced by bin/sandbox and host-loop.sh.
# shellcheck shell=bash
#
# $STATE/hosts/HOST/   disk-mib (its size; absent: disk/ is a folder of the machine)   disk.img   image/ (its mount point)
#                      root-on-disk (mark: the disk holds everything and is the host's /, without an overlay)
#
# The kernel keeps a host's writes in memory and passes them to the loop device on a sync, or much later. The device bypasses the
# machine's cache (direct I/O), so the file contains what a disk would contain. A copy of it is the disk after a power cut.

# The kernel commits by itself only after ten minutes, and does not guess which files should have been synced.
# shellcheck disable=SC2034 # for host-loop.sh
IMAGE_OPTIONS=commit=600,noauto_da_alloc

has_image() { [[ -e $1/disk-mib ]]; } # has_image FOLDER
is_root_on_disk() { [[ -e $1/root-on-disk ]]; } # is_root_on_disk FOLDER

disk_choose_image() { # disk_choose_image FOLDER MIB
  [[ $2 =~ ^[1-9][0-9]{1,4}$ ]] || die "DISK_MIB=$2 is not a valid disk size: use a number of MiB from 10 to 99999"
  [[ -e /dev/loop-control ]] || die "DISK_MIB needs loop devices, but this machine has no /dev/loop-control"
  echo "$2" >"$1/disk-mib"
  [[ ${ROOT_ON_DISK:-0} != 1 ]] || touch "$1/root-on-disk"
  mkdir -p "$1/image"
}

disk_make_image() { # disk_make_image FOLDER: before its first boot, with the contents of disk/
  has_image "$1" && [[ ! -e $1/disk.img ]] || return 0
  local seed=$1/seed base=''
  mkdir "$seed"
  if is_root_on_disk "$1"; then base=$(<"$1/base"); else cp -a "$1/disk" "$1/overlay" "$seed"; fi
  truncate -s "$(<"$1/disk-mib")M" "$1/disk.img"
  # shellcheck disable=SC2016 # the inner shell expands it
  unshare --mount --propagation slave bash -ec '
    [[ -z $3 ]] || mount -t overlay seed -o "lowerdir=$3,upperdir=$1/disk,workdir=$1/overlay" "$2"
    mke2fs -q -t ext4 -m 0 -J size=8 -E lazy_itable_init=0,lazy_journal_init=0 -d "$2" "$1/disk.img"
  ' seed "$1" "$seed" "$base" >"$1/mke2fs.log" 2>&1 || die "mke2fs could not make the disk of $1: $(tail -n 1 "$1/mke2fs.log")"
  rm -rf "$seed"
}

disk_attach() { # disk_attach FOLDER: prints the loop device. The previous boot may still be writing through another one, for long under load
  is_free() { [[ -z $(losetup --noheadings --output NAME --associated "$1/disk.img") ]]; }
  within 90 is_free "$1" || die "$1/disk.img was still in use after 90 s"
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

# Copies the disk as of one instant: nothing on the host runs during the copy, and the copy itself triggers no sync. Threads of the
# kernel are not frozen, though: a disk that they wrote to during the copy is copied again.
disk_capture() { # disk_capture HOST FOLDER
  freeze "$1"
  within 60 disk_copy "$2/disk.img" "$2/disk.img.cut" || die_thawed "$1" "the disk of $1 kept changing while it was copied"
}
disk_copy() { # disk_copy FILE COPY: false if FILE changed meanwhile
  disk_drop_cache "$1"
  cp --sparse=always "$1" "$2"
  disk_drop_cache "$1"
  cmp --silent "$1" "$2"
}
disk_drop_cache() { # disk_drop_cache FILE: the loop device writes past the machine's cache, which may have older contents
  dd "if=$1" iflag=nocache count=0 status=none
}
