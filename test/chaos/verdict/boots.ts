/** A host reboots only if a fault made it, or its agent holds a slot that says so. */
import { readSlot } from '../../../src/lease/slot.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'

/** From the announcement of a reboot, or its fault, until the Node shows the new boot. */
const maxBootMs = 150_000

export function judgeBoots({ moments, actions }: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  const boots = new Map<string, string>()
  const announcedMs = new Map<string, number>()
  const faults = actions.filter(({ kind }) => kind === 'host rebooted' || kind === 'power cut')
  for (const { change } of moments) {
    if (change.kind === 'leases' && change.type !== 'DELETED') {
      const slot = readSlot(change.object)
      if (slot?.phase === 'rebooting') announcedMs.set(slot.holder, change.atMs)
    }
    if (change.kind !== 'nodes' || change.type === 'DELETED') continue
    const { name } = change.object.metadata
    const boot = change.object.status?.nodeInfo?.bootID
    const before = boots.get(name)
    if (boot === undefined || boot === '') continue
    boots.set(name, boot)
    if (before === undefined || before === boot) continue
    checked++
    const isAnnounced = change.atMs - (announcedMs.get(name) ?? 0) < maxBootMs
    const isFault = faults.some(
      ({ detail, startedMs, endedMs }) =>
        detail.includes(name) && startedMs <= change.atMs && change.atMs - endedMs < maxBootMs,
    )
    if (!isAnnounced && !isFault) violations.push({ atMs: change.atMs, text: `${name} rebooted for no known cause` })
  }
  return { checked, violations }
}
