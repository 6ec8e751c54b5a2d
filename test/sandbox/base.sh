# What all sandboxes share, made once and kept in the cache: the base disk of the hosts, two images in it, the registry's program.
# Safe to delete at any time when no sandbox is up. Sourced by bin/sandbox.
# shellcheck shell=bash

HOST_OS=${HOST_OS:-bookworm}
HOST_INIT=(host-init.sh) # parts of the first program of a host
MASKED_UNITS='' # beside those that no host needs
COMMON_PACKAGES=systemd,systemd-sysv,bash,procps,kmod,iproute2,iputils-ping,ca-certificates,cron,rsyslog
COMMON_PACKAGES+=,containerd,runc,containernetworking-plugins,iptables,conntrack,ethtool,socat,busybox-static
BUS_PACKAGES=dbus,libpam-systemd,tuned
case $HOST_OS in # what the hosts are made from
  bullseye | bookworm | trixie) DEBIAN=$HOST_OS BASE_PACKAGES=$COMMON_PACKAGES,$BUS_PACKAGES ;;
  # its package makes itself the dbus.service
  trixie-broker) DEBIAN=trixie BASE_PACKAGES=$COMMON_PACKAGES,$BUS_PACKAGES,dbus-broker ;;
  # no bus daemon, nothing that needs one, and no logind, which comes with systemd
  bare) DEBIAN=bookworm BASE_PACKAGES=$COMMON_PACKAGES MASKED_UNITS=systemd-logind.service ;;
  container) DEBIAN=bookworm BASE_PACKAGES=$COMMON_PACKAGES MASKED_UNITS=systemd-logind.service HOST_INIT=(container-init.sh host-init.sh) ;;
  *) die "HOST_OS=$HOST_OS is not a base disk: use bullseye, bookworm, trixie, trixie-broker, bare or container" ;;
esac

host_init() { cat "${HOST_INIT[@]/#/$HERE/}"; }

# One folder per recipe: an old base stays usable for the sandbox that was started from it. Only what makes the disk counts.
recipe() {
  echo "$DEBIAN $BASE_PACKAGES $MASKED_UNITS"
  host_init
  declare -f configure_base make_images
  [[ $BASE_PACKAGES == *,dbus,* ]] || declare -f configure_without_bus
}

debian_mirror() { # the one this machine uses; DEBIAN_MIRROR=URL names another. False if there is none
  local mirror=${DEBIAN_MIRROR:-}
  configured() {
    apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
      awk '$1 == "Debian" && $2 == "main" && $3 !~ /-/ { print $4; exit }'
  }
  [[ -n $mirror ]] || mirror=$(configured)
  [[ -n $mirror ]] || { apt_update_once && mirror=$(configured); }
  [[ -n $mirror ]] && echo "${mirror%/}"
}

make_base() ( # a subshell: the lock and the umask end with it
  [[ -d $BASE ]] && return 0
  exec 9>"$CACHE/base.lock"
  flock 9 # two sandboxes may start at once; the second finds the work done
  [[ -d $BASE ]] && return 0
  umask 022
  mirror=$(debian_mirror) || die "apt names no Debian source to make the hosts from: set DEBIAN_MIRROR"
  partial=$BASE.partial
  rm -rf --one-file-system "$partial"
  # in a mount namespace of its own: debootstrap mounts /proc in there, and may be killed
  unshare --mount --propagation slave debootstrap --variant=minbase --include="$BASE_PACKAGES" "$DEBIAN" "$partial" "$mirror" >&2 9>&- ||
    die "debootstrap failed (more in $partial/debootstrap/debootstrap.log)"
  configure_base "$partial"
  make_images "$partial"
  sync -f "$partial"
  mv "$partial" "$BASE"
)

configure_base() { # configure_base ROOT
  local root=$1 unit
  # what must be the host's own, or comes from its network
  rm -f "$root/etc/hostname" "$root/etc/resolv.conf" "$root/var/lib/dbus/machine-id" "$root/etc/apt/sources.list"
  : >"$root/etc/machine-id"
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
  # containerd is for nodes only; the rest has no purpose in a host that lives for minutes
  rm -f "$root/etc/systemd/system/multi-user.target.wants/containerd.service"
  for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer e2scrub_reap.service \
    getty@tty1.service console-getty.service systemd-networkd.service systemd-resolved.service $MASKED_UNITS; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
  done
  mkdir -p "$root/etc/systemd/system.conf.d" "$root/etc/systemd/journald.conf.d"
  # A stop job can hang at shutdown (a pod's scope whose cgroup is gone already): 5 s instead of 90
  printf '[Manager]\nDefaultTimeoutStopSec=5s\n' >"$root/etc/systemd/system.conf.d/sandbox.conf"
  printf '[Journal]\nStorage=persistent\nSystemMaxUse=32M\n' >"$root/etc/systemd/journald.conf.d/sandbox.conf"
  # rsyslog: the kernel's log is the machine's, not the host's
  sed -i '/imklog/d' "$root/etc/rsyslog.conf"
  # a service that does nothing, for packages and tests to restart
  cat >"$root/etc/systemd/system/foobar.service" <<'UNIT'
[Unit]
Description=A service that does nothing
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
UNIT
  ln -sf ../foobar.service "$root/etc/systemd/system/multi-user.target.wants/foobar.service"
  [[ -e $root/usr/bin/dbus-daemon ]] || configure_without_bus "$root"
  host_init >"$root/usr/local/sbin/host-init"
  chmod 0755 "$root/usr/local/sbin/host-init"
}

