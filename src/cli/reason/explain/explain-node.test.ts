import { expect, test } from 'vitest'
import { Refusal } from '../../../../test/kit/api-server/refusals.ts'
import { type FleetScene, pod, type SceneOptions, startScene } from '../../../../test/kit/fleet/fleet-scene.ts'
import { protectedLabels } from '../../../../test/kit/fleet/workload.ts'
import {
  disableKey,
  ignoreLabel,
  nodeStateKey,
  pauseKey,
  reasonKey,
  reasonsKey,
  statusKey,
} from '../../../schemas/annotations.ts'
import type { GateName } from '../../../schemas/catalogue/reason-codes.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { PackageSpec } from '../../../schemas/skyhook.ts'
import { known } from '../../../stages/model/snapshot.ts'
import { type NodeDetail, readNodeDetail } from '../../fleet/fleet-view/node-detail.ts'
import { slimNode } from '../../fleet/fleet-view/project.ts'
import { readFleet } from '../../fleet/fleet-view/collections.ts'
import { explainNode, type NodeExplanation } from './explain-node.ts'
import type { Cause } from './finding.ts'

type Edit = (node: KubernetesNode) => KubernetesNode

/** The answer of explain. `edit`: what somebody has done to the Nodes right before. */
async function explain(
  scene: FleetScene,
  nodeName: string,
  edit: Edit,
  editDetail: (detail: NodeDetail) => NodeDetail = (detail) => detail,
): Promise<NodeExplanation> {
  const { transport, simulation } = scene
  const { clock } = simulation
  const fleet = await readFleet(transport, { namespace: 'skyhook', clock, nodeOf: (node) => edit(slimNode(node)) })
  const detail = editDetail(await readNodeDetail(transport, nodeName))
  const skyhook = fleet.skyhooks.known ? fleet.skyhooks.value.find(({ metadata }) => metadata.name === 's') : undefined
  const node = fleet.nodes.known ? fleet.nodes.value.find(({ metadata }) => metadata.name === nodeName) : undefined
  if (skyhook === undefined || node === undefined) throw new Error('neither may be missing')
  return explainNode(fleet, { skyhook, node, detail })
}

const asPublished: Edit = (node) => node

const withReasons =
  (reason: (node: KubernetesNode) => string | undefined): Edit =>
  (node) => {
    const annotations = { ...node.metadata.annotations }
    delete annotations[reasonsKey('s')]
    delete annotations[reasonKey('s')]
    const text = reason(node)
    if (text !== undefined) annotations[reasonKey('s')] = text
    return { ...node, metadata: { ...node.metadata, annotations } }
  }

const minutesAgo = (scene: FleetScene, minutes: number): string =>
  new Date(scene.simulation.clock.wallMs() - minutes * 60_000).toISOString()

/** What may have happened to the published reasons of a node. None of it may change the answer. */
const distortions = (scene: FleetScene): Readonly<Record<string, Edit>> => ({
  'as published': asPublished,
  deleted: withReasons(() => undefined),
  stale: withReasons(() =>
    JSON.stringify({ reason: 'WaitingForPriority', message: 'Skyhook z comes first', since: minutesAgo(scene, 50) }),
  ),
  'wrong about settings': withReasons(() =>
    JSON.stringify({ reason: 'Disabled', message: 'the Skyhook is disabled', since: minutesAgo(scene, 5) }),
  ),
  'wrong about the host': withReasons(() =>
    JSON.stringify({ reason: 'HostUnreachable', message: 'no bus', since: minutesAgo(scene, 5) }),
  ),
  'not readable': withReasons(() => '{'),
})

const packageOf = (rest: Partial<PackageSpec> = {}): Record<string, PackageSpec> => ({
  p0a: { version: '1.0.0', image: 'registry.test/p0a', ...rest },
})
const rebooting = { packages: packageOf({ interrupt: { type: 'reboot' } }) }
const one = [{ name: 'host1' }]

type Scenario = SceneOptions & {
  readonly title: string
  readonly cause: Cause
  readonly gate?: GateName
  /** By default node1. */
  readonly node?: string
  readonly prepare?: (scene: FleetScene) => void
  /** The reason that the node has to publish; absent: the scenario waits by itself. */
  readonly reason?: string
  readonly reach?: (scene: FleetScene) => Promise<void>
  /** `Kind/name`, the first object of the finding. */
  readonly object?: string
  /** What the message, the remedy and the command contain. */
  readonly says?: readonly string[]
  /** Whether the Node's own words agree with the verdict. */
  readonly agrees?: false
}

