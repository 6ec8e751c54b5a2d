import type { PackageFacts } from '../../schemas/journal.ts'

/** Key of an entry in the journal and in nodeState. */
export const packageKey = (name: string, version: string): string => `${name}|${version}`
export const keyOf = ({ name, version }: Pick<PackageFacts, 'name' | 'version'>): string => packageKey(name, version)
