/**
 * Variables and arguments of a step. Variables come in layers; later layers win. The layers are those of the operator,
 * so that published packages find their variables (tuning reads SKYHOOK_RESOURCE_ID, nvidia-setup NVIDIA_*):
 *
 *   PATH, HOME < the Skyhook's env < SKYHOOK_* and COPY_RESOLV < the step's env < STEP_ROOT, SKYHOOK_DIR, versions
 *
 * Unlike the operator, the agent passes nothing of its own environment to a step, and keeps values of several lines
 * whole.
 */
import { defaultEnvironment } from '../../host/step/environment.ts'
import type { CommandArgument } from '../../host/systemd/unit-properties.ts'
import { type agentVariables, variableOf } from '../../schemas/environment-variable.ts'
import type { Mode, PackageConfig, Step } from '../../schemas/package-config.ts'
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
  /** The version that was complete here before: `unknown` if there was none, `uninstalled` after an uninstall. */
  readonly previousVersion: string
}

export type ComposedStep =
  | {
      readonly outcome: 'composed'
      readonly environment: Readonly<Record<string, string>>
      /** Arguments from the Skyhook's env name their variable instead of the value, which may be secret. */
      readonly arguments: readonly CommandArgument[]
    }
  /** Variables of `env:` arguments that the Skyhook's `env` lacks. */
  | { readonly outcome: 'missing'; readonly variables: readonly string[] }

/** Pure. parse-package-config.ts and references.ts have checked names and values. */
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
  const dir = copyDir(folders, instance)
  const isUpgrade = mode === 'upgrade' || mode === 'upgrade-check'
  const versions = { CURRENT_VERSION: config.packageVersion, PREVIOUS_VERSION: previousVersion }
  const environment = {
    ...sharedEnvironment,
    ...step.env,
    ...(isUpgrade && versions),
    STEP_ROOT: scriptsDir(dir),
    SKYHOOK_DIR: dir,
  }
  const substituted = substituteArguments(step.arguments, sharedEnvironment, environment)
  if (substituted.outcome === 'missing') return substituted
  return {
    outcome: 'composed',
    environment: { ...environment, ...substituted.variables },
    arguments:
      isUpgrade && step.upgradeStep
        ? [...substituted.arguments, previousVersion, config.packageVersion]
        : substituted.arguments,
  }
}

type Substitution =
  | {
      readonly outcome: 'substituted'
      readonly arguments: readonly CommandArgument[]
      /** Values that the step's own environment lacks or overrides, under other names. */
      readonly variables: Readonly<Record<string, string>>
    }
  | Extract<ComposedStep, { outcome: 'missing' }>

/**
 * Replaces an argument `env:NAME` by the value of NAME in `shared`, the layers before the step's own env. The whole
 * rest of the argument is the name, including spaces. The argument refers to a variable of the step. That variable has
 * another name if `environment`, all layers together, has another value for NAME.
 */
export function substituteArguments(
  configuredArguments: readonly string[],
  shared: Readonly<Record<string, string>>,
  environment: Readonly<Record<string, string>>,
): Substitution {
  const missing = new Set<string>()
  const variables: Record<string, string> = {}
  const substituted = configuredArguments.map((argument): CommandArgument => {
    const name = variableOf(argument)
    if (name === undefined) return argument
    const value = Object.hasOwn(shared, name) ? shared[name] : undefined
    if (value === undefined) {
      missing.add(name)
      return argument
    }
    if (environment[name] === value) return { variable: name }
    const variable = `SKYHOOK_ARGUMENT_${name}`
    variables[variable] = value
    return { variable }
  })
  return missing.size > 0
    ? { outcome: 'missing', variables: [...missing] }
    : { outcome: 'substituted', arguments: substituted, variables }
}

/** Value of a switch that the Skyhook's env may set: on if it is `true` in any letter case. */
export function isSwitchedOn(variables: readonly Variable[], name: string, defaultValue: boolean): boolean {
  const variable = variables.findLast((candidate) => candidate.name === name)
  return variable === undefined ? defaultValue : variable.value.toLowerCase() === 'true'
}