/** The other node has the slot, and keeps it. */
const budgetFull = {
  cause: 'budget-full',
  gate: 'slot',
  node: 'node2',
  prepare(scene: FleetScene): void {
    scene.host('host1').conditions.change({ stepMs: 900_000 })
    scene.host('host2').conditions.change({ fetch: { durationMs: 3_000 } })
  },
  reason: 'WaitingForSlot',
  object: 'Node/node1',
  says: ['node1 (working since', 'kubectl skyhook explain s node1'],
} as const

const completes = (scene: FleetScene): Promise<void> =>
  scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'node1 completes')

const scenarios: readonly Scenario[] = [
  {
    title: 'a node without an agent pod',
    cause: 'no-agent',
    reach: async (scene) => {
      await scene.pass(6_000)
      scene.host('host1').supervisor.freeze()
      scene.host('host1').supervisor.kill()
      const options = { gracePeriodSeconds: 0 }
      scene.simulation.admin.send('DELETE', '/api/v1/namespaces/skyhook/pods/agent-of-node1', options)
      await scene.pass(10_000)
    },
    object: 'Node/node1',
    says: ['no agent pod', 'kubectl -n skyhook describe daemonset'],
  },
  {
    title: 'a node whose agent died',
    cause: 'agent-dead',
    reach: async (scene) => {
      await scene.pass(6_000)
      scene.host('host1').supervisor.freeze()
      scene.host('host1').supervisor.kill()
      await scene.pass(10_000)
    },
    object: 'Pod/agent-of-node1',
    says: ['not Ready', 'kubectl -n skyhook logs agent-of-node1'],
  },
  {
    title: 'a node whose agent is older than the others',
    cause: 'agent-too-old',
    nodes: [{ name: 'host1' }, { name: 'host2' }, { name: 'host3' }],
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    prepare: (scene) =>
      scene.simulation.clock.startTimer(5_000, () =>
        scene.simulation.admin.patch('/api/v1/namespaces/skyhook/pods/agent-of-node1', {
          spec: { containers: [{ name: 'agent', image: 'registry.test/skyhookd:0.1.0' }] },
        }),
      ),
    reason: 'WaitingForSlot',
    object: 'Pod/agent-of-node1',
    says: ['registry.test/skyhookd:0.1.0'],
    agrees: false,
  },
  {
    title: 'a node that the selector leaves out',
    cause: 'not-selected',
    gate: 'selector',
    reach: async (scene) => {
      await scene.pass(6_000)
      scene.editNode('node1', { metadata: { labels: { pool: 'b' } } })
      await scene.pass(10_000)
    },
    object: 'Node/node1',
    says: ['pool=a', 'kubectl label node node1 pool=a'],
  },
  {
    title: 'an ignored node',
    cause: 'ignored',
    gate: 'ignored',
    prepare: (scene) =>
      scene.simulation.clock.startTimer(8_500, () =>
        scene.editNode('node1', { metadata: { labels: { [ignoreLabel]: 'true' } } }),
      ),
    reason: 'Ignored',
    object: 'Node/node1',
    says: ['remove the label', 'kubectl skyhook node unignore node1'],
  },
  {
    title: 'a paused Skyhook',
    cause: 'paused',
    gate: 'paused',
    prepare: pauseAtOnce,
    reason: 'Paused',
    object: 'Skyhook/s',
    says: ['kubectl skyhook resume s'],
  },
  {
    title: 'a disabled Skyhook',
    cause: 'disabled',
    gate: 'disabled',
    prepare: (scene) =>
      scene.simulation.clock.startTimer(9_001, () =>
        scene.editSkyhook('s', { metadata: { annotations: { [disableKey]: 'true' } } }),
      ),
    nodes: one,
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    reason: 'Disabled',
    object: 'Skyhook/s',
    says: ['kubectl skyhook enable s'],
  },
  {
    title: 'a node on which NodeWright has worked',
    cause: 'takeover',
    prepare: (scene) =>
      scene.simulation.clock.startTimer(8_500, () =>
        scene.editNode('node1', { metadata: { annotations: { 'nodewright.nvidia.com/version_s': 'v0.20.0' } } }),
      ),
    reason: 'Takeover',
    says: ['nodewright.nvidia.com/version_s', 'kubectl annotate skyhook s skyhook.nvidia.com/ignore-nodewright=true'],
  },
  {
    title: 'a Skyhook behind an earlier one',
    cause: 'earlier-skyhook',
    gate: 'priority',
    skyhooks: { first: { priority: 1, interruptionBudget: { count: 0 } }, s: { priority: 2 } },
    reason: 'WaitingForPriority',
    object: 'Skyhook/first',
    says: ['first must complete', 'kubectl skyhook explain first node1'],
  },
  {
    title: 'a taint that the Skyhook does not tolerate',
    cause: 'taint',
    gate: 'taint',
    prepare: (scene) =>
      scene.simulation.clock.startTimer(8_500, () =>
        scene.editNode('node1', { spec: { taints: [{ key: 'gpu', value: 'x', effect: 'NoSchedule' }] } }),
      ),
    reason: 'TaintNotTolerated',
    object: 'Node/node1',
    says: ['gpu=x:NoSchedule', 'spec.additionalTolerations', 'describe node node1'],
  },
  {
    title: 'a budget of which other nodes use all',
    ...budgetFull,
  },
  {
    title: 'a budget of which a host uses all that is gone',
    ...budgetFull,
    async reach(scene) {
      await scene.until(() => scene.annotation('node2', reasonKey('s'))?.includes('WaitingForSlot') === true, 'a wait')
      scene.host('host1').host.cutPower({ downMs: 100_000_000 })
      await scene.pass(1_200_000)
    },
    says: ['the agents of node1 do not answer: bring them back, or delete Nodes that are gone'],
  },
  {
    title: 'a default budget of which other nodes use all',
    ...budgetFull,
    skyhooks: { s: { interruptionBudget: {} } },
    defaultBudget: { count: 1 },
  },
  {
    title: 'a default budget of 0',
    cause: 'budget-zero',
    skyhooks: { s: { interruptionBudget: {} } },
    defaultBudget: { count: 0 },
    reason: 'WaitingForSlot',
    object: 'Skyhook/s',
    says: ['names no budget, and the default of the chart is 0', 'kubectl patch skyhook s'],
  },
  {
    title: 'a budget of 0',
    cause: 'budget-zero',
    gate: 'slot',
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    reason: 'WaitingForSlot',
    object: 'Skyhook/s',
    says: ['kubectl patch skyhook s'],
  },
  {
    title: 'a percentage that no census has counted',
    cause: 'no-census',
    gate: 'slot',
    skyhooks: { s: { interruptionBudget: { percent: 50 } } },
    prepare: (scene) =>
      scene.simulation.server.admission.push((object, _, { resource }) => {
        if (resource.plural === 'leases' && object.metadata.name.endsWith('.ledger'))
          throw new Refusal(403, 'no ledger may be written', { reason: 'Forbidden' })
      }),
    reason: 'WaitingForSlot',
    object: 'Lease/skyhookd-census',
    says: ['has not counted', 'elected', 'get lease skyhookd-census'],
  },
  {
    title: 'a DeploymentPolicy that is missing',
    cause: 'policy-missing',
    gate: 'policy',
    skyhooks: { s: { deploymentPolicy: 'gone' } },
    reason: 'DeploymentPolicyNotFound',
    object: 'DeploymentPolicy/gone',
    says: ['create the DeploymentPolicy gone', 'deploymentpolicies'],
  },
  {
    title: 'a batch that is not finished',
    cause: 'batch',
    gate: 'slot',
    node: 'node2',
    policies: {
      p: { default: { budget: { count: 2 }, strategy: { fixed: { initialBatch: 1, batchThreshold: 100 } } } },
    },
    skyhooks: { s: { deploymentPolicy: 'p' } },
    prepare(scene) {
      scene.host('host1').conditions.change({ stepMs: 900_000 })
      scene.host('host2').conditions.change({ fetch: { durationMs: 3_000 } })
    },
    reason: 'WaitingForBatch',
    object: 'DeploymentPolicy/p',
    says: ['batch', 'node1', 'skyhook status s'],
  },
  {
    title: 'a protected pod',
    cause: 'protected-pod',
    gate: 'drain',
    nodes: [{ name: 'host1', pods: [pod('train', { isProtected: true })] }],
    skyhooks: { s: { ...rebooting, podNonInterruptLabels: { matchLabels: protectedLabels } } },
    reason: 'ProtectedPods',
    object: 'Pod/train-1',
    says: ['apps/train-1', 'end them', 'podNonInterruptLabels'],
  },
  {
    title: 'a protected pod beside a Skyhook of other nodes with the same package',
    cause: 'protected-pod',
    nodes: [{ name: 'host1', pods: [pod('train', { isProtected: true })] }],
    skyhooks: {
      s: { ...rebooting, podNonInterruptLabels: { matchLabels: protectedLabels } },
      z: { packages: packageOf(), nodeSelectors: { matchLabels: { pool: 'z' } } },
    },
    reason: 'ProtectedPods',
    object: 'Pod/train-1',
  },
  {
    title: 'a pod whose disruption budget allows nothing',
    cause: 'disruption-budget',
    nodes: [{ name: 'host1', pods: [pod('shop')] }],
    skyhooks: { s: rebooting },
    prepare: (scene) =>
      scene.simulation.admin.send('POST', '/apis/policy/v1/namespaces/apps/poddisruptionbudgets', {
        metadata: { name: 'strict' },
        spec: { selector: {}, maxUnavailable: 0 },
      }),
    reason: 'DrainBlocked',
    object: 'PodDisruptionBudget/strict',
    says: ['apps/shop-1', 'counts 1 healthy of 1 pods and needs 1', 'describe poddisruptionbudget strict'],
  },
  {
    title: 'a pod whose eviction a webhook denies',
    cause: 'eviction-denied',
    nodes: [{ name: 'host1', pods: [pod('shop')] }],
    skyhooks: { s: rebooting },
    prepare: (scene) =>
      void scene.simulation.server.faults.rules.push({
        name: 'webhook',
        matches: ({ path }) => path.endsWith('/eviction'),
        fault: {
          kind: 'refuse',
          code: 500,
          message: 'admission webhook "evict.example.com" denied the request: the operator rolls it',
        },
      }),
    reason: 'DrainBlocked',
    object: 'Pod/shop-1',
    says: ['evict.example.com', 'the operator rolls it', 'validatingwebhookconfigurations'],
  },
  {
    title: 'a pod without a controller that takes its time',
    cause: 'bare-pod',
    gate: 'drain',
    nodes: [{ name: 'host1', pods: [pod('alone', { graceMs: 600_000 })] }],
    skyhooks: { s: rebooting },
    reason: 'DrainBlocked',
    object: 'Pod/alone-1',
    says: ['no controller', 'alone-1'],
  },
  ...(
    [
      ['not-found', 'an image that no registry has', 'correct image and version', 'kubectl edit skyhook s'],
      ['unauthorized', 'an image without credentials', 'imagePullSecrets', 'kubectl -n skyhook get secrets'],
      ['digest-mismatch', 'an image of another digest', 'containerSHA', 'kubectl edit skyhook s'],
      ['unreachable', 'a registry that does not answer', 'reach the registry', 'curl -sS https://registry.test/v2/'],
    ] as const
  ).map(
    ([code, title, remedy, command]): Scenario => ({
      title,
      cause: 'image-pull',
      nodes: one,
      prepare: (scene) => void scene.host('host1').conditions.change({ fetch: { durationMs: 100, code } }),
      reason: 'ImagePull',
      object: 'Package/p0a',
      says: [code, remedy, command],
    }),
  ),
  {
    title: 'a package that is invalid',
    cause: 'invalid-package',
    nodes: one,
    prepare: (scene) => void scene.host('host1').conditions.change({ fetch: { durationMs: 100, code: 'bad-image' } }),
    reason: 'InvalidPackage',
    object: 'Package/p0a',
    says: ['kubectl skyhook validate registry.test/p0a:1.0.0'],
  },
  {
    title: 'a Secret that is missing',
    cause: 'reference-missing',
    nodes: one,
    skyhooks: {
      s: {
        packages: packageOf({ env: [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'tokens', key: 'a' } } }] }),
      },
    },
    reason: 'ReferenceMissing',
    object: 'Package/p0a',
    says: ['tokens', 'kubectl -n skyhook get secrets'],
  },
  {
    title: 'a host without a shell',
    cause: 'host-unusable',
    nodes: one,
    prepare: (scene) => scene.host('host1').host.disk.remove(scene.host('host1').host.disk.locate('/bin/sh')),
    reason: 'HostUnusable',
    says: ['/bin/sh', 'kubectl skyhook doctor --node node1'],
  },
  {
    title: 'a step that fails',
    cause: 'step-failing',
    nodes: one,
    prepare: (scene) => void scene.host('host1').conditions.change({ isFailing: ({ mode }) => mode === 'apply' }),
    reason: 'StepFailed',
    object: 'Package/p0a',
    says: ['exited 1', 'kubectl skyhook logs s --node node1 --package p0a --stage apply'],
  },
  {
    title: 'a check that fails',
    cause: 'check-failing',
    nodes: one,
    skyhooks: { s: { packages: packageOf({ configMap: { 'apply.sh': 'true' } }) } },
    prepare: (scene) => void scene.host('host1').conditions.change({ isFailing: ({ mode }) => mode === 'apply-check' }),
    reason: 'CheckFailed',
    object: 'Package/p0a',
    says: ['apply-check'],
  },
  {
    title: 'an uninstall that fails',
    cause: 'uninstall-failing',
    nodes: one,
    prepare: (scene) => void scene.host('host1').conditions.change({ isFailing: ({ mode }) => mode === 'uninstall' }),
    reach: async (scene) => {
      await completes(scene)
      scene.editSkyhook('s', { spec: { packages: { p0a: { uninstall: { enabled: true, apply: true } } } } })
      await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('StepFailed') === true, 'a failure')
    },
    object: 'Package/p0a',
    says: ['kubectl skyhook reset s --package p0a'],
  },
  {
    title: 'a reboot that the host refuses',
    cause: 'reboot-refused',
    nodes: one,
    skyhooks: { s: rebooting },
    prepare: (scene) => scene.host('host1').host.logind.setFate('refused'),
    reason: 'RebootRefused',
    says: ['systemd-inhibit --list'],
  },
  {
    title: 'a container that must not be rebooted',
    cause: 'reboot-refused',
    nodes: one,
    skyhooks: { s: rebooting },
    prepare(scene) {
      const { disk } = scene.host('host1').host
      disk.makeFolder(disk.locate('/run/systemd'), 0o755)
      disk.write(disk.create(disk.locate('/run/systemd/container'), 0o644), Buffer.from('docker'), 'container')
    },
    reason: 'RebootRefused',
    says: ['container: docker'],
  },
  {
    title: 'a host that would reboot again and again',
    cause: 'reboot-loop',
    gate: 'interrupt',
    nodes: one,
    skyhooks: { s: rebooting },
    prepare: (scene) =>
      void scene.host('host1').conditions.change({ isFailing: ({ mode }) => mode === 'post-interrupt' }),
    async reach(scene) {
      for (let reboots = 1; reboots <= 3; reboots++) {
        const boot = scene.host('host1').host.bootId()
        const state = (): string => scene.annotation('node1', nodeStateKey('s')) ?? ''
        await scene.until(() => state().includes('"post-interrupt","state":"erroring"'), `failure ${reboots}`)
        const edited = state().replace(/"post-interrupt","state":"erroring"/, '"interrupt","state":"in_progress"')
        scene.editNode('node1', { metadata: { annotations: { [nodeStateKey('s')]: edited } } })
        if (reboots < 3) await scene.until(() => scene.host('host1').host.bootId() !== boot, `reboot ${reboots + 1}`)
      }
      await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('RebootLoop') === true, 'the limit')
    },
    object: 'Package/p0a',
    says: ['3 reboots', 'Fix the package', 'skyhook logs s --node node1 --package p0a'],
  },
]

