import type { PackageInputs, PackageRecord } from '../../schemas/journal.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { perObject } from '../../schemas/per-object.ts'
import { canonicalJson, sha256Hex } from '../../schemas/canonical-json.ts'

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
