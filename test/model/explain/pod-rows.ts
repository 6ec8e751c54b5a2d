/** Pods that do not leave their node. */
import { type FleetScene, pod } from '../../kit/fleet/fleet-scene.ts'
import { protectedLabels } from '../../kit/fleet/workload.ts'
import type { BrokenScene } from './broken-scene.ts'
import { budgetsPath, one, rebooting, strictBudget } from './breakage.ts'

const blockedPod = { nodes: [{ name: 'host1', pods: [pod('shop')] }], skyhooks: { s: rebooting } } as const
const denyEvictions = (code: number, message: string) => (scene: FleetScene) => {
  const { rules } = scene.simulation.server.faults
  rules.push({
    name: 'admission',
    matches: ({ path }) => path.endsWith('/eviction'),
    fault: { kind: 'refuse', code, message },
  })
  return () => void rules.splice(0)
}
const denied = { ...blockedPod, reason: 'DrainBlocked', cause: 'eviction-denied' } as const

/** A pod that nobody ends and that no workload replaces. */
function placePod(scene: FleetScene, name: string, { labels, spec, isReady = true }: PodOf = {}): void {
  const { admin } = scene.simulation
  const folder = '/api/v1/namespaces/apps/pods'
  const containers = [{ name: 'main', image: 'none' }]
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'train', uid: 'train', controller: true }
  admin.send('POST', folder, {
    metadata: { name, labels, ownerReferences: [owner] },
    spec: { nodeName: 'node1', containers, ...spec },
  })
  const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }]
  admin.patch(`${folder}/${name}/status`, { status: { phase: 'Running', conditions } })
}
type PodOf = { readonly labels?: object; readonly spec?: object; readonly isReady?: boolean }
const afterStart = (scene: FleetScene, act: () => void): void => void scene.simulation.clock.startTimer(5_000, act)

