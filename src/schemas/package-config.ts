import type { StageName } from './skyhook.ts'

/** A stage that runs steps of the package; `interrupt` runs none. */
export type Stage = Exclude<StageName, 'interrupt'>

/** Keys of `modes` in config.json: each stage and its check. */
export type Mode = Stage | `${Stage}-check`

export const stagesWithSteps: readonly Stage[] = ['apply', 'config', 'upgrade', 'uninstall', 'post-interrupt']

export const checkOf = (stage: Stage): `${Stage}-check` => `${stage}-check`

/** True for the modes whose steps all run, even if earlier ones fail. */
export const isCheck = (mode: Mode): mode is `${Stage}-check` => mode.endsWith('-check')

export type Step = {
  /** For people; nothing depends on it. */
  readonly name: string
  /** Relative to the package's `skyhook_dir/`. */
  readonly path: string
  readonly arguments: readonly string[]
  /** Exit codes that mean success. */
  readonly returncodes: readonly number[]
  /** Kept, without effect: steps always run on the host. */
  readonly onHost: boolean
  readonly env: Readonly<Record<string, string>>
  /**
   * Who ensures that work is not done twice. config.json's `idempotence: true` is `step` (it may always run again),
   * `false` is `agent` (run once, then skipped in apply and post-interrupt): the opposite of what one expects.
   */
  readonly idempotence: 'agent' | 'step'
  /** Gets the previous and the current version as its arguments. */
  readonly upgradeStep: boolean
}

export type PackageConfig = {
  /** The package's own name, used in flags, history and logs. It may differ from the name in the Skyhook. */
  readonly packageName: string
  /** The package's own version; published packages with a different tag exist and are fine. */
  readonly packageVersion: string
  /** Keys that the Skyhook's configMap must have, in every mode but uninstall. The package does not contain them. */
  readonly expectedConfigFiles: readonly string[]
  /** Only the modes that the file has; a mode without steps is a success. */
  readonly modes: Readonly<Partial<Record<Mode, readonly Step[]>>>
}

/** config.json as written, after the schema's validation. */
export type PackageConfigFile = {
  readonly schema_version: 'v1'
  readonly package_name: string
  readonly package_version: string
  readonly expected_config_files: readonly string[]
  readonly modes: Readonly<Partial<Record<Mode, readonly StepFile[]>>> & { readonly interrupt?: readonly unknown[] }
}

export type StepFile = {
  readonly name: string
  readonly path: string
  readonly arguments: readonly string[]
  readonly returncodes: readonly number[]
  readonly on_host: boolean
  readonly env?: Readonly<Record<string, string>>
  readonly idempotence: boolean
  readonly upgrade_step: boolean
}
