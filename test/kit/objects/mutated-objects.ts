/** Skyhooks and DeploymentPolicies in the forms that people write, changed at random: some are valid, most are not. */
import type { Random } from '../../../src/schemas/clock.ts'
import { isObject } from '../../../src/schemas/json.ts'
import { createSeededRandom } from '../virtual-clock.ts'
import { acceptedSkyhooks } from './accepted-skyhooks.ts'
import { acceptedMetadata, refusedObjects } from './refused-objects.ts'
import { group, pace, tuning } from './sample-specs.ts'

type Json = Record<string, unknown>
const apiVersion = 'skyhook.nvidia.com/v1alpha1'

/** As templates write them: groups without entries, twins of one image, references in each form. */
const templated: readonly Json[] = [
  {
    additionalTolerations: null,
    interruptionBudget: { count: null, percent: 10 },
    nodeSelectors: { matchLabels: { pool: 'gpu' }, matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] },
    packages: {
      first: { ...tuning, env: [{ name: 'A', value: '$(B) $$' }], configMap: { 'apply.sh': 'true' } },
      second: { ...tuning, name: 'second', dependsOn: { first: '1.1.0' }, configMap: { 'apply.sh': 'false' } },
    },
  },
  {
    packages: {
      addressed: { version: '1.2.0', image: '[fd00::10]:5000/packages/x' },
      tagged: { version: '1.2.3-rc.1', image: 'registry.example.com:5000/x:1.2.3-rc.1' },
      short: { version: 'v1.2', image: 'x', containerSHA: `sha256:${'0'.repeat(64)}` },
      loop: { ...tuning, dependsOn: { short: '>=1' }, interrupt: { type: 'service', services: ['a', 'b.service'] } },
    },
  },
]

/** Whole objects, none of which may be changed. */
export const baseObjects: readonly Json[] = [
  ...[...acceptedSkyhooks.map(([, spec]) => spec), ...templated].map((spec) => ({ kind: 'Skyhook', spec })),
  ...refusedObjects.map(({ kind, spec }) => ({ kind, spec })),
  { kind: 'DeploymentPolicy', spec: { default: pace, compartments: [group('a'), group('b')] } },
]
  .filter(({ spec }) => JSON.stringify(spec).length < 5_000) // thousands are made
  .map(({ kind, spec }, index) => {
    const metadata = acceptedMetadata[index % acceptedMetadata.length]?.[1]
    return { apiVersion, kind, metadata: { name: 'candidate', ...metadata }, spec }
  })

/** The same objects for the same seed. */
export function* mutatedObjects(seed: number, count: number): Generator<Json> {
  const random = createSeededRandom(seed)
  for (let made = 0; made < count; made++) {
    const object = structuredClone(oneOf(random, baseObjects))
    const changes = 1 + Math.floor(random.number() * 3)
    for (let change = 0; change < changes; change++) mutate(random, object)
    yield object
  }
}

const oneOf = <T>(random: Random, values: readonly T[]): T => values[Math.floor(random.number() * values.length)] as T

/** A place below spec or metadata, by what it is in. */
type Place = { readonly parent: Json | unknown[]; readonly key: string; readonly inMetadata: boolean }

function placesIn(value: unknown, inMetadata: boolean): Place[] {
  if (!isObject(value) && !Array.isArray(value)) return []
  const parent = value as Json | unknown[]
  return Object.entries(parent).flatMap(([key, one]) => [{ parent, key, inMetadata }, ...placesIn(one, inMetadata)])
}

const texts: readonly string[] = [
  '',
  ' ',
  'a b',
  'a\n',
  'é',
  '\u0000',
  '\ud800',
  '$(A)$(A)',
  'cron*',
  'getty@',
  '-1',
  '0',
  '1',
  '1.5Gi',
  '1.2.3.4',
  '1.0.0+b1',
  '>=1.0 <3',
  '2024.05.10',
  '30s',
  '1h1m',
  '-5s',
  'latest',
  'limits.cpu',
  'reboot',
  'service',
  'Exists',
  'In',
  'NoSchedule',
  '../x',
  '..data',
  'https://registry.example.com/x',
  'Upper/Case',
  'registry.example.com/x/',
  '${REGISTRY}/x',
  'x'.repeat(64),
  'x'.repeat(254),
  'x'.repeat(600),
]
const values: readonly unknown[] = [null, true, false, {}, [], [{}], -1, 0, 1, 1.5, 100, 101, 2 ** 31, 2 ** 53, 'text']
const fields: readonly (readonly [string, unknown])[] = [
  ['unknown', 1],
  ['name', 'tuning'],
  ['dependsOn', { tuning: '1.1.0' }],
  ['dependsOn', { first: '1', second: '1' }],
  ['interrupt', { type: 'service', services: ['kubelet'] }],
  ['configInterrupts', { '*': { type: 'noop' } }],
  ['env', [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }]],
  [
    'env',
    [
      { name: 'A', value: 'x'.repeat(60_000) },
      { name: 'B', value: '$(A)$(A)$(A)' },
    ],
  ],
  ['resources', { cpuRequest: '1', cpuLimit: 2, memoryRequest: '1Gi', memoryLimit: '1G' }],
  ['interruptionBudget', { percent: 5, maxCount: 1 }],
  ['matchExpressions', [{ key: 'a', operator: 'Exists' }]],
  ['count', 1],
  ['priority', 3],
]

type Mutation = (random: Random, place: Place) => void
const set = ({ parent, key }: Place, value: unknown): void => void Reflect.set(parent, key, value)

const mutations: readonly Mutation[] = [
  (_, { parent, key }) => {
    if (Array.isArray(parent)) parent.splice(Number(key), 1)
    else Reflect.deleteProperty(parent, key)
  },
  // the server reads a label or an annotation that is null as empty, which nobody means
  (random, place) => set(place, structuredClone(oneOf(random, place.inMetadata ? values.slice(1) : values))),
  (random, place) => set(place, oneOf(random, texts)),
  (random, place) => {
    const [name, value] = oneOf(random, fields)
    if (!Array.isArray(place.parent)) place.parent[name] = structuredClone(value)
    else place.parent.push(structuredClone(place.parent[Number(place.key)]))
  },
  (random, { parent, key }) => {
    if (Array.isArray(parent)) return
    const renamed = oneOf(random, [key.toLowerCase(), `${key}x`, `${key} `, oneOf(random, texts)])
    const value = parent[key]
    Reflect.deleteProperty(parent, key)
    parent[renamed] = value
  },
  (random, place) => {
    const value: unknown = Reflect.get(place.parent, place.key)
    if (typeof value === 'string') set(place, `${value}${oneOf(random, texts)}`)
    if (typeof value === 'number') set(place, value + oneOf(random, [-1, 1, 0.5, 1_000]))
  },
]

function mutate(random: Random, object: Json): void {
  const places = [
    ...placesIn(object['spec'], false),
    ...placesIn(object['metadata'], true).filter(({ key }) => random.number() < 0.3 || key !== 'name'),
  ]
  if (places.length > 0) oneOf(random, mutations)(random, oneOf(random, places))
}
