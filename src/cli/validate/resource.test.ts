import { describe, expect, test } from 'vitest'
import { acceptedSkyhooks } from '../../../test/kit/objects/accepted-skyhooks.ts'
import {
  acceptedMetadata,
  refusedMetadata,
  type RefusedObject,
  refusedObjects,
} from '../../../test/kit/objects/refused-objects.ts'
import { group, pace, tuning, withPackage } from '../../../test/kit/objects/sample-specs.ts'
import type { JsonObject } from '../../schemas/json.ts'
import { definitions, resourceFindings } from './resource.ts'
import type { Schema } from './structural.ts'
import type { SkyhookFinding } from './semantics.ts'

const apiVersion = 'skyhook.nvidia.com/v1alpha1'
const findingsOf = (spec: object, kind = 'Skyhook', metadata: object = { name: 'candidate' }): SkyhookFinding[] =>
  resourceFindings(JSON.parse(JSON.stringify({ apiVersion, kind, metadata, spec })) as JsonObject)
const errorsOf = (...input: Parameters<typeof findingsOf>) =>
  findingsOf(...input).filter(({ severity }) => severity === 'error')
const warningsOf = (spec: object) => findingsOf(spec).map(({ severity, rule, pointer }) => [severity, rule, pointer])

/** `spec.packages.tuning.env[0].name` as a JSON pointer. */
const pointerOf = (place: string): string => `/${place.replaceAll(/[[.]/g, '/').replaceAll(']', '')}`

/** The API server's own terms for what the schema refuses. */
const ruleByAnswer: Readonly<Record<string, string>> = {
  'Required value': 'schema/required',
  'Unsupported value': 'schema/enum',
  'Too many': 'schema/max',
  'Too long': 'schema/maxLength',
  'Duplicate value': 'schema/duplicate',
}

/** Does a finding say what the API server answers? */
function says({ pointer, message, rule }: SkyhookFinding, { place, text }: RefusedObject): boolean {
  const unknownField = /^unknown field "(.*)"$/.exec(text)?.[1]
  if (unknownField !== undefined) return rule === 'schema/unknown-field' && pointer === pointerOf(unknownField)
  if (place !== '' && pointer !== pointerOf(place)) return false
  const serverRule = Object.entries(ruleByAnswer).find(([word]) => text.startsWith(word))?.[1]
  return serverRule === undefined ? message.includes(text) : rule.startsWith(serverRule)
}

/** Keywords that the schemas may have; another one would not be checked. */
const knownKeywords: ReadonlySet<string> = new Set([
  'type',
  'description',
  'nullable',
  'default',
  'enum',
  'required',
  'properties',
  'additionalProperties',
  'items',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'maxItems',
  'maxProperties',
  'format', // int64: JSON numbers are checked as integers
  'anyOf', // of int-or-string, which is checked by its own keyword
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type', // merges only
  'x-kubernetes-validations',
])

describe('a refused object', () => {
  test.each(refusedObjects)('a $kind with $what is refused at the place that the API server names', (refused) => {
    const { kind, name, spec } = refused
    const findings = findingsOf(spec, kind, { name })
    const errors = findings.filter(({ severity }) => severity === 'error')
    expect(errors.map(({ pointer, message }) => `${pointer}: ${message}`)).not.toEqual([])
    expect(errors.filter((finding) => says(finding, refused))).not.toEqual([])
    for (const { remedy } of findings) expect(remedy).not.toBe('')
  })
})

describe('metadata', () => {
  test.each(refusedMetadata)('metadata with %s are refused where the API server refuses them', (_, metadata, place) => {
    const pointers = errorsOf({}, 'Skyhook', { name: 'candidate', ...metadata }).map(({ pointer }) => pointer)
    expect(pointers).toEqual([expect.stringMatching(`^/metadata/${place}(/|$)`)])
  })

  test.each(acceptedMetadata)('metadata with %s have no errors', (_, metadata) => {
    expect(errorsOf({}, 'Skyhook', { name: 'candidate', ...metadata })).toEqual([])
  })
})

describe('an accepted object', () => {
  test.each<[string, object, string?]>(acceptedSkyhooks)(
    'a Skyhook %s has no errors',
    (_, spec, name = 'candidate') => {
      expect(errorsOf(spec, 'Skyhook', { name })).toEqual([])
    },
  )

  test('a DeploymentPolicy that the API server accepts has no findings', () => {
    const compartments = [group('a', { strategy: { exponential: { initialBatch: 2 } } })]
    expect(findingsOf({ default: { ...pace, strategy: { linear: {} } }, compartments }, 'DeploymentPolicy')).toEqual([])
  })

  test('every keyword of the schemas is one that is checked', () => {
    const unknown = new Set<string>()
    const visit = (schema: Schema): void => {
      for (const keyword of Object.keys(schema)) if (!knownKeywords.has(keyword)) unknown.add(keyword)
      for (const one of Object.values(schema.properties ?? {})) visit(one)
      if (schema.items) visit(schema.items)
      if (schema.additionalProperties) visit(schema.additionalProperties)
    }
    for (const { schema } of definitions) visit(schema)
    expect([...unknown]).toEqual([])
  })
})

