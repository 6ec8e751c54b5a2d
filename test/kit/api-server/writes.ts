/** Creations, updates, patches and deletions. */
import type { Clock, Random } from '../../../src/schemas/clock.ts'
import { formatTime } from '../../../src/schemas/time.ts'
import { adopt, fieldsOf, isEqual, isFields, without } from './json.ts'
import { applyPatch } from './patches.ts'
import * as refuse from './refusals.ts'
import { keyOf, type Location, type Resource, resourceNamed } from './resources.ts'
import type { Store } from './store.ts'
import { prepareCreation, prepareUpdate, type Schemas } from './strategies.ts'
import type { SimMeta, SimObject, Version } from './versions.ts'

export type WriteContext = {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly schemas: Schemas
  /** Refuses what an admission policy forbids, by throwing a Refusal. */
  readonly admit: (object: SimObject, previous: SimObject | undefined, location: Location) => void
}

/** `name` is absent for a creation, whose name is in the body. */
export type Target = Location & { readonly name: string }

export function createObject(context: WriteContext, location: Location, body: unknown): Version {
  const { store, random } = context
  const { resource, namespace } = location
  const object = objectFrom(resource, namespace, body)
  const { generateName, resourceVersion } = object.metadata
  const name = object.metadata.name || (generateName === undefined ? '' : `${generateName}${nameSuffix(random)}`)
  if (name === '') {
    const message = 'Required value: name or generateName is required'
    throw refuse.invalid(resource, '', [{ reason: 'FieldValueRequired', message, field: 'metadata.name' }], 'kind')
  }
  if (resource.isNamespaced && store.get(resourceNamed('namespaces'), namespace) === undefined)
    throw refuse.notFound(resourceNamed('namespaces'), namespace)
  if (resourceVersion !== undefined && resourceVersion !== '')
    throw new refuse.Refusal(500, 'resourceVersion should not be set on objects to be created')
  const existing = store.get(resource, keyOf(namespace, name))
  if (existing !== undefined)
    throw refuse.alreadyExists(resource, name, existing.object.metadata.deletionTimestamp !== undefined)
  return insert(context, { ...location, name }, object)
}

function insert(context: WriteContext, target: Target, object: SimObject): Version {
  const { store, clock, random, schemas, admit } = context
  const { resource, namespace, name } = target
  const { metadata, ...rest } = prepareCreation(resource, object, schemas)
  const given = without(metadata, 'resourceVersion', 'deletionTimestamp', 'deletionGracePeriodSeconds')
  const created = {
    ...rest,
    metadata: {
      ...given,
      name,
      ...(resource.isNamespaced && { namespace }),
      uid: uuidFrom(random),
      creationTimestamp: formatTime(clock.wallMs()),
    },
  } as unknown as SimObject
  refuseLargeAnnotations(resource, created.metadata)
  admit(created, undefined, target)
  return store.commit(resource, keyOf(namespace, name), created).version
}

