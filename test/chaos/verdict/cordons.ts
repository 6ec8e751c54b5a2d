/** The agents keep an administrator's cordon, and lift their own. */
import type { Evidence, Finding, Violation } from './evidence.ts'

export function judgeCordons({ moments, ownVersions }: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  /** What the administrator wants, by the UID of the Node: the last change of the cordon that he made visibly. */
  const wantsCordon = new Map<string, boolean>()
  const wasCordoned = new Map<string, boolean>()
  const marksBefore = new Map<string, string>()
  for (const { change } of moments) {
    if (change.kind !== 'nodes' || change.type === 'DELETED') continue
    const { metadata, spec } = change.object
    const isCordoned = spec?.unschedulable === true
    const before = wasCordoned.get(metadata.uid) ?? false
    wasCordoned.set(metadata.uid, isCordoned)
    const marks = marksOf(metadata.annotations)
    const isOfAgent = marks !== (marksBefore.get(metadata.uid) ?? '')
    marksBefore.set(metadata.uid, marks)
    if (isCordoned === before) continue
    // a write of the administrator that changes nothing is answered with the version of somebody else
    if (!isOfAgent && ownVersions.has(change.resourceVersion)) {
      wantsCordon.set(metadata.uid, isCordoned)
      continue
    }
    if (isCordoned) continue
    checked++
    if (wantsCordon.get(metadata.uid) === true)
      violations.push({ atMs: change.atMs, text: `${metadata.name} was uncordoned against the administrator` })
  }
  const last = moments.at(-1)
  for (const { metadata, spec } of last?.nodes.values() ?? []) {
    checked++
    const isCordoned = spec?.unschedulable === true
    if (isCordoned === (wantsCordon.get(metadata.uid) ?? false)) continue
    const why = isCordoned ? 'is still cordoned' : 'has lost the cordon of the administrator'
    violations.push({ atMs: last?.change.atMs ?? 0, text: `at the end ${metadata.name} ${why}` })
  }
  return { checked, violations }
}

const marksOf = (annotations: Readonly<Record<string, string>> = {}): string =>
  Object.keys(annotations)
    .filter((key) => key.includes('/cordon_'))
    .sort()
    .join()
