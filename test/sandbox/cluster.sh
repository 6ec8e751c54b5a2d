# The whole sandbox: up, down, status. Sourced by bin/sandbox.
# shellcheck shell=bash

# Removes base disks of older recipes, a third of a gigabyte each, that no `up` used for a month. Not in base.sh: each change of
# that file makes a new base disk.
forget_old_bases() {
  touch -c "$BASE"
  find "$CACHE" -maxdepth 1 -type d -name 'base-*' ! -path "$BASE*" -mtime +30 -exec rm -rf --one-file-system {} +
}

sandbox_up() { # sandbox_up NODES
  local nodes=$1 jobs=() index tag agent
  [[ $nodes =~ ^[1-9][0-9]?$ ]] || die "NODES must be a number from 1 to 99, got '$nodes'"
  [[ ! -e $STATE/env ]] || { say "sandbox $SANDBOX is already up (bin/sandbox down removes it)" && return 0; }
  is_empty up || die "another \`bin/sandbox up\` of sandbox $SANDBOX is running (process $(members up | head -n 1))"
  require_machine "$nodes" "${NEEDED_BY_UP[@]}"
  [[ ! -e $PLANE ]] || { say "removing the remains of an earlier \`up\`" && sandbox_down; }
  join_tree up # so that `down` from another shell ends this, too
  trap 'status=$?; parts_end; ((status == 0)) || say "up failed: bin/sandbox status shows what exists, bin/sandbox down removes it"' EXIT

  build_missing "${NEEDED_BY_UP[@]}"
  forget_old_bases
  progress "base disk and programs ready"

  mkdir -p "$PLANE/etcd" "$STATE/hosts"
  chmod 700 "$PLANE" "$PLANE/etcd"
  hub_up
  forward apiserver "$APISERVER_PORT"
  forward registry "$REGISTRY_PORT"
  define_control_plane
  component_begin etcd
  define_registry
  component_begin registry
  make_certificates
  component_wait etcd
  component_begin apiserver
  progress "network, certificates and etcd started"

  for ((index = 1; index <= nodes; index++)); do
    node_up "node-$index" & jobs+=($!)
  done
  write_env
  component_wait registry
  component_wait apiserver
  component_begin kcm
  component_begin scheduler
  [[ ${RECORDER:-0} != 1 ]] || recorder_up
  progress "control plane up, $nodes nodes are booting"
  if [[ ${AGENT:-1} != 0 ]]; then # in the meantime: its pods wait for the nodes
    tag=dev-$(date +%s)
    { build_agent "$tag" && install_agent "$tag"; } & agent=$!
  fi
  wait_all "${jobs[@]}" || exit 1
  nodes_are_ready() { [[ $(kubectl get nodes --no-headers 2>/dev/null | grep -cw Ready) -ge $1 ]]; }
  within 90 nodes_are_ready "$nodes" || die "not all nodes are Ready: $(kubectl get nodes --no-headers | tr '\n' ';') (consoles: $STATE/hosts/*/console.log)"
  mv "$STATE/env.partial" "$STATE/env" # it marks the cluster as complete; a failing agent can be repaired there
  progress "$nodes nodes Ready"
  if [[ ${AGENT:-1} != 0 ]]; then
    wait "$agent" || exit 1
    progress "agent installed, its pods start"
    await_agent "$tag"
    progress "agent runs on every node"
  fi
  [[ -z ${SANDBOX_BOOTS:-} ]] || echo "$SANDBOX $nodes $SECONDS" >>"$SANDBOX_BOOTS"
  say "sandbox $SANDBOX is up: . ${STATE/#"$PWD"\//}/env && kubectl get nodes"
}

node_up() {
  [[ ! -d $(host_folder "$1") ]] || die "host $1 already exists: bin/sandbox host-down $1 removes it"
  host_create "$1"
  node_provision "$1"
  host_start "$1"
}

write_env() { # and source it
  (umask 077 && cat >"$STATE/env.partial") <<ENV
export SANDBOX='$SANDBOX'
export KUBECONFIG='$STATE/kubeconfig'
export REGISTRY='127.0.0.1:$(port_of registry)'
export REGISTRY_USER='sandbox'
export REGISTRY_PASSWORD='$(<"$PLANE/registry/password")'
export REGISTRY_CA='$PLANE/registry/ca.crt'
export PATH='$BIN':"\$PATH"
ENV
  . "$STATE/env.partial"
}

# Removes every trace, whatever happened before: it finds everything by the sandbox's name and needs no file of $STATE.
# The hosts' disks are mounted in their own namespaces and vanish with their processes.
sandbox_down() {
  [[ $EUID -eq 0 ]] || die "bin/sandbox down must run as root"
  leave_tree # if this is an `up` that cleans up
  kill_group ''
  networks_down
  remove_cgroups
  rm -rf /run/systemd/nspawn/{propagate,unix-export}/"$ID".* # the second by systemd 256 and later
  rm -rf --one-file-system "$STATE"
}

sandbox_status() {
  local name folder
  if [[ -e $STATE/env ]]; then
    . "$STATE/env"
    echo "sandbox $SANDBOX: up, . $STATE/env"
  else
    echo "sandbox $SANDBOX: not up"
  fi
  for name in "${COMPONENTS[@]}"; do
    [[ ! -e $PLANE/$name.command ]] || printf '  %-10s %s\n' "$name" "$(component_state "$name")"
  done
  for folder in "$STATE"/hosts/*/; do
    [[ -d $folder ]] || continue
    name=$(basename "$folder")
    printf '  %-10s %-8s %s boot %s%s\n' "$name" "$(host_state "$name")" "$SUBNET.$(<"$folder/number")" "$(host_boot_id "$name" || echo -)" \
      "$([[ ! -e $folder/is-cut ]] || echo ' (cut off)')"
  done
  [[ ! -e $STATE/env ]] || kubectl --request-timeout=5s get nodes,pods -A -o wide || true
}
