import { canonicalJson, sha256Hex } from '../../schemas/canonical-json.ts'
import type { PackageInputs, PackageRecord } from '../../schemas/package-record.ts'
import type { ObjectMeta } from '../../schemas/kubernetes.ts'
import { perObject } from '../../schemas/per-object.ts'
import type { PackageSpec, SkyhookSpec } from '../../schemas/skyhook.ts'

export const inputsOf: (spec: PackageSpec) => PackageInputs = perObject((spec) => ({
  config: spec.configMap ?? {},
  env: spec.env ?? [],
}))

/** Hash of configuration and environment: a failed stage is retried at once when it changes. */
export const inputsHash = (inputs: PackageInputs): string => sha256Hex(inputsText(inputs)).slice(0, 16)

const inputsText = perObject(({ config, env }: PackageInputs): string =>
  JSON.stringify([Object.entries(config).sort(([a], [b]) => (a < b ? -1 : 1)), env]),
)

/**
 * True when `config` must run (again): the spec differs from what was last started. Comparing with what was last
 * *finished* would miss A -> B -> A, where the host may already hold B.
 */
export function isConfigDue(record: PackageRecord, spec: PackageSpec): boolean {
  return record.config !== undefined && inputsText(record.config.started) !== inputsText(inputsOf(spec))
}

/**
 * An uninstall runs with the configuration of the installation, until a spec that still has the package is edited. A
 * package that was never complete follows the spec as long as it has the package.
 */
export function inputsOfUninstall(
  { config, uninstallInputs }: PackageRecord,
  spec: PackageSpec | undefined,
): PackageInputs | undefined {
  if (spec && config?.finished === undefined) return inputsOf(spec)
  return uninstallInputs ?? config?.finished ?? config?.started
}

/** Added, changed and removed keys. */
export function changedKeys(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((key) => before[key] !== after[key])
    .sort()
}

/** All keys that a config roll touches, over all starts since the package was last complete. */
export function keysOfConfigChange({ config }: PackageRecord, spec: PackageSpec): string[] {
  if (!config) return []
  const now = inputsOf(spec).config
  const before = [config.finished ?? config.started, config.started]
  return [...new Set([...config.changedKeys, ...before.flatMap((inputs) => changedKeys(inputs.config, now))])].sort()
}

/** Inputs that must not change under a started package; a change makes it start over from a new generation. */
export const immutableInputsHash: (spec: PackageSpec) => string = perObject(
  ({ version, image, containerSHA, env, resources }) =>
    sha256Hex(canonicalJson({ version, image, containerSHA, env, resources })).slice(0, 16),
)

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
