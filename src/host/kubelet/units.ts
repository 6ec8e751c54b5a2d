/** Units of the kubelet and of the container runtime, as distributions of Kubernetes name them. */

/** The main process is the kubelet: its command line has the kubelet's flags. */
export const kubeletUnits: readonly string[] = ['kubelet.service', 'snap.kubelet-eks.daemon.service']

/** The kubelet is a part or a child of the main process. */
const bundledKubeletUnits = ['rke2-server.service', 'rke2-agent.service', 'k0scontroller.service', 'k0sworker.service']

const containerRuntimeUnits = [
  'containerd.service',
  'crio.service',
  'cri-o.service',
  'docker.service',
  'cri-docker.service',
  'cri-dockerd.service',
]

const runtimeUnits: ReadonlySet<string> = new Set([...kubeletUnits, ...bundledKubeletUnits, ...containerRuntimeUnits])
/** k3s.service, k3s-agent.service, and k3s-NAME.service where k3s was installed with INSTALL_K3S_NAME. */
const k3sUnit = /^k3s(?:-.+)?\.service$/
/** Such as snap.microk8s.daemon-kubelite.service, snap.k8s.kubelet.service and snap.docker.dockerd.service. */
const snapUnit = /^snap\..*(?:kubelet|kubelite|containerd|docker).*\.service$/

/** Whether the unit runs a kubelet or a container runtime: after its restart the kubelet reports Ready too early. */
export function isRuntimeUnit(unit: string): boolean {
  return runtimeUnits.has(unit) || k3sUnit.test(unit) || snapUnit.test(unit)
}