describe('form', () => {
  test('a version that YAML reads as a number must be quoted', () => {
    expect(errorsOf(withPackage({ version: 1.1 }))).toMatchObject([
      {
        pointer: '/spec/packages/tuning/version',
        rule: 'schema/type',
        remedy: expect.stringContaining('quotes') as string,
      },
    ])
  })

  test('a misspelled field comes with the one that was meant', () => {
    expect(errorsOf(withPackage({ configmap: {} }))).toMatchObject([{ remedy: 'write configMap instead' }])
    expect(errorsOf(withPackage({ interupt: {} }))).toMatchObject([{ remedy: 'write interrupt instead' }])
    expect(errorsOf(withPackage({ script: {} }))).toMatchObject([
      { remedy: expect.stringContaining('write one of name, version') as string },
    ])
  })

  test('annotations and labels that are not text are refused as by the API server', () => {
    const metadata = { name: 'a', annotations: { 'skyhook.nvidia.com/pause': true }, labels: { a: '1' } }
    expect(errorsOf({}, 'Skyhook', metadata)).toMatchObject([
      { pointer: '/metadata/annotations/skyhook.nvidia.com~1pause', value: true, remedy: 'put the value in quotes' },
    ])
  })

  test('a name must be there and legal', () => {
    expect(errorsOf({}, 'Skyhook', {})).toMatchObject([{ pointer: '/metadata/name', message: 'is missing' }])
    expect(errorsOf({}, 'Skyhook', { name: 'My_Hook' })).toMatchObject([{ pointer: '/metadata/name' }])
  })

  test('an unknown kind of our group is an error that names the known ones', () => {
    expect(resourceFindings({ apiVersion, kind: 'Skyhoook' })).toMatchObject([
      { severity: 'error', message: expect.stringContaining('Skyhook of skyhook.nvidia.com/v1alpha1') as string },
    ])
  })

  test('a rule is not judged where the form below it is wrong, but beside it', () => {
    const spec = { packages: { tuning: { ...tuning, dependsOn: 'other' } }, interruptionBudget: { maxCount: 1 } }
    expect(errorsOf(spec).map(({ rule, pointer }) => [rule, pointer])).toEqual([
      ['schema/type', '/spec/packages/tuning/dependsOn'],
      ['cel', '/spec/interruptionBudget/maxCount'],
    ])
  })
})