function pauseAtOnce(scene: FleetScene): void {
  scene.simulation.server.observe({
    committed({ type, resource, version: { object } }) {
      if (type === 'ADDED' && resource.plural === 'skyhooks')
        scene.editSkyhook(object.metadata.name, { metadata: { annotations: { [pauseKey]: 'true' } } })
    },
  })
}

for (const scenario of scenarios) {
  const { title, cause, gate, node = 'node1', prepare, reason, reach, object, says = [], agrees } = scenario
  test(`${title} is named as the cause, regardless of the published reason`, async () => {
    const scene = startScene(scenario)
    prepare?.(scene)
    await reach?.(scene)
    if (reason !== undefined)
      await scene.until(() => scene.annotation(node, reasonKey('s'))?.includes(`"${reason}"`) === true, reason)
    await scene.pass(4_000) // Events follow later than reasons
    const reported: Record<string, unknown> = {}
    for (const [what, edit] of Object.entries(distortions(scene))) {
      const found = await explain(scene, node, edit)
      const { verdict } = found
      const first = verdict?.objects[0]
      reported[what] = [
        verdict?.cause ?? found.state,
        ...(object === undefined ? [] : [`${first?.kind}/${first?.name}`]),
      ]
      const text = [verdict?.message, verdict?.unblock, verdict?.command].join('\n')
      for (const part of says) expect(text, what).toContain(part)
      if (gate !== undefined) expect(verdict?.gate, what).toBe(gate)
      expect(verdict?.unblock, what).not.toBe('')
      expect(verdict?.command, what).not.toBe('')
      if (what === 'as published' && reason !== undefined && agrees !== false) {
        expect(found.disagreement, what).toBeUndefined()
        expect(verdict?.sinceMs, what).toBeGreaterThan(0)
      }
      if (what === 'wrong about settings' && cause !== 'disabled' && cause !== 'not-selected')
        expect(found.disagreement, what).toContain('reports Disabled')
    }
    const expected = [cause, ...(object === undefined ? [] : [object])]
    expect(reported).toEqual(Object.fromEntries(Object.keys(reported).map((what) => [what, expected])))
  })
}

