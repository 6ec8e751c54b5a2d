import { nodeStateKey } from '../../schemas/annotations.ts'
import { isObject, parseObject } from '../../schemas/json.ts'
import type { Edit, Editable } from './edit.ts'
import { type PublishedPackage, publishedPackages } from './nodes.ts'

/** Whether an entry is the package that a person named as NAME or NAME:VERSION. */
export function isPackage({ name, version }: Pick<PublishedPackage, 'name' | 'version'>, text: string): boolean {
  return text === name || text === `${name}:${version}`
}

export type EntryChange = 'keep' | 'remove' | { readonly stage: string }

/**
 * Changes entries of the published state, by which people control an agent. Without its entry a package starts over; at
 * another stage it continues there. Undefined: nothing changes. The annotation itself always stays, because its absence
 * resets the whole Skyhook.
 */
export function editPackages(
  node: Editable,
  skyhook: string,
  changeOf: (entry: PublishedPackage) => EntryChange,
): Edit | undefined {
  const key = nodeStateKey(skyhook)
  const state = parseObject(node.metadata.annotations?.[key])
  const published = publishedPackages(node, skyhook)
  if (state === undefined || published === undefined) return undefined
  let hasChanged = false
  const entries = Object.entries(state).flatMap(([entryKey, entry]) => {
    const known = published.get(entryKey)
    const change = known === undefined ? 'keep' : changeOf(known)
    if (change === 'keep' || !isObject(entry)) return [[entryKey, entry] as const]
    hasChanged = true
    return change === 'remove' ? [] : [[entryKey, { ...entry, stage: change.stage, state: 'in_progress' }] as const]
  })
  return hasChanged ? { annotations: { [key]: JSON.stringify(Object.fromEntries(entries)) } } : undefined
}
