/** The rules of config.json that a schema cannot say: what steps and modes mean to one another. */
import { environmentNameProblem, environmentTextProblem } from './environment-variable.ts'
import { checkOf, stagesWithSteps, type PackageConfigFile, type StepFile } from './package-config.ts'
import { pointerSegment, type Problem } from './validation.ts'

type PlacedStep = { readonly mode: string; readonly pointer: string; readonly step: StepFile }

/** What makes a file that fits the schema unusable all the same. */
export function ruleProblems(file: PackageConfigFile): Problem[] {
  return [...nameProblems(file), ...modeProblems(file), ...placedSteps(file).flatMap(stepProblems)]
}

/** What works, but probably not as its author thinks. */
export function ruleWarnings(file: PackageConfigFile): Problem[] {
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
function nameProblems(file: PackageConfigFile): Problem[] {
  const value = file.package_name
  const isReserved = value === 'START' || value === 'check_results' || value.endsWith('_ALL_CHECKED')
  return isReserved
    ? [
        {
          pointer: '/package_name',
          message: 'is the name of a file in the flags folder; give the package another',
          value,
        },
      ]
    : []
}

function modeProblems(file: PackageConfigFile): Problem[] {
  const problems: Problem[] = []
  if (placedSteps(file).length === 0) problems.push({ pointer: '/modes', message: 'has no step in any mode' })
  if (!stagesWithSteps.some((stage) => stage in file.modes)) {
    problems.push({ pointer: '/modes', message: `has none of ${stagesWithSteps.join(', ')}: checks alone do nothing` })
  }
  for (const stage of stagesWithSteps) {
    const hasSteps = (file.modes[stage]?.length ?? 0) > 0
    const hasChecks = (file.modes[checkOf(stage)]?.length ?? 0) > 0
    if (hasSteps && !hasChecks) {
      problems.push({
        pointer: `/modes/${stage}-check`,
        message: `has no step although ${stage} has: a stage is complete when its checks passed`,
      })
    }
  }
  return problems
}

function stepProblems({ mode, pointer, step }: PlacedStep): Problem[] {
  const problems: Problem[] = []
  if (step.upgrade_step && mode !== 'upgrade' && mode !== 'upgrade-check') {
    problems.push({
      pointer: `${pointer}/upgrade_step`,
      message: `can be true in upgrade and upgrade-check only, not in ${mode}`,
    })
  }
  if (step.upgrade_step && step.arguments.length > 0) {
    problems.push({
      pointer: `${pointer}/arguments`,
      message: 'must be empty with upgrade_step: the two versions are its arguments',
      value: step.arguments,
    })
  }
  for (const [index, argument] of step.arguments.entries()) {
    const why = environmentTextProblem(argument)
    if (why) problems.push({ pointer: `${pointer}/arguments/${index}`, message: why, value: argument })
  }
  for (const [name, value] of Object.entries(step.env ?? {})) {
    const why = environmentNameProblem(name) ?? environmentTextProblem(value, name)
    if (why) problems.push({ pointer: `${pointer}/env/${pointerSegment(name)}`, message: why })
  }
  return problems
}

/**
 * A step counts as checked when the stage's check mode runs the same script, or its sibling `x_check.sh`. The operator
 * warns unless the sibling exists, which every package with one script for all modes triggers.
 */
function uncheckedSteps(file: PackageConfigFile): Problem[] {
  return stagesWithSteps.flatMap((stage) => {
    const checks = new Set((file.modes[checkOf(stage)] ?? []).map((step) => step.path))
    return (file.modes[stage] ?? []).flatMap((step, index) => {
      const sibling = checkSibling(step.path)
      if (checks.has(step.path) || checks.has(sibling)) return []
      return [
        {
          pointer: `/modes/${stage}/${index}/path`,
          message: `has no check of its own in ${stage}-check (${sibling} is the usual name)`,
          value: step.path,
        },
      ]
    })
  })
}

/** `dir.d/run.sh` → `dir.d/run_check.sh`; without an extension `_check` is appended. */
function checkSibling(path: string): string {
  const file = path.slice(path.lastIndexOf('/') + 1)
  const dot = file.lastIndexOf('.')
  if (dot <= 0) return `${path}_check`
  const stemLength = path.length - file.length + dot
  return `${path.slice(0, stemLength)}_check${path.slice(stemLength)}`
}

/** Of two equal steps under the agent's care the second finds the first's flag and never runs. */
function repeatedSteps(file: PackageConfigFile): Problem[] {
  return (['apply', 'post-interrupt'] as const).flatMap((mode) => {
    const identities = new Set<string>()
    return (file.modes[mode] ?? []).flatMap((step, index) => {
      const identity = JSON.stringify([step.path, step.arguments, step.returncodes])
      if (step.idempotence || !identities.has(identity)) {
        identities.add(identity)
        return []
      }
      return [
        {
          pointer: `/modes/${mode}/${index}`,
          message: 'is the same as an earlier step and, with idempotence false, never runs',
        },
      ]
    })
  })
}

function stepWarnings({ pointer, step }: PlacedStep): Problem[] {
  const warnings: Problem[] = []
  const invalidCodes = step.returncodes.filter((code) => code < 0 || code > 255)
  if (invalidCodes.length > 0)
    warnings.push({
      pointer: `${pointer}/returncodes`,
      message: 'has codes that no process can exit with (0 to 255)',
      value: invalidCodes,
    })
  if (!step.on_host)
    warnings.push({ pointer: `${pointer}/on_host`, message: 'false has no effect: steps always run on the host' })
  return warnings
}

function interruptWarning(file: PackageConfigFile): Problem[] {
  if ((file.modes.interrupt?.length ?? 0) === 0) return []
  return [{ pointer: '/modes/interrupt', message: 'never runs: the Skyhook defines what interrupts the node' }]
}