test('several causes at once are all named, in the order in which they must be removed', async () => {
  const scene = startScene({ nodes: one, skyhooks: { s: { interruptionBudget: { count: 0 } } } })
  pauseAtOnce(scene)
  scene.simulation.clock.startTimer(8_500, () =>
    scene.editNode('node1', {
      metadata: { labels: { [ignoreLabel]: 'true' } },
      spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }] },
    }),
  )
  await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('"Ignored"') === true, 'a reason')
  const { gates } = await explain(scene, 'node1', asPublished)
  const causes = gates.flatMap(({ findings }) => findings.map(({ cause }) => cause))
  expect(causes).toEqual(['ignored', 'paused', 'taint', 'budget-zero'])
})

test('what only an agent knows of another operator is taken from its reason', async () => {
  const scene = startScene({ nodes: one })
  scene.simulation.server.otherGroups.push({ name: 'nodewright.nvidia.com', version: 'v1alpha1' })
  await scene.until(() => scene.annotation('node1', reasonKey('s')) !== undefined, 'a reason')
  const { verdict, disagreement } = await explain(scene, 'node1', asPublished)
  expect([verdict?.cause, verdict?.command, disagreement]).toEqual([
    'takeover',
    'kubectl annotate skyhook s skyhook.nvidia.com/ignore-nodewright=true',
    undefined,
  ])
  expect(verdict?.message).toContain('the API server serves nodewright.nvidia.com')
})

