# The networks of one sandbox. Sourced by bin/sandbox and host-loop.sh.
# shellcheck shell=bash
#
#   this machine ── 127.0.0.1:PORT ──▶ hub (control plane, registry, a bridge) 10.88.0.1 ◀── host 10.88.0.N, one namespace each
#
# The machine's own network namespace contains nothing of the sandbox but listeners on its loopback. A host's rules
# lead its own 127.0.0.1:PORT of the registry to the hub, so one image reference works on the machine, for the host's
# containerd and for a pod in the host's network.

HUB=$NAME # network namespace
SUBNET=10.88.0
HUB_ADDRESS=$SUBNET.1
APISERVER_PORT=6443 # in the hub
REGISTRY_PORT=5000
SERVICE_ADDRESS=10.0.0.1 # of the Service `kubernetes`; there is no kube-proxy

in_hub() { ip netns exec "$HUB" "$@"; }
in_network_of() { ip netns exec "$HUB.$1" "${@:2}"; }

hub_up() {
  [[ -e /run/netns/$HUB ]] && return 0
  ip netns add "$HUB"
  ip -n "$HUB" link set lo up
  ip -n "$HUB" link add bridge type bridge
  ip -n "$HUB" addr add "$HUB_ADDRESS/24" dev bridge
  ip -n "$HUB" link set bridge up
}

listens() { # listens GROUP PORT: whether a process of that group has the port
  local pid
  pid=$(members "$1" | head -n 1)
  [[ -n $pid ]] && ss -Hltnp "src 127.0.0.1 and sport = :$2" | grep -q "pid=$pid,"
}

forward() { # forward NAME PORT-IN-HUB: forwards a free port of the machine's loopback there and writes it to $STATE/NAME.port
  local port
  for _ in {1..50}; do
    port=$((20000 + SRANDOM % 10000)) # below the kernel's range for outgoing connections
    start_in "forward-$1" "$STATE/forward.log" systemd-socket-activate -l "127.0.0.1:$port" \
      ip netns exec "$HUB" /lib/systemd/systemd-socket-proxyd --connections-max=1024 "127.0.0.1:$2"
    # if the port is in use, ours exits and the next one is tried
    within 2 listens "forward-$1" "$port" && echo "$port" >"$STATE/$1.port" && return 0
    kill_group "forward-$1"
  done
  die "no free port on 127.0.0.1 for $1"
}
port_of() { cat "$STATE/$1.port" 2>/dev/null; }

host_network_up() { # host_network_up HOST NUMBER: a fresh namespace with an address, for each boot
  local namespace=$HUB.$1 port=port-$2 registry
  host_network_down "$1" "$2"
  ip netns add "$namespace"
  ip -n "$namespace" link set lo up
  # created across the namespaces, so the names (at most 15 characters) must be unique only in the hub
  ip link add "$port" netns "$HUB" type veth peer name eth0 netns "$namespace"
  ip -n "$HUB" link set "$port" master bridge
  host_network_connect "$1" "$2" || die "$1 has no network: $port stays as it is"
  ip -n "$namespace" addr add "$SUBNET.$2/24" dev eth0
  ip -n "$namespace" link set eth0 up
  ip -n "$namespace" route add default via "$HUB_ADDRESS"
  registry=$(port_of registry) || return 0 # a host without a control plane
  in_network_of "$1" sysctl -qw net.ipv4.conf.all.route_localnet=1
  in_network_of "$1" iptables-restore <<RULES
*nat
-A OUTPUT -d 127.0.0.1/32 -p tcp --dport $registry -j DNAT --to-destination $HUB_ADDRESS:$REGISTRY_PORT
-A POSTROUTING -s 127.0.0.0/8 -d $HUB_ADDRESS/32 -j MASQUERADE
-A OUTPUT -d $SERVICE_ADDRESS/32 -p tcp --dport 443 -j DNAT --to-destination $HUB_ADDRESS:$APISERVER_PORT
-A PREROUTING -d $SERVICE_ADDRESS/32 -p tcp --dport 443 -j DNAT --to-destination $HUB_ADDRESS:$APISERVER_PORT
COMMIT
RULES
}

# Follows the mark is-cut. Between two boots a host has no port: the next boot makes one, which follows the mark too.
host_network_connect() { # host_network_connect HOST NUMBER
  local state=''
  wanted_state() { if [[ -e $STATE/hosts/$1/is-cut ]]; then echo down; else echo up; fi; }
  follows_mark() { # twice, if the mark changes meanwhile: a boot, `cut` and `join` may coincide
    [[ $state != "$(wanted_state "$1")" ]] || return 0
    state=$(wanted_state "$1")
    ip -n "$HUB" link set "port-$2" "$state" 2>/dev/null || ! ip -n "$HUB" link show "port-$2" &>/dev/null || state=''
    return 1
  }
  within 5 follows_mark "$1" "$2"
}

host_network_down() { # host_network_down HOST NUMBER
  ip -n "$HUB" link del "port-$2" 2>/dev/null || true
  [[ ! -e /run/netns/$HUB.$1 ]] || ip netns del "$HUB.$1"
}

networks_down() { # all of the sandbox's
  local path
  for path in "/run/netns/$HUB" "/run/netns/$HUB".*; do
    [[ ! -e $path ]] || ip netns del "${path##*/}"
  done
  # `ip netns` leaves a mount on its folder; the next one that needs it mounts it again
  if [[ -d /run/netns && -z $(ls -A /run/netns) ]]; then umount /run/netns 2>/dev/null || true; fi
}
