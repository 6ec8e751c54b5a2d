/** The content of a support archive. */
import type { Query } from '../../kube/transport.ts'

/** One LIST of the API server in the archive. */
export type SourceEntry = {
  /** Plural, for people. */
  readonly what: string
  readonly path: string
  readonly query: Query
} & ({ readonly file: string; readonly count: number } | { readonly unknown: string })

/** The version of the index, and of the names and format of the files. */
export const bundleFormat = 'cli.skyhookd/v1'

export type BundleIndex = {
  readonly apiVersion: typeof bundleFormat
  readonly kind: 'Bundle'
  /** When it was read, in ISO 8601. */
  readonly takenAt: string
  readonly toolVersion: string
  /** The namespace of the agents. */
  readonly namespace: string
  readonly sources: readonly SourceEntry[]
  /** Whole sentences with numbers. */
  readonly leftOut: readonly string[]
}

export type Bundle = {
  readonly index: BundleIndex
  /** Text by name within the archive, without the index. */
  readonly files: ReadonlyMap<string, string>
}

export const indexFile = 'index.json'
/** All files are in one folder. */
export const bundleFolder = 'skyhook-bundle'