const misleading = [
  [
    'not-found',
    'manifest unknown; the digest sha256:00 was denied before (HTTP 401, unauthorized)',
    'correct image and version',
    'kubectl edit skyhook s',
  ],
  [
    'unauthorized',
    'log in to read the digest of this tag',
    'imagePullSecrets',
    'kubectl -n skyhook get secrets --field-selector type=kubernetes.io/dockerconfigjson',
  ],
  [
    'unreachable',
    'connection reset after the response 404 NAME_UNKNOWN',
    'must reach the registry',
    'curl -sS https://registry.test/v2/ # on the host',
  ],
  ['too-large', 'layers with the certificate of a mirror', 'smaller image', 'kubectl skyhook validate'],
] as const

test.each(misleading)(
  'an image error is explained by its code %s, not by the message of the registry: %s',
  async (...row) => {
    const [code, answer, remedy, command] = row
    const scene = startScene({ nodes: one })
    scene.host('host1').conditions.change({ fetch: { durationMs: 100, code, answer } })
    await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('"ImagePull"') === true, 'a reason')
    await scene.pass(4_000)
    for (const edit of [asPublished, withReasons(() => undefined)]) {
      const { verdict } = await explain(scene, 'node1', edit)
      expect([verdict?.cause, verdict?.message]).toEqual(['image-pull', expect.stringContaining(answer)])
      expect(verdict?.unblock).toContain(remedy)
      expect(verdict?.command).toContain(command)
    }
  },
)

