/** What rows break, and what several of them share. */
import type { FleetScene } from '../../kit/fleet/fleet-scene.ts'
import type { ImageErrorCode } from '../../../src/schemas/catalogue/reason-codes.ts'
import type { PackageSpec, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { reasonKey, statusKey } from '../../../src/schemas/annotations.ts'
import type { Outside } from './outside.ts'

export const one = [{ name: 'host1' }]
export const image = 'registry.test/p0a'
export const packageOf = (rest: Partial<PackageSpec> = {}): Record<string, PackageSpec> => ({
  p0a: { version: '1.0.0', image, ...rest },
})
export const rebooting = { packages: packageOf({ interrupt: { type: 'reboot' } }) }
export const nextVersion = { spec: { packages: packageOf({ version: '1.0.1' }) } }
export const secretOf = (name: string): PackageSpec['env'] => [
  { name: 'TOKEN', valueFrom: { secretKeyRef: { name, key: 'a' } } },
]
export const createSecret = (scene: FleetScene, name: string): void =>
  scene.simulation.admin.send('POST', '/api/v1/namespaces/skyhook/secrets', {
    metadata: { name },
    data: { a: 'YQ==' },
  })
export const budgetsPath = '/apis/policy/v1/namespaces/apps/poddisruptionbudgets'
export const strictBudget = (scene: FleetScene): void =>
  scene.simulation.admin.send('POST', budgetsPath, {
    metadata: { name: 'strict' },
    spec: { selector: {}, maxUnavailable: 0 },
  })

const readyMessages = {
  True: 'kubelet is posting ready status',
  False: 'KubeletNotReady',
  Unknown: 'Kubelet stopped posting node status.',
} as const

/** As a kubelet that is unwell says it, or the node controller of one that is silent; and when it is well again. */
export function sayReady(
  scene: FleetScene,
  status: keyof typeof readyMessages,
  message: string = readyMessages[status],
): void {
  const lastTransitionTime = new Date(scene.simulation.clock.wallMs()).toISOString()
  const conditions = [{ type: 'Ready', status, message, lastTransitionTime }]
  scene.simulation.admin.patch('/api/v1/nodes/node1/status', { status: { conditions } })
  const ofPod = [{ type: 'Ready', status: status === 'True' ? 'True' : 'False', lastTransitionTime }]
  scene.simulation.admin.patch('/api/v1/namespaces/skyhook/pods/agent-of-node1/status', {
    status: { conditions: ofPod },
  })
  const key = `node.kubernetes.io/${status === 'False' ? 'not-ready' : 'unreachable'}`
  scene.editNode('node1', { spec: { taints: status === 'True' ? [] : [{ key, effect: 'NoSchedule' }] } })
}

/** `systemctl status kubelet` on host1: it runs if the Node does not miss it. */
export function kubeletStatus(scene: FleetScene, outside: Outside): void {
  outside.setHostCommand('systemctl status kubelet', () => {
    const ready = scene.node('node1').status?.conditions?.find(({ type }) => type === 'Ready')
    return ready?.status === 'True'
      ? { status: 0, output: 'active (running)' }
      : { status: 3, output: 'inactive (dead)' }
  })
}

/** On host1, of this package, by its key; ends with the returned function. */
export const failFetch = (scene: FleetScene, code: ImageErrorCode, of = 'p0a|1.0.0'): (() => void) =>
  scene.host('host1').conditions.change({ fetch: { durationMs: 100, code, of } })

/** On host1, of this version of the package p0a: the next version is correct. */
export const failStep = (scene: FleetScene, failing: string, of = '1.0.0'): void =>
  void scene.host('host1').conditions.change({
    isFailing: ({ mode, package: name, version }) => mode === failing && name === 'p0a' && version === of,
  })

export function annotateAtOnce(scene: FleetScene, key: string): void {
  scene.simulation.server.observe({
    committed({ type, resource, version: { object } }) {
      if (type === 'ADDED' && resource.plural === 'skyhooks')
        scene.editSkyhook(object.metadata.name, { metadata: { annotations: { [key]: 'true' } } })
    },
  })
}

/** Before the agents see the Skyhook. */
export const beforeWork = (scene: FleetScene, act: () => void): void =>
  void scene.simulation.clock.startTimer(8_500, act)

export const awaitStatus = async (scene: FleetScene, status: string): Promise<void> =>
  await scene.until(() => scene.annotation('node1', statusKey('s')) === status, status)
export const awaitReason = async (scene: FleetScene, reason: string): Promise<void> =>
  await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes(`"${reason}"`) === true, reason)

/** A healthy package beside the broken one. */
export const beside = { p0b: { version: '1.0.0', image: 'registry.test/p0b' } } as const

/** Calls back as soon as the condition holds. */
export function allowWhen(scene: FleetScene, holds: () => boolean, allow: () => void): void {
  if (holds()) return allow()
  scene.simulation.clock.startTimer(1_000, () => allowWhen(scene, holds, allow), { isBackground: true })
}

export const withHealthy = (rest: Partial<PackageSpec> = {}): Partial<SkyhookSpec> => ({
  packages: { ...packageOf(rest), ...beside },
})
export const nextImage = (scene: FleetScene): void => scene.editSkyhook('s', nextVersion)
