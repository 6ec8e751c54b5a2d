# etcd, kube-apiserver, kube-controller-manager, kube-scheduler and the registry, each restartable alone. Sourced by bin/sandbox.
# shellcheck shell=bash
#
# $STATE/control-plane/   NAME.command (the command line, one argument per line)   NAME.log   pki/   etcd/   audit.log
#                         registry/ (data, tls/, htpasswd)   recorder.command (only with RECORDER=1)

PLANE=$STATE/control-plane
PKI=$PLANE/pki
COMPONENTS=(etcd apiserver kcm scheduler registry)
RECORDER_PORT=6444

is_component() { [[ " ${COMPONENTS[*]} " == *" ${1:-} "* ]]; }
require_component() {
  is_component "${1:-}" || die "unknown component '${1:-}': use one of ${COMPONENTS[*]}"
  [[ -e $PLANE/$1.command ]] || die "sandbox $SANDBOX has no control plane: run bin/sandbox up"
}

is_ready() { # is_ready COMPONENT
  case $1 in
    etcd) in_hub curl -sf -o "$PLANE/etcd.health" http://127.0.0.1:2379/health ;;
    apiserver) ask_apiserver /readyz ;;
    registry) in_hub curl -sf -o "$PLANE/registry.health" --cacert "$PLANE/registry/ca.crt" --config "$PLANE/registry/login" "https://127.0.0.1:$REGISTRY_PORT/v2/" ;;
    *) ! is_empty "$1" ;; # these two have no port
  esac
} 2>/dev/null
ask_apiserver() { # ask_apiserver PATH [PORT]
  in_hub curl -sf -o "$PLANE/apiserver.answer" --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" "https://127.0.0.1:${2:-$APISERVER_PORT}$1"
}

define() { # define COMPONENT CMD...
  printf '%s\n' "${@:2}" >"$PLANE/$1.command"
}
component_begin() {
  local command
  is_empty "$1" || return 0
  mapfile -t command <"$PLANE/$1.command"
  start_in "$1" "$PLANE/$1.log" ip netns exec "$HUB" "${command[@]}"
}
component_wait() {
  ready_or_dead() { is_ready "$1" || is_empty "$1"; }
  sleep 0.05 # until the process is in its cgroup
  if within 90 ready_or_dead "$1" && is_ready "$1"; then return 0; fi
  die "$1 did not start: $(grep -E '^[EF][0-9]{4}|error|fatal' "$PLANE/$1.log" | tail -n 3) (see $PLANE/$1.log)"
}
component_start() { component_begin "$1" && component_wait "$1"; }
component_stop() { kill_group "$1"; } # not SIGTERM: kube-apiserver takes a minute to end with open watches
component_restart() { component_stop "$1" && component_start "$1"; }
component_pause() { members "$1" | xargs -r kill -STOP; }
component_resume() { members "$1" | xargs -r kill -CONT; }

# A second API server on the same etcd, for recordings: it lives on while `apiserver` is killed or paused. No node knows it.
recorder_up() {
  recorder_is_ready() { ask_apiserver /readyz "$RECORDER_PORT" 2>/dev/null; }
  sed "s/^$APISERVER_PORT\$/$RECORDER_PORT/; s/audit\.log\$/recorder-audit.log/" "$PLANE/apiserver.command" >"$PLANE/recorder.command"
  echo --feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false >>"$PLANE/recorder.command" # both would have one identity
  component_begin recorder
  forward recorder "$RECORDER_PORT"
  make_kubeconfig "$STATE/recorder.kubeconfig" "https://127.0.0.1:$(port_of recorder)" "$PKI" "$PKI/admin"
  within 90 recorder_is_ready || die "the API server for recordings did not start: see $PLANE/recorder.log"
}

make_certificates() { # of the cluster
  local user jobs=()
  make_authority "$PKI" sandbox-cluster
  make_certificate "$PKI" "$PKI/apiserver" /CN=kube-apiserver extendedKeyUsage=serverAuth \
    "subjectAltName=IP:127.0.0.1,IP:$HUB_ADDRESS,IP:$SERVICE_ADDRESS,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc" & jobs+=($!)
  for user in admin:/O=system:masters/CN=admin kcm:/CN=system:kube-controller-manager scheduler:/CN=system:kube-scheduler; do
    make_certificate "$PKI" "$PKI/${user%%:*}" "${user#*:}" extendedKeyUsage=clientAuth & jobs+=($!)
  done
  make_key "$PKI/service-accounts.key"
  openssl pkey -in "$PKI/service-accounts.key" -pubout -out "$PKI/service-accounts.pub"
  wait_all "${jobs[@]}"
  for user in kcm scheduler; do make_kubeconfig "$PKI/$user.kubeconfig" "https://127.0.0.1:$APISERVER_PORT" "$PKI" "$PKI/$user"; done
  make_kubeconfig "$STATE/kubeconfig" "https://127.0.0.1:$(port_of apiserver)" "$PKI" "$PKI/admin"
}

