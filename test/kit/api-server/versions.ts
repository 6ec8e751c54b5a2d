/** One version of a stored object in the forms in which it goes to clients; each form is made once, when asked for. */
import type { ObjectMeta } from '../../../src/schemas/kubernetes.ts'
import { adopt, type Fields, without } from './json.ts'

export type SimMeta = ObjectMeta & {
  readonly generateName?: string
  readonly deletionGracePeriodSeconds?: number
}
export type SimObject = Fields & { readonly apiVersion: string; readonly kind: string; readonly metadata: SimMeta }

export type Form = 'full' | 'metadata'
export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED'

export type Version = {
  readonly key: string
  readonly revision: number
  readonly object: SimObject
  /** Who set `spec.unschedulable` of a Node. */
  readonly cordonManager: string | undefined
  /** What has been made of it already. */
  readonly made: {
    item?: Fields
    metadata?: Fields
    readonly lines: Map<string, Uint8Array>
    leaving?: { readonly revision: number; readonly version: Version }
  }
}

export function createVersion(
  key: string,
  object: SimObject,
  revision: number,
  cordonManager: string | undefined,
): Version {
  const resourceVersion = String(revision)
  const stored =
    object.metadata.resourceVersion === resourceVersion
      ? object
      : { ...object, metadata: { ...object.metadata, resourceVersion } }
  return { key, revision, object: adopt(stored), cordonManager, made: { lines: new Map() } }
}

/** As the answer to a request for the object itself. */
export const objectIn = (version: Version, form: Form): Fields =>
  form === 'full' ? version.object : metadataOf(version)

/** As an item of a list: built-in objects do not name their kind there. */
export function itemIn(version: Version, form: Form, isCustom: boolean): Fields {
  if (form === 'metadata' || isCustom) return objectIn(version, form)
  return (version.made.item ??= adopt(without(version.object, 'apiVersion', 'kind')))
}

/** As an event on the wire. */
export function eventLine(version: Version, type: EventType, form: Form): Uint8Array {
  const key = `${type} ${form}`
  let line = version.made.lines.get(key)
  if (line === undefined) {
    line = Buffer.from(`${JSON.stringify({ type, object: objectIn(version, form) })}\n`)
    version.made.lines.set(key, line)
  }
  return line
}

/** The version as it is reported when the next one, at `revision`, is not selected any more. */
export function leavingAt(version: Version, revision: number): Version {
  if (version.made.leaving?.revision !== revision)
    version.made.leaving = { revision, version: createVersion(version.key, version.object, revision, undefined) }
  return version.made.leaving.version
}

const metadataOf = ({ object, made }: Version): Fields =>
  (made.metadata ??= adopt({
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: object.metadata,
  }))
