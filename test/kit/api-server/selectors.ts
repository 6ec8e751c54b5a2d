/** Label and field selectors as they come in a query. */
import { badRequest } from './refusals.ts'
import type { Resource } from './resources.ts'
import type { SimObject } from './versions.ts'

export type Selection = {
  matches(object: SimObject): boolean
  /** The field or label that the query pins to one value: few watches and objects have it in common. */
  readonly pinned: Pin | undefined
}

export type Pin = { readonly field: 'metadata.name' | 'spec.nodeName' | `label ${string}`; readonly value: string }

type Labels = Readonly<Record<string, string>>
type LabelTest = (labels: Labels) => boolean

const parsedSelectors = new Map<string, readonly LabelTest[]>()

export function selectionOf(
  resource: Resource,
  { labelSelector, fieldSelector }: { readonly labelSelector?: string; readonly fieldSelector?: string },
): Selection {
  const tests = labelTests(labelSelector ?? '')
  const terms = fieldTerms(resource, fieldSelector ?? '')
  const pin = terms.find(({ isEqual, field }) => isEqual && (field === 'metadata.name' || field === 'spec.nodeName'))
  return {
    matches(object) {
      const labels = object.metadata.labels ?? {}
      return (
        tests.every((test) => test(labels)) &&
        terms.every(({ field, value, isEqual }) => (fieldAt(object, field) === value) === isEqual)
      )
    },
    pinned: pin ? { field: pin.field as Pin['field'], value: pin.value } : pinnedLabel(labelSelector ?? ''),
  }
}

/** Of a selector that is nothing but `key=value`. */
function pinnedLabel(text: string): Pin | undefined {
  const [, key, value] = /^([\w./-]+)=([\w.-]+)$/.exec(text) ?? []
  return key === undefined || value === undefined ? undefined : { field: `label ${key}`, value }
}

export function fieldAt(object: SimObject, field: string): string {
  if (field === 'source') return fieldAt(object, 'source.component') || fieldAt(object, 'reportingComponent')
  const [first = '', second = ''] = field.split('.')
  const value =
    second === '' ? object[first] : (object[first] as Readonly<Record<string, unknown>> | undefined)?.[second]
  return typeof value === 'string' ? value : ''
}

function labelTests(text: string): readonly LabelTest[] {
  let tests = parsedSelectors.get(text)
  if (tests === undefined) {
    tests = text.split(/,(?![^(]*\))/).flatMap((part) => (part.trim() === '' ? [] : [labelTest(part.trim())]))
    parsedSelectors.set(text, tests)
  }
  return tests
}

function labelTest(text: string): LabelTest {
  const [, member, operator, list] = /^(\S+)\s+(in|notin)\s*\((.*)\)$/.exec(text) ?? []
  if (member !== undefined && list !== undefined) {
    const values = new Set(list.split(',').map((value) => value.trim()))
    return operator === 'in'
      ? (labels) => values.has(labels[member] ?? '') && member in labels
      : (labels) => !(member in labels) || !values.has(labels[member] ?? '')
  }
  const [, key = '', sign, value = ''] = /^([^=!\s]+)\s*(==|=|!=)\s*(\S*)$/.exec(text) ?? []
  if (sign !== undefined) return sign === '!=' ? (labels) => labels[key] !== value : (labels) => labels[key] === value
  const [, not, name = ''] = /^(!?)([\w./-]+)$/.exec(text) ?? []
  if (name === '') throw badRequest(`unable to parse requirement: ${text}`)
  return not === '!' ? (labels) => !(name in labels) : (labels) => name in labels
}

type FieldTerm = { readonly field: string; readonly value: string; readonly isEqual: boolean }

function fieldTerms({ selectableFields }: Resource, text: string): readonly FieldTerm[] {
  if (text === '') return []
  return text.split(',').map((part) => {
    const [, field = '', sign, value = ''] = /^([\w.]+)(==|=|!=)(.*)$/.exec(part) ?? []
    if (!selectableFields.includes(field)) {
      const known = selectableFields.map((one) => `"${one}"`).join(', ')
      throw badRequest(`"${field}" is not a known field selector: only ${known}`)
    }
    return { field, value, isEqual: sign !== '!=' }
  })
}
