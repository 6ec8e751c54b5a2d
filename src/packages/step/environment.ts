/**
 * What a step is given: its variables, in layers of which the later win, and its arguments. The layers are those of the
 * operator, so that published packages find what they look for (tuning reads SKYHOOK_RESOURCE_ID, nvidia-setup
 * NVIDIA_*):
 *
 *   PATH, HOME < the Skyhook's env < SKYHOOK_* and COPY_RESOLV < the step's env < STEP_ROOT, SKYHOOK_DIR, versions
 *
 * Unlike there, nothing of the agent's own environment reaches a step, and values of several lines arrive whole.
 */
import { defaultEnvironment } from '../../host/step/environment.ts'
import type { Mode, PackageConfig, Step } from '../../schemas/package-config.ts'
import { variableOf, type agentVariables } from '../../schemas/step-variables.ts'
import { copyDir, logDir, resourceId, scriptsDir, stateDir, type HostFolders, type PackageInstance } from '../layout.ts'
import type { Variable } from './references.ts'

export type StepInputs = {
  readonly config: PackageConfig
  readonly mode: Mode
  readonly step: Step
  readonly instance: PackageInstance
  readonly folders: HostFolders
  /** The Skyhook's `env`, resolved (references.ts). */
  readonly variables: readonly Variable[]
  /** The version that was complete here before: `unknown` without one, `uninstalled` after an uninstall. */
  readonly previousVersion: string
}

export type ComposedStep =
  | {
      readonly outcome: 'composed'
      readonly environment: Readonly<Record<string, string>>
      readonly arguments: readonly string[]
    }
  /** Variables that `env:` arguments name and the Skyhook's `env` lacks. */
  | { readonly outcome: 'missing'; readonly variables: readonly string[] }

/** Pure. Names and values were checked where they came from (package-config-rules.ts, references.ts). */
export function composeStep({
  config,
  mode,
  step,
  instance,
  folders,
  variables,
  previousVersion,
}: StepInputs): ComposedStep {
  const sharedEnvironment: Record<string, string> & Record<(typeof agentVariables)[number], string> = {
    ...defaultEnvironment,
    ...Object.fromEntries(variables.map(({ name, value }) => [name, value])),
    SKYHOOK_LOG_DIR: logDir(folders, instance.skyhook),
    SKYHOOK_ROOT_DIR: stateDir(folders, instance.skyhook),
    COPY_RESOLV: 'false',
    SKYHOOK_RESOURCE_ID: resourceId(instance),
  }
  const substituted = substituteArguments(step.arguments, sharedEnvironment)
  if (substituted.outcome === 'missing') return substituted

  const dir = copyDir(folders, instance)
  const isUpgrade = mode === 'upgrade' || mode === 'upgrade-check'
  const versions = { CURRENT_VERSION: config.packageVersion, PREVIOUS_VERSION: previousVersion }
  return {
    outcome: 'composed',
    environment: {
      ...sharedEnvironment,
      ...step.env,
      ...(isUpgrade && versions),
      STEP_ROOT: scriptsDir(dir),
      SKYHOOK_DIR: dir,
    },
    arguments:
      isUpgrade && step.upgradeStep
        ? [...substituted.arguments, previousVersion, config.packageVersion]
        : substituted.arguments,
  }
}

type Substitution =
  | { readonly outcome: 'substituted'; readonly arguments: readonly string[] }
  | Extract<ComposedStep, { outcome: 'missing' }>

/**
 * An argument `env:NAME` becomes the value of NAME in the layers before the step's own env. Only whole arguments that
 * start with it; the rest of the argument is the name, blanks included.
 */
export function substituteArguments(
  configuredArguments: readonly string[],
  environment: Readonly<Record<string, string>>,
): Substitution {
  const missing: string[] = []
  const values = configuredArguments.map((argument) => {
    const name = variableOf(argument)
    if (name === undefined) return argument
    if (Object.hasOwn(environment, name)) return environment[name] ?? ''
    missing.push(name)
    return argument
  })
  return missing.length > 0
    ? { outcome: 'missing', variables: [...new Set(missing)] }
    : { outcome: 'substituted', arguments: values }
}

/** Value of one of the switches that the Skyhook's env may set: `true` in any letter case, or not. */
export function isSwitchedOn(variables: readonly Variable[], name: string, defaultValue: boolean): boolean {
  const variable = variables.findLast((candidate) => candidate.name === name)
  return variable === undefined ? defaultValue : variable.value.toLowerCase() === 'true'
}
