import type { PackageSpec } from '../../schemas/skyhook.ts'

/** Content of `node-metadata/{labels,annotations,packages}.json`: the facts about the node that steps can read. */
export type NodeMetadata = { readonly labels: string; readonly annotations: string; readonly packages: string }

export type NodeFacts = {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly agentVersion: string
  readonly packages: Readonly<Record<string, PackageSpec>>
}

/** Keys are sorted, so equal facts give equal texts. */
export function nodeMetadata({ labels = {}, annotations = {}, agentVersion, packages }: NodeFacts): NodeMetadata {
  const packageFacts = Object.entries(packages).map(([name, { version, image, interrupt, configInterrupts }]) => [
    name,
    { name, version, image, ...(interrupt && { interrupt }), ...(configInterrupts && { configInterrupts }) },
  ])
  return {
    labels: JSON.stringify(sortKeys(labels)),
    annotations: JSON.stringify(sortKeys(annotations)),
    packages: JSON.stringify({ agentVersion, packages: sortKeys(Object.fromEntries(packageFacts)) }),
  }
}

const sortKeys = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
