/** Skyhooks and DeploymentPolicies as the API server would judge them, and beyond. Pure. */
import { isObject } from '../../schemas/json.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { ruleProblems } from './cel.ts'
import generated from './generated/definitions.json' with { type: 'json' }
import { type Schema, structuralProblems, withDefaults } from './structural.ts'
import { semanticFindings, type SkyhookFinding } from './semantics.ts'
import { pointerSegment, type Problem } from '../../schemas/validation.ts'

type Definition = { readonly apiVersion: string; readonly kind: string; readonly schema: Schema }

/** The resource definitions of this version. */
export const definitions = generated as unknown as readonly Definition[]

const groupPrefix = 'skyhook.nvidia.com/'

/** Whether an object is one that {@link resourceFindings} judges. */
export const isOurs = (object: Readonly<Record<string, unknown>>): boolean =>
  typeof object['apiVersion'] === 'string' && object['apiVersion'].startsWith(groupPrefix)

/**
 * Everything that is wrong with an object of our group: form, rules of the resource definition, and what only agents
 * would find. Semantics are judged once the rest holds.
 */
export function resourceFindings(object: Readonly<Record<string, unknown>>): SkyhookFinding[] {
  const { apiVersion, kind } = object
  const definition = definitions.find((one) => one.apiVersion === apiVersion && one.kind === kind)
  if (definition === undefined) return [unknownKind(object)]
  const written = Object.fromEntries(Object.entries(object).filter(([name]) => name !== 'status'))
  const complete = withDefaults(definition.schema, written)
  const structural = [...metadataProblems(written['metadata']), ...structuralProblems(definition.schema, written, '')]
  const hasProblem = (pointer: string): boolean =>
    structural.some((problem) => problem.pointer === pointer || problem.pointer.startsWith(`${pointer}/`))
  const rules = ruleProblems(definition.schema, complete, '', hasProblem)
  const problems = [...structural, ...rules].map((problem): SkyhookFinding => ({ severity: 'error', ...problem }))
  const spec = written['spec']
  const isFit = problems.length === 0 && kind === 'Skyhook' && isObject(spec)
  return [...problems, ...(isFit ? semanticFindings(spec as SkyhookSpec) : []), ...sizeFindings(written)]
}

function unknownKind({ apiVersion, kind }: Readonly<Record<string, unknown>>): SkyhookFinding {
  const known = definitions.map((one) => `${one.kind} of ${one.apiVersion}`).join(', ')
  return {
    severity: 'error',
    pointer: '/kind',
    value: kind,
    message: `no such kind in ${String(apiVersion)}; this version knows ${known}`,
    rule: 'kind',
    remedy: 'correct apiVersion or kind',
  }
}

const maxLastAppliedBytes = 256 << 10 // of all annotations together; kubectl apply writes the object into one
const maxRequestBytes = 1536 << 10 // etcd's default

function sizeFindings(object: Readonly<Record<string, unknown>>): SkyhookFinding[] {
  const sizeBytes = Buffer.byteLength(JSON.stringify(object))
  const say = (severity: SkyhookFinding['severity'], message: string, remedy: string): SkyhookFinding[] => [
    { severity, pointer: '', message: `has ${sizeBytes} bytes, ${message}`, rule: 'size', remedy },
  ]
  if (sizeBytes > maxRequestBytes)
    return say('error', `more than the ${maxRequestBytes} that etcd stores`, 'move large files into the package')
  if (sizeBytes <= maxLastAppliedBytes) return []
  const remedy = 'use kubectl apply --server-side, or move large files into the package'
  return say('warning', `too many for the annotation of kubectl apply (${maxLastAppliedBytes})`, remedy)
}

/** Every violation. `managedFields` is left to the server, which alone writes it. */
function metadataProblems(metadata: unknown): Problem[] {
  if (!isObject(metadata)) return [problem('', undefined, 'is missing', 'add metadata with a name')]
  return [
    ...fieldProblems(metadata),
    ...nameProblems(metadata),
    ...entriesOf(metadata, 'labels').flatMap(labelProblems),
    ...entriesOf(metadata, 'annotations').flatMap(annotationProblems),
    ...listOf(metadata, 'finalizers').flatMap(finalizerProblems),
    ...listOf(metadata, 'ownerReferences').flatMap(ownerProblems),
  ]
}

type Fields = Readonly<Record<string, unknown>>

const types: Readonly<Record<string, 'text' | 'number' | 'object' | 'list'>> = {
  annotations: 'object',
  creationTimestamp: 'text',
  deletionGracePeriodSeconds: 'number',
  deletionTimestamp: 'text',
  finalizers: 'list',
  generateName: 'text',
  generation: 'number',
  labels: 'object',
  managedFields: 'list',
  name: 'text',
  namespace: 'text',
  ownerReferences: 'list',
  resourceVersion: 'text',
  selfLink: 'text',
  uid: 'text',
}