export function replaceObject(
  context: WriteContext,
  target: Target,
  body: unknown,
  manager: string,
): { readonly version: Version; readonly isNew: boolean } {
  const { store } = context
  const { resource, namespace, name } = target
  const object = objectFrom(resource, namespace, body)
  if (object.metadata.name !== name) {
    throw refuse.badRequest(
      `the name of the object (${object.metadata.name}) does not match the name on the URL (${name})`,
    )
  }
  const current = store.get(resource, keyOf(namespace, name))
  if (current === undefined && (!resource.createsOnUpdate || target.subresource !== undefined))
    throw refuse.notFound(resource, name)
  const { uid, resourceVersion }: Partial<SimMeta> = object.metadata
  const currentUid = current?.object.metadata.uid ?? ''
  if (uid !== undefined && uid !== '' && uid !== currentUid) {
    const storageKey = `/registry/${resource.storageFolder}/${keyOf(namespace, name)}`
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${currentUid}`
    throw refuse.conflict(
      resource,
      name,
      `StorageError: invalid object, Code: 4, Key: ${storageKey}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`,
    )
  }
  if (current === undefined) return { version: insert(context, target, object), isNew: true }
  const isUnconditional = resourceVersion === undefined || resourceVersion === ''
  if (isUnconditional && !resource.isOverwritable) {
    const message = 'Invalid value: 0: must be specified for an update'
    const cause = { reason: 'FieldValueInvalid', message, field: 'metadata.resourceVersion' }
    throw refuse.invalid(resource, name, [cause], 'plural')
  }
  if (!isUnconditional && resourceVersion !== current.object.metadata.resourceVersion)
    throw refuse.modified(resource, name)
  return { version: update(context, target, current, object, manager), isNew: false }
}

export function patchObject(
  context: WriteContext,
  target: Target,
  patch: unknown,
  contentType: string,
  manager: string,
): Version {
  const { resource, namespace, name } = target
  const current = context.store.get(resource, keyOf(namespace, name))
  if (current === undefined) throw refuse.notFound(resource, name)
  const patched = applyPatch(resource, contentType, current.object, patch) as SimObject
  const { uid, resourceVersion } = current.object.metadata
  if (patched.metadata.resourceVersion !== resourceVersion) throw refuse.modified(resource, name)
  if (patched.metadata.uid !== uid) {
    const message = `Invalid value: "${patched.metadata.uid}": field is immutable`
    const cause = { reason: 'FieldValueInvalid', message, field: 'metadata.uid' }
    throw refuse.invalid(resource, name, [cause, cause], 'kind')
  }
  return update(context, target, current, patched, manager)
}

function update(context: WriteContext, target: Target, current: Version, sent: SimObject, manager: string): Version {
  const { store, schemas, admit } = context
  const { resource, namespace, name, subresource } = target
  const isStatus = subresource === 'status' ? 'status' : undefined
  const next = prepareUpdate(resource, current.object, sent, isStatus, schemas)
  refuseNewFinalizers(resource, current.object.metadata, next.metadata)
  refuseLargeAnnotations(resource, next.metadata, isStatus)
  if (isEqual(next, current.object)) return current
  admit(next, current.object, target)
  const key = keyOf(namespace, name)
  const isReleased = next.metadata.deletionTimestamp !== undefined && next.metadata.deletionGracePeriodSeconds === 0
  if (isReleased && (next.metadata.finalizers ?? []).length === 0) {
    store.commit(resource, key, undefined)
    return { ...current, object: adopt(next), made: { lines: new Map() } } // answered, but never stored
  }
  return store.commit(resource, key, next, cordonManagerOf(current, next, manager)).version
}

function cordonManagerOf(current: Version, next: SimObject, manager: string): string | undefined {
  if (next.kind !== 'Node' || fieldsOf(next['spec'])['unschedulable'] !== true) return undefined
  const wasCordoned = fieldsOf(current.object['spec'])['unschedulable'] === true
  return wasCordoned ? current.cordonManager : manager
}

function refuseNewFinalizers(resource: Resource, before: SimMeta, after: SimMeta): void {
  if (before.deletionTimestamp === undefined) return
  const added = (after.finalizers ?? []).filter((one) => before.finalizers?.includes(one) !== true)
  if (added.length === 0) return
  const list = added.map((one) => `"${one}"`).join(', ')
  const why = 'no new finalizers can be added if the object is being deleted, found new finalizers'
  const message = `Forbidden: ${why} []string{${list}}`
  const cause = { reason: 'FieldValueForbidden', message, field: 'metadata.finalizers' }
  throw refuse.invalid(resource, before.name, [cause, cause], 'kind')
}

/** Keys and values together. */
const maxAnnotationBytes = 256 * 1024

/** As often as the real server looks at them: at a Node once more than at its status. */
function refuseLargeAnnotations(resource: Resource, { name, annotations = {} }: SimMeta, isStatus?: 'status'): void {
  const bytes = Object.entries(annotations)
    .flat()
    .reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes <= maxAnnotationBytes) return
  const message = `Too long: may not be more than ${maxAnnotationBytes} bytes`
  const cause = { reason: 'FieldValueTooLong', message, field: 'metadata.annotations' }
  throw refuse.invalid(
    resource,
    name,
    Array.from({ length: isStatus ? 3 : 4 }, () => cause),
    'kind',
  )
}

export type DeleteOptions = {
  readonly gracePeriodSeconds?: number
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
}

/** The object as it was last, where the real server answers with it; undefined where it answers `Success`. */
export function deleteObject(context: WriteContext, target: Target, body: unknown): Version | undefined {
  const { store, clock } = context
  const { resource, namespace, name } = target
  if (resource.plural === 'namespaces') throw new Error('the simulated API server deletes no namespaces')
  const key = keyOf(namespace, name)
  const current = store.get(resource, key)
  if (current === undefined) throw refuse.notFound(resource, name)
  const { gracePeriodSeconds, preconditions = {} } = fieldsOf(body) as DeleteOptions
  refuseFailedPreconditions(resource, current.object, preconditions)
  const { deletionTimestamp, finalizers = [], generation } = current.object.metadata
  const isPod = resource.plural === 'pods'
  const graceSeconds = isPod ? graceOf(current.object, gracePeriodSeconds) : 0
  let last = current
  if (isPod || finalizers.length > 0) {
    const startedMs = Date.parse(deletionTimestamp ?? formatTime(clock.wallMs()))
    const formerGraceSeconds = current.object.metadata.deletionGracePeriodSeconds ?? 0
    const isShorter = deletionTimestamp !== undefined && graceSeconds < formerGraceSeconds
    if (deletionTimestamp === undefined || isShorter) {
      const metadata = {
        ...current.object.metadata,
        deletionTimestamp: formatTime(startedMs + (graceSeconds - formerGraceSeconds) * 1000),
        deletionGracePeriodSeconds: graceSeconds,
        ...(generation !== undefined && generation > 0 && !isShorter && { generation: generation + 1 }),
      }
      last = store.commit(resource, key, { ...current.object, metadata }, current.cordonManager).version
    }
    const isWaiting = (last.object.metadata.deletionGracePeriodSeconds ?? 0) > 0 || finalizers.length > 0
    if (isWaiting) return last
  }
  const { version } = store.commit(resource, key, undefined)
  return isPod ? version : undefined
}

/** Seconds until the containers are killed; a pod that is being deleted keeps its time unless a shorter one is asked. */
function graceOf(pod: SimObject, asked: number | undefined): number {
  const spec = fieldsOf(pod['spec'])
  const phase = fieldsOf(pod['status'])['phase']
  if (spec['nodeName'] === undefined || phase === 'Succeeded' || phase === 'Failed') return 0
  const { deletionGracePeriodSeconds } = pod.metadata
  return asked ?? deletionGracePeriodSeconds ?? Number(spec['terminationGracePeriodSeconds'] ?? 30)
}

export function refuseFailedPreconditions(
  resource: Resource,
  { metadata }: SimObject,
  { uid, resourceVersion }: NonNullable<DeleteOptions['preconditions']>,
): void {
  const differs = (what: string, asked: string, found: string): string =>
    `the ${what} in the precondition (${asked}) does not match the ${what} in record (${found}).`
  if (uid !== undefined && uid !== metadata.uid) {
    const why = `${differs('UID', uid, metadata.uid)} The object might have been deleted and then recreated`
    throw refuse.deletionConflict(resource, metadata.name, why)
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    const found = differs('ResourceVersion', resourceVersion, metadata.resourceVersion)
    throw refuse.deletionConflict(resource, metadata.name, `${found} The object might have been modified`)
  }
}

function objectFrom(resource: Resource, namespace: string, body: unknown): SimObject {
  if (!isFields(body)) throw refuse.badRequest('the body of the request is not an object')
  const { apiVersion, kind, metadata } = body
  if ((apiVersion ?? resource.apiVersion) !== resource.apiVersion || (kind ?? resource.kind) !== resource.kind)
    throw refuse.badRequest(`${String(apiVersion)}, Kind=${String(kind)} is not ${resource.kind}`)
  const meta = fieldsOf(metadata) as Partial<SimMeta>
  if (resource.isNamespaced && meta.namespace !== undefined && meta.namespace !== namespace) {
    throw refuse.badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  return { ...body, apiVersion: resource.apiVersion, kind: resource.kind, metadata: { name: '', ...meta } as SimMeta }
}

const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789'
const nameSuffix = (random: Random): string =>
  Array.from({ length: 5 }, () => suffixLetters[Math.floor(random.number() * suffixLetters.length)]).join('')

function uuidFrom(random: Random): string {
  const digits = random.hex(16)
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(13, 16)}`,
    `8${digits.slice(17, 20)}`,
    digits.slice(20),
  ].join('-')
}
