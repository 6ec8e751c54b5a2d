/** What keeps the agent of a node from acting: its pod, its DaemonSet, and the API server. */
import { type FleetScene, pod } from '../../kit/fleet/fleet-scene.ts'
import type { BrokenScene } from './broken-scene.ts'
import { allowWhen, one, rebooting } from './breakage.ts'
import { daemonSetPath, type Outside } from './outside.ts'

const pods = '/api/v1/namespaces/skyhook/pods'
const ownPod = `${pods}/agent-of-node1`
const nowOf = (scene: FleetScene): string => new Date(scene.simulation.clock.wallMs()).toISOString()
/** Agents run, and the Skyhook is not there yet. */
const soon = async (scene: FleetScene): Promise<void> => await scene.pass(6_000)

/** The agent of node1 ends, and its pod has this status until the returned function is called. */
function stopAgent(scene: FleetScene, container: object, status: object = {}): () => void {
  const { supervisor } = scene.host('host1')
  const { admin, clock } = scene.simulation
  const unfreeze = supervisor.freeze()
  supervisor.kill()
  clock.startTimer(500, () =>
    admin.patch(`${ownPod}/status`, { status: { containerStatuses: [{ name: 'agent', ...container }], ...status } }),
  )
  return () => {
    admin.patch(`${ownPod}/status`, { status: { containerStatuses: null, phase: 'Running', reason: null } })
    unfreeze()
  }
}
const waiting = (reason: string, message = '') => ({ state: { waiting: { reason, message } } })
const crashed = (reason: string, exitCode: number) => ({
  ...waiting('CrashLoopBackOff', 'back-off 20s restarting failed container'),
  lastState: { terminated: { reason, exitCode } },
  restartCount: 3,
})
const warn = (scene: FleetScene, kind: string, name: string, message: string): void =>
  scene.simulation.admin.send('POST', '/api/v1/namespaces/skyhook/events', {
    metadata: { name: `${name}.${scene.simulation.clock.monotonicMs()}` },
    involvedObject: { kind, name, namespace: 'skyhook' },
    type: 'Warning',
    reason: 'Failed',
    message,
    lastTimestamp: nowOf(scene),
  })
const dead = { cause: 'agent-dead', objects: ['Pod/agent-of-node1'], doctor: ['agent-silent'] } as const
const stopped = (container: object, status?: object) => ({
  async reach(scene: FleetScene) {
    await soon(scene)
    const heal = stopAgent(scene, container, status)
    await scene.pass(25_000)
    return heal
  },
  ...dead,
})

/** The controller of the DaemonSet cannot create the pod until `mayCreate` holds. */
const refused = (message: string, mayCreate?: (scene: FleetScene) => boolean) => ({
  async reach(scene: FleetScene, outside: Outside) {
    await soon(scene)
    const allow = outside.removeAgent()
    const retry = (): void => {
      if (mayCreate?.(scene) === true) return allow()
      warn(scene, 'DaemonSet', 'skyhookd', message)
      scene.simulation.clock.startTimer(10_000, retry, { isBackground: true })
    }
    if (message !== '') retry()
    await scene.pass(20_000)
    return mayCreate === undefined ? allow : undefined
  },
  cause: 'no-agent' as const,
})

const labelsOf = (scene: FleetScene, name: string): Readonly<Record<string, string>> =>
  scene.simulation.server.object('namespaces', undefined, name)?.metadata.labels ?? {}

const setTemplate = (outside: Outside, spec: object, image = 'none'): void =>
  outside.put('/apis/apps/v1/namespaces/skyhook/daemonsets', {
    ...outside.get(daemonSetPath),
    metadata: { name: 'skyhookd', namespace: 'skyhook', labels: { 'app.kubernetes.io/name': 'skyhookd' } },
    spec: { template: { spec: { containers: [{ name: 'agent', image }], ...spec } } },
  })

/** Until the returned function is called, requests of the agent on host1 get this answer. */
const refuseRequests =
  (code: number, message: string, matches: (method: string, path: string) => boolean) => (scene: FleetScene) => {
    const { rules } = scene.simulation.server.faults
    rules.push({
      name: 'refusal',
      matches: ({ client, method, path }) => client === 'agent:host1' && matches(method, path),
      fault: { kind: 'refuse', code, message, ...(code === 403 && { reason: 'Forbidden' }) },
    })
    return () => void rules.splice(0)
  }

