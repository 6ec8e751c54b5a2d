/** GET of an object and of a collection. */
import type { Clock } from '../../../src/schemas/clock.ts'
import type { Fields } from './json.ts'
import { badRequest, expired, notFound, tooLargeResourceVersion } from './refusals.ts'
import { keyOf, type Location } from './resources.ts'
import { formOf, type SimRequest } from './request.ts'
import { selectionOf } from './selectors.ts'
import type { Store } from './store.ts'
import { itemIn, objectIn, type SimObject, type Version } from './versions.ts'

export type ReadContext = {
  readonly store: Store
  readonly clock: Clock
  /** How far the cache that answers reads of any version is behind, in ms. */
  readonly lagMs: number
}

export function readObject(
  context: ReadContext,
  location: Location & { readonly name: string },
  request: SimRequest,
): Fields {
  const { store, clock, lagMs } = context
  const { resource, namespace, name } = location
  refuseFuture(store, request)
  const key = keyOf(namespace, name)
  const isStale = lagMs > 0 && request.query['resourceVersion'] === '0'
  const version = isStale
    ? store.asOf(resource, clock.monotonicMs() - lagMs).versions.find((one) => one.key === key)
    : store.get(resource, key)
  if (version === undefined) throw notFound(resource, name)
  const form = formOf(request)
  return form === 'full' && version.cordonManager !== undefined ? withManager(version) : objectIn(version, form)
}

/** Fields have managers only where somebody asks: who has cordoned a Node. */
function withManager({ object, cordonManager }: Version): SimObject {
  const fieldsV1 = { 'f:spec': { 'f:unschedulable': {} } }
  const entry = { manager: cordonManager, operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 }
  return { ...object, metadata: { ...object.metadata, managedFields: [entry] } as SimObject['metadata'] }
}

type Page = { readonly revision: number; readonly rest: readonly Version[] }

/** The real server compacts its store every five minutes. */
const maxPageAgeMs = 5 * 60_000

/** Lists of one server; it remembers the pages that follow. */
export function createLists(): {
  list(context: ReadContext, location: Location, request: SimRequest): Fields
  forget(): void
} {
  const pages = new Map<string, Page & { readonly atMs: number }>()
  let sequence = 0

  return {
    forget: () => pages.clear(),
    list(context, location, request) {
      const { store } = context
      const { resource } = location
      refuseFuture(store, request)
      const { limit, continue: token = '', resourceVersion } = request.query
      const selected = token === '' ? select(context, location, request) : pageAt(context, location, token)
      const length = limit === undefined || resourceVersion === '0' ? Infinity : Number(limit) || Infinity
      const items = selected.rest.slice(0, length)
      const rest = selected.rest.slice(length)
      let next = {}
      if (rest.length > 0) {
        const nextToken = `page-${++sequence}`
        forgetOldPages(context.clock.monotonicMs())
        pages.set(nextToken, { revision: selected.revision, rest, atMs: context.clock.monotonicMs() })
        // As the real one: nothing is counted where a selector left objects out.
        const isWhole = request.query['labelSelector'] === undefined && request.query['fieldSelector'] === undefined
        next = { continue: nextToken, ...(isWhole && { remainingItemCount: rest.length }) }
      }
      const form = formOf(request)
      const isMetadata = form === 'metadata'
      return {
        kind: isMetadata ? 'PartialObjectMetadataList' : `${resource.kind}List`,
        apiVersion: isMetadata ? 'meta.k8s.io/v1' : resource.apiVersion,
        metadata: { resourceVersion: String(selected.revision), ...next },
        items: items.map((version) => itemIn(version, form, resource.isCustom)),
      }
    },
  }

  function forgetOldPages(nowMs: number): void {
    for (const [token, { atMs }] of pages) {
      if (nowMs - atMs < maxPageAgeMs) break // those after it are younger
      pages.delete(token)
    }
  }

  function pageAt({ store, clock }: ReadContext, { resource }: Location, token: string): Page {
    forgetOldPages(clock.monotonicMs())
    const page = pages.get(token)
    if (page === undefined && !/^page-\d+$/.test(token)) throw badRequest('invalid continue token')
    if (page === undefined || page.revision < store.oldest(resource)) {
      throw expired('The provided continue parameter is too old to display a consistent list result.')
    }
    return page
  }
}

function select({ store, clock, lagMs }: ReadContext, { resource, namespace }: Location, { query }: SimRequest): Page {
  const selection = selectionOf(resource, query)
  const isStale = lagMs > 0 && query['resourceVersion'] === '0'
  const { pinned } = selection
  if (!isStale && pinned?.field === 'metadata.name' && (namespace !== '' || !resource.isNamespaced)) {
    const version = store.get(resource, keyOf(namespace, pinned.value))
    const isSelected = version !== undefined && selection.matches(version.object)
    return { revision: store.revision(), rest: isSelected ? [version] : [] }
  }
  const { revision, versions } = isStale
    ? store.asOf(resource, clock.monotonicMs() - lagMs)
    : { revision: store.revision(), versions: store.all(resource) }
  const isIn = ({ object }: Version): boolean =>
    (namespace === '' || object.metadata.namespace === namespace) && selection.matches(object)
  return { revision, rest: versions.filter(isIn) }
}

function refuseFuture(store: Store, { query: { resourceVersion = '0' } }: SimRequest): void {
  const asked = Number(resourceVersion)
  if (Number.isNaN(asked)) throw badRequest(`Invalid value: "${resourceVersion}"`)
  if (asked > store.revision()) throw tooLargeResourceVersion(asked, store.revision())
}
