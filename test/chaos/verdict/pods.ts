/** Agents remove pods by the Eviction API alone, which keeps disruption budgets, and never those that are protected. */
import { readSlot } from '../../../src/lease/slot.ts'
import type { Pod } from '../../e2e/moments.ts'
import { namespace, protectedLabels } from '../protected-pods.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'

const isProtected = (pod: Pod): boolean => pod.metadata.labels?.['app'] === protectedLabels.app

export function judgeEvictions({ audit, moments }: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  const protectedNames = new Set<string>()
  for (const { change } of moments)
    if (change.kind === 'pods' && isProtected(change.object)) protectedNames.add(change.object.metadata.name)
  for (const { verb, resource, subresource, name = '', namespace: of, receivedMs, node, status } of audit) {
    if (resource !== 'pods' || !['create', 'delete', 'deletecollection'].includes(verb)) continue
    checked++
    const what = `the agent of ${node} (answer ${status})`
    if (verb !== 'create') violations.push({ atMs: receivedMs, text: `pod ${name} was deleted by ${what}` })
    else if (subresource === 'eviction' && (protectedNames.has(name) || of !== namespace))
      violations.push({ atMs: receivedMs, text: `pod ${name} was evicted by ${what}` })
  }
  return { checked, violations }
}

/** Longer than between an agent's last look at the pods and its interrupt. */
const settledMs = 2_000

/** No interrupt while a protected pod runs. */
export function judgeProtectedPods({ moments }: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  const runningSinceMs = new Map<string, number>()
  const phases = new Map<string, string>()
  for (const { change, pods } of moments) {
    if (change.kind === 'pods' && isProtected(change.object)) {
      const { uid, deletionTimestamp } = change.object.metadata
      const runs =
        change.type !== 'DELETED' && deletionTimestamp === undefined && change.object.status?.phase === 'Running'
      if (!runs) runningSinceMs.delete(uid)
      else if (!runningSinceMs.has(uid)) runningSinceMs.set(uid, change.atMs)
    }
    if (change.kind !== 'leases' || change.type === 'DELETED') continue
    const slot = readSlot(change.object)
    if (!slot) continue
    const before = phases.get(slot.uid)
    phases.set(slot.uid, slot.phase)
    if (slot.phase === before || (slot.phase !== 'rebooting' && slot.phase !== 'interrupting')) continue
    checked++
    for (const pod of pods.values()) {
      const sinceMs = runningSinceMs.get(pod.metadata.uid)
      if (pod.spec?.nodeName !== slot.holder || sinceMs === undefined || change.atMs - sinceMs < settledMs) continue
      const text = `${slot.holder} began ${slot.phase} while the protected pod ${pod.metadata.name} ran there`
      violations.push({ atMs: change.atMs, text })
    }
  }
  return { checked, violations }
}
