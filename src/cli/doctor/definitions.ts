/** Whether the cluster's resource definitions are those of this tool's version. */
import { canonicalJson } from '../../schemas/canonical-json.ts'
import { isObject } from '../../schemas/json.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'

export type ExpectedDefinition = {
  readonly name: string
  /** Without the status. */
  readonly schema: object
}

const kind = 'CustomResourceDefinition'
const upgrade = 'upgrade the chart with crds.install, or apply the files of its folder crd-files'

export function checkDefinitions(
  { definitions, toolVersion }: Pick<ClusterFacts, 'definitions' | 'toolVersion'>,
  expected: readonly ExpectedDefinition[],
): Check {
  if (!definitions.known) return checkOf('definitions', { unknown: [definitions.why] })
  const findings = expected.flatMap(({ name, schema }): readonly Finding[] => {
    const found = definitions.value.get(name)
    const command = `kubectl get crd ${name} -o yaml`
    const objects = [{ kind, name }]
    if (found === undefined)
      return [finding('definition-missing', { message: `there is no ${kind} ${name}`, remedy: upgrade, objects })]
    if (found.schema === undefined || !found.isEstablished)
      return [
        finding('definition-not-served', {
          message: `${kind} ${name} ${found.schema === undefined ? 'does not serve v1alpha1' : 'is not established'}`,
          remedy: `look at its conditions, and ${upgrade}`,
          command,
          objects,
        }),
      ]
    return differences(name, schema, withoutStatus(found.schema)).map((one) => ({ ...one, command }))
  })
  return checkOf('definitions', { findings, about: `those of version ${toolVersion}` })
}

function differences(name: string, ours: object, theirs: object): readonly Finding[] {
  const known = new Set(fieldsOf(theirs, ''))
  const missing = fieldsOf(ours, '').filter((field) => !known.has(field))
  const objects = [{ kind, name }]
  // a field within a missing field needs no mention
  const outermost = missing.filter((field) => !missing.some((other) => field.startsWith(`${other}.`)))
  if (outermost.length > 0)
    return [
      finding('definition-lacks-fields', {
        message: `${kind} ${name} lacks ${namedSome(outermost)}: the API server drops these fields`,
        remedy: `${upgrade}; where the agents are older than this tool, use the tool of their version`,
        objects,
      }),
    ]
  if (canonicalJson(withoutTexts(ours)) === canonicalJson(withoutTexts(theirs))) return []
  return [
    finding('definition-differs', {
      message: `${kind} ${name} has other rules, limits or fields than that of this tool's version`,
      remedy: `${upgrade}; where it is newer than this tool, use the tool of the agents' version`,
      objects,
    }),
  ]
}

/** Every field by its path, such as `spec.packages.*.version`. */
function fieldsOf(schema: unknown, path: string): readonly string[] {
  if (!isObject(schema)) return []
  const { properties, items, additionalProperties } = schema
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`)
  return [
    ...(isObject(properties)
      ? Object.entries(properties).flatMap(([name, value]) => [at(name), ...fieldsOf(value, at(name))])
      : []),
    ...fieldsOf(items, at('*')),
    ...fieldsOf(additionalProperties, at('*')),
  ]
}

function withoutStatus(schema: object): object {
  if (!('properties' in schema) || !isObject(schema.properties)) return schema
  const properties = Object.entries(schema.properties).filter(([name]) => name !== 'status')
  return { ...schema, properties: Object.fromEntries(properties) }
}

/** Descriptions have no effect; but a property may have that name. */
function withoutTexts(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutTexts)
  if (!isObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => key !== 'description' || typeof value !== 'string')
      .map(([key, value]) => [key, withoutTexts(value)]),
  )
}
