/**
 * Takes back what would keep a fleet from completing: edits whose end was lost with an older copy of the
 * store. Clocks stay as they are: a host whose clock went back must not wait until it has caught up.
 */
import { disableKey, ignoreLabel, pauseKey, resetBatchesKey } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { nodePath, skyhookPath } from './cluster-writer.ts'
import type { World } from './world.ts'

export function healObjects(world: World): void {
  const { admin, server, hosts, plan } = world
  for (const { name } of plan.skyhooks) {
    const object = server.object('skyhooks', undefined, name)
    const { interruptionBudget, nodeSelectors, bootstrap, drain, deploymentPolicy } = (object?.['spec'] ??
      {}) as SkyhookSpec
    const { annotations = {} } = object?.metadata ?? {}
    if (annotations[pauseKey] !== undefined || annotations[disableKey] !== undefined)
      admin.patch(skyhookPath(name), { metadata: { annotations: { [pauseKey]: null, [disableKey]: null } } })
    if (interruptionBudget?.count === 0)
      admin.patch(skyhookPath(name), { spec: { interruptionBudget: { count: 1, percent: null } } })
    if (plan.policies !== undefined)
      // a stop is for people
      admin.patch(skyhookPath(name), { metadata: { annotations: { [resetBatchesKey]: 'healed' } } })
    // pods that tolerate the cordon need not end
    if (drain?.tolerating === 'wait') admin.patch(skyhookPath(name), { spec: { drain: { tolerating: null } } })
    const isPolicyGone =
      deploymentPolicy && server.object('deploymentpolicies', undefined, deploymentPolicy) === undefined
    if (isPolicyGone)
      admin.patch(skyhookPath(name), { spec: { deploymentPolicy: null, interruptionBudget: { count: 1 } } })
    if (bootstrap?.count === 0) admin.patch(skyhookPath(name), { spec: { bootstrap: null } })
    if (nodeSelectors?.matchLabels?.['pool'] === 'b')
      admin.patch(skyhookPath(name), { spec: { nodeSelectors: { matchLabels: { pool: 'a' } } } })
  }
  for (const one of hosts.values()) {
    const { nodeName } = one
    const node = server.object('nodes', undefined, nodeName()) as KubernetesNode | undefined
    const { labels = {}, annotations = {} } = node?.metadata ?? {}
    if (node === undefined) one.restartKubelet()
    else if (labels['pool'] !== 'a' || labels[ignoreLabel] !== undefined)
      admin.patch(nodePath(nodeName()), { metadata: { labels: { pool: 'a', [ignoreLabel]: null } } })
    const isOurs = Object.keys(annotations).some((key) => key.includes('/cordon_'))
    if (node?.spec?.unschedulable === true && !isOurs)
      admin.patch(nodePath(nodeName()), { spec: { unschedulable: null } })
  }
  const registered = new Set([...hosts.values()].map(({ nodeName }) => nodeName()))
  for (const { metadata } of server.objects('nodes'))
    if (!registered.has(metadata.name)) admin.send('DELETE', nodePath(metadata.name))
}
