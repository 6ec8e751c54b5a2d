import type { SkyhookView } from '../stages/world.ts'
import type { State } from './state.ts'

/** What packages find in `node-metadata/`: the node's labels and annotations, and the packages of their Skyhook. */
export type NodeMetadata = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly packages: unknown
}

const ownAnnotations = 'skyhook.nvidia.com/'

/** Our own annotations are left out: they change with every stage, and the copy dir must not. */
export function nodeMetadata(state: State, view: SkyhookView): NodeMetadata {
  const { labels = {}, annotations = {} } = state.node?.metadata ?? {}
  const packages = Object.entries(view.spec.packages ?? {}).map(([name, { version, image, interrupt, configInterrupts }]) => [
    name,
    { name, version, image, ...(interrupt && { interrupt }), ...(configInterrupts && { configInterrupts }) },
  ])
  return {
    labels: Object.fromEntries(Object.entries(labels).filter(([key]) => !key.startsWith(ownAnnotations))),
    annotations: Object.fromEntries(Object.entries(annotations).filter(([key]) => !key.startsWith(ownAnnotations))),
    packages: { agentVersion: '', packages: Object.fromEntries(packages) },
  }
}
