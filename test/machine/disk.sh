#!/usr/bin/env bash
# Makes the disks of virtual machines, without loop devices and mounts. Needs root for debootstrap.
# Usage: disk.sh system SUITE            the disk of a Debian (bookworm, trixie), once; prints its folder in the cache
#        disk.sh project FOLDER FILE     a disk with a clone of the checkout in FOLDER, and programs of the cache
# WITH=sandbox: the system has what the sandbox and the tests would install. CACHE_PARTS: what of the cache goes along.
set -euo pipefail
here=$(cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../sandbox" && pwd)
# shellcheck source=/dev/null
for file in common machine base; do . "$here/$file.sh"; done

# What an installation with a server's defaults has, and what the README asks for: git and make.
packages=systemd,systemd-sysv,systemd-resolved,dbus,udev,libpam-systemd,openssh-server,iproute2,procps,kmod,apparmor
packages+=,ca-certificates,initramfs-tools,linux-image-cloud-amd64,git,make
[[ ${WITH:-} != sandbox ]] ||
  packages+=,systemd-container,debootstrap,openssl,iptables,curl,dbus-daemon,perl-base,e2fsprogs,libatomic1

system() { # system SUITE
  local suite=$1 disk partial root unit mirror
  disk=$CACHE/machine-$suite${WITH:+-$WITH}-$( (declare -f system; echo "$packages") | sha256sum | cut -c1-12)
  partial=$disk.partial root=$disk.partial/root
  if [[ ! -d $disk ]]; then
    mirror=$(debian_mirror) || die "apt names no Debian source to make machines from: set DEBIAN_MIRROR"
    say "making the disk of a Debian $suite, once; about two minutes"
    rm -rf --one-file-system "$partial"
    mkdir -p "$root"
    # in a mount namespace of its own: debootstrap mounts /proc in there, and may be killed
    unshare --mount --propagation slave debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$mirror" \
      >"$partial/log" 2>&1 || die "debootstrap failed: see $partial/log"
    printf '/dev/vda / ext4 defaults 0 1\n/dev/vdb /project ext4 defaults 0 2\n' >"$root/etc/fstab"
    echo machine >"$root/etc/hostname"
    printf '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/machine.network"
    mkdir -p "$root/project" "$root/root/.ssh"
    chroot "$root" systemctl enable systemd-networkd ssh >>"$partial/log" 2>&1
    ln -sf /run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
    for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer serial-getty@ttyS0.service; do
      ln -sf /dev/null "$root/etc/systemd/system/$unit"
    done
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/usr/share/{doc,man,locale}/*
    ssh-keygen -q -t ed25519 -N '' -f "$partial/key"
    install -m 600 "$partial/key.pub" "$root/root/.ssh/authorized_keys"
    cp -L "$root"/boot/vmlinuz-* "$partial/vmlinuz"
    cp -L "$root"/boot/initrd.img-* "$partial/initrd"
    rm -rf "${root:?}"/boot/*
    truncate -s 24G "$partial/disk.raw"
    mke2fs -q -t ext4 -E lazy_itable_init=1,discard -O ^has_journal -d "$root" "$partial/disk.raw"
    rm -rf --one-file-system "$root"
    mv "$partial" "$disk"
  fi
  echo "$disk"
}

project() { # project FOLDER FILE
  local folder=$1 file=$2 tree=$2.tree
  rm -rf "$tree"
  mkdir -p "$tree/cache"
  git clone -q --no-hardlinks "$folder" "$tree/skyhookd"
  # what is not committed is tried, too
  git -C "$folder" diff HEAD --binary | git -C "$tree/skyhookd" apply --allow-empty
  git -C "$folder" ls-files -o --exclude-standard -z | tar -C "$folder" --null -T - -cf - | tar -C "$tree/skyhookd" -xf -
  cp -L /etc/ssl/certs/ca-certificates.crt "$tree/" # a proxy of this machine's network is trusted there, too
  # shellcheck disable=SC2086 # patterns
  (cd "$CACHE" && cp -a --parents ${CACHE_PARTS:-bin/kubernetes-*} "$tree/cache/") ||
    die "$CACHE lacks one of ${CACHE_PARTS:-bin/kubernetes-*}: bin/sandbox prepare makes them"
  truncate -s 32G "$file"
  mke2fs -q -F -t ext4 -O ^has_journal -E lazy_itable_init=1 -d "$tree" "$file"
  rm -rf "$tree"
}

case ${1:-} in
  system) system "$2" ;;
  project) project "$(realpath "$2")" "$3" ;;
  *) sed -n '2,5p' "$0" && exit 2 ;;
esac
