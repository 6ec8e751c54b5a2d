/**
 * docs/usage/skyhook-reference.md: every field of the resource definitions in crds/, with what their comments say about
 * it (field-notes.ts).
 */
import type { Schema } from '../../src/cli/validate/structural.ts'
import { definitionDocument, definitionFiles, definitions } from './definitions.ts'
import { notesOf, type FieldNotes } from './field-notes.ts'

/** A field, by the name of its heading: `selector.matchLabels` is one for all selectors. */
type Field = { readonly name: string; readonly schema: Schema; readonly isRequired: boolean }

/** Groups of fields that occur in several places with one meaning; they are explained once. */
const shared: readonly (readonly [place: RegExp, name: string])[] = [
  [/^spec\.(?:nodeSelectors|podNonInterruptLabels|compartments\[\]\.selector)\./, 'selector.'],
  [/^spec\.(?:default|compartments\[\])\.(budget|strategy)\./, '$1.'],
  [
    /^strategy\.(?:fixed|linear|exponential)\.(initialBatch|batchThreshold|failureThreshold|safetyLimit)$/,
    'strategy.*.$1',
  ],
]

const nameOf = (place: string): string =>
  shared.reduce((name, [pattern, replacement]) => name.replace(pattern, replacement), place)

const places = definitionFiles().flatMap((file) => [...notesOf(definitionDocument(file))])

/** What the comments say, by name of the field. Of several places with one name, one says it. */
export const notes: ReadonlyMap<string, FieldNotes> = notesByName()

function notesByName(): Map<string, FieldNotes> {
  const found = new Map<string, FieldNotes>()
  for (const [place, { notes }] of places) {
    if (notes.example === undefined) continue
    if (found.has(nameOf(place))) throw new Error(`crds/: ${nameOf(place)} has two examples; remove that of ${place}`)
    found.set(nameOf(place), notes)
  }
  return found
}

/** What patterns ask for. Of several places with one pattern, one says it. */
const patterns: ReadonlyMap<string | undefined, string> = new Map(
  places.flatMap(([, { notes, pattern }]) => (notes.pattern === undefined ? [] : [[pattern, notes.pattern]])),
)

function fieldsBelow(schema: Schema, place: string): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const own = `${place}${name}`
    const isRequired = schema.required?.includes(name) === true
    return [{ name: nameOf(own), schema: field, isRequired }, ...fieldsInside(field, own)]
  })
}

const fieldsInside = (schema: Schema, place: string): Field[] => [
  ...fieldsBelow(schema, `${place}.`),
  ...(schema.items ? fieldsInside(schema.items, `${place}[]`) : []),
  ...(schema.additionalProperties ? fieldsInside(schema.additionalProperties, `${place}.*`) : []),
]

/**
 * The fields of a kind's `spec` or `status`, each name once. @throws where fields that share a name differ
 */
export function fieldsOf(kind: 'Skyhook' | 'DeploymentPolicy', part: 'spec' | 'status'): Field[] {
  const definition = definitions().find((one) => one.kind === kind)
  const fields = new Map<string, Field>()
  for (const field of fieldsInside(definition?.schema.properties?.[part] ?? {}, part)) {
    const known = fields.get(field.name)
    if (known && JSON.stringify(known) !== JSON.stringify(field))
      throw new Error(`${field.name} means different things in ${kind}; give each place a name of its own`)
    fields.set(field.name, field)
  }
  return [...fields.values()]
}

const code = (text: string): string => `\`${text}\``

function typeOf(schema: Schema): string {
  if (schema['x-kubernetes-int-or-string']) return 'quantity'
  if (schema.items) return `list of ${pluralOf(schema.items)}`
  if (schema.additionalProperties) return `map of ${pluralOf(schema.additionalProperties)} by name`
  return schema.type ?? 'any'
}

const pluralOf = (schema: Schema): string => {
  const type = typeOf(schema)
  return /^(list|map) /.test(type) ? type.replace(/^\w+/, (word) => `${word}s`) : `${type}s`
}

function range(unit: string, minimum: number | undefined, maximum: number | undefined): string[] {
  const suffix = unit === '' ? '' : ` ${unit}`
  if (minimum === undefined && maximum === undefined) return []
  if (maximum === undefined) return [`at least ${minimum}${suffix}`]
  return [minimum === undefined ? `at most ${maximum}${suffix}` : `${minimum} to ${maximum}${suffix}`]
}

function limitsOf({ pattern, ...schema }: Schema): string[] {
  const meaning = patterns.get(pattern)
  if (pattern !== undefined && meaning === undefined)
    throw new Error(`crds/: say what the pattern ${pattern} asks for, in a comment "# pattern: …" under its field`)
  const values = (schema.enum ?? []).filter((value) => value !== '')
  const content = schema.items ?? schema.additionalProperties
  const limits = content && content.properties === undefined ? limitsOf(content) : []
  return [
    ...(values.length > 0 ? [`one of ${values.map((value) => code(String(value))).join(', ')}`] : []),
    ...range('', schema.minimum, schema.maximum),
    ...(meaning === undefined ? [] : [meaning]),
    ...range('characters', schema.minLength, schema.maxLength),
    ...range('entries', undefined, schema.maxItems ?? schema.maxProperties),
    ...(limits.length > 0 ? [`each ${limits.join(', ')}`] : []),
  ]
}

