/**
 * Changes of single objects that race with agents and other people: a JSON Patch that tests its inputs. It is computed
 * and sent again when a test fails.
 */
import { backoffMs } from '../../../schemas/backoff.ts'
import { sleep } from '../../../schemas/clock.ts'
import { ApiError, isConflict, isInvalid, isTransient, isNotFound } from '../../../kube/errors.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import type { ObjectMeta } from '../../../schemas/kubernetes.ts'
import type { Context, OutputFormat } from '../../base/framework/command.ts'
import { messageOf, isObject, parseObject } from '../../../schemas/json.ts'
import { describeError, exitCodeOf, exitCodes, type ExitCode } from '../../base/framework/command-error.ts'
import { print } from '../../base/output/print.ts'
import { nodeStateKey } from '../../../schemas/annotations.ts'
import { type PublishedPackage, publishedPackages } from './read.ts'

export type Editable = {
  readonly metadata: ObjectMeta
  readonly spec?: { readonly unschedulable?: boolean }
  readonly status?: { readonly conditions?: readonly { readonly type: string }[] }
}

/** New values; null removes. Absent fields stay as they are. */
export type Edit = {
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly labels?: Readonly<Record<string, string | null>>
  readonly unschedulable?: boolean
  /** All of them, where `path` is that of the status. */
  readonly conditions?: readonly { readonly type: string }[]
}

type Operation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }

type Surroundings = Pick<Context, 'clock' | 'random' | 'signal' | 'dryRun'>

/** Each repetition needs a write of somebody else in between. That many in a row are not chance. */
const maxAttempts = 12
const backoff = { initialMs: 20, maxMs: 1_000, jitter: 0.5 }

/**
 * Reads the object at `path` and changes it by `editOf`, where undefined means that there is nothing to do. Sends
 * nothing in a client's dry run. Returns whether there was anything to change. Throws the errors of the API server,
 * also a 404. A repetition is safe: each is computed from a fresh read.
 */
async function editObject(
  transport: Pick<KubeTransport, 'json'>,
  path: string,
  editOf: (object: Editable) => Edit | undefined,
  { clock, random, signal, dryRun }: Surroundings,
): Promise<'changed' | 'unchanged'> {
  let refused: unknown
  let refusedVersion = ''
  for (let attempt = 1; ; attempt++) {
    try {
      const object = await transport.json<Editable>('GET', path, { signal })
      const operations = operationsOf(object, editOf(object) ?? {})
      if (operations.length === 0) return 'unchanged'
      if (dryRun === 'client') return 'changed'
      // The object is as it was when it was refused: not a race.
      if (refusedVersion === object.metadata.resourceVersion) throw refused
      refusedVersion = object.metadata.resourceVersion
      const query = dryRun === 'server' ? { dryRun: 'All' } : undefined
      await transport.json('PATCH', path, {
        query,
        body: operations,
        contentType: 'application/json-patch+json',
        signal,
      })
      return 'changed'
    } catch (error) {
      const mayRepeat = error !== refused && (isRace(error) || isTransient(error)) && attempt < maxAttempts
      if (!mayRepeat) throw error
      refused = error
      if (!isRace(error)) refusedVersion = ''
      await sleep(clock, backoffMs(attempt, backoff, random.number()), signal)
    }
  }
}

/** The API server answers 422 where a test of the patch failed, and 409 where somebody was faster. */
const isRace = (error: unknown): boolean => error instanceof ApiError && (isConflict(error) || isInvalid(error))

/** A patch that tests its inputs: a change in between refuses it. Empty: the object is as desired. */
function operationsOf({ metadata, spec = {} }: Editable, edit: Edit): readonly Operation[] {
  const { annotations = {}, labels = {}, unschedulable, conditions } = edit
  const changes = [
    ...mapOperations('/metadata/annotations', metadata.annotations, annotations, metadata),
    ...mapOperations('/metadata/labels', metadata.labels, labels, metadata),
    ...(unschedulable === undefined || unschedulable === (spec.unschedulable ?? false)
      ? []
      : [resourceVersionTest(metadata), { op: 'add', path: '/spec/unschedulable', value: unschedulable } as const]),
    ...(conditions === undefined
      ? []
      : [resourceVersionTest(metadata), { op: 'add', path: '/status/conditions', value: conditions } as const]),
  ]
  if (changes.length === 0) return []
  return [{ op: 'test', path: '/metadata/uid', value: metadata.uid }, ...changes]
}

function mapOperations(
  path: string,
  current: Readonly<Record<string, string>> | undefined,
  desired: Readonly<Record<string, string | null>>,
  metadata: ObjectMeta,
): Operation[] {
  const keys = Object.keys(desired).filter((key) => (current?.[key] ?? null) !== desired[key])
  if (keys.length === 0) return []
  const operations = keys.flatMap((key): Operation[] => {
    const keyPath = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    const before = current?.[key]
    const value = desired[key] ?? null
    const tested: Operation[] = before === undefined ? [] : [{ op: 'test', path: keyPath, value: before }]
    return [...tested, value === null ? { op: 'remove', path: keyPath } : { op: 'add', path: keyPath, value }]
  })
  if (current !== undefined) return operations
  // There is no map yet. One that somebody else creates meanwhile must not be replaced.
  return [resourceVersionTest(metadata), { op: 'add', path, value: {} }, ...operations]
}

const resourceVersionTest = ({ resourceVersion }: ObjectMeta): Operation => ({
  op: 'test',
  path: '/metadata/resourceVersion',
  value: resourceVersion,
})

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

/** Whether an entry is the package that a person named as NAME or NAME:VERSION. */
export function isPackage({ name, version }: Pick<PublishedPackage, 'name' | 'version'>, text: string): boolean {
  return text === name || text === `${name}:${version}`
}

type EntryChange = 'keep' | 'remove' | { readonly stage: string }

/**
 * Changes entries of the published state, by which people control an agent. Without its entry a package starts over; at
 * another stage it continues there. Undefined: nothing changes. The annotation itself always stays, because its absence
 * resets the whole Skyhook.
 */
export function editPackages(
  node: Editable,
  skyhook: string,
  changeOf: (entry: PublishedPackage) => EntryChange,
): Edit | undefined {
  const key = nodeStateKey(skyhook)
  const state = parseObject(node.metadata.annotations?.[key])
  const published = publishedPackages(node, skyhook)
  if (state === undefined || published === undefined) return undefined
  let hasChanged = false
  const entries = Object.entries(state).flatMap(([entryKey, entry]) => {
    const known = published.get(entryKey)
    const change = known === undefined ? 'keep' : changeOf(known)
    if (change === 'keep' || !isObject(entry)) return [[entryKey, entry] as const]
    hasChanged = true
    return change === 'remove' ? [] : [[entryKey, { ...entry, stage: change.stage, state: 'in_progress' }] as const]
  })
  return hasChanged ? { annotations: { [key]: JSON.stringify(Object.fromEntries(entries)) } } : undefined
}
