/**
 * A Node as a cloud's kubelet and add-ons leave it, some 20 KB without managedFields: 50 images by tag and digest, the
 * conditions of kubelet and node-problem-detector, the labels of cloud, feature discovery and device plugin.
 */
import { sha256Hex } from '../src/schemas/canonical-json.ts'
import { defaultAgentPodSelector } from '../src/census/model/messages.ts'

/** Values of the label that Skyhooks and compartments select by. */
export const poolCount = 10
export const poolLabel = 'eks.amazonaws.com/nodegroup'
export const poolOf = (at: number): string => `gpu-pool-${at % poolCount}`

const registry = '602401143452.dkr.ecr.eu-central-1.amazonaws.com'
const maxImages = 50 // the most that kubelet reports
const images = Array.from({ length: maxImages }, (_, at) => ({
  names: [
    `${registry}/platform/some-component-${at}@sha256:${sha256Hex(`image ${at}`)}`,
    `${registry}/platform/some-component-${at}:v1.${at}.0-eksbuild.1`,
  ],
  sizeBytes: 123_456_789 + at,
}))

const conditionTypes = [
  ['MemoryPressure', 'KubeletHasSufficientMemory'],
  ['DiskPressure', 'KubeletHasNoDiskPressure'],
  ['PIDPressure', 'KubeletHasSufficientPID'],
  ['Ready', 'KubeletReady'],
  ['KernelDeadlock', 'KernelHasNoDeadlock'],
  ['ReadonlyFilesystem', 'FilesystemIsNotReadOnly'],
  ['FrequentKubeletRestart', 'NoFrequentKubeletRestart'],
  ['FrequentContainerdRestart', 'NoFrequentContainerdRestart'],
] as const

/** The conditions with the time of their last heartbeat, as kubelet writes them even if nothing else has changed. */
export function conditionsAt(now: string): readonly object[] {
  return conditionTypes.map(([type, reason]) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    reason,
    message: `${reason} as the kubelet or the node problem detector of this node found it`,
    lastHeartbeatTime: now,
    lastTransitionTime: '2026-11-01T08:00:00Z',
  }))
}

const resources = {
  cpu: '192',
  memory: '2113449628Ki',
  'ephemeral-storage': '1845493760Ki',
  pods: '250',
  'hugepages-1Gi': '0',
  'hugepages-2Mi': '10752Mi',
  'nvidia.com/gpu': '8',
  'vpc.amazonaws.com/efa': '32',
}

/** The body of the Node's POST. `now`: an RFC 3339 time. */
export function cloudNode(name: string, at: number, now: string): object {
  const address = `10.${Math.floor(at / 65_536)}.${Math.floor(at / 256) % 256}.${at % 256}`
  const zone = `eu-central-1${'abc'[at % 3]}`
  const features = Array.from({ length: 60 }, (_, feature) => [
    `feature.node.kubernetes.io/cpu-cpuid.SOME-FEATURE-${feature}`,
    feature % 7 === 0 ? `value-${at % 5}` : 'true',
  ])
  const gpu = ['product', 'memory', 'count', 'family', 'compute.major', 'compute.minor', 'machine', 'replicas']
  const labels = {
    'beta.kubernetes.io/arch': 'amd64',
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/os': 'linux',
    'kubernetes.io/hostname': name,
    'node.kubernetes.io/instance-type': 'p5.48xlarge',
    'topology.kubernetes.io/region': 'eu-central-1',
    'topology.kubernetes.io/zone': zone,
    'topology.k8s.aws/zone-id': `euc1-az${(at % 3) + 1}`,
    'k8s.io/cloud-provider-aws': sha256Hex('cluster').slice(0, 32),
    [poolLabel]: poolOf(at),
    ...Object.fromEntries(gpu.map((what) => [`nvidia.com/gpu.${what}`, `value-of-${what}`])),
    ...Object.fromEntries(features),
  }
  const annotations = {
    'alpha.kubernetes.io/provided-node-ip': address,
    'csi.volume.kubernetes.io/nodeid': JSON.stringify({ 'ebs.csi.aws.com': `i-${sha256Hex(name).slice(0, 17)}` }),
    'node.alpha.kubernetes.io/ttl': '15',
    'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
    'network.example.com/state': JSON.stringify({ interfaces: Array.from({ length: 32 }, (_, eni) => `efa-${eni}`) }),
    'nfd.node.kubernetes.io/feature-labels': features.map(([key]) => key).join(','),
  }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels, annotations },
    spec: { providerID: `aws:///${zone}/i-${sha256Hex(name).slice(0, 17)}` },
    status: {
      addresses: [
        { type: 'InternalIP', address },
        { type: 'InternalDNS', address: name },
        { type: 'Hostname', address: name },
      ],
      allocatable: resources,
      capacity: resources,
      conditions: conditionsAt(now),
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      images,
      nodeInfo: {
        architecture: 'amd64',
        bootID: sha256Hex(`boot of ${name}`).slice(0, 36),
        containerRuntimeVersion: 'containerd://2.1.4',
        kernelVersion: '6.12.46-66.121.amzn2023.x86_64',
        kubeProxyVersion: '',
        kubeletVersion: 'v1.36.3-eks-113cf36',
        machineID: sha256Hex(`machine ${name}`).slice(0, 32),
        operatingSystem: 'linux',
        osImage: 'Amazon Linux 2023.9.20250929',
        systemUUID: sha256Hex(`system ${name}`).slice(0, 36),
      },
    },
  }
}

/** The body of the POST of the pod of a node's agent, from the template of the chart's DaemonSet. */
export function agentPod(node: string, { metadata, spec }: PodTemplate): object {
  const [key = '', value = ''] = defaultAgentPodSelector.split('=')
  return {
    metadata: { ...metadata, name: `agent-of-${node}`, labels: { ...metadata.labels, [key]: value } },
    spec: { ...spec, nodeName: node },
  }
}

export type PodTemplate = {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> }
  readonly spec: object
}
