/** Nodes and Skyhooks as commands read them. */
import { isNotFound } from '../../../kube/errors.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { nodeStateKey, skyhooksWith } from '../../../schemas/annotations.ts'
import { skyhooksPath } from '../../../schemas/api.ts'
import type { ObjectMeta } from '../../../schemas/kubernetes.ts'
import { publishedOf } from '../../../schemas/published.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import { listCollection, nodesAs, nodesPath } from '../fleet-view/collections.ts'
import { notFoundError, usageError } from '../../base/framework/command-error.ts'

export const nodePath = (name: string): string => `${nodesPath}/${encodeURIComponent(name)}`

/** The part of a Node that people read; without its status. */
export type NodeMetadata = { readonly metadata: ObjectMeta }

/** All Nodes, by name. */
export async function listNodes(transport: KubeTransport, signal: AbortSignal): Promise<readonly NodeMetadata[]> {
  const nodes = nodesAs(({ metadata }): NodeMetadata => ({ metadata }), true)
  const found = await listCollection(transport, nodes, signal)
  return found.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
}

/**
 * Names that the patterns select, in the order of `names`. A pattern that is a name selects only that node: dots in
 * names of nodes are not wildcards. Others are regular expressions for the whole name. Throws a usage error for an
 * invalid one.
 */
export function matchNames(patterns: readonly string[], names: readonly string[]): readonly string[] {
  const known = new Set(names)
  const tests = patterns.map((pattern): ((name: string) => boolean) => {
    if (known.has(pattern) || !/[.*+?^${}[\]|()\\]/.test(pattern)) return (name) => name === pattern
    try {
      const expression = new RegExp(`^(?:${pattern})$`)
      return (name) => expression.test(name)
    } catch {
      throw usageError(`"${pattern}" is not a regular expression and no node has this name`)
    }
  })
  return names.filter((name) => tests.some((test) => test(name)))
}

/** Patterns that select none of the names. */
export const unmatchedPatterns = (patterns: readonly string[], names: readonly string[]): readonly string[] =>
  patterns.filter((pattern) => matchNames([pattern], names).length === 0)

/** One package of a Skyhook on a node, as published. */
export type PublishedPackage = {
  readonly name: string
  readonly version: string
  readonly image?: string
  readonly stage: string
  readonly state: string
  readonly restarts: number
}

/** What a Skyhook has on a node by the published state; undefined: nothing, or the state is unreadable. */
export function publishedPackages(
  node: NodeMetadata,
  skyhook: string,
): ReadonlyMap<string, PublishedPackage> | undefined {
  const { entries } = publishedOf(node, skyhook)
  if (entries === undefined) return undefined
  const packages = [...entries].map(([key, entry]): readonly [string, PublishedPackage] => {
    const [keyName = '', keyVersion = ''] = key.split('|')
    const { name = keyName, version = keyVersion, stage = '', state = '', restarts = 0, image } = entry
    return [key, { name, version, stage, state, restarts, ...(image && { image }) }]
  })
  return new Map(packages.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Skyhooks that have published state on a node, by name. */
export const skyhooksOn = ({ metadata }: NodeMetadata): readonly string[] =>
  skyhooksWith(nodeStateKey, metadata.annotations).toSorted()

export type PackageSummary = {
  readonly status: 'unknown' | 'erroring' | 'complete' | 'in_progress'
  readonly complete: number
  readonly total: number
  readonly restarts: number
}

/** The operator's roll-up of the packages of a Skyhook on a node. */
export function summarize(packages: ReadonlyMap<string, PublishedPackage>): PackageSummary {
  const all = [...packages.values()]
  const countOf = (state: string): number => all.filter((one) => one.state === state).length
  const [complete, total] = [countOf('complete'), all.length]
  const statusOf = (): PackageSummary['status'] => {
    if (countOf('erroring') > 0) return 'erroring'
    if (complete === total && total > 0) return 'complete'
    return countOf('in_progress') + complete > 0 ? 'in_progress' : 'unknown'
  }
  return { status: statusOf(), complete, total, restarts: all.reduce((sum, { restarts }) => sum + restarts, 0) }
}

export const skyhookPath = (name: string): string => `${skyhooksPath}/${encodeURIComponent(name)}`

/** One Skyhook. Throws "not found" with a command that lists all. */
export async function getSkyhook(transport: KubeTransport, name: string, signal: AbortSignal): Promise<Skyhook> {
  try {
    return await transport.json<Skyhook>('GET', skyhookPath(name), { signal })
  } catch (error) {
    if (isNotFound(error)) throw noSkyhook(name)
    throw error
  }
}

/** The error for a Skyhook that does not exist. */
export const noSkyhook = (name: string): Error =>
  notFoundError(`there is no Skyhook "${name}"`, 'see kubectl get skyhooks')

/** The error for a package that a Skyhook does not have. `known`: those that it has. */
export function noPackage(name: string, skyhook: string, known: readonly string[]): Error {
  const remedy = known.length === 0 ? 'it has no packages' : `it has: ${known.join(', ')}`
  return notFoundError(`Skyhook "${skyhook}" has no package "${name}"`, remedy)
}

/** Names of all Skyhooks, in order. */
export async function listSkyhookNames(transport: KubeTransport, signal: AbortSignal): Promise<readonly string[]> {
  const names = { what: 'Skyhooks', path: skyhooksPath, keep: ({ metadata }: Skyhook) => metadata.name }
  return (await listCollection(transport, names, signal)).toSorted()
}