export const podRows: readonly BrokenScene[] = [
  {
    title: 'a disruption budget that allows nothing',
    ...blockedPod,
    broken: strictBudget,
    reason: 'DrainBlocked',
    cause: 'disruption-budget',
    objects: ['PodDisruptionBudget/strict'],
    says: ['apps/shop-1', 'counts 1 healthy of 1 pods and needs 1'],
    remedy: 'a wider budget',
    shows: /"maxUnavailable": 0/,
    mend: (scene) => scene.simulation.admin.patch(`${budgetsPath}/strict`, { spec: { maxUnavailable: 1 } }),
  },
  {
    title: 'two disruption budgets of one pod',
    ...blockedPod,
    broken(scene) {
      for (const name of ['first', 'second'])
        scene.simulation.admin.send('POST', budgetsPath, {
          metadata: { name },
          spec: { selector: {}, maxUnavailable: 1 },
        })
    },
    reason: 'DrainBlocked',
    cause: 'disruption-budget',
    objects: ['PodDisruptionBudget/first'],
    says: ['first, second'],
    remedy: 'make all but one of them select other pods',
    shows: /"second"/,
    mend: (scene) =>
      scene.simulation.admin.patch(`${budgetsPath}/second`, { spec: { selector: { matchLabels: { app: 'other' } } } }),
  },
  {
    title: 'a pod that is not Ready and counts in its own disruption budget',
    nodes: one,
    skyhooks: { s: rebooting },
    broken(scene) {
      afterStart(scene, () => placePod(scene, 'sick', { labels: { app: 'sick' }, isReady: false }))
      scene.simulation.admin.send('POST', budgetsPath, {
        metadata: { name: 'strict' },
        spec: { selector: { matchLabels: { app: 'sick' } }, minAvailable: 1 },
      })
    },
    reason: 'DrainBlocked',
    cause: 'disruption-budget',
    objects: ['PodDisruptionBudget/strict'],
    remedy: 'spec.unhealthyPodEvictionPolicy: AlwaysAllow of the budget',
    mend(scene) {
      scene.simulation.admin.patch(`${budgetsPath}/strict`, { spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' } })
      endEvicted(scene, 'sick')
    },
  },
  {
    title: 'a webhook that denies an eviction',
    ...denied,
    broken: denyEvictions(500, 'admission webhook "evict.io" denied the request: not now'),
    objects: ['Pod/shop-1'],
    says: ['evict.io', 'not now'],
    remedy: 'ask its owner',
  },
  {
    title: 'a webhook that cannot be asked about an eviction',
    ...denied,
    broken(scene, outside) {
      outside.put('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
        metadata: { name: 'evictions' },
        webhooks: [{ name: 'evict.io' }],
      })
      const message = 'Internal error occurred: failed calling webhook "evict.io": no endpoints available'
      return denyEvictions(500, message)(scene)
    },
    objects: ['Pod/shop-1'],
    says: ['evict.io', 'no endpoints available'],
    remedy: 'repair the service of the webhook',
    shows: /evictions/,
  },
  {
    title: 'an admission policy that denies an eviction',
    ...denied,
    broken(scene, outside) {
      outside.put('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies', {
        metadata: { name: 'calm' },
        spec: { validations: [{ message: 'only at night' }] },
      })
      const policy = "ValidatingAdmissionPolicy 'calm' with binding 'calm' denied request: only at night"
      const message = `pods "shop-1" is forbidden: ${policy}`
      return denyEvictions(422, message)(scene)
    },
    objects: ['ValidatingAdmissionPolicy/calm'],
    says: ['only at night'],
    remedy: 'ask its owner',
    shows: /only at night/,
  },
  {
    title: 'a protected pod',
    nodes: one,
    skyhooks: { s: { ...rebooting, podNonInterruptLabels: { matchLabels: protectedLabels } } },
    broken: (scene) => afterStart(scene, () => placePod(scene, 'train', { labels: protectedLabels })),
    reason: 'ProtectedPods',
    cause: 'protected-pod',
    objects: ['Pod/train'],
    says: ['no timeout of spec.drain ends pods'],
    remedy: 'end them when it suits you',
    shows: /"train"/,
    mend: (scene) =>
      scene.simulation.admin.send('DELETE', '/api/v1/namespaces/apps/pods/train', { gracePeriodSeconds: 0 }),
  },
  {
    title: 'a protected pod beside another Skyhook with the same package',
    nodes: one,
    skyhooks: {
      s: { ...rebooting, podNonInterruptLabels: { matchLabels: protectedLabels } },
      z: { nodeSelectors: { matchLabels: { pool: 'z' } } },
    },
    broken: (scene) => afterStart(scene, () => placePod(scene, 'train', { labels: protectedLabels })),
    reason: 'ProtectedPods',
    cause: 'protected-pod',
    objects: ['Pod/train'],
    remedy: 'end them when it suits you',
    mend: (scene) =>
      scene.simulation.admin.send('DELETE', '/api/v1/namespaces/apps/pods/train', { gracePeriodSeconds: 0 }),
  },
  {
    title: 'a pod that tolerates the cordon and that the Skyhook waits for',
    nodes: one,
    skyhooks: { s: { ...rebooting, drain: { tolerating: 'wait' } } },
    broken: (scene) =>
      afterStart(scene, () => placePod(scene, 'stay', { spec: { tolerations: [{ operator: 'Exists' }] } })),
    reason: 'DrainBlocked',
    cause: 'tolerating-pod',
    objects: ['Pod/stay'],
    remedy: 'or let the interrupt end them',
    runs: /kubectl patch skyhook s .*$/,
  },
]

/** As its kubelet does with a pod that was evicted. */
function endEvicted(scene: FleetScene, name: string): void {
  const found = scene.simulation.server.object('pods', 'apps', name)
  if (found === undefined) return
  if (found.metadata.deletionTimestamp !== undefined)
    scene.simulation.admin.send('DELETE', `/api/v1/namespaces/apps/pods/${name}`, { gracePeriodSeconds: 0 })
  scene.simulation.clock.startTimer(1_000, () => endEvicted(scene, name), { isBackground: true })
}
