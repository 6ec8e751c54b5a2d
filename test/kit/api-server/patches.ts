/** The three kinds of patches that the server applies; each returns a new value and shares what it does not change. */
import { type Fields, fieldsOf, isEqual, isFields, without } from './json.ts'
import { badRequest, Refusal, unusablePatch } from './refusals.ts'
import type { Resource } from './resources.ts'

export function applyPatch(resource: Resource, contentType: string, object: Fields, patch: unknown): Fields {
  switch (contentType) {
    case 'application/merge-patch+json':
      return fieldsOf(mergePatched(object, patch))
    case 'application/json-patch+json':
      return fieldsOf(jsonPatched(object, patch))
    case 'application/strategic-merge-patch+json':
      if (!resource.isCustom) return fieldsOf(strategicallyMerged(object, patch, ''))
  }
  const accepted = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
  if (!resource.isCustom) accepted.splice(2, 0, 'application/strategic-merge-patch+json')
  throw new Refusal(
    415,
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
    { reason: 'UnsupportedMediaType' },
  )
}

/** RFC 7386. */
function mergePatched(before: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch
  const result: Record<string, unknown> = { ...fieldsOf(before) }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else if (value !== undefined) result[key] = mergePatched(result[key], value)
  }
  return result
}

/** Lists that are merged by a key of their items; all others are replaced. */
const mergeKeys: Readonly<Record<string, string>> = {
  '.metadata.ownerReferences': 'uid',
  '.status.conditions': 'type',
  '.status.addresses': 'type',
  '.spec.containers': 'name',
}
/** Lists of values that are merged as sets. */
const mergedSets: ReadonlySet<string> = new Set(['.metadata.finalizers'])

function strategicallyMerged(before: unknown, patch: unknown, path: string): unknown {
  if (Array.isArray(patch)) return mergedList(before, patch, path)
  if (!isFields(patch)) return patch
  if (patch['$patch'] === 'replace') return without(patch, '$patch')
  const result: Record<string, unknown> = { ...fieldsOf(before) }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) throw badRequest(`the simulated API server does not know the directive ${key} here`)
    if (value === null) delete result[key]
    else if (value !== undefined) result[key] = strategicallyMerged(result[key], value, `${path}.${key}`)
  }
  return result
}

function mergedList(before: unknown, patch: readonly unknown[], path: string): unknown {
  const old: readonly unknown[] = Array.isArray(before) ? before : []
  if (mergedSets.has(path)) return [...new Set([...old, ...patch])]
  const mergeKey = mergeKeys[path]
  if (mergeKey === undefined) return patch
  const isSame = (one: Fields, other: Fields): boolean => one[mergeKey] === other[mergeKey]
  const oldItems = old.map(fieldsOf)
  const patchItems = patch.map(fieldsOf)
  const untouched = oldItems.filter((item) => !patchItems.some((one) => isSame(one, item)))
  const touched = patchItems.flatMap((item) => {
    if (item['$patch'] === 'delete') return []
    const previous = oldItems.find((one) => isSame(one, item))
    return [fieldsOf(strategicallyMerged(previous, item, `${path}[]`))]
  })
  const place = (item: Fields): number => oldItems.findIndex((one) => isSame(one, item))
  return interleaved(untouched, touched, place)
}

/** The real server's order: what the patch does not name comes first only where it stood before what the patch names. */
function interleaved(untouched: Fields[], touched: Fields[], place: (item: Fields) => number): Fields[] {
  const result: Fields[] = []
  for (const item of touched) {
    const at = place(item)
    const next = untouched.findIndex((one) => place(one) > at)
    result.push(...untouched.splice(0, next < 0 ? untouched.length : next), item)
  }
  return [...result, ...untouched]
}

type Operation = { readonly op?: string; readonly path?: string; readonly value?: unknown }

/** RFC 6902 with add, replace, remove and test. */
function jsonPatched(before: Fields, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest('error decoding patch')
  return (patch as Operation[]).reduce<unknown>((value, operation) => {
    const steps = (operation.path ?? '').split('/').slice(1)
    return operated(
      value,
      steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~')),
      operation,
    )
  }, before)
}

function operated(value: unknown, [step, ...rest]: readonly string[], operation: Operation): unknown {
  const { op = '' } = operation
  if (step === undefined) {
    if (op === 'test' && !isEqual(value, operation.value)) throw unusablePatch()
    return op === 'test' ? value : operation.value
  }
  const isList = Array.isArray(value)
  if (!isList && !isFields(value)) throw unusablePatch()
  const exists = isList ? Number(step) < value.length : Object.hasOwn(value, step)
  if (!exists && !(op === 'add' && rest.length === 0)) throw unusablePatch()
  if (isList) {
    const copy: unknown[] = [...(value as unknown[])]
    const at = step === '-' ? copy.length : Number(step)
    if (rest.length === 0 && op === 'remove') copy.splice(at, 1)
    else if (rest.length === 0 && op === 'add') copy.splice(at, 0, operation.value)
    else copy[at] = operated(copy[at], rest, operation)
    return copy
  }
  if (rest.length === 0 && op === 'remove') return without(value, step)
  return { ...value, [step]: operated(value[step], rest, operation) }
}