describe('semantics', () => {
  test.each<[string, object, object]>([
    [
      'a pattern of services',
      { interrupt: { type: 'service', services: ['cron*'] } },
      { rule: 'schema/pattern', pointer: '/interrupt/services/0', value: 'cron*' },
    ],
    [
      'a template of a service',
      { interrupt: { type: 'service', services: ['kubelet', 'getty@.service'] } },
      {
        rule: 'service-name',
        pointer: '/interrupt/services/1',
        message: '"getty@.service" is a template without an instance',
        remedy: 'write one, such as getty@tty1',
      },
    ],
    [
      'a service whose unit has a name of 256 characters',
      { configMap: { a: '' }, configInterrupts: { a: { type: 'service', services: ['x'.repeat(248)] } } },
      { rule: 'service-name', pointer: '/configInterrupts/a/services/0' },
    ],
    [
      'a variable at the limit of the definition',
      { env: [{ name: 'BIG', value: 'x'.repeat(131_072) }] },
      {
        rule: 'variable',
        pointer: '/env/0/value',
        message: 'BIG is 131076 bytes long; the kernel takes at most 131071',
        remedy: 'put the text into configMap, and read the file',
      },
    ],
    [
      'a reference to a resource that the package does not set',
      { env: [{ name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }] },
      {
        rule: 'variable',
        pointer: '/env/0/valueFrom/resourceFieldRef',
        message: "CPU asks for limits.cpu, which the package's resources do not set",
      },
    ],
    [
      'a variable that others make too long',
      {
        env: [
          { name: 'A', value: 'x'.repeat(100_000) },
          { name: 'B', value: '$(A)$(A)' },
        ],
      },
      { rule: 'variable', pointer: '/env/1/value', message: expect.stringMatching(/^B is 200002 bytes/) as string },
    ],
  ])('%s is an error at its place', (_, fields, { pointer, ...finding }: { readonly pointer?: string }) => {
    expect(errorsOf(withPackage(fields as Record<string, unknown>))).toMatchObject([
      { ...finding, pointer: `/spec/packages/tuning${pointer}` },
    ])
  })

  test('a cycle of dependencies is an error at one of its packages', () => {
    const spec = {
      packages: {
        a: { ...tuning, dependsOn: { b: '1.1.0' } },
        b: { ...tuning, dependsOn: { a: '1.1.0' } },
      },
    }
    const named = JSON.parse(JSON.stringify(spec).replaceAll('"a"', '"aa"').replaceAll('"b"', '"bb"')) as object
    expect(errorsOf(named)).toMatchObject([
      {
        rule: 'dependency',
        pointer: '/spec/packages/aa/dependsOn',
        message: 'cycle aa -> bb -> aa; remove one of these dependencies',
        remedy: 'remove one of these dependencies',
      },
    ])
  })

  test('a range that the package does not satisfy is an error at the dependency', () => {
    const spec = { packages: { tuning: { ...tuning, dependsOn: { other: '>=2' } }, other: tuning } }
    expect(errorsOf(spec)).toMatchObject([{ pointer: '/spec/packages/tuning/dependsOn/other' }])
  })

  test('an image that no registry can have is an error', () => {
    expect(errorsOf(withPackage({ image: 'registry.example.com/Team/Package' }))).toMatchObject([
      { rule: 'image-reference', pointer: '/spec/packages/tuning/image' },
    ])
  })

  test.each<[string, object, [string, string]]>([
    ['a tag that is ignored', { image: 'registry.example.com/p:2' }, ['image-tag', '/image']],
    ['a service interrupt without services', { interrupt: { type: 'service' } }, ['interrupt-services', '/interrupt']],
    [
      'services that are ignored',
      { interrupt: { type: 'reboot', services: ['a'] } },
      ['interrupt-services', '/interrupt/services'],
    ],
    [
      'a pattern with a class that matches nothing',
      { configMap: { a: '' }, configInterrupts: { '[bc]*': { type: 'noop' } } },
      ['config-interrupt', '/configInterrupts/[bc]*'],
    ],
    [
      'a reference to a later variable',
      { env: [{ name: 'A', value: '$(B)' }, { name: 'B' }] },
      ['variable-reference', '/env/0/value'],
    ],
    ['a variable twice', { env: [{ name: 'A' }, { name: 'A' }] }, ['variable-twice', '/env/1/name']],
    ['agentImageOverride', { agentImageOverride: 'x' }, ['no-effect', '/agentImageOverride']],
  ])('a package with %s has a warning', (_, fields, [rule, place]) => {
    const spec = { ...withPackage(fields as Record<string, unknown>), interruptionBudget: { count: 1 } }
    expect(warningsOf(spec)).toEqual([['warning', rule, `/spec/packages/tuning${place}`]])
  })

  test.each<[string, object, [string, string]]>([
    [
      'interrupts and no budget',
      withPackage({ interrupt: { type: 'reboot' } }),
      ['budget', '/spec/interruptionBudget'],
    ],
    ['a budget of 0', { interruptionBudget: { count: 0 } }, ['budget', '/spec/interruptionBudget']],
    ['autoTaintNewNodes alone', { autoTaintNewNodes: true }, ['no-effect', '/spec/autoTaintNewNodes']],
    ['an end of the drain without time', { drain: { onTimeout: 'delete' } }, ['no-effect', '/spec/drain/onTimeout']],
    [
      'options of no policy',
      { deploymentPolicyOptions: { resetBatchStateOnCompletion: true } },
      ['no-effect', '/spec/deploymentPolicyOptions'],
    ],
    [
      'tolerationSeconds',
      { additionalTolerations: [{ operator: 'Exists', tolerationSeconds: 1 }] },
      ['no-effect', '/spec/additionalTolerations/0/tolerationSeconds'],
    ],
  ])('a Skyhook with %s has a warning', (_, spec, [rule, pointer]) => {
    expect(warningsOf(spec)).toEqual([['warning', rule, pointer]])
  })

  test('a script of configMap with Windows line ends has a warning, and a file for Windows has none', () => {
    const configMap = { 'apply.sh': 'a\r\nb\r\n', run: '#!/bin/sh\r\n', 'b.sh': 'a\nb\n', 'pem.txt': 'a\r\nb\r\n' }
    expect(findingsOf(withPackage({ configMap })).map(({ rule, pointer }) => [rule, pointer])).toEqual([
      ['line-ends', '/spec/packages/tuning/configMap/apply.sh'],
      ['line-ends', '/spec/packages/tuning/configMap/run'],
    ])
  })

  test('a variable known before, and a doubled dollar sign, have no warning', () => {
    const env = [
      { name: 'A', value: 'x' },
      { name: 'B', value: '$(A) $$(C) $(not a name)' },
    ]
    expect(findingsOf(withPackage({ env }))).toEqual([])
  })

  test('a Skyhook that is too large for kubectl apply has a warning, for etcd an error', () => {
    const large = (bytes: number) => findingsOf(withPackage({ configMap: { a: 'x'.repeat(bytes) } }))
    expect(large(100_000)).toEqual([])
    expect(large(300_000)).toMatchObject([{ severity: 'warning', rule: 'size' }])
    expect(large(2_000_000)).toMatchObject([{ severity: 'error', rule: 'size' }])
  })
})
