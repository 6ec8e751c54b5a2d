import type { ObjectMeta } from '../../schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { perObject } from '../../schemas/per-object.ts'
import { canonicalJson, sha256Hex } from '../../schemas/canonical-json.ts'

/**
 * Hash of the fields that decide work on a complete node: name, version, configMap, env and uninstall of each package.
 * Two specs with one hash leave a complete node complete. 16 hex digits. `env` keeps its order and is compared as
 * written.
 */
export const appliedHash: (spec: SkyhookSpec) => string = perObject((spec) => {
  const packages = Object.entries(spec.packages ?? {}).map(([name, { version, configMap, env, uninstall }]) => [
    name,
    { version, configMap: configMap === undefined ? undefined : markEmptyValues(configMap), env, uninstall },
  ])
  return sha256Hex(canonicalJson(Object.fromEntries(packages))).slice(0, 16)
})

/**
 * Hash of the spec that a node is complete with. Deletion changes it: the packages are gone from a complete node, and a
 * Skyhook that is created again with the same name and spec must not count as complete there.
 */
export function completionHash({
  metadata,
  spec,
}: {
  readonly metadata: Pick<ObjectMeta, 'deletionTimestamp'>
  readonly spec: SkyhookSpec
}): string {
  const applied = appliedHash(spec)
  return metadata.deletionTimestamp === undefined ? applied : sha256Hex(`deleted\n${applied}`).slice(0, 16)
}

/** A key with an empty value differs from an absent key: the file exists on the host. */
function markEmptyValues(configMap: Readonly<Record<string, string>>): Record<string, string | readonly string[]> {
  return Object.fromEntries(Object.entries(configMap).map(([key, value]) => [key, value === '' ? ['empty'] : value]))
}
