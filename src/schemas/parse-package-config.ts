import { environmentNameProblem, environmentTextProblem } from './environment-variable.ts'
import { validatePackageConfig } from './generated/package-config-validator.ts'
import { messageOf } from './json.ts'
import {
  checkOf,
  type Mode,
  type PackageConfig,
  type PackageConfigFile,
  type Step,
  type StepFile,
  stagesWithSteps,
} from './package-config.ts'
import { type Problem, pointerSegment, schemaProblems } from './validation.ts'

export type ParsedPackageConfig =
  | { readonly outcome: 'valid'; readonly config: PackageConfig; readonly warnings: readonly Problem[] }
  | { readonly outcome: 'invalid'; readonly problems: readonly Problem[] }

/**
 * Reads the text of a config.json: syntax, version, schema, then the rules between its parts. Reports every problem
 * found, each with its JSON pointer. Files need not exist: see packages/step/load-package.ts. Never throws.
 */
export function parsePackageConfig(text: string): ParsedPackageConfig {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    return invalid([
      {
        pointer: '',
        message: `is not JSON: ${messageOf(error)}`,
        rule: 'json-syntax',
        remedy: 'write JSON: names in double quotes, no comments, no comma after the last entry',
      },
    ])
  }

  const unsupportedVersion = newerVersion(document)
  if (unsupportedVersion) return invalid([unsupportedVersion])
  if (!validatePackageConfig(document)) return invalid(schemaProblems(validatePackageConfig.errors ?? []))

  const file = document as PackageConfigFile
  const problems = ruleProblems(file)
  if (problems.length > 0) return invalid(problems)
  return { outcome: 'valid', config: configOf(file), warnings: ruleWarnings(file) }
}

const invalid = (problems: readonly Problem[]): ParsedPackageConfig => ({ outcome: 'invalid', problems })

/** A newer version may give any field another meaning: one clear sentence instead of a list of guesses. */
function newerVersion(document: unknown): Problem | undefined {
  if (typeof document !== 'object' || document === null || !('schema_version' in document)) return undefined
  const value = document.schema_version
  if (typeof value !== 'string' || !/^v([2-9]|[1-9][0-9]+)$/.test(value)) return undefined
  return {
    pointer: '/schema_version',
    message: 'is newer than v1, the newest that this agent reads: upgrade skyhookd or build the package for v1',
    value,
    rule: 'schema-version',
    remedy: 'upgrade skyhookd or build the package for v1',
  }
}

function configOf(file: PackageConfigFile): PackageConfig {
  const modes: Partial<Record<Mode, readonly Step[]>> = {}
  for (const stage of stagesWithSteps) {
    for (const mode of [stage, checkOf(stage)] as const) {
      const steps = file.modes[mode]
      if (steps) modes[mode] = steps.map(stepOf)
    }
  }
  return {
    packageName: file.package_name,
    packageVersion: file.package_version,
    expectedConfigFiles: file.expected_config_files,
    modes,
  }
}

function stepOf(step: StepFile): Step {
  return {
    name: step.name,
    path: step.path,
    arguments: step.arguments,
    returncodes: step.returncodes,
    onHost: step.on_host,
    env: step.env ?? {},
    idempotence: step.idempotence ? 'step' : 'agent',
    upgradeStep: step.upgrade_step,
  }
}

/** The rules of config.json that a schema cannot express: rules between steps and modes. */

type PlacedStep = { readonly mode: string; readonly pointer: string; readonly step: StepFile }

/** Errors that make a file unusable although it fits the schema. */
function ruleProblems(file: PackageConfigFile): Problem[] {
  return [...nameProblems(file), ...modeProblems(file), ...placedSteps(file).flatMap(stepProblems)]
}

/** Warnings: it works, but probably not as its author expects. */
function ruleWarnings(file: PackageConfigFile): Problem[] {
  return [
    ...uncheckedSteps(file),
    ...repeatedSteps(file),
    ...placedSteps(file).flatMap(stepWarnings),
    ...interruptWarning(file),
  ]
}

function placedSteps(file: PackageConfigFile): PlacedStep[] {
  return Object.entries(file.modes)
    .filter(([mode]) => mode !== 'interrupt')
    .flatMap(([mode, steps]) =>
      (steps as readonly StepFile[]).map((step, index) => ({ mode, pointer: `/modes/${mode}/${index}`, step })),
    )
}

/** The name is a folder beside these files of the flags folder. */
function nameProblems({ package_name: name }: PackageConfigFile): Problem[] {
  const isReserved = name === 'START' || name === 'check_results' || name.endsWith('_ALL_CHECKED')
  if (!isReserved) return []
  const message = 'is the name of a file in the flags folder; give the package another'
  return [problem('package-name-reserved', '/package_name', message, 'give the package another name', name)]
}

