import { expect, test } from 'vitest'
import { sampleServer } from '../../../../test/kit/api-server/sample-server.ts'
import { ApiError } from '../../../kube/errors.ts'
import type { KubeTransport, Method } from '../../../kube/transport.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../../schemas/api.ts'
import type { JsonObject } from '../../../schemas/json.ts'
import { lastAppliedKey } from '../plan/three-way-merge.ts'
import { fieldChanges, type RehearsedWrite, rehearseApply, rehearseDelete } from './rehearsed-write.ts'

const package1 = (version: string) => ({ version, image: 'registry.test/tuning' })
const skyhook = (packages: JsonObject, metadata: JsonObject = {}, spec: JsonObject = {}): JsonObject => ({
  ...skyhookTypeMeta,
  metadata: { name: 'tuning', ...metadata },
  spec: { packages, interruptionBudget: { count: 1 }, ...spec },
})
const forbidden = (message: string): ApiError => new ApiError({ status: 403, reason: 'Forbidden', message })

type Answers = { readonly [K in Method]?: () => unknown }

/** A server with the object, whose answers to some requests are given. */
async function scene(present: JsonObject | undefined, answers: Answers = {}) {
  const { admin } = sampleServer()
  if (present) await admin.json('POST', skyhooksPath, { body: present })
  const sent: { method: Method; path: string; body: unknown; query: unknown }[] = []
  const transport: KubeTransport = {
    ...admin,
    async json<T>(method: Method, path: string, options: Parameters<KubeTransport['json']>[2] = {}): Promise<T> {
      sent.push({ method, path, body: options.body, query: options.query })
      const answer = answers[method]
      return answer === undefined ? await admin.json<T>(method, path, options) : (answer() as T)
    },
  }
  const around = { transport, signal: new AbortController().signal, now: '2026-11-23T08:00:00Z' }
  const stored = async () => await admin.json<JsonObject>('GET', `${skyhooksPath}/tuning`)
  return {
    sent,
    stored,
    apply: async (object: JsonObject): Promise<RehearsedWrite> =>
      await rehearseApply({ kind: 'Skyhook', name: 'tuning', object }, around),
    remove: async (): Promise<RehearsedWrite> =>
      await rehearseDelete({ kind: 'Skyhook', name: 'tuning', object: {} }, around),
  }
}

test('an apply removes what the last one had and this one has not, and keeps what others have set', async () => {
  const packages = { sysctl: package1('1.0.0'), limits: package1('1.0.0') }
  const before = skyhook(packages)
  const lastApplied = { [lastAppliedKey]: JSON.stringify(before) }
  const { apply, stored } = await scene(skyhook(packages, { annotations: lastApplied }, { priority: 7 }))
  const { change, fields, after, admission } = await apply(skyhook({ sysctl: package1('2.0.0') }))
  expect(change).toBe('changed')
  expect(fields.map(({ field, change: how }) => `${how} ${field}`)).toEqual([
    'removed spec.packages.limits.image',
    'removed spec.packages.limits.version',
    'changed spec.packages.sysctl.version',
  ])
  expect(after).toMatchObject({
    metadata: { generation: 2 },
    spec: { priority: 7, packages: { sysctl: { version: '2.0.0' } } },
  })
  expect(admission).toEqual({ checkedBy: 'server', refusals: [], warnings: [] })
  expect(await stored()).toMatchObject({
    metadata: { generation: 1 },
    spec: { packages: { sysctl: { version: '1.0.0' } } },
  })
})

test('an object that is as the file says is not sent', async () => {
  const object = skyhook({ sysctl: package1('1.0.0') })
  const { apply, sent } = await scene(object)
  expect(await apply(object)).toMatchObject({ change: 'unchanged', fields: [], admission: { checkedBy: 'nobody' } })
  expect(sent.map(({ method }) => method)).toEqual(['GET'])
})

test('an object that is not there is created, and has no identity yet', async () => {
  const { apply } = await scene(undefined)
  const { change, after, before } = await apply(skyhook({ sysctl: package1('1.0.0') }))
  expect([change, before]).toEqual(['created', undefined])
  expect(after).toMatchObject({ spec: { packages: { sysctl: { version: '1.0.0' } } } })
})

test('a refusal is reported in the words of the API server', async () => {
  const refuse = (): never => {
    throw new ApiError({ status: 422, reason: 'Invalid', message: 'ValidatingAdmissionPolicy says no' })
  }
  const { apply } = await scene(undefined, { POST: refuse })
  const { admission, after } = await apply(skyhook({ sysctl: package1('1.0.0') }))
  expect(admission).toEqual({ checkedBy: 'server', refusals: ['ValidatingAdmissionPolicy says no'], warnings: [] })
  expect(after).toBeUndefined()
})

/** Answers the review of access as well. */
const withoutRight =
  (allowed: boolean): (() => unknown) =>
  () => {
    reviews++
    if (reviews % 2 === 1) throw forbidden('skyhooks.skyhook.nvidia.com is forbidden')
    return { status: { allowed } }
  }
let reviews = 0

test('a refusal with the code of missing rights is one where the right is there', async () => {
  reviews = 0
  const { apply } = await scene(undefined, { POST: withoutRight(true) })
  const { admission } = await apply(skyhook({ sysctl: package1('1.0.0') }))
  expect(admission).toMatchObject({ checkedBy: 'server', refusals: ['skyhooks.skyhook.nvidia.com is forbidden'] })
})