function fieldProblems(metadata: Fields): Problem[] {
  return Object.entries(metadata).flatMap(([name, value]) => {
    const at = `/${pointerSegment(name)}`
    const type = Object.hasOwn(types, name) ? types[name] : undefined
    if (type === undefined)
      return [problem(at, value, 'is not a known field', `remove it, or write one of ${Object.keys(types).join(', ')}`)]
    if (value === null || name === 'name') return []
    const isFit =
      type === 'object'
        ? isObject(value)
        : type === 'list'
          ? Array.isArray(value)
          : typeof value === (type === 'text' ? 'string' : 'number')
    if (!isFit) return [problem(at, value, `must be ${type === 'object' ? 'an' : 'a'} ${type}`, 'correct the value')]
    if (!name.endsWith('Timestamp') || (typeof value === 'string' && timestamp.test(value))) return []
    return [problem(at, value, 'is not a time such as 2026-01-31T12:00:00Z', 'remove it: the API server sets it')]
  })
}

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)$/
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const keyName = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/

function nameProblems({ name }: Fields): Problem[] {
  if (name === undefined) return [problem('/name', undefined, 'is missing', 'add a name')]
  if (typeof name === 'string' && subdomain.test(name)) return []
  const remedy = 'use lower-case letters, digits, - and ., with a letter or digit at both ends'
  return [problem('/name', name, 'is not a DNS name', remedy)]
}

function labelProblems([key, value, at]: Entry): Problem[] {
  const problems = keyProblems(key, key, at)
  if (typeof value !== 'string') return [...problems, notText(at, value)]
  if (value === '' || (value.length <= 63 && keyName.test(value))) return problems
  const remedy = 'write at most 63 letters, digits, -, _ and ., with a letter or digit at both ends'
  return [...problems, problem(at, value, 'is not a label value', remedy)]
}

const annotationProblems = ([key, value, at]: Entry): Problem[] => [
  ...keyProblems(key, key.toLowerCase(), at),
  ...(typeof value === 'string' ? [] : [notText(at, value)]),
]

function keyProblems(key: string, compared: string, at: string): Problem[] {
  const parts = compared.split('/')
  const [prefix, name = ''] = parts.length === 2 ? parts : [undefined, compared]
  const isFit =
    (prefix === undefined || (prefix.length <= 253 && subdomain.test(prefix))) &&
    name.length <= 63 &&
    keyName.test(name)
  const remedy = 'write a name of at most 63 letters, digits, -, _ and ., optionally after a domain and /'
  return isFit ? [] : [problem(at, key, 'is not a key', remedy)]
}

function finalizerProblems([, value, at]: Entry): Problem[] {
  return typeof value === 'string' ? keyProblems(value, value, at) : [notText(at, value)]
}

function ownerProblems([, owner, at]: Entry): Problem[] {
  if (!isObject(owner)) return [problem(at, owner, 'must be an object', 'write apiVersion, kind, name and uid')]
  const missing = ['apiVersion', 'kind', 'name', 'uid'].flatMap((field) => {
    const value = owner[field]
    if (typeof value === 'string' && value !== '') return []
    const remedy = field === 'uid' ? 'leave owners to programs, which know the uid' : `add ${field} of the owner`
    return [problem(`${at}/${field}`, value, 'is missing', remedy)]
  })
  const wrong = Object.entries(owner).flatMap(([field, value]) => {
    const place = `${at}/${pointerSegment(field)}`
    if (ownerSwitches.has(field))
      return typeof value === 'boolean' ? [] : [problem(place, value, 'must be true or false', 'correct the value')]
    return ownerFields.has(field) ? [] : [problem(place, value, 'is not a known field', 'remove it')]
  })
  const { apiVersion } = owner
  if (typeof apiVersion !== 'string' || apiVersion.split('/').length <= 2) return [...missing, ...wrong]
  return [...wrong, problem(`${at}/apiVersion`, apiVersion, 'has more than one /', 'write group/version')]
}

const ownerFields: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'name', 'uid'])
const ownerSwitches: ReadonlySet<string> = new Set(['controller', 'blockOwnerDeletion'])

/** Key or index, value, and place. */
type Entry = readonly [name: string, value: unknown, pointer: string]

function entriesOf(metadata: Fields, field: 'labels' | 'annotations'): Entry[] {
  const value = metadata[field]
  return isObject(value)
    ? Object.entries(value).map(([key, one]) => [key, one, `/${field}/${pointerSegment(key)}`])
    : []
}

function listOf(metadata: Fields, field: 'finalizers' | 'ownerReferences'): Entry[] {
  const value: unknown = metadata[field]
  return Array.isArray(value)
    ? value.map((one: unknown, index) => [String(index), one, `/${field}/${index}`] as const)
    : []
}

const notText = (at: string, value: unknown): Problem =>
  problem(at, value, `must be a string, got ${value === null ? 'null' : typeof value}`, 'put the value in quotes')

const problem = (pointer: string, value: unknown, message: string, remedy: string): Problem => ({
  pointer: `/metadata${pointer}`,
  message,
  rule: 'metadata',
  remedy,
  ...(value !== undefined && { value }),
})
