/**
 * `validate` and others agree about thousands of changed objects: an independent validator of JSON schemas about their
 * form, the decisions of agents about the rest. test/cluster/definitions.test.ts asks a real API server.
 */
import Ajv from 'ajv'
import { expect, test } from 'vitest'
import { runsOf, seedOf } from '../../../test/kit/effort.ts'
import { mutatedObjects } from '../../../test/kit/objects/mutated-objects.ts'
import { configProblems } from '../../packages/install/copy-dir.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import { packageReference } from '../../packages/oci/reference.ts'
import { resolveReferences } from '../../packages/step/references.ts'
import { propertiesOf } from '../../packages/step/unit-request.ts'
import { isObject, type JsonObject } from '../../schemas/json.ts'
import type { PackageSpec, SkyhookSpec } from '../../schemas/skyhook.ts'
import { specProblems } from '../../stages/package/spec-problems.ts'
import { definitions, resourceFindings } from './resource.ts'
import { type Schema, withDefaults } from './structural.ts'

/** The schema in the words of JSON schema, with what the API server adds: no field that is not named, null for none. */
function jsonSchema(schema: Schema): object {
  const { properties, additionalProperties, items, nullable, type, ...rest } = schema
  const limits = Object.fromEntries(Object.entries(rest).filter(([name]) => keywords.has(name)))
  const keys = schema['x-kubernetes-list-type'] === 'map' && schema['x-kubernetes-list-map-keys']
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true
  const strict = {
    ...limits,
    ...(isIntOrString ? { type: ['integer', 'string'] } : type !== undefined && { type }),
    ...(items && { items: jsonSchema(items) }),
    ...(properties && { properties: mapped(properties), additionalProperties: false }),
    ...(additionalProperties && { additionalProperties: jsonSchema(additionalProperties) }),
    ...(keys && { mapKeys: keys }),
  }
  return nullable === true || schema.default !== undefined ? { anyOf: [{ type: 'null' }, strict] } : strict
}
const mapped = (properties: Readonly<Record<string, Schema>>): object =>
  Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, jsonSchema(one)]))
const keywords: ReadonlySet<string> = new Set(
  'enum required minimum maximum minLength maxLength pattern maxItems maxProperties'.split(' '),
)

const ajv = new Ajv.default({ strict: false })
ajv.addKeyword({
  keyword: 'mapKeys',
  type: 'array',
  validate: (keys: readonly string[], items: readonly unknown[]) => {
    const seen = items.map((item) => JSON.stringify(keys.map((key) => (isObject(item) ? item[key] : undefined))))
    return new Set(seen).size === seen.length
  },
})
const validators = new Map(definitions.map(({ kind, schema }) => [kind, ajv.compile(jsonSchema(schema))]))

/** Every object and key that a variable refers to is there. */
const everything: Readonly<Record<string, string>> = new Proxy({}, { get: () => 'MQ==' })
const port = { secret: () => Promise.resolve(everything), configMap: () => Promise.resolve(everything) }
const fields = { nodeName: 'node-1', hostIp: '10.0.0.1', namespace: 'skyhook' }

/** Whether agents would do nothing with it, all else being well. */
async function isRefusedByAgents({ packages = {} }: SkyhookSpec): Promise<boolean> {
  if (specProblems(packages).length > 0) return true
  for (const spec of Object.values(packages)) if (await isPackageRefused(spec)) return true
  return false
}

async function isPackageRefused(spec: PackageSpec): Promise<boolean> {
  const { image, version, containerSHA, env = [], resources, configMap = {} } = spec
  try {
    packageReference(image, version, containerSHA)
  } catch (error) {
    if (error instanceof ImageError) return true
    throw error
  }
  const references = { env, ...(resources && { resources }), fields, port, systemdVersion: () => Promise.resolve(255) }
  const { outcome } = await resolveReferences(references)
  return outcome === 'invalid' || propertiesOf(spec).outcome === 'invalid' || configProblems(configMap).length > 0
}

test('validate finds what a schema validator and agents find wrong with changed objects, and nothing else', async () => {
  const disagreements: string[] = []
  const counts = { form: 0, rules: 0, agents: 0, valid: 0 }
  for (const object of mutatedObjects(seedOf(1), runsOf(2_000, 20_000))) {
    const errors = resourceFindings(object as JsonObject).filter(({ severity }) => severity === 'error')
    const isFormWrong = errors.some(({ rule }) => rule.startsWith('schema/'))
    const { status: _, ...written } = object
    const say = (who: string): void =>
      void disagreements.push(`${who} disagree: ${JSON.stringify({ errors, object }).slice(0, 2_000)}`)
    const validator = validators.get(String(object['kind']))
    if (validator?.(written) === isFormWrong) say('schema validators')
    const isTaken = errors.every(({ rule }) => !/^(?:schema\/.*|cel|metadata)$/.test(rule))
    counts[isFormWrong ? 'form' : isTaken ? (errors.length > 0 ? 'agents' : 'valid') : 'rules'] += 1
    if (!isTaken || object['kind'] !== 'Skyhook') continue
    const { schema = {} } = definitions.find(({ kind }) => kind === 'Skyhook') ?? {}
    const stored = withDefaults(schema, object) as { readonly spec: SkyhookSpec }
    // the chart's admission policy refuses some resources that agents could use
    const isFoundUnusable = errors.some(({ rule }) => rule !== 'resources' && rule !== 'size')
    const isRefused = await isRefusedByAgents(stored.spec ?? {})
    if (isRefused ? errors.length === 0 : isFoundUnusable) say('agents')
  }
  expect(disagreements).toEqual([])
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(5) // each kind is among them
})
