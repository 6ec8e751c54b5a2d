/** What nodes wait for: slots, batches, other Skyhooks. */
import { pauseKey } from '../../../src/schemas/annotations.ts'
import { Refusal } from '../../kit/api-server/refusals.ts'
import type { BrokenScene } from './broken-scene.ts'
import { awaitReason, failFetch, image, one } from './breakage.ts'

const batches = (count: number, failureThreshold?: number) => ({
  default: {
    budget: { count },
    strategy: { fixed: { initialBatch: 1, batchThreshold: 100, ...(failureThreshold && { failureThreshold }) } },
  },
})
const policiesPath = '/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies'
const ofSkyhook = { reason: 'WaitingForSlot', objects: ['Skyhook/s'] } as const
const other = { version: '1.0.0', image: 'registry.test/p0b' }

export const slotRows: readonly BrokenScene[] = [
  {
    title: 'a budget of 0',
    nodes: one,
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    ...ofSkyhook,
    cause: 'budget-zero',
    remedy: 'command',
  },
  {
    title: 'a budget of 0 percent',
    nodes: one,
    skyhooks: { s: { interruptionBudget: { percent: 0 } } },
    ...ofSkyhook,
    cause: 'budget-zero',
    remedy: 'command',
  },
  {
    title: 'a default budget of 0',
    nodes: one,
    skyhooks: { s: { interruptionBudget: {} } },
    defaultBudget: { count: 0 },
    ...ofSkyhook,
    cause: 'budget-zero',
    says: ['the default of the chart is 0'],
    remedy: 'command',
  },
  {
    title: 'a DeploymentPolicy whose budget is 0',
    nodes: one,
    policies: { p: batches(0) },
    skyhooks: { s: { deploymentPolicy: 'p', interruptionBudget: undefined as never } },
    ...ofSkyhook,
    cause: 'budget-zero',
    says: ['kubectl edit deploymentpolicy p'],
    remedy: 'raise the budget',
    edit: { spec: batches(1) },
  },
  {
    title: 'a DeploymentPolicy that is missing',
    nodes: one,
    skyhooks: { s: { deploymentPolicy: 'gone', interruptionBudget: undefined as never } },
    reason: 'DeploymentPolicyNotFound',
    cause: 'policy-missing',
    objects: ['DeploymentPolicy/gone'],
    remedy: 'create the DeploymentPolicy gone',
    mend: (scene) =>
      scene.simulation.admin.send('POST', policiesPath, { metadata: { name: 'gone' }, spec: batches(1) }),
  },
  {
    title: 'a percentage that no census has counted',
    nodes: one,
    skyhooks: { s: { interruptionBudget: { percent: 50 } } },
    broken(scene) {
      const { admission } = scene.simulation.server
      admission.push((object, _, { resource }) => {
        if (resource.plural === 'leases' && object.metadata.name.endsWith('.ledger'))
          throw new Refusal(403, 'no ledger may be written', { reason: 'Forbidden' })
      })
      return () => void admission.splice(admission.length - 1)
    },
    reason: 'WaitingForSlot',
    cause: 'no-census',
    objects: ['Lease/skyhookd-census'],
    remedy: 'look at the Lease of the election and its holder',
    shows: /holderIdentity/,
  },
  {
    title: 'a budget that a failing node uses up',
    skyhooks: { s: { packages: { p0a: { version: '1.0.0', image } } } },
    broken(scene) {
      scene.host('host1').conditions.change({ fetch: { durationMs: 4_000 } })
      return scene.host('host2').conditions.change({ isFailing: ({ mode }) => mode === 'apply' })
    },
    reason: 'WaitingForSlot',
    cause: 'budget-full',
    objects: ['Node/node2'],
    elsewhere: ['Package/p0a'],
    says: ['node2 (working since'],
    remedy: 'one of these nodes must complete: node2',
    shows: /node2: held up \(step-failing\)/,
  },
  {
    title: 'a budget that a host uses up which is gone',
    broken(scene) {
      scene.host('host1').conditions.change({ fetch: { durationMs: 4_000 } })
      scene.host('host2').conditions.change({ stepMs: 900_000 })
    },
    async reach(scene) {
      await awaitReason(scene, 'WaitingForSlot')
      scene.host('host2').host.cutPower({ downMs: 100_000_000 })
      await scene.pass(1_200_000)
    },
    cause: 'budget-full',
    objects: ['Node/node2'],
    elsewhere: ['Node/node2'],
    doctor: ['node-not-ready'],
    remedy: 'delete Nodes that are gone',
    shows: /node2 is NotReady/,
    mend: (scene) => scene.simulation.admin.send('DELETE', '/api/v1/nodes/node2'),
  },
  {
    title: 'a batch whose node hangs',
    policies: { p: batches(2) },
    skyhooks: { s: { deploymentPolicy: 'p', interruptionBudget: undefined as never } },
    broken(scene) {
      scene.host('host1').conditions.change({ fetch: { durationMs: 4_000 } })
      const { conditions, host } = scene.host('host2')
      const heal = conditions.change({ stepMs: 100_000_000 })
      return () => {
        heal()
        host.reboot() // what ends the step
      }
    },
    reason: 'WaitingForBatch',
    cause: 'batch',
    objects: ['DeploymentPolicy/p'],
    remedy: 'the nodes of the batch must end first: node2',
    shows: /node2/,
  },
  {
    title: 'a batch whose failures stop the rollout',
    policies: { p: batches(2, 1) },
    skyhooks: { s: { deploymentPolicy: 'p', interruptionBudget: undefined as never } },
    broken(scene) {
      scene.host('host1').conditions.change({ fetch: { durationMs: 4_000 } })
      return scene.host('host2').conditions.change({ isFailing: ({ mode }) => mode === 'apply' })
    },
    reach: async (scene) => await scene.pass(120_000),
    cause: 'rollout-stopped',
    objects: ['DeploymentPolicy/p'],
    elsewhere: ['Package/p0a'],
    remedy: 'fix the package, then let the batches start over',
  },
  {
    title: 'an earlier Skyhook that fails',
    nodes: one,
    skyhooks: { first: { priority: 1, packages: { p0b: other } }, s: { priority: 2 } },
    broken: (scene) => void failFetch(scene, 'not-found', 'p0b|1.0.0'),
    reason: 'WaitingForPriority',
    cause: 'earlier-skyhook',
    objects: ['Skyhook/first'],
    remedy: 'must complete on this node',
    shows: /image-pull/,
    mend: (scene) => scene.editSkyhook('first', { spec: { packages: { p0b: { ...other, version: '1.0.1' } } } }),
  },
  {
    title: 'an earlier Skyhook that someone paused',
    nodes: one,
    skyhooks: { first: { priority: 1, packages: { p0b: other } }, s: { priority: 2 } },
    broken: (scene) =>
      void scene.simulation.server.observe({
        committed({ type, resource, version: { object } }) {
          if (type === 'ADDED' && resource.plural === 'skyhooks' && object.metadata.name === 'first')
            scene.editSkyhook('first', { metadata: { annotations: { [pauseKey]: 'true' } } })
        },
      }),
    reason: 'WaitingForPriority',
    cause: 'earlier-skyhook',
    objects: ['Skyhook/first'],
    remedy: 'or be disabled',
    shows: /kubectl skyhook resume first/,
    mend: (scene) =>
      scene.editSkyhook('first', { metadata: { annotations: { 'skyhook.nvidia.com/disable': 'true' } } }),
  },
]
