#!/bin/bash
# Debian packages for the tests of packages that install some; kept in the sandboxes' cache.
#   package-archive.sh tuned     prints the path of tuned's .deb, of the version that the hosts have
#   package-archive.sh grub      prints the path of a folder with the .debs of GRUB's programs and what they need
#   package-archive.sh dnf       prints the path of a tar of what a host with dnf has more than a host, with a repository of
#                                dummies in /srv/rpms: old and new versions, some of the new ones with a security advisory
set -Eeuo pipefail
home=$(cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../sandbox" && pwd)
# shellcheck source=/dev/null
for file in common machine base build; do . "$home/$file.sh"; done

trap parts_end EXIT
build_missing base
folder=$BASE-packages-$(sha256sum "$(realpath "${BASH_SOURCE[0]}")" | cut -c1-8)
exec 9>"$CACHE/packages.lock"
flock 9
mkdir -p "$folder"

apt_of_hosts() { # with the packages of the hosts' Debian, which may not be this machine's
  apt-get -q -y -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Dir::Etc::sourcelist="$folder/sources.list" \
    -o Dir::Etc::sourceparts=- -o Dir::State::lists="$folder/lists" -o Dir::State::status="$BASE/var/lib/dpkg/status" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@" >"$CACHE/packages.log" 2>&1
}

download() { # download FOLDER NAME...: with what they need that the hosts do not have
  local mirror
  mirror=$(debian_mirror) || die "apt names no Debian source to take packages from: set DEBIAN_MIRROR"
  mkdir -p "$1/partial" "$folder/lists/partial"
  echo "deb [signed-by=$BASE/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $DEBIAN main" >"$folder/sources.list"
  { apt_of_hosts update && apt_of_hosts --no-install-recommends --download-only --reinstall -o Dir::Cache::archives="$1" \
    install "${@:2}"; } || die "apt-get could not download ${*:2}: $(tail -n 2 "$CACHE/packages.log")"
}

make_tuned() {
  local work=$folder/tuned.partial
  rm -rf "$work"
  download "$work" tuned
  mv "$work"/tuned_*.deb "$folder/tuned.deb"
  rm -r "$work"
}

make_grub() {
  local work=$folder/grub.partial
  rm -rf "$work"
  download "$work" grub2-common
  rm -rf "$work"/{partial,lock}
  mv "$work" "$folder/grub"
}

rpm_repository() { # runs in the host's root; builds /srv/rpms
  mkdir -p /srv/rpms
  rpm_of() {
    printf 'Name: %s\nVersion: %s\nRelease: 1\nSummary: dummy\nLicense: none\nBuildArch: noarch\n%%description\ndummy\n%%files\n' "$1" "$2" >/tmp/dummy.spec
    rpmbuild -bb --quiet --define '_rpmdir /srv/rpms' --define '_build_name_fmt %{NAME}-%{VERSION}.rpm' /tmp/dummy.spec
  }
  local name
  for name in plain keep both hole linux-firmware; do rpm_of "$name" 1.0; done
  rpm_of plain 2.0
  rpm_of keep 2.0
  rpm_of both 1.1
  rpm_of both 3.0
  rpm_of hole 1.1
  rpm_of linux-firmware 1.1
  createrepo_c -q /srv/rpms
  {
    echo '<?xml version="1.0" encoding="UTF-8"?><updates>'
    for name in both hole linux-firmware; do
      echo "<update from='x' status='stable' type='security' version='1'><id>SEC-$name</id><title>$name</title><issued date='2026-01-01 00:00:00'/>"
      echo "<severity>Important</severity><pkglist><collection short='x'><name>x</name>"
      echo "<package name='$name' version='1.1' release='1' epoch='0' arch='noarch' src='$name-1.1.src.rpm'><filename>$name-1.1.rpm</filename></package>"
      echo '</collection></pkglist></update>'
    done
    echo '</updates>'
  } >/tmp/updateinfo.xml
  modifyrepo_c --mdtype=updateinfo /tmp/updateinfo.xml /srv/rpms/repodata >/dev/null
  rm -r /tmp/dummy.spec /tmp/updateinfo.xml /root/rpmbuild 2>/dev/null || true
}

layer() ( # layer UPPER LOWER COMMAND...: runs it in a root of LOWER whose changes go to UPPER; the mounts end with it
  mkdir -p "$1" "$work/overlay" "$work/root"
  # shellcheck disable=SC2016 # the inner shell expands it
  unshare --mount --propagation private bash -c '
    set -e
    mount -t overlay overlay -o "lowerdir=$3,upperdir=$2,workdir=$1/overlay" "$1/root"
    mount --bind "$1/debs" "$1/root/mnt"
    mount -t proc proc "$1/root/proc"
    mount --bind /dev "$1/root/dev"
    chroot "$1/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -ec "$4"
  ' layer "$work" "$1" "$2" "$3" >"$CACHE/packages.log" 2>&1 9>&- || die "$(tail -n 3 "$CACHE/packages.log")"
)

# By apt, which knows what has to be configured before the next one can be unpacked: python3 on hosts without it.
install_debs='apt-get -qy -o APT::Sandbox::User=root -o Dpkg::Options::=--force-unsafe-io install /mnt/*.deb'

make_dnf() {
  work=$folder/dnf.partial
  rm -rf --one-file-system "$work"
  say "making the layer of hosts with dnf, once; about a minute"
  download "$work/debs" dnf dnf-plugins-core rpm
  layer "$work/dnf" "$BASE" "$install_debs"
  rm "$work"/debs/*.deb
  download "$work/debs" rpm createrepo-c dnf dnf-plugins-core
  layer "$work/tools" "$work/dnf:$BASE" "$install_debs; $(declare -f rpm_repository); rpm_repository"
  mkdir -p "$work/dnf/srv" "$work/dnf/etc/yum.repos.d" "$work/dnf/etc/dnf/vars"
  cp -r "$work/tools/srv/rpms" "$work/dnf/srv/"
  printf '[test]\nname=test\nbaseurl=file:///srv/rpms\ngpgcheck=0\n' >"$work/dnf/etc/yum.repos.d/test.repo"
  printf '[main]\ngpgcheck=0\n' >"$work/dnf/etc/dnf/dnf.conf"
  echo 1 >"$work/dnf/etc/dnf/vars/releasever"
  sed -i 's/^enabled.*/enabled = 0/' "$work/dnf/etc/dnf/plugins/local.conf" # asks for signed packages of its own
  # without what only an overlay means (removed files), and what nobody reads
  (cd "$work/dnf" && find . ! -type c ! -type d -print0 | grep -zvE '^\./(usr/share/(doc|man|locale|info)|var/cache|var/log)/' |
    tar --null -T - -cf "$folder/dnf.tar.partial")
  mv "$folder/dnf.tar.partial" "$folder/dnf.tar"
  rm -rf --one-file-system "$work"
}

case ${1:-} in
  tuned) wanted=$folder/tuned.deb ;;
  grub) wanted=$folder/grub ;;
  dnf) wanted=$folder/dnf.tar ;;
  *) die 'package-archive.sh tuned|grub|dnf' ;;
esac
[[ -e $wanted ]] || "make_$1"
echo "$wanted"
