/**
 * The samples that the demo plays in turn: each is a Skyhook of test/fixtures/skyhooks with its requirements and its
 * expected effects.
 */
export type Sample = {
  /** File in test/fixtures/skyhooks. */
  readonly file: string
  readonly title: string
  /** Folder in test/fixtures/packages and the name it is pushed under. */
  readonly packages: readonly (readonly [folder: string, name: string])[]
  /** Labels of the nodes that it selects; all nodes of the sandbox get them. */
  readonly labels: Readonly<Record<string, string>>
  /** Ordinary pods run on the nodes, and have to move. */
  readonly shop?: true
  /** The last node carries the runtime-required taint, as if it had just joined. */
  readonly taint?: true
  /** Every host boots once. */
  readonly reboots?: true
  /** Maximum number of slots held at the same time, beside that of a node that has just joined. */
  readonly budget: number
  /** It takes longer only if something is wrong. */
  readonly withinMs: number
  /** Files on each host that it writes. */
  readonly files: readonly string[]
}

export const samples: readonly Sample[] = [
  {
    file: 'demo.yaml',
    title: 'a package of four small scripts, one node at a time',
    packages: [['shellscript', 'skyhook-packages/shellscript:1.1.0']],
    labels: { 'skyhook.nvidia.com/test-node': 'demo' },
    budget: 1,
    withinMs: 60_000,
    files: ['/etc/skyhook-greeting'],
  },
  {
    file: 'rollout.yaml',
    title: 'two packages, one depends on the other; a service restarts on drained nodes while a shop keeps running',
    packages: [
      ['bcp', 'base/bcp:2024.05.13'],
      ['nvssh', 'base/nvssh:2024.05.10'],
    ],
    labels: { agentpool: 'gpu' },
    shop: true,
    budget: 1, // 33 % of three nodes, and what a percentage counts as without the census
    withinMs: 90_000,
    files: ['/etc/bcp/csp', '/etc/nvssh/roles.conf'],
  },
  {
    file: 'runtime-required.yaml',
    title: 'a change with a reboot, two nodes at a time, and a new node that gets pods only afterwards',
    packages: [['shellscript', 'skyhook-packages/shellscript:1.1.1']],
    labels: { 'skyhook.nvidia.com/node-type': 'worker' },
    shop: true,
    taint: true,
    reboots: true,
    budget: 2,
    withinMs: 180_000,
    files: [],
  },
]

/** Three ordinary pods, spread over the nodes; one of them must always be available. */
export const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec:
      terminationGracePeriodSeconds: 2
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: cart}}
      containers:
      - {name: cart, image: "sandbox.local/workload:1", imagePullPolicy: Never}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: cart, namespace: shop}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: cart}}
`

export const runtimeRequiredTaint = {
  key: 'skyhook.nvidia.com',
  value: 'runtime-required',
  effect: 'NoSchedule',
} as const