export const agentRows: readonly BrokenScene[] = [
  ...(
    [
      ['is not pulled', 'ImagePullBackOff', 'Back-off pulling image "typo": 401 Unauthorized', 'and imagePullSecrets'],
      ['has no valid name', 'InvalidImageName', "couldn't parse image name", 'correct image'],
    ] as const
  ).map(
    ([title, reason, message, words]): BrokenScene => ({
      title: `an image of the agent that ${title}`,
      async reach(scene, outside) {
        await soon(scene)
        setTemplate(outside, {}, 'typo')
        scene.simulation.admin.patch(ownPod, { spec: { containers: [{ name: 'agent', image: 'typo' }] } })
        const heal = stopAgent(scene, waiting(reason, message))
        allowWhen(
          scene,
          () => JSON.stringify(outside.get(daemonSetPath)).includes('"none"'),
          () => {
            scene.simulation.admin.patch(ownPod, { spec: { containers: [{ name: 'agent', image: 'none' }] } })
            heal()
          },
        )
        await scene.pass(25_000)
      },
      ...dead,
      nodes: one,
      says: [reason, message, 'has to pull typo'],
      never: [' logs '],
      remedy: words,
      shows: new RegExp(reason),
      mend: (_, outside) => setTemplate(outside, {}),
    }),
  ),
  {
    title: 'a ConfigMap of the agent that is missing',
    async reach(scene) {
      await soon(scene)
      const heal = stopAgent(scene, waiting('CreateContainerConfigError', 'configmap "words" not found'))
      allowWhen(scene, () => scene.simulation.server.object('configmaps', 'skyhook', 'words') !== undefined, heal)
      await scene.pass(25_000)
    },
    ...dead,
    says: ['configmap "words" not found'],
    never: [' logs '],
    remedy: 'fix what the message names',
    shows: /configmap \\"words\\" not found/,
    mend: (scene) =>
      scene.simulation.admin.send('POST', '/api/v1/namespaces/skyhook/configmaps', { metadata: { name: 'words' } }),
  },
  {
    title: 'an agent that ends again and again',
    ...stopped(crashed('Error', 1)),
    says: ['CrashLoopBackOff: Error, exit code 1', '--previous'],
    remedy: 'fix what the log names',
    shows: /agent starting/,
  },
  {
    title: 'an agent without enough memory',
    ...stopped(crashed('OOMKilled', 137)),
    says: ['OOMKilled'],
    remedy: 'the pod must become Ready',
    shows: /OOMKilled/,
  },
  {
    title: 'an agent that hangs',
    ...stopped({ state: { running: { startedAt: '2023-11-14T22:00:00Z' } } }),
    says: ['is not Ready'],
    never: ['--previous'],
    remedy: 'the log shows what it waits for',
    shows: /agent starting/,
  },
  {
    title: 'a volume of the agent that cannot be mounted',
    async reach(scene) {
      await soon(scene)
      const heal = stopAgent(scene, waiting('ContainerCreating'))
      const repeat = (): void => {
        warn(scene, 'Pod', 'agent-of-node1', 'MountVolume.SetUp failed for volume "host"')
        scene.simulation.clock.startTimer(30_000, repeat, { isBackground: true })
      }
      repeat()
      await scene.pass(25_000)
      return heal
    },
    ...dead,
    says: ['MountVolume.SetUp failed for volume "host"'],
    never: [' logs '],
    remedy: 'fix what the message names',
  },
  {
    title: 'a pod of the agent that the kubelet has evicted',
    ...stopped(
      { state: { terminated: { reason: 'Error', exitCode: 137 } } },
      { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: ephemeral-storage.' },
    ),
    says: ['The node was low on resource: ephemeral-storage'],
    remedy: 'the pod must become Ready',
    shows: /ephemeral-storage/,
  },
  {
    title: 'a namespace that admits no privileged pods',
    ...refused(
      'pods "skyhookd-" is forbidden: violates PodSecurity "baseline:latest": host namespaces',
      (scene) => labelsOf(scene, 'skyhook')['pod-security.kubernetes.io/enforce'] === 'privileged',
    ),
    objects: ['DaemonSet/skyhookd'],
    says: ['violates PodSecurity'],
    remedy: 'command',
  },
  {
    title: 'a quota that leaves no room for the agent',
    ...refused('pods "skyhookd-" is forbidden: exceeded quota: small'),
    objects: ['DaemonSet/skyhookd'],
    says: ['exceeded quota: small'],
    remedy: 'fix what the message names: a quota',
    shows: /exceeded quota: small/,
  },
  {
    title: 'a webhook that denies the pod of the agent',
    ...refused('admission webhook "pods.example.com" denied the request: no host network'),
    objects: ['DaemonSet/skyhookd'],
    says: ['pods.example.com'],
    remedy: 'a webhook or a policy refuses the pod',
    shows: /pods\.example\.com/,
  },
  {
    title: 'a node without the label that the DaemonSet asks for',
    ...refused('', undefined),
    async reach(scene, outside) {
      await soon(scene)
      setTemplate(outside, { nodeSelector: { agents: 'yes' } })
      scene.editNode('node2', { metadata: { labels: { agents: 'yes' } } })
      const allow = outside.removeAgent()
      allowWhen(scene, () => scene.node('node1').metadata.labels?.['agents'] === 'yes', allow)
      await scene.pass(20_000)
    },
    objects: ['DaemonSet/skyhookd'],
    says: ['asks for the label agents=yes'],
    remedy: 'label the node',
    shows: /"agents": "yes"/,
    mend: (scene) => scene.editNode('node1', { metadata: { labels: { agents: 'yes' } } }),
  },
  {
    title: 'a taint that neither the DaemonSet nor the Skyhook tolerates',
    ...refused('', undefined),
    async reach(scene, outside) {
      await soon(scene)
      scene.editNode('node1', { spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }] } })
      const allow = outside.removeAgent()
      allowWhen(scene, () => (scene.node('node1').spec?.taints ?? []).length === 0, allow)
      await scene.pass(20_000)
    },
    objects: ['DaemonSet/skyhookd'],
    also: ['taint'],
    says: ['does not tolerate the taint gpu:NoSchedule'],
    remedy: 'remove the taint',
    mend: (scene) => scene.editNode('node1', { spec: { taints: [] } }),
  },
  {
    title: 'an agent that the update of the DaemonSet has not reached',
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    async reach(scene) {
      await scene.pass(12_000)
      const containers = [{ name: 'agent', image: 'registry.test/skyhookd:0.1.0' }]
      scene.simulation.admin.patch(ownPod, { spec: { containers } })
    },
    cause: 'agent-too-old',
    objects: ['Pod/agent-of-node1'],
    also: ['budget-zero'],
    elsewhere: ['Skyhook/s'],
    says: ['registry.test/skyhookd:0.1.0'],
    remedy: 'command',
    next: [{ cause: 'budget-zero', objects: ['Skyhook/s'], elsewhere: ['Skyhook/s'], remedy: 'command' }],
  },
  {
    title: 'a permission that the agent lacks',
    nodes: one,
    broken: refuseRequests(
      403,
      'leases.coordination.k8s.io is forbidden: User "system:serviceaccount:skyhook:skyhookd" cannot create it',
      (method, path) => method === 'POST' && path.endsWith('/leases'),
    ),
    reason: 'WaitingForSlot',
    cause: 'api-server',
    objects: ['Node/node1'],
    says: ['is forbidden', 'kubectl skyhook doctor'],
    never: ['wait: '],
    remedy: 'a permission is missing',
    status: 1,
  },
  {
    title: 'a permission to evict that the agent lacks',
    nodes: [{ name: 'host1', pods: [pod('shop')] }],
    skyhooks: { s: rebooting },
    broken: refuseRequests(
      403,
      'pods "shop-1" is forbidden: User "system:serviceaccount:skyhook:skyhookd" cannot create "pods/eviction"',
      (_, path) => path.endsWith('/eviction'),
    ),
    reason: 'ApiRequestRefused',
    cause: 'api-server',
    objects: ['Node/node1'],
    doctor: ['host-reason'],
    says: ['is forbidden'],
    remedy: 'a permission is missing',
  },
  {
    title: 'a webhook that denies what the agent writes to its Node',
    nodes: one,
    broken: refuseRequests(
      403,
      'admission webhook "nodes.io" denied the request: nobody changes taints',
      (method, path) => method === 'PATCH' && path.startsWith('/api/v1/nodes/node1'),
    ),
    reach: async (scene) => await scene.pass(30_000),
    cause: 'api-server',
    objects: ['Node/node1'],
    says: ['nodes.io', 'nobody changes taints'],
    remedy: 'an admission policy refuses the request',
  },
  {
    title: 'an API server that answers the agent with errors',
    nodes: one,
    broken: refuseRequests(
      503,
      'etcdserver: request timed out',
      (method, path) => method === 'POST' && path.endsWith('/leases'),
    ),
    reason: 'ApiServerUnavailable',
    cause: 'api-server',
    objects: ['Node/node1'],
    says: ['etcdserver: request timed out'],
    remedy: 'look at the API server and the network',
  },
]
