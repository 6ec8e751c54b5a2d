/** A support archive in place of an API server: commands that only read work on it as on a cluster. */
import type { KubeObject } from '../../kube/objects.ts'
import type { KubeTransport, Query } from '../../kube/transport.ts'
import type { Clock } from '../../schemas/clock.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import { UnreadError } from '../fleet-view/readable.ts'
import type { Bundle, SourceEntry } from './bundle.ts'

/**
 * Answers LISTs that the archive has, whole or a part of one. Whatever it does not have is an `UnreadError`, which
 * views show as unknown with its reason.
 */
export function archivedApi({ index, files }: Bundle): KubeTransport {
  const unread = (why: string): Promise<never> => Promise.reject(new UnreadError(why))
  return {
    async json<T>(
      method: string,
      path: string,
      { query = {} }: { readonly query?: Query | undefined } = {},
    ): Promise<T> {
      const terms = termsOf(query)
      const found = method === 'GET' ? index.sources.find((one) => one.path === path && covers(one, query)) : undefined
      if (found === undefined) return await unread(whyAbsent(path, query))
      if ('unknown' in found) return await unread(`when the bundle was made: ${found.unknown}`)
      const list = parseJson(files.get(found.file) ?? '')
      if (!isObject(list) || !Array.isArray(list['items']))
        return await unread(`${found.file} of the bundle cannot be read`)
      const items = (list['items'] as readonly KubeObject[]).filter((item) =>
        terms.every(([field, value]) => fieldAt(item, field) === value),
      )
      return { metadata: { resourceVersion: '' }, items } as T
    },
    stream: () => unread('a bundle has no watches'),
    close: () => undefined,
  }
}

/** The time at which the archive was made stands still. */
export const archivedClock = (clock: Clock, { index }: Bundle): Clock => ({
  ...clock,
  wallMs: () => Date.parse(index.takenAt),
})

/** Whether what the source has is all, or more, of what is asked for. */
function covers(source: SourceEntry, query: Query): boolean {
  const asked = termsOf(query).map(String)
  const isWithin = termsOf(source.query).every((term) => asked.includes(String(term)))
  return source.query['labelSelector'] === query['labelSelector'] && isWithin
}

/** Of a field selector: only equality is asked for. */
const termsOf = ({ fieldSelector }: Query): readonly (readonly [field: string, value: string])[] =>
  typeof fieldSelector !== 'string'
    ? []
    : fieldSelector.split(',').map((term) => {
        const [field = '', value = ''] = term.split('=')
        return [field, value]
      })

function fieldAt(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), object)
}

const whyAbsent = (path: string, { fieldSelector }: Query): string =>
  String(fieldSelector).startsWith('spec.nodeName=')
    ? 'the bundle has the pods of nodes that were out of service, and of those named with --node'
    : `the bundle does not have ${path}`
