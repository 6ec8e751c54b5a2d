/** What the registries of the real server do to an object before they store it, resource by resource. */
import { type Fields, fieldsOf, isEqual, without } from './json.ts'
import type { Resource } from './resources.ts'
import { applySchema, type Schema } from './schema.ts'
import type { SimMeta, SimObject } from './versions.ts'

export type Schemas = Readonly<Record<string, Schema>>

/** An object that a client sent, in the form in which it would be created; metadata that the server sets come later. */
export function prepareCreation(resource: Resource, sent: SimObject, schemas: Schemas): SimObject {
  const object = created(resource, normalized(resource, sent, schemas), schemas)
  return resource.hasGeneration ? { ...object, metadata: { ...object.metadata, generation: 1 } } : object
}

function created(resource: Resource, object: SimObject, schemas: Schemas): SimObject {
  const spec = fieldsOf(object['spec'])
  switch (resource.plural) {
    case 'nodes': {
      const taints = Array.isArray(spec['taints']) ? (spec['taints'] as Fields[]) : []
      const isTainted = taints.some(({ key }) => key === notReadyTaint.key)
      return { ...object, spec: { ...spec, taints: isTainted ? taints : [...taints, notReadyTaint] } }
    }
    case 'pods':
      return {
        ...object,
        spec: { terminationGracePeriodSeconds: 30, ...spec },
        status: { phase: 'Pending', qosClass: 'BestEffort' },
      }
    case 'poddisruptionbudgets':
      return { ...object, status: { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 } }
    case 'namespaces': {
      const labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name }
      const metadata = { ...object.metadata, labels }
      return { ...object, metadata, spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } }
    }
  }
  // what was sent as status is dropped; a default of the schema shows whenever the object is read
  return resource.isCustom ? normalized(resource, without(object, 'status') as SimObject, schemas) : object
}

/** The node lifecycle controller takes it away when the kubelet reports Ready. */
const notReadyTaint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' } as const

/** The next version of an object: what the request may change from what was sent, the rest from the version before. */
export function prepareUpdate(
  resource: Resource,
  before: SimObject,
  sent: SimObject,
  subresource: 'status' | undefined,
  schemas: Schemas,
): SimObject {
  const changed = merged(resource, before, normalized(resource, sent, schemas), subresource)
  const { uid, creationTimestamp, generation, deletionTimestamp, deletionGracePeriodSeconds } = before.metadata
  const isRaised =
    resource.hasGeneration && generation !== undefined && !isEqual(desiredState(changed), desiredState(before))
  const kept = {
    uid,
    creationTimestamp,
    generation: isRaised ? generation + 1 : generation,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    resourceVersion: before.metadata.resourceVersion,
    name: before.metadata.name,
    namespace: before.metadata.namespace,
  }
  const present = Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined))
  const sentMetadata = without(changed.metadata, ...Object.keys(kept))
  return { ...changed, metadata: { ...sentMetadata, ...present } as SimMeta }
}

function merged(
  { hasStatus, isCustom, plural }: Resource,
  before: SimObject,
  sent: SimObject,
  subresource: 'status' | undefined,
): SimObject {
  if (subresource === undefined) return hasStatus ? { ...sent, ...statusOf(before, sent) } : sent
  if (isCustom) return { ...before, ...statusOf(sent, before) }
  const { ownerReferences } = before.metadata
  const metadata =
    plural === 'pods' ? { ...sent.metadata, ...(ownerReferences !== undefined && { ownerReferences }) } : sent.metadata
  return { ...sent, spec: before['spec'], metadata }
}

/** The status of one object, to be put over the other's. */
const statusOf = (source: SimObject, target: SimObject): Fields =>
  'status' in source || 'status' in target ? { status: source['status'] } : {}

const desiredState = (object: SimObject): Fields => without(object, 'metadata', 'status')

/** As the server encodes it: empty fields that its types leave out are gone, a schema is applied. */
function normalized(resource: Resource, sent: SimObject, schemas: Schemas): SimObject {
  const schema = schemas[resource.plural]
  const object = schema === undefined ? sent : (applySchema(schema, sent) as SimObject)
  const empty = Object.entries(object.metadata).flatMap(([name, value]) => (isEmpty(value) ? [name] : []))
  const metadata = without(object.metadata, 'managedFields', 'selfLink', ...empty) as SimMeta
  const { apiVersion, kind } = resource
  return { ...object, ...trimmed(resource, object), apiVersion, kind, metadata }
}

function trimmed({ plural, isCustom }: Resource, object: SimObject): Fields {
  switch (plural) {
    case 'nodes': {
      const spec = fieldsOf(object['spec'])
      const unset = ['unschedulable', 'taints'].filter((name) => spec[name] === false || isEmpty(spec[name]))
      const status = fieldsOf(object['status'])
      const { conditions } = status
      return {
        spec: without(spec, ...unset),
        ...(Array.isArray(conditions) && { status: { ...status, conditions: conditions.map(timedCondition) } }),
      }
    }
    case 'events': {
      const times = { firstTimestamp: null, lastTimestamp: null, eventTime: null }
      return { source: {}, ...times, reportingComponent: '', reportingInstance: '', ...object }
    }
    case 'leases':
      return { spec: fieldsOf(object['spec']) }
  }
  return isCustom ? {} : object
}

/** A time that is not set is null. */
const timedCondition = (condition: unknown): Fields => {
  const fields = fieldsOf(condition)
  if ('lastHeartbeatTime' in fields && 'lastTransitionTime' in fields) return fields
  return { lastHeartbeatTime: null, lastTransitionTime: null, ...fields }
}

const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  (Array.isArray(value) ? value.length === 0 : typeof value === 'object' && Object.keys(value).length === 0)
