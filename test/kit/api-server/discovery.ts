/** What an API server says about the API groups that it serves, at the path of one group. */
import { resources } from './resources.ts'
import type { Answer } from './refusals.ts'

/** Whose definitions somebody else has installed: the path of the group is all that is served of it. */
export type OtherGroup = { readonly name: string; readonly version: string }

/** Undefined for other paths, and for groups that nobody serves. */
export function groupAnswer(path: string, others: Iterable<OtherGroup>): Answer | undefined {
  const [, name] = /^\/apis\/([^/]+)$/.exec(path) ?? []
  if (name === undefined) return undefined
  const own = [...resources.values()].flatMap(({ group, apiVersion }) =>
    group === '' ? [] : [{ name: group, version: apiVersion.slice(group.length + 1) }],
  )
  const found = [...own, ...others].find((group) => group.name === name)
  if (found === undefined) return undefined
  const version = { groupVersion: `${name}/${found.version}`, version: found.version }
  return {
    code: 200,
    body: { kind: 'APIGroup', apiVersion: 'v1', name, versions: [version], preferredVersion: version },
  }
}
