/** Key of an entry in the journal and in nodeState. */
export const packageKey = (name: string, version: string): string => `${name}|${version}`
