/** What the operator left in a cluster, as recorded in test/fixtures/takeover. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { DeploymentPolicySpec } from '../../../src/schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'

const folder = join(import.meta.dirname, '../../fixtures/takeover')

export type OwnedObject = {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string; readonly uid: string }[]
  }
}

export type RecordedPod = OwnedObject & {
  readonly spec: { readonly nodeName: string; readonly initContainers: readonly { readonly name: string }[] }
  readonly status: {
    readonly phase: string
    readonly initContainerStatuses: readonly { readonly name: string; readonly state: ContainerState }[]
  }
}

/** Exactly one of them is there. */
type ContainerState = {
  readonly waiting?: object
  readonly running?: object
  readonly terminated?: { readonly exitCode: number }
}

export type RecordedConfigMap = OwnedObject & { readonly data: Readonly<Record<string, string>> }

/** A Skyhook with what only the operator and the API server write. */
export type RecordedSkyhook = Skyhook & {
  readonly metadata: Skyhook['metadata'] & { readonly creationTimestamp: string }
  readonly status: { readonly status: string; readonly nodePriority?: Readonly<Record<string, string>> }
}

export type Moment = {
  readonly nodes: readonly KubernetesNode[]
  readonly skyhooks: readonly RecordedSkyhook[]
  readonly pods: readonly RecordedPod[]
  readonly configMaps: readonly RecordedConfigMap[]
  readonly policies: readonly (OwnedObject & { readonly spec: DeploymentPolicySpec })[]
}

/** In the order in which they were recorded, more or less. */
export const momentNames: readonly string[] = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.slice(0, -'.yaml'.length))
  .toSorted()

/** `rewrite` sees the text of the file first. Throws if there is no such moment. */
export function readMoment(name: string, rewrite: (text: string) => string = (text) => text): Moment {
  const text = rewrite(readFileSync(join(folder, `${name}.yaml`), 'utf8'))
  const objects = parseAllDocuments(text).map((document): unknown => document.toJS())
  const ofKind = (kind: string): readonly unknown[] =>
    objects.filter((object) => (object as { readonly kind: string }).kind === kind)
  return {
    nodes: ofKind('Node') as Moment['nodes'],
    skyhooks: ofKind('Skyhook') as Moment['skyhooks'],
    pods: ofKind('Pod') as Moment['pods'],
    configMaps: ofKind('ConfigMap') as Moment['configMaps'],
    policies: ofKind('DeploymentPolicy') as Moment['policies'],
  }
}

/**
 * The moment as it would be in a cluster that gave these UIDs to the Skyhooks: owner references, and the names of copy
 * dirs in what the pods were started with. Throws for a Skyhook without one.
 */
export function withUids(moment: Moment, uids: ReadonlyMap<string, string>): Moment {
  let text = JSON.stringify(moment)
  for (const { metadata } of moment.skyhooks) {
    const uid = uids.get(metadata.name)
    if (uid === undefined) throw new Error(`no UID for Skyhook ${metadata.name}`)
    text = text.replaceAll(metadata.uid, uid)
  }
  return JSON.parse(text) as Moment
}