/** Of the field itself, or of the nearest one around it. */
function editOf(name: string): string | undefined {
  const own = notes.get(name)?.edit
  if (own !== undefined) return own
  for (let outer = outerOf(name); outer !== ''; outer = outerOf(outer))
    if (notes.get(outer)?.edit !== undefined) return `as for [${code(outer)}](#${anchorOf(outer)})`
  return undefined
}

const outerOf = (name: string): string => name.replace(/(?:^|\.)[^.]+$/, '').replace(/(?:\[\]|\.\*)$/, '')

/** As GitHub makes it of a heading. */
const anchorOf = (title: string): string => title.toLowerCase().replace(/[^\w\- ]/g, '')

function section({ name, schema, isRequired }: Field): string {
  const { description, nullable, default: preset } = schema
  const rules = (schema['x-kubernetes-validations'] ?? []).map(({ message }) => message)
  const type = [typeOf(schema) + (nullable ? ' or null' : ''), ...(isRequired ? ['required'] : []), ...limitsOf(schema)]
  const edit = editOf(name)
  const { example, origin } = notes.get(name) ?? {}
  return [
    `### ${code(name)}`,
    '',
    ...(description === undefined ? [] : [description, '']),
    `* Type: ${type.join('; ')}`,
    ...(preset === undefined || JSON.stringify(preset) === '{}' ? [] : [`* Default: ${code(JSON.stringify(preset))}`]),
    ...rules.map((rule) => `* Rule: ${rule}`),
    ...(example === undefined ? [] : [`* Example: ${code(example)}`]),
    ...(edit === undefined ? [] : [`* Edit: ${edit}`]),
    ...(origin === undefined ? [] : [`* Origin: ${origin}`]),
    '',
  ].join('\n')
}

const statusTable = (fields: readonly Field[]): string =>
  [
    '| Field | Type | Meaning |',
    '|---|---|---|',
    ...fields.map(({ name, schema }) => `| ${code(name)} | ${typeOf(schema)} | ${schema.description ?? ''} |`),
  ].join('\n')

/** The page. @throws where a field has no example, or an example no field */
export function referenceText(): string {
  const skyhook = fieldsOf('Skyhook', 'spec')
  const policy = fieldsOf('DeploymentPolicy', 'spec')
  const isShared = ({ name }: Field): boolean => !name.startsWith('spec.')
  const isSelector = ({ name }: Field): boolean => name.startsWith('selector.')
  const isOfPackage = ({ name }: Field): boolean => name.startsWith('spec.packages.*')
  const named = new Set([...skyhook, ...policy].map(({ name }) => name))
  const unknown = [...notes.keys()].filter((name) => !named.has(name))
  if (unknown.length > 0) throw new Error(`crds/: ${unknown.join(', ')} is not a field: remove its example`)
  const silent = [...named].filter((name) => !notes.has(name))
  if (silent.length > 0)
    throw new Error(`crds/: add an example for ${silent.join(', ')}, in a comment "# example: …" under the field`)
  const own = [...named].filter((name) => notes.get(name)?.origin === 'skyhookd')
  const part = (title: string, fields: readonly Field[]): string => `## ${title}\n\n${fields.map(section).join('\n')}`
  return `${introduction(own)}
${part(
  'Skyhook',
  skyhook.filter((field) => !isShared(field) && !isOfPackage(field)),
)}
${part('Packages of a Skyhook', skyhook.filter(isOfPackage))}
${part('Label selectors', skyhook.filter(isSelector))}
${part(
  'DeploymentPolicy',
  policy.filter((field) => !isShared(field)),
)}
${part(
  'Budgets and strategies of a DeploymentPolicy',
  policy.filter((field) => isShared(field) && !isSelector(field)),
)}
## Status of a Skyhook

The agents write it. A DeploymentPolicy has no status.

${statusTable(fieldsOf('Skyhook', 'status'))}
`
}

const introduction = (own: readonly string[]): string => `# Fields of Skyhook and DeploymentPolicy

<!-- generated from crds/: make generate -->

Every field of \`skyhook.nvidia.com/v1alpha1\`. [The Skyhook resource, by example](skyhook.md) shows how they go together.

* **Names.** \`*\` stands for a name that you choose, \`[]\` for an entry of a list. Fields that occur in several places
  are explained once: [label selectors](#label-selectors), [budgets and
  strategies](#budgets-and-strategies-of-a-deploymentpolicy).
* **Type** has the limits that the API server checks. **Rules** are checked as well; the text is that of the refusal.
* **Edit** says what an edit of a live object does. *No work* means that nodes which are complete stay complete.
* **Durations** are numbers with a unit: \`90s\`, \`1m30s\`, \`1.5h\`.
* **Origin** is given where the Skyhook operator does not have the field:
  ${own.map((name) => `[${code(name)}](#${anchorOf(name)})`).join(', ')}.

\`metadata.name\` of a Skyhook has at most 53 characters.
`
