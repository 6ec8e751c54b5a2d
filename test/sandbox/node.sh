# What makes a host a node of the cluster: files on its disk, written before it boots. Sourced by bin/sandbox.
# shellcheck shell=bash

node_provision() { # node_provision HOST
  local folder disk number kube registry certs=etc/containerd/certs.d grace=''
  folder=$(host_folder "$1") number=$(<"$folder/number") registry=127.0.0.1:$(port_of registry)
  disk=$folder/disk kube=$folder/disk/etc/kubernetes
  realpath "$BIN/kubelet" >"$folder/kubelet-program"
  mkdir -p "$kube/manifests" "$disk/$certs/$registry" "$disk/etc/cni/net.d" "$disk/etc/systemd/system/multi-user.target.wants"

  make_certificate "$PKI" "$kube/node" "/O=system:nodes/CN=system:node:$1" extendedKeyUsage=clientAuth
  make_kubeconfig "$kube/kubeconfig" "https://$HUB_ADDRESS:$APISERVER_PORT" "$PKI" "$kube/node"
  cp "$PKI/ca.crt" "$kube/ca.crt"
  cp "$PLANE/registry/ca.crt" "$disk/$certs/$registry/ca.crt"
  printf 'server = "https://%s"\n[host."https://%s"]\n  ca = "/%s/ca.crt"\n' "$registry" "$registry" "$certs/$registry" >"$disk/$certs/$registry/hosts.toml"

  [[ -z ${KUBELET_SHUTDOWN_GRACE:-} ]] || grace="shutdownGracePeriod: $KUBELET_SHUTDOWN_GRACE
shutdownGracePeriodCriticalPods: 2s"
  cat >"$kube/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /etc/kubernetes/ca.crt}}
authorization: {mode: Webhook}
staticPodPath: /etc/kubernetes/manifests
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
# what a host of the sandbox cannot provide: cgroup v2, kernel settings, disabled swap, its own disk
failCgroupV1: false
cgroupDriver: cgroupfs
featureGates: {KubeletInUserNamespace: true}
failSwapOn: false
enforceNodeAllocatable: []
evictionHard: {memory.available: "0%", nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
clusterDNS: []
resolvConf: ""
# as the defaults, only faster
serializeImagePulls: false
nodeStatusUpdateFrequency: 2s
nodeStatusReportFrequency: 10s
nodeLeaseDurationSeconds: 8
syncFrequency: 10s
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
$grace
YAML
  cat >"$disk/etc/containerd/config.toml" <<'TOML'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "sandbox.local/pause:1"
  restrict_oom_score_adj = true # the machine may lack CAP_SYS_RESOURCE
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
TOML
  cat >"$disk/etc/cni/net.d/10-sandbox.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.99.$number.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
  cat >"$disk/etc/systemd/system/kubelet.service" <<UNIT
[Unit]
Description=kubelet
After=containerd.service
Wants=containerd.service
[Service]
ExecStartPre=/bin/sh -c 'cd /var/lib/containerd && [ -e images-are-in ] || ctr -n k8s.io images import /usr/local/share/sandbox/images.tar && touch images-are-in'
ExecStart=/usr/local/bin/kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubeconfig --hostname-override=$1 --node-ip=$SUBNET.$number --cert-dir=/var/lib/kubelet/pki
Restart=always
RestartSec=1
UNIT
  ln -sf ../kubelet.service "$disk/etc/systemd/system/multi-user.target.wants/kubelet.service"
  ln -sf /lib/systemd/system/containerd.service "$disk/etc/systemd/system/multi-user.target.wants/containerd.service"
}

