import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { resourceFindings } from '../../src/cli/validate/resource.ts'
import { fieldsOf, notes } from './skyhook-reference.ts'

type Json = Readonly<Record<string, unknown>>

const group = 'skyhook.nvidia.com/v1alpha1'
const image = 'registry.example.com/packages/driver'
/** What a resourceFieldRef shows. */
const resources = { cpuRequest: 1, cpuLimit: 1, memoryRequest: '1Gi', memoryLimit: '1Gi' }
const strategy = { fixed: {} }
const ofPolicy = new Set(fieldsOf('DeploymentPolicy', 'spec').map(({ name }) => name))

/** A whole object around an example, by what its field is in. */
function objectWith(field: string, example: Json): Json {
  const policy = (spec: Json): Json => ({
    apiVersion: group,
    kind: 'DeploymentPolicy',
    metadata: { name: 'careful' },
    spec: { default: { budget: { count: 1 }, strategy }, ...spec },
  })
  const skyhook = (spec: Json): Json => ({ apiVersion: group, kind: 'Skyhook', metadata: { name: 'tuning' }, spec })
  if (field.startsWith('spec.packages.*.')) {
    const other = { version: '1.5.0', image }
    return skyhook({ packages: { driver: { version: '3.2.1', image, resources, ...example }, other } })
  }
  if (field.startsWith('selector.')) return skyhook({ nodeSelectors: example })
  if (field.startsWith('budget.')) return policy({ default: { budget: example, strategy } })
  if (field.startsWith('strategy.')) return policy({ default: { budget: { count: 1 }, strategy: example } })
  return ofPolicy.has(field) ? policy(example) : skyhook(example)
}

/** Whether a value has the field at the end of a path such as `env[].valueFrom`. */
function has(value: unknown, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) return value !== undefined
  if (typeof value !== 'object' || value === null) return false
  const values = first === '*' || Array.isArray(value) ? Object.values(value) : [(value as Json)[first]]
  return values.some((one) => has(one, first === '*' || !Array.isArray(value) ? rest : [first, ...rest]))
}

test.each([...notes])('the example of %s has the field and is valid', (field, { example = '' }) => {
  const parsed = parse(example) as Json
  const path = field
    .replace(/^(spec\.packages\.\*|spec|selector|budget|strategy)\./, '')
    .replaceAll('[]', '')
    .split('.')
  expect(has(parsed, path)).toBe(true)
  expect(resourceFindings(objectWith(field, parsed)).filter(({ severity }) => severity === 'error')).toEqual([])
})