test('an image error without a code, as an older agent has it, is explained without a guess', async () => {
  const scene = startScene({ nodes: one })
  scene.host('host1').conditions.change({ fetch: { durationMs: 100, code: 'unauthorized' } })
  await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('"ImagePull"') === true, 'a reason')
  const withoutCode: Edit = (node) => {
    const annotations = Object.entries(node.metadata.annotations ?? {}).map(([key, text]) => [
      key,
      text.replaceAll(/"(code|package)":"[^"]*",/g, ''),
    ])
    return { ...node, metadata: { ...node.metadata, annotations: Object.fromEntries(annotations) } }
  }
  const { verdict } = await explain(scene, 'node1', withoutCode, (detail) => ({ ...detail, events: known([]) }))
  expect(verdict).toMatchObject({
    cause: 'image-pull',
    unblock: expect.stringContaining('Correct the spec, or imagePullSecrets and registries of the chart') as string,
    command: 'kubectl edit skyhook s',
  })
})

test('the image error of another version is not used for the version in the spec', async () => {
  const scene = startScene({ nodes: one, skyhooks: { s: { interruptionBudget: { count: 0 } } } })
  await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('"WaitingForSlot"') === true, 'a wait')
  const stale = {
    reason: 'ImagePull',
    message: 'package p0a: registry.test/p0a:1.0.0-rc: not found',
    code: 'not-found',
    package: 'p0a|1.0.0-rc',
    since: minutesAgo(scene, 0),
  }
  const { verdict } = await explain(
    scene,
    'node1',
    withReasons(() => JSON.stringify(stale)),
  )
  expect(verdict?.cause).toBe('budget-zero')
})