test('without the right to write, the tool judges by the same rules, and says so', async () => {
  reviews = 0
  const { apply, sent } = await scene(undefined, { POST: withoutRight(false) })
  const fine = await apply(skyhook({ sysctl: package1('1.0.0') }))
  expect(fine.admission).toEqual({
    checkedBy: 'tool',
    why: 'you may not create skyhooks',
    refusals: [],
    warnings: [],
  })
  expect(fine.after).toMatchObject({ spec: { packages: { sysctl: { version: '1.0.0' } }, priority: 200 } })
  const both = await apply(
    skyhook({ sysctl: package1('1.0.0') }, {}, { interruptionBudget: { count: 1, percent: 10 } }),
  )
  expect(both.admission.refusals).toMatchObject([expect.stringContaining('/spec/interruptionBudget')])
  expect(both.after).toBeUndefined()
  expect(sent.filter(({ path }) => path.endsWith('selfsubjectaccessreviews'))).toHaveLength(2)
})

test('a review of access that is refused counts as no right', async () => {
  const { apply } = await scene(undefined, {
    POST: () => {
      throw forbidden('no')
    },
  })
  expect(await apply(skyhook({ sysctl: package1('1.0.0') }))).toMatchObject({ admission: { checkedBy: 'tool' } })
})

test('a deletion leaves an object with finalizers until its agents are done, and others are gone', async () => {
  const object = skyhook({ sysctl: package1('1.0.0') })
  const kept = await scene({ ...object, metadata: { name: 'tuning', finalizers: ['skyhook.nvidia.com/skyhook'] } })
  expect(await kept.remove()).toMatchObject({
    change: 'deleted',
    admission: { checkedBy: 'server' },
    after: { metadata: { deletionTimestamp: '2026-11-23T08:00:00Z', generation: 2 } },
  })
  expect((await kept.stored())['metadata']).not.toHaveProperty('deletionTimestamp')
  const gone = await scene(object)
  expect(await gone.remove()).toMatchObject({ change: 'deleted', after: undefined })
  const missing = await scene(undefined)
  expect(await missing.remove()).toMatchObject({ change: 'unchanged', admission: { why: 'it does not exist' } })
})

test('an API server that does not answer is an error, not a refusal', async () => {
  const { apply } = await scene(undefined, {
    POST: () => {
      throw new ApiError({ status: 503, reason: 'ServiceUnavailable', message: 'away' })
    },
  })
  await expect(apply(skyhook({ sysctl: package1('1.0.0') }))).rejects.toMatchObject({ status: 503 })
})

const object = (packages: object, rest: object = {}) => ({ metadata: { name: 's' }, spec: { packages, ...rest } })

test('each field that differs is named with both values', () => {
  const before = object(
    { a: { version: '1', image: 'x' } },
    { priority: 1, nodeSelectors: { matchLabels: { 'a/b': '1' } } },
  )
  const after = object({ a: { version: '2', image: 'x' } }, { pause: true, nodeSelectors: { matchLabels: {} } })
  expect(fieldChanges(before, after)).toEqual([
    { field: 'spec.nodeSelectors.matchLabels["a/b"]', change: 'removed', before: '1' },
    { field: 'spec.packages.a.version', change: 'changed', before: '1', after: '2' },
    { field: 'spec.pause', change: 'added', after: true },
    { field: 'spec.priority', change: 'removed', before: 1 },
  ])
})

test('what is new is shown field by field', () => {
  expect(
    fieldChanges(undefined, object({ a: { version: '1', interrupt: { type: 'reboot' }, dependsOn: {} } })),
  ).toEqual([
    { field: 'spec.packages.a.dependsOn', change: 'added' },
    { field: 'spec.packages.a.interrupt.type', change: 'added', after: 'reboot' },
    { field: 'spec.packages.a.version', change: 'added', after: '1' },
  ])
})

test('values of variables and files are never shown, whatever the package is called', () => {
  const secret = { env: [{ name: 'TOKEN', value: 'hunter2' }], configMap: { 'a.sh': 'hunter2', 'b.sh': 'x' } }
  const after = { env: 'hunter2', configMap: { 'a.sh': 'hunter3', 'c"].sh': 'hunter4' } }
  for (const name of ['a', 'a.b', 'a"].b', 'env']) {
    const changes = fieldChanges(object({ [name]: secret }), object({ [name]: after }))
    expect(changes).toHaveLength(4)
    expect(JSON.stringify(changes)).not.toContain('hunter')
  }
})

test('what kubectl and the API server write for themselves is not a change', () => {
  const lastApplied = { 'kubectl.kubernetes.io/last-applied-configuration': '{}' }
  const before = { metadata: { resourceVersion: '1', annotations: lastApplied }, spec: {}, status: { a: 1 } }
  const after = { metadata: { resourceVersion: '2', annotations: { a: 'b' } }, spec: {} }
  expect(fieldChanges(before, after)).toEqual([{ field: 'metadata.annotations.a', change: 'added', after: 'b' }])
})

test('long texts are cut, between characters', () => {
  const changes = fieldChanges(undefined, object({ a: { image: 'x'.repeat(200), version: '\u{1F600}'.repeat(100) } }))
  expect(changes.map(({ after }) => after)).toEqual([`${'x'.repeat(80)}…`, `${'\u{1F600}'.repeat(40)}…`])
  const [change] = fieldChanges(undefined, object({ a: { image: `x${'\u{1F600}'.repeat(100)}` } }))
  expect(change?.after).toBe(`x${'\u{1F600}'.repeat(39)}\uFFFD…`)
})
