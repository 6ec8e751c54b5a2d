/** Skyhooks and DeploymentPolicies as the API server would judge them, and beyond. Pure. */
import { isObject } from '../../schemas/json.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { ruleProblems } from './cel.ts'
import generated from './generated/definitions.json' with { type: 'json' }
import { metadataProblems } from './metadata.ts'
import type { Schema } from './schema.ts'
import { semanticFindings, type SkyhookFinding } from './semantics.ts'
import { structuralProblems, withDefaults } from './structural.ts'

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