# systemd's private socket takes no client from outside of the host's PID namespace, where the sandbox and the tests of hosts are:
# they read the state from a file, and have a relay.
configure_without_bus() { # configure_without_bus ROOT
  local root=$1 unit
  cat >"$root/etc/systemd/system/sandbox-state.service" <<'UNIT'
[Unit]
Description=Says in a file when the host is up
[Service]
ExecStart=/bin/sh -c 'until state=$(systemctl is-system-running) || [ "$state" = degraded ]; do sleep 0.1; done; echo $state >/run/sandbox-state; exec sleep infinity'
ExecStop=/bin/sh -c 'echo stopping >/run/sandbox-state'
UNIT
  cat >"$root/etc/systemd/system/sandbox-relay.service" <<'UNIT'
[Unit]
Description=Passes connections on to systemd's private socket
[Service]
ExecStart=/usr/bin/socat UNIX-LISTEN:/run/sandbox-relay,fork,mode=0600 UNIX-CONNECT:/run/systemd/private
UNIT
  for unit in sandbox-state.service sandbox-relay.service; do
    ln -sf "../$unit" "$root/etc/systemd/system/multi-user.target.wants/$unit"
  done
}

# One image without a container engine, busybox and a script, as `docker save` would write it, under two names:
# sandbox.local/pause:1 holds the namespaces of a pod; sandbox.local/workload:1 is an ordinary pod for tests:
#   (no argument) ends at once on SIGTERM     stubborn  ignores SIGTERM, so it takes its whole grace period
# Its first process must not be a bare `sleep`: as number 1 of a namespace it would ignore the SIGTERM of a host that
# shuts down, and every reboot would take 5 s longer.
make_images() { # make_images ROOT
  local root=$1 work applet layer config
  work=$root/tmp/images
  mkdir -p "$work/layer/bin" "$work/layer/tmp" "$work/layer/etc" "$root/usr/local/share/sandbox"
  cp "$root/bin/busybox" "$work/layer/bin/"
  for applet in $("$root/bin/busybox" --list); do [[ $applet == busybox ]] || ln -s busybox "$work/layer/bin/$applet"; done
  cat >"$work/layer/bin/workload" <<'SCRIPT'
#!/bin/sh
case ${1:-} in stubborn) trap '' TERM ;; *) trap 'exit 0' TERM ;; esac
while :; do
  sleep 3600 &
  wait $!
done
SCRIPT
  chmod 0755 "$work/layer/bin/workload"
  reproducible_tar() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$1" -cf - .; }
  reproducible_tar "$work/layer" >"$work/layer.tar"
  rm -r "$work/layer"
  layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
  printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=/bin"],"Entrypoint":["/bin/workload"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(dpkg --print-architecture)" "$layer" >"$work/config"
  config=$(sha256sum "$work/config" | cut -d' ' -f1).json
  mv "$work/config" "$work/$config"
  printf '[{"Config":"%s","RepoTags":["sandbox.local/pause:1","sandbox.local/workload:1"],"Layers":["layer.tar"]}]' "$config" >"$work/manifest.json"
  reproducible_tar "$work" >"$root/usr/local/share/sandbox/images.tar"
  rm -r "$work"
}

BASE=$CACHE/base-$HOST_OS-$(recipe | sha256sum | cut -c1-12)

REGISTRY_PROGRAM=$CACHE/docker-registry
fetch_registry() ( # Debian's docker-registry, unpacked instead of installed
  [[ -x $REGISTRY_PROGRAM ]] && return 0
  exec 9>"$CACHE/registry.lock"
  flock 9
  [[ -x $REGISTRY_PROGRAM ]] && return 0
  work=$CACHE/registry.partial
  rm -rf "$work"
  mkdir "$work"
  cd "$work" || exit 1
  fetch() { apt-get -q -o APT::Sandbox::User=root download docker-registry >&2; }
  fetch || { apt_update_once && fetch; } || die "apt-get could not download docker-registry"
  dpkg -x docker-registry_*.deb .
  mv usr/bin/docker-registry "$REGISTRY_PROGRAM"
  rm -r "$work"
)
