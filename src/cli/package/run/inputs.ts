/** The inputs of `package run`, from its flags. Pure. */
import { environmentNameProblem, environmentTextProblem } from '../../../schemas/environment-variable.ts'
import type { Variable } from '../../../packages/step/references.ts'
import type { PackageConfig } from '../../../schemas/package-config.ts'
import type { Interrupt, StageName } from '../../../schemas/skyhook.ts'
import { type Inputs, missingOnHosts } from '../../../stages/package/spec-problems.ts'
import { usageError } from '../../framework/command-error.ts'
import { type LifeOptions, stagesOf } from './life.ts'

/** @throws CommandError */
export function interruptOf(type: Interrupt['type'] | 'none', services: readonly string[]): Interrupt | undefined {
  if (type === 'service') {
    if (services.length === 0)
      throw usageError('--interrupt service needs to know which', 'name them: --service cron.service')
    return { type, services }
  }
  if (services.length > 0) throw usageError(`--service does not fit --interrupt ${type}`, 'add --interrupt service')
  return type === 'none' ? undefined : { type }
}

/** @throws CommandError where the life has no such stage */
export function requireStage(only: StageName, config: PackageConfig, options: LifeOptions): void {
  const stages = stagesOf(config, options)
  if (stages.includes(only)) return
  const isOfInterrupt = only === 'interrupt' || only === 'post-interrupt'
  if (isOfInterrupt && options.interrupt === undefined)
    throw usageError(`--only ${only} does not fit --interrupt none`, 'say which interrupt the package has')
  if (only === 'apply' && options.previous !== undefined)
    throw usageError('--only apply does not fit --from: an upgrade does not run apply', 'leave out --from')
  throw usageError(
    `${config.packageName} ${config.packageVersion} has no stage ${only}`,
    stages.length === 0 ? 'its config.json names no steps' : `name one that it has: ${stages.join(', ')}`,
  )
}

/** The pieces of `KEY=FILE`. @throws CommandError */
export function configFilesOf(pieces: readonly string[]): readonly (readonly [key: string, file: string])[] {
  return pieces.map((piece) => {
    const at = piece.indexOf('=')
    if (at < 1 || at === piece.length - 1)
      throw usageError(`--config ${piece} names no key and file`, 'write --config KEY=FILE')
    return [piece.slice(0, at), piece.slice(at + 1)]
  })
}

/** A comma separates variables only where another one starts: values may have commas. @throws CommandError */
export function variablesOf(pieces: readonly string[]): Variable[] {
  const variables: Variable[] = []
  for (const piece of pieces) {
    const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(piece) ?? []
    const last = variables.at(-1)
    if (name !== undefined && environmentNameProblem(name) === undefined) variables.push({ name, value })
    else if (last !== undefined) variables[variables.length - 1] = { ...last, value: `${last.value},${piece}` }
    else throw usageError(`--env ${piece} sets no variable`, 'write --env NAME=VALUE')
  }
  for (const { name, value } of variables) {
    const problem = environmentTextProblem(value, name)
    if (problem !== undefined) throw usageError(`the value of --env ${name} ${problem}`)
  }
  return variables
}

/** @throws CommandError where an agent would not start with the package, since nobody gave what it expects */
export function requireInputs(config: PackageConfig, given: Inputs): void {
  const { files, variables } = missingOnHosts(config, given)
  const flags = [...files.map((name) => `--config ${name}=FILE`), ...variables.map((name) => `--env ${name}=VALUE`)]
  if (flags.length === 0) return
  const expected = [
    ...(files.length > 0 ? [`${files.join(', ')} in configMap`] : []),
    ...(variables.length > 0 ? [`${variables.join(', ')} in env`] : []),
  ]
  throw usageError(`the package expects ${expected.join(', and ')}`, `add ${flags.join(' ')}`)
}
