import { isNotFound } from '../../kube/errors.ts'
import { messageOf } from '../../schemas/json.ts'
import type { Context, OutputFormat } from '../framework/command.ts'
import { describeError, exitCodeOf, exitCodes, type ExitCode } from '../framework/command-error.ts'
import { print } from '../output/print.ts'
import { editObject, type Edit, type Editable } from './edit.ts'

/** One object and its change. */
export type Change = {
  readonly kind: 'Skyhook' | 'Node'
  readonly name: string
  readonly path: string
  readonly edit: (object: Editable) => Edit | undefined
  /** The result, such as `paused`. If there was nothing to do, it is `already paused`. */
  readonly done: string
  /** Instead of an error if the object does not exist. */
  readonly notFound?: () => Error
}

/** Formats of every command that changes something. */
export const changeFormats = ['table', 'json', 'yaml', 'name'] as const satisfies readonly OutputFormat[]

/** So many objects at once: fast for a large fleet, little for an API server. */
const maxConcurrency = 8

type Result = {
  readonly kind: Change['kind']
  readonly name: string
  readonly result: 'changed' | 'unchanged' | 'failed'
  readonly message: string
}

/**
 * Makes all changes independently: one that fails does not block the others. Prints the result of each; failures are on
 * stderr. Returns `ok` only if none failed. Stops between two changes when the user interrupts.
 */
export async function applyChanges(context: Context, changes: readonly Change[]): Promise<ExitCode> {
  const { transport } = await context.connect()
  const results: Result[] = []
  const errors: unknown[] = []
  const queue = changes.entries()
  const work = async (): Promise<void> => {
    for (const [index, change] of queue) {
      if (context.signal.aborted) return
      results[index] = await applyOne(
        change,
        async () => await editObject(transport, change.path, change.edit, context),
        // after an interrupt the user knows why the last requests failed
        (error) => void (context.signal.aborted || errors.push(error)),
      )
    }
  }
  await Promise.all(Array.from({ length: Math.min(maxConcurrency, changes.length) }, work))

  const made = results.filter((one) => one.result !== 'failed')
  const suffix = { none: '', client: ' (dry run)', server: ' (server dry run)' }[context.dryRun]
  await print(context, {
    rows: made,
    lines: ({ kind, name, message }) => `${kind.toLowerCase()}/${name} ${message}${suffix}`,
    nameOf: ({ kind, name }) => (kind === 'Skyhook' ? `skyhook.skyhook.nvidia.com/${name}` : `node/${name}`),
    document: {
      apiVersion: 'cli.skyhookd/v1',
      kind: 'ChangeList',
      dryRun: context.dryRun,
      items: results.filter(Boolean),
    },
  })
  for (const error of errors) context.stderr.write(`${describeError(error)}\n`)
  if (context.signal.aborted) {
    context.stderr.write(`interrupted: ${made.length} of ${changes.length} done\n`)
    return exitCodes.interrupted
  }
  if (errors.length === 0) return exitCodes.ok
  return changes.length === 1 ? exitCodeOf(errors[0]) : exitCodes.failed
}

async function applyOne(
  { kind, name, done, notFound }: Change,
  apply: () => Promise<'changed' | 'unchanged'>,
  onError: (error: unknown) => void,
): Promise<Result> {
  try {
    const result = await apply()
    return { kind, name, result, message: result === 'changed' ? done : `already ${done}` }
  } catch (caught) {
    const error = isNotFound(caught) && notFound ? notFound() : caught
    onError(error)
    return { kind, name, result: 'failed', message: messageOf(error) }
  }
}
