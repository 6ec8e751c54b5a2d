/** What `package run` is told by its flags. Pure. */
import { environmentNameProblem, environmentTextProblem } from '../../../schemas/environment-variable.ts'
import type { Variable } from '../../../packages/step/references.ts'
import type { Interrupt } from '../../../schemas/skyhook.ts'
import { usageError } from '../../framework/command-error.ts'

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

/** The pieces of `KEY=FILE`. @throws CommandError */
export function configFilesOf(pieces: readonly string[]): readonly (readonly [key: string, file: string])[] {
  return pieces.map((piece) => {
    const at = piece.indexOf('=')
    if (at < 1 || at === piece.length - 1)
      throw usageError(`--config ${piece} names no key and file`, 'write --config KEY=FILE')
    return [piece.slice(0, at), piece.slice(at + 1)]
  })
}

/** Commas separate variables only where another one begins: values may have them. @throws CommandError */
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

/** @throws CommandError where the package expects keys of configMap that nobody gave */
export function requireConfig(expected: readonly string[], given: readonly string[]): void {
  const missing = expected.filter((name) => !given.includes(name))
  if (missing.length === 0) return
  const remedy = missing.map((name) => `--config ${name}=FILE`).join(' ')
  throw usageError(`the package expects ${missing.join(', ')} in configMap`, `add ${remedy}`)
}
