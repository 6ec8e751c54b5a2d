/**
 * `status.configUpdates`, for the way back: the keys of a configMap that the nodes still have to pick up. The operator
 * derives from them which interrupt is due. Agents read it for packages that the operator has left half done.
 */
import type { ConfigUpdates } from '../schemas/config-updates.ts'
import type { SkyhookSpec } from '../schemas/skyhook.ts'
import { ownValue } from '../schemas/own-value.ts'
import { changedKeys } from '../stages/model/package-inputs.ts'

/**
 * The keys known so far and those that an edit added, changed or removed, for packages that both specs have at the same
 * version: at another one everything is installed. Packages beyond 16 KiB are left out.
 */
export function updatesAfterEdit(known: ConfigUpdates, before: SkyhookSpec, after: SkyhookSpec): ConfigUpdates {
  const updates: Record<string, readonly string[]> = {}
  let bytes = 0
  const packages = Object.entries(after.packages ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))
  for (const [name, { version, configMap = {} }] of packages) {
    const old = ownValue(before.packages, name)
    if (old?.version !== version) continue
    const changed = changedKeys(old.configMap ?? {}, configMap)
    const keys = [...new Set([...(ownValue(known, name) ?? []), ...changed])].toSorted()
    bytes += keys.length === 0 ? 0 : Buffer.byteLength(JSON.stringify([name, keys]))
    if (keys.length > 0 && bytes <= maxUpdatesBytes) updates[name] = keys
  }
  return updates
}

/** Keeps the status small where configMaps have many keys; nobody has seen so many change at once. */
const maxUpdatesBytes = 16 * 1024
