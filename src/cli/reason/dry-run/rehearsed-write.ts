/**
 * The state of one object after an apply or a delete, and the fields that differ, from a dry run of the API server. If
 * the user may not write, this tool checks the object by the same rules.
 */
import { ApiError } from '../../../kube/errors.ts'
import { getIfExists } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { apiGroup } from '../../../schemas/api.ts'
import { isEqual, isObject, type JsonObject, parseJson } from '../../../schemas/json.ts'
import { clip } from '../../../schemas/plain-text.ts'
import { UnreadError } from '../../fleet/fleet-view/readable.ts'
import { applyPatch, lastAppliedKey, merged } from '../plan/three-way-merge.ts'
import { definitions, resourceFindings } from '../../validate/resource.ts'
import { withDefaults } from '../../validate/structural.ts'
import { collections, type Manifest } from './manifests.ts'

export type RehearsedWrite = {
  readonly kind: Manifest['kind']
  readonly name: string
  readonly change: 'created' | 'changed' | 'unchanged' | 'deleted'
  readonly fields: readonly FieldChange[]
  readonly admission: Admission
  /** The current object; undefined if there is none. */
  readonly before: JsonObject | undefined
  /** The object afterwards; undefined if it would be deleted or refused. */
  readonly after: JsonObject | undefined
}

export type Admission = {
  /** `server`: by a dry run. `tool`: by the rules of the resource definition in this tool. */
  readonly checkedBy: 'server' | 'tool' | 'nobody'
  /** Why the server did not check it. */
  readonly why?: string
  readonly refusals: readonly string[]
  /** Content that would be accepted, but is probably a mistake. */
  readonly warnings: readonly string[]
}

export type Surroundings = {
  readonly transport: KubeTransport
  readonly signal: AbortSignal
  /** ISO 8601, for the deletionTimestamp. */
  readonly now: string
}

/** Rehearses `kubectl apply`. Throws if the API server does not answer or refuses the read. */
export async function rehearseApply({ kind, name, object }: Manifest, around: Surroundings): Promise<RehearsedWrite> {
  const path = `${collections[kind]}/${name}`
  const before = await getIfExists<JsonObject>(around.transport, path, { signal: around.signal })
  const patch = before && applyPatch(lastAppliedOf(before), object, before)
  const local =
    before === undefined ? withDefaultsOf(object) : nextGeneration(merged(before, patch) as JsonObject, before)
  const { refusals, warnings } = judged(local)
  const isUnchanged = patch !== undefined && Object.keys(patch).length === 0
  if (isUnchanged) {
    const admission: Admission = { checkedBy: 'nobody', why: 'nothing would be sent', refusals, warnings }
    return { kind, name, change: 'unchanged', fields: [], admission, before, after: before }
  }
  const answer = await asked(around, { kind, name, verb: before === undefined ? 'create' : 'patch' }, async (query) =>
    before === undefined
      ? await around.transport.json<JsonObject>('POST', collections[kind], {
          body: object,
          query,
          signal: around.signal,
        })
      : await around.transport.json<JsonObject>('PATCH', path, {
          body: patch,
          query,
          signal: around.signal,
          contentType: 'application/merge-patch+json',
        }),
  )
  const after = answer.object ?? local
  const admission = admissionOf(answer, { refusals, warnings })
  // for a new object, the file has all changes: defaults of the API server are not changes
  const fields = fieldChanges(before, before === undefined ? object : after)
  const change = before === undefined ? 'created' : 'changed'
  return { kind, name, change, fields, admission, before, after: admission.refusals.length > 0 ? undefined : after }
}

/** Rehearses `kubectl delete`. */
export async function rehearseDelete({ kind, name }: Manifest, around: Surroundings): Promise<RehearsedWrite> {
  const { transport, signal, now } = around
  const path = `${collections[kind]}/${name}`
  const before = await getIfExists<JsonObject>(transport, path, { signal })
  if (before === undefined) {
    const admission: Admission = { checkedBy: 'nobody', why: 'it does not exist', refusals: [], warnings: [] }
    return { kind, name, change: 'unchanged', fields: [], admission, before, after: undefined }
  }
  const answer = await asked(around, { kind, name, verb: 'delete' }, async (query) => {
    await transport.json('DELETE', path, { query, signal })
    return undefined
  })
  const metadata = isObject(before['metadata']) ? before['metadata'] : {}
  const { finalizers } = metadata
  const stays = Array.isArray(finalizers) && finalizers.length > 0
  const after = stays
    ? nextGeneration(
        { ...before, metadata: { ...metadata, deletionTimestamp: metadata['deletionTimestamp'] ?? now } },
        before,
      )
    : undefined
  const admission = admissionOf(answer, { refusals: [], warnings: [] })
  return { kind, name, change: 'deleted', fields: [], admission, before, after }
}

type Answer =
  | { readonly outcome: 'taken'; readonly object: JsonObject | undefined }
  | { readonly outcome: 'refused'; readonly message: string; readonly object?: undefined }
  | { readonly outcome: 'not asked'; readonly why: string; readonly object?: undefined }

type Write = { readonly kind: Manifest['kind']; readonly name: string; readonly verb: 'create' | 'patch' | 'delete' }

async function asked(
  around: Surroundings,
  write: Write,
  send: (query: { readonly dryRun: 'All' }) => Promise<JsonObject | undefined>,
): Promise<Answer> {
  try {
    return { outcome: 'taken', object: await send({ dryRun: 'All' }) }
  } catch (error) {
    if (error instanceof UnreadError) return { outcome: 'not asked', why: error.message }
    if (!(error instanceof ApiError) || error.status >= 500 || error.status === 401 || error.status === 429) throw error
    // a missing right and a policy that refuses have the same status code
    if (error.status === 403 && !(await mayWrite(around, write)))
      return { outcome: 'not asked', why: `you may not ${write.verb} ${collectionOf(write)}` }
    return { outcome: 'refused', message: error.message }
  }
}

