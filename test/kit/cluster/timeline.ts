import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { keyOf, moments, type Version, type View } from './moments.ts'

/** Something beside the changes that belongs into a timeline. */
export type Note = { readonly atMs: number; readonly text: string }

/** The changes a reader wants to see, and the notes, one per line, with seconds since the start of the recording. */
export function timeline(
  start: View,
  versions: readonly Version[],
  startedMs: number,
  notes: readonly Note[] = [],
): string {
  const before = new Map<string, Version['object']>()
  for (const kind of ['nodes', 'leases', 'skyhooks', 'pods', 'events'] as const) {
    for (const [key, object] of start[kind]) before.set(`${kind}/${key}`, object)
  }
  const lines: string[] = []
  const seconds = (atMs: number): string => `+${((atMs - startedMs) / 1000).toFixed(3)}`.padStart(8)
  const pending = notes.toSorted((a, b) => a.atMs - b.atMs)
  const takeNotes = (untilMs: number): void => {
    for (let note = pending[0]; note && note.atMs <= untilMs; note = pending[0]) {
      lines.push(`${seconds(note.atMs)} ${note.text}`)
      pending.shift()
    }
  }
  for (const { change } of moments(start, versions)) {
    const key = `${change.kind}/${keyOf(change)}`
    const text = describe(change, before.get(key))
    if (change.type === 'DELETED') before.delete(key)
    else before.set(key, change.object)
    takeNotes(change.atMs)
    if (text !== '') lines.push(`${seconds(change.atMs)} ${change.resourceVersion} ${text}`)
  }
  takeNotes(Infinity)
  return lines.join('\n')
}

function describe(change: Version, before: Version['object'] | undefined): string {
  const { name } = change.object.metadata
  const gone = change.type === 'DELETED' ? ' deleted' : ''
  switch (change.kind) {
    case 'nodes': {
      const differences = nodeDifferences(before as KubernetesNode | undefined, change.object)
      return differences.length === 0 && gone === '' ? '' : `node ${name}${gone} ${differences.join(' | ')}`
    }
    case 'leases': {
      const phase = change.object.metadata.annotations?.['skyhook.nvidia.com/phase']
      return `lease ${name}${gone || ` ${phase}`} by ${change.object.spec?.holderIdentity}`
    }
    case 'skyhooks':
      return `skyhook ${name}${gone} generation ${change.object.metadata.generation}`
    case 'pods': {
      const { nodeName } = change.object.spec ?? {}
      const ready = change.object.status?.conditions?.find(({ type }) => type === 'Ready')?.status
      const ending = change.object.metadata.deletionTimestamp === undefined ? '' : ' terminating'
      return `pod ${keyOf(change)}${gone}${ending} on ${nodeName} ${change.object.status?.phase} ready=${ready}`
    }
    case 'events':
      return `event ${change.object.involvedObject?.name}: ${change.object.reason}: ${change.object.message}`
  }
}

function nodeDifferences(before: KubernetesNode | undefined, after: KubernetesNode): string[] {
  const differences: string[] = []
  const compare = (what: string, old: unknown, current: unknown): void => {
    const [from, to] = [JSON.stringify(old), JSON.stringify(current)]
    if (from !== to) differences.push(`${what}: ${to ?? 'gone'}`)
  }
  compare('unschedulable', before?.spec?.unschedulable, after.spec?.unschedulable)
  compare('taints', taints(before), taints(after))
  compare('ready', condition(before, 'Ready'), condition(after, 'Ready'))
  compare('boot', before?.status?.nodeInfo?.bootID, after.status?.nodeInfo?.bootID)
  const [olds, news] = [before?.metadata.annotations ?? {}, after.metadata.annotations ?? {}]
  for (const key of new Set([...Object.keys(olds), ...Object.keys(news)])) {
    const [, short] = /^skyhook\.nvidia\.com\/(.*)$/.exec(key) ?? []
    if (short !== undefined) compare(short, olds[key], news[key])
  }
  return differences
}

const taints = (node: KubernetesNode | undefined): string[] =>
  (node?.spec?.taints ?? []).map(({ key, value, effect }) => `${key}=${value ?? ''}:${effect}`)

const condition = (node: KubernetesNode | undefined, name: string): string | undefined =>
  node?.status?.conditions?.find(({ type }) => type === name)?.status