function modeProblems(file: PackageConfigFile): Problem[] {
  const problems: Problem[] = []
  const add = `add steps to one of ${stagesWithSteps.join(', ')}, and to its check`
  if (placedSteps(file).length === 0) problems.push(problem('no-steps', '/modes', 'has no step in any mode', add))
  if (!stagesWithSteps.some((stage) => Object.hasOwn(file.modes, stage))) {
    const message = `has none of ${stagesWithSteps.join(', ')}: checks alone do nothing`
    problems.push(problem('no-stage', '/modes', message, add))
  }
  for (const stage of stagesWithSteps) {
    if (!file.modes[stage]?.length || file.modes[checkOf(stage)]?.length) continue
    const message = `has no step although ${stage} has: a stage is complete when its checks passed`
    const remedy = `add a step to ${stage}-check that fails until the work of ${stage} is visible on the host`
    problems.push(problem('stage-without-check', `/modes/${stage}-check`, message, remedy))
  }
  return problems
}

function stepProblems({ mode, pointer, step }: PlacedStep): Problem[] {
  const problems: Problem[] = []
  if (step.upgrade_step && mode !== 'upgrade' && mode !== 'upgrade-check') {
    const message = `can be true in upgrade and upgrade-check only, not in ${mode}`
    problems.push(problem('upgrade-step-mode', `${pointer}/upgrade_step`, message, 'write false'))
  }
  if (step.upgrade_step && step.arguments.length > 0) {
    const message = 'must be empty with upgrade_step: the two versions are its arguments'
    const remedy = 'write [], and read the two versions from the arguments'
    problems.push(problem('upgrade-step-arguments', `${pointer}/arguments`, message, remedy, step.arguments))
  }
  for (const [index, argument] of step.arguments.entries()) {
    const why = environmentTextProblem(argument)
    const remedy = 'pass the text in a file of the package instead'
    if (why) problems.push(problem('argument-text', `${pointer}/arguments/${index}`, why, remedy, argument))
  }
  for (const [name, value] of Object.entries(step.env ?? {})) {
    const why = environmentNameProblem(name) ?? environmentTextProblem(value, name)
    const remedy = 'rename the variable, or pass its text in a file of the package'
    if (why) problems.push(problem('variable', `${pointer}/env/${pointerSegment(name)}`, why, remedy))
  }
  return problems
}

/**
 * A step counts as checked when the stage's check mode runs the same script, or its sibling `x_check.sh`. The operator
 * warns unless the sibling exists, which every package with one script for all modes triggers.
 */
function uncheckedSteps(file: PackageConfigFile): Problem[] {
  return stagesWithSteps.flatMap((stage) => {
    const checks = new Set((file.modes[checkOf(stage)] ?? []).map(({ path }) => path))
    return (file.modes[stage] ?? []).flatMap(({ path }, index) => {
      const sibling = checkSibling(path)
      if (checks.has(path) || checks.has(sibling)) return []
      const message = `has no check of its own in ${stage}-check (${sibling} is the usual name)`
      const remedy = `add a step to ${stage}-check that looks for what ${path} does`
      return [problem('step-without-check', `/modes/${stage}/${index}/path`, message, remedy, path)]
    })
  })
}

/** `dir.d/run.sh` → `dir.d/run_check.sh`; without an extension `_check` is appended. */
function checkSibling(path: string): string {
  const dot = path.lastIndexOf('.')
  const hasExtension = dot > path.lastIndexOf('/') + 1
  return hasExtension ? `${path.slice(0, dot)}_check${path.slice(dot)}` : `${path}_check`
}

/** Of two equal steps with idempotence false, the second finds the flag of the first and never runs. */
function repeatedSteps(file: PackageConfigFile): Problem[] {
  return (['apply', 'post-interrupt'] as const).flatMap((mode) => {
    const identities = new Set<string>()
    return (file.modes[mode] ?? []).flatMap((step, index) => {
      const identity = JSON.stringify([step.path, step.arguments, step.returncodes])
      const isRepeated = !step.idempotence && identities.has(identity)
      identities.add(identity)
      const message = 'is the same as an earlier step and, with idempotence false, never runs'
      const remedy = 'remove it, give it other arguments, or set idempotence to true'
      return isRepeated ? [problem('step-repeated', `/modes/${mode}/${index}`, message, remedy)] : []
    })
  })
}

function stepWarnings({ pointer, step }: PlacedStep): Problem[] {
  const warnings: Problem[] = []
  const invalidCodes = step.returncodes.filter((code) => code < 0 || code > 255)
  if (invalidCodes.length > 0) {
    const message = 'has codes that no process can exit with (0 to 255)'
    warnings.push(problem('exit-code', `${pointer}/returncodes`, message, 'write codes from 0 to 255', invalidCodes))
  }
  if (!step.on_host) {
    const message = 'false has no effect: steps always run on the host'
    warnings.push(problem('on-host', `${pointer}/on_host`, message, 'write true'))
  }
  return warnings
}

function interruptWarning(file: PackageConfigFile): Problem[] {
  if (!file.modes.interrupt?.length) return []
  const message = 'never runs: the Skyhook defines what interrupts the node'
  return [problem('interrupt-mode', '/modes/interrupt', message, 'remove it, and set interrupt in the Skyhook')]
}

const problem = (rule: string, pointer: string, message: string, remedy: string, value?: unknown): Problem => ({
  pointer,
  message,
  rule,
  remedy,
  ...(value !== undefined && { value }),
})
