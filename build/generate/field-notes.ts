/**
 * What the comments of a resource definition say about its fields. Each stands under its field, before anything else:
 *
 *     stageTimeout:
 *       # origin: skyhookd
 *       # example: stageTimeout: 10m
 *       # edit: no work. Counts for steps
 *       #   that start later
 *       # pattern: a duration
 *       type: string
 */
import { isMap, isScalar, type Document, type YAMLMap } from 'yaml'

export type FieldNotes = {
  /**
   * YAML in one line, of the object that the field is in: of `spec`, of a package, of a selector, budget or strategy.
   */
  readonly example?: string
  /** What an edit of a live object does. Fields without it are edited like the nearest field around them. */
  readonly edit?: string
  /** What the field's pattern asks for. */
  readonly pattern?: string
  /** `skyhookd`: the Skyhook operator does not have the field. */
  readonly origin?: string
}

/** By place, such as `spec.packages.*.env[].name`: the notes of a field, and its pattern. */
export type PlaceNotes = ReadonlyMap<string, { readonly notes: FieldNotes; readonly pattern: string | undefined }>

const labels = ['origin', 'example', 'edit', 'pattern'] as const

export function notesOf(document: Document): PlaceNotes {
  const found = new Map<string, { notes: FieldNotes; pattern: string | undefined }>()
  const collect = (schema: unknown, place: string): void => {
    if (!isMap(schema)) return
    const pattern = schema.get('pattern')
    found.set(place, { notes: notesAbove(schema), pattern: typeof pattern === 'string' ? pattern : undefined })
    const properties = schema.get('properties')
    for (const { key, value } of isMap(properties) ? properties.items : []) {
      const name = String(isScalar(key) ? key.value : key)
      collect(value, place === '' ? name : `${place}.${name}`)
    }
    collect(schema.get('items'), `${place}[]`)
    collect(schema.get('additionalProperties'), `${place}.*`)
  }
  collect(document.getIn(['spec', 'versions', 0, 'schema', 'openAPIV3Schema']), '')
  return found
}

function notesAbove({ commentBefore }: YAMLMap): FieldNotes {
  const notes: Partial<Record<(typeof labels)[number], string>> = {}
  let current: (typeof labels)[number] | undefined
  for (const line of (commentBefore ?? '').split('\n').map((text) => text.trim())) {
    const label = labels.find((one) => line.startsWith(`${one}: `))
    current = label ?? current
    if (current === undefined) continue
    const text = label === undefined ? line : line.slice(label.length + 2)
    notes[current] = label === undefined ? `${notes[current]} ${text}` : text
  }
  return notes
}