const collectionOf = ({ kind }: Write): string => collections[kind].split('/').at(-1) ?? ''

async function mayWrite({ transport, signal }: Surroundings, write: Write): Promise<boolean> {
  const resourceAttributes = { group: apiGroup, resource: collectionOf(write), verb: write.verb, name: write.name }
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } }
  try {
    const { status } = await transport.json<{ status?: { allowed?: boolean } }>('POST', path, { body, signal })
    return status?.allowed === true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

function admissionOf(answer: Answer, local: Pick<Admission, 'refusals' | 'warnings'>): Admission {
  switch (answer.outcome) {
    case 'taken':
      return { checkedBy: 'server', ...local }
    case 'refused':
      return { checkedBy: 'server', refusals: [answer.message], warnings: [] }
    case 'not asked':
      return { checkedBy: 'tool', why: answer.why, ...local }
  }
}

/** Checks the rules of the resource definition, and content that the API server accepts but agents refuse. */
function judged(object: JsonObject): Pick<Admission, 'refusals' | 'warnings'> {
  const findings = resourceFindings(object)
  const textsOf = (severity: 'error' | 'warning'): string[] =>
    findings
      .filter((finding) => finding.severity === severity)
      .map(({ pointer, message, remedy }) => `${pointer} ${message}${message.endsWith(remedy) ? '' : `; ${remedy}`}`)
  return { refusals: textsOf('error'), warnings: textsOf('warning') }
}

/** The object with the defaults of its resource definition, as the API server stores it. */
export function withDefaultsOf(object: JsonObject): JsonObject {
  const found = definitions.find(
    ({ apiVersion, kind }) => apiVersion === object['apiVersion'] && kind === object['kind'],
  )
  if (found === undefined) return object
  const complete = withDefaults(found.schema, object)
  return isObject(complete) ? complete : object
}

/** Sets the generation as the API server does: a change outside of metadata and status increases it. */
function nextGeneration(after: JsonObject, before: JsonObject): JsonObject {
  const metadata = isObject(after['metadata']) ? after['metadata'] : {}
  const isSame = JSON.stringify(after['spec']) === JSON.stringify(before['spec'])
  const generation = Number(metadata['generation'] ?? 0) + (isSame && !('deletionTimestamp' in metadata) ? 0 : 1)
  return { ...after, metadata: { ...metadata, generation } }
}

function lastAppliedOf({ metadata }: JsonObject): JsonObject | undefined {
  const { annotations } = isObject(metadata) ? metadata : {}
  const text = isObject(annotations) ? annotations[lastAppliedKey] : undefined
  const value = typeof text === 'string' ? parseJson(text) : undefined
  return isObject(value) ? value : undefined
}

type Scalar = string | number | boolean | null

type FieldChange = {
  /** Such as `spec.packages.tuning.version`. */
  readonly field: string
  readonly change: 'added' | 'changed' | 'removed'
  /** Absent for lists and objects, and for what may be confidential: variables and files of packages. */
  readonly before?: Scalar
  readonly after?: Scalar
}

/** In the order of the fields' names. What only the API server, kubectl or agents write is left out. */
export function fieldChanges(before: JsonObject | undefined, after: JsonObject | undefined): readonly FieldChange[] {
  return differences([], partOf(before), partOf(after)).toSorted((a, b) => (a.field < b.field ? -1 : 1))
}

function partOf(object: JsonObject | undefined): JsonObject {
  if (object === undefined) return {}
  const { metadata, spec } = object
  const { labels, annotations } = isObject(metadata) ? metadata : {}
  const shown = {
    ...(isObject(labels) && { labels }),
    ...(isObject(annotations) && { annotations: withoutKubectl(annotations) }),
  }
  return { ...(isObject(spec) && { spec }), ...(Object.keys(shown).length > 0 && { metadata: shown }) }
}

/** kubectl keeps a copy of the file in an annotation. */
const withoutKubectl = (annotations: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => !key.startsWith('kubectl.kubernetes.io/')))

function differences(path: readonly string[], before: JsonObject, after: JsonObject): readonly FieldChange[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return keys.flatMap((key): readonly FieldChange[] => {
    const own = [...path, key]
    const [old, next] = [before[key], after[key]]
    if (isEqual(old, next)) return []
    if (isObject(old) || isObject(next)) {
      const inside = differences(own, isObject(old) ? old : {}, isObject(next) ? next : {})
      if (inside.length > 0 || own[0] === 'metadata') return inside
    }
    const change = old === undefined ? 'added' : next === undefined ? 'removed' : 'changed'
    const isShown = !isConfidential(own)
    const values = { ...shown('before', old), ...shown('after', next) }
    return [{ field: fieldOf(own), change, ...(isShown && values) }]
  })
}

const plainName = /^[A-Za-z0-9_-]+$/
const fieldOf = ([first = '', ...rest]: readonly string[]): string =>
  rest.reduce((field, name) => (plainName.test(name) ? `${field}.${name}` : `${field}[${JSON.stringify(name)}]`), first)

/** Values there may be passwords; a pull request shows what is printed here to many. */
const isConfidential = ([root, packages, , field]: readonly string[]): boolean =>
  root === 'spec' && packages === 'packages' && (field === 'env' || field === 'configMap')

const maxShown = 81

function shown(name: 'before' | 'after', value: unknown): { readonly [K in typeof name]?: Scalar } {
  if (value === undefined || (typeof value === 'object' && value !== null)) return {}
  return { [name]: typeof value === 'string' ? clip(value, maxShown) : (value as Scalar) }
}