test('neither a node at work nor a complete one is held up', async () => {
  const scene = startScene({ nodes: one })
  scene.host('host1').conditions.change({ stepMs: 20_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'work')
  await scene.pass(2_000)
  const working = await explain(scene, 'node1', asPublished)
  expect([working.state, working.verdict, working.disagreement]).toEqual(['working', undefined, undefined])
  await completes(scene)
  await scene.pass(2_000)
  const complete = await explain(scene, 'node1', asPublished)
  expect([complete.state, complete.verdict, complete.disagreement]).toEqual(['complete', undefined, undefined])
})

test('a node at work is not held up by an agent that is older than the others, and its gate shows that it is older', async () => {
  const nodes = ['host1', 'host2', 'host3'].map((name) => ({ name }))
  const scene = startScene({ nodes, skyhooks: { s: { interruptionBudget: { count: 3 } } } })
  scene.host('host1').conditions.change({ stepMs: 20_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'work')
  scene.simulation.admin.patch('/api/v1/namespaces/skyhook/pods/agent-of-node1', {
    spec: { containers: [{ name: 'agent', image: 'registry.test/skyhookd:0.1.0' }] },
  })
  await scene.pass(2_000)
  const working = await explain(scene, 'node1', asPublished)
  expect([working.state, working.verdict]).toEqual(['working', undefined])
  expect(working.gates[0]).toMatchObject({ gate: 'agent', findings: [{ cause: 'agent-too-old' }] })
})

test('a node whose last pod has left is at work, also before its agent reports it', async () => {
  const scene = startScene({
    nodes: [{ name: 'host1', pods: [pod('train', { isProtected: true })] }],
    skyhooks: { s: { ...rebooting, podNonInterruptLabels: { matchLabels: protectedLabels } } },
  })
  await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('"ProtectedPods"') === true, 'a drain')
  const found = await explain(scene, 'node1', asPublished, (detail) => ({ ...detail, pods: known([]) }))
  expect([found.state, found.verdict]).toEqual(['working', undefined])
})
