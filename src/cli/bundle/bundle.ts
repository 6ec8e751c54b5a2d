/** A support archive: what it consists of. */
import type { Query } from '../../kube/transport.ts'

/** One LIST of the API server in the archive. */
export type SourceEntry = {
  /** Plural, for people. */
  readonly what: string
  readonly path: string
  readonly query: Query
} & ({ readonly file: string; readonly count: number } | { readonly unknown: string })

/** Of the index, and of how files are named and written. */
export const bundleFormat = 'cli.skyhookd/v1'

export type BundleIndex = {
  readonly apiVersion: typeof bundleFormat
  readonly kind: 'Bundle'
  /** When it was read, in ISO 8601. */
  readonly takenAt: string
  readonly toolVersion: string
  /** Of the agents. */
  readonly namespace: string
  readonly sources: readonly SourceEntry[]
  /** In whole sentences, with numbers. */
  readonly leftOut: readonly string[]
}

export type Bundle = {
  readonly index: BundleIndex
  /** Text by name within the archive; the index is not among them. */
  readonly files: ReadonlyMap<string, string>
}

export const indexFile = 'index.json'
/** All files are in one folder. */
export const bundleFolder = 'skyhook-bundle'
