import type { SkyhookView } from '../model/snapshot.ts'

/** The operator's default when spec.priority is absent. */
const defaultPriority = 200

export const priorityOf = (view: SkyhookView): number => view.spec.priority ?? defaultPriority

/** Order in which Skyhooks work on a node: lower priority number first, then by name. */
export function sortByPriority(skyhooks: readonly SkyhookView[]): SkyhookView[] {
  return [...skyhooks].sort((a, b) => priorityOf(a) - priorityOf(b) || (a.metadata.name < b.metadata.name ? -1 : 1))
}
