/**
 * Changes of single objects that race with agents and other people: a JSON Patch that tests its inputs. It is computed
 * and sent again when a test fails.
 */
import { backoffMs } from '../../schemas/backoff.ts'
import { sleep } from '../../schemas/clock.ts'
import { ApiError, isConflict, isInvalid, isTransient } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { ObjectMeta } from '../../schemas/kubernetes.ts'
import type { Context } from '../framework/command.ts'

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

export type Operation =
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
export async function editObject(
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
export function operationsOf({ metadata, spec = {} }: Editable, edit: Edit): readonly Operation[] {
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