define_control_plane() {
  # The audit log serves to count requests per client. A request has one auditID; a watch has two lines (started, complete).
  cat >"$PLANE/audit-policy.yaml" <<'YAML'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ["system:nodes", "system:serviceaccounts:kube-system"]}
- {level: None, users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]}
- {level: None, nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]}
- {level: Metadata}
YAML
  define etcd "$BIN/etcd" --data-dir "$PLANE/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380
  # endpoint-reconciler: the hub's address cannot be a Service endpoint; the hosts' rules lead there (network.sh)
  define apiserver "$BIN/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --secure-port "$APISERVER_PORT" \
    --bind-address 0.0.0.0 --advertise-address "$HUB_ADDRESS" --endpoint-reconciler-type none \
    --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" --client-ca-file "$PKI/ca.crt" \
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$PKI/service-accounts.pub" \
    --service-account-signing-key-file "$PKI/service-accounts.key" --service-cluster-ip-range 10.0.0.0/24 \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged=true \
    --kubelet-client-certificate "$PKI/admin.crt" --kubelet-client-key "$PKI/admin.key" --kubelet-preferred-address-types InternalIP \
    --audit-policy-file "$PLANE/audit-policy.yaml" --audit-log-path "$PLANE/audit.log" --profiling=false
  # Kubernetes notices a lost node after 50 s, the sandbox after 16. The request limits make it ready 5 s earlier than the defaults.
  define kcm "$BIN/kube-controller-manager" --kubeconfig "$PKI/kcm.kubeconfig" --leader-elect=false --secure-port 0 \
    --use-service-account-credentials=true --service-account-private-key-file "$PKI/service-accounts.key" --root-ca-file "$PKI/ca.crt" \
    --node-monitor-period=2s --node-monitor-grace-period=16s --node-startup-grace-period=20s --kube-api-qps 500 --kube-api-burst 1000 --profiling=false
  define scheduler "$BIN/kube-scheduler" --kubeconfig "$PKI/scheduler.kubeconfig" --authentication-kubeconfig "$PKI/scheduler.kubeconfig" \
    --authorization-kubeconfig "$PKI/scheduler.kubeconfig" --leader-elect=false --secure-port 0 --profiling=false
}

# TLS with its own authority (alone in its folder: containerd takes a key beside it for a client key) and, unless REGISTRY_LOGIN=0, basic authentication.
define_registry() {
  local folder=$PLANE/registry user=sandbox password
  mkdir -p "$folder"/{data,tls}
  make_authority "$folder/tls" sandbox-registry
  cp "$folder/tls/ca.crt" "$folder/ca.crt"
  make_certificate "$folder/tls" "$folder/tls/registry" /CN=registry extendedKeyUsage=serverAuth \
    "subjectAltName=IP:127.0.0.1,IP:$HUB_ADDRESS,DNS:localhost"
  password=$(openssl rand -hex 12)
  # the registry accepts only bcrypt; perl has it from the C library, and every Debian has perl-base
  PASSWORD=$password perl -e 'print "sandbox:", crypt($ENV{PASSWORD}, q($2y$05$) . substr($ENV{PASSWORD}, 0, 21) . "u"), "\n"' >"$folder/htpasswd"
  (umask 077 && echo "user = \"$user:$password\"" >"$folder/login" && echo "$password" >"$folder/password")
  cat >"$folder/config.yml" <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: "$folder/data"}, delete: {enabled: true}, cache: {blobdescriptor: inmemory}}
http: {addr: ":$REGISTRY_PORT", tls: {certificate: "$folder/tls/registry.crt", key: "$folder/tls/registry.key"}}
YAML
  [[ ${REGISTRY_LOGIN:-1} == 0 ]] || echo "auth: {htpasswd: {realm: sandbox, path: \"$folder/htpasswd\"}}" >>"$folder/config.yml"
  define registry "$REGISTRY_PROGRAM" serve "$folder/config.yml"
}

component_state() {
  if is_empty "$1"; then
    echo stopped
  elif grep -qs '^State:.*T' "/proc/$(members "$1" | head -n 1)/status"; then
    echo paused
  elif is_ready "$1"; then
    echo ready
  else
    echo "not ready"
  fi
}
