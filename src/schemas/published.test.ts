import { describe, expect, test } from 'vitest'
import { effectsOf, hostileTexts } from '../../test/kit/objects/hostile-texts.ts'
import { hostKey, journalKey, nodeStateKey, reasonKey, reasonsKey, statusKey } from './annotations.ts'
import { sha256Hex } from './canonical-json.ts'
import {
  createPublishedReader,
  hostReportOf,
  type Origin,
  packageReasonsOf,
  parseState,
  type Published,
  publishedOf,
  type PublishedEntry,
  type ReasonSubject,
  subjectOfEvent,
} from './published.ts'

const entry = { name: 'a', version: '1.0.0', image: 'registry/a', stage: 'config', state: 'complete' }
const state = JSON.stringify({ 'a|1.0.0': entry })
const companion = { v: 1, rev: 4, sha256: sha256Hex(state), nodeUID: 'uid', applied: 'hash' }
const reason = { reason: 'StepFailed', message: 'apply.sh ended with 1', since: '2026-03-01T10:00:00Z' }

type Texts = Partial<Record<'state' | 'status' | 'companion' | 'reason' | 'reasons' | 'host', string>>

function nodeWith(texts: Texts) {
  const keys = {
    state: nodeStateKey('s'),
    status: statusKey('s'),
    companion: journalKey('s'),
    reason: reasonKey('s'),
    reasons: reasonsKey('s'),
    host: hostKey,
  }
  const annotations = Object.entries(texts).map(([name, text]) => [keys[name as keyof Texts], text] as const)
  return { metadata: { uid: 'uid', annotations: Object.fromEntries(annotations) } }
}

const read = (texts: Texts): Published => publishedOf(nodeWith(texts), 's')
const signed = (change: object = {}): Texts => ({ state, companion: JSON.stringify({ ...companion, ...change }) })

const notObjects = ['', '{', 'yes', 'null', '[]', '[{}]', '"x"', '5']

describe('whose words they are', () => {
  test.each<[facts: string, Origin, Texts]>([
    ['nothing', 'nobody', {}],
    ['a status alone', 'nobody', { status: 'complete' }],
    ['a companion that cannot be read, without a state', 'nobody', { companion: 'yes' }],
    ['a state and its companion', 'agent', signed()],
    ['a state without a companion', 'unsigned', { state }],
    ['another state', 'edited', { ...signed(), state: '{}' }],
    ['another state that is not JSON', 'edited', { ...signed(), state: '{' }],
    ['no state any more', 'edited', { companion: JSON.stringify(companion) }],
    ['the uid of an earlier Node', 'former-node', signed({ nodeUID: 'before' })],
    ['no uid', 'former-node', signed({ nodeUID: undefined })],
    ['a uid that is not a text', 'former-node', signed({ nodeUID: 7 })],
    ['another state under the uid of an earlier Node', 'edited', { ...signed({ nodeUID: 'before' }), state: '{}' }],
    ['no revision', 'unsigned', signed({ rev: undefined })],
    ['a revision that is a text', 'unsigned', signed({ rev: '4' })],
    ['a revision that is not a whole number', 'unsigned', signed({ rev: 1.5 })],
    ['a revision beyond all numbers', 'unsigned', signed({ rev: 1e300 })],
    ['a hash that is not a text', 'unsigned', signed({ sha256: 1 })],
    ['a companion that is one by inheritance', 'unsigned', { state, companion: '{"__proto__":{"rev":1,"sha256":""}}' }],
    ...notObjects.map((text): [string, Origin, Texts] => [
      `${text} as companion`,
      'unsigned',
      { state, companion: text },
    ]),
  ])('a Node with %s speaks as %s', (_, origin, texts) => {
    const published = read(texts)
    expect(published.origin).toBe(origin)
    if (origin === 'nobody' || origin === 'unsigned') expect(published.companion).toBeUndefined()
  })

  test.each<[object, object]>([
    [{}, {}],
    [{ v: 2 }, { applied: undefined }],
    [{ v: undefined }, { applied: undefined }],
    [{ applied: 5 }, { applied: undefined }],
    [{ foundComplete: true }, { foundComplete: true }],
    [{ foundComplete: 'yes' }, {}],
    [{ reboots: { k: { done: 1, askedInBoot: 'b' } } }, { reboots: { k: { done: 1, askedInBoot: 'b' } } }],
    [{ reboots: [] }, {}],
    [{ reboots: { k: { done: '1' } } }, {}],
    [{ reboots: { k: null } }, {}],
    [{ reboots: { k: { done: 1, askedInBoot: 5 } } }, {}],
    [{ more: 'x' }, {}],
  ])('a companion with %j says what is of the right type', (change, differing) => {
    const { v: _, ...expected } = companion
    expect(read(signed(change)).companion).toEqual({ ...expected, ...differing })
  })
})

test.each([
  [undefined, undefined],
  ['in_progress', 'in_progress'],
  ['', 'unreadable'],
  ['Complete', 'unreadable'],
  ['constructor', 'unreadable'],
])('the status %s is %s', (text, status) =>
  expect(read(text === undefined ? {} : { status: text }).status).toBe(status),
)

describe('entries', () => {
  const { name: _name, version: _version, ...nameless } = entry
  const { image: _image, ...imageless } = entry
  const { stage: _stage, ...stageless } = entry
  const { state: _state, ...stateless } = entry
  test.each<[unknown, PublishedEntry]>([
    [entry, entry],
    [null, {}],
    ['x', {}],
    [[], {}],
    [{}, {}],
    [{ ...entry, name: 5, version: 1.2 }, nameless],
    [{ ...entry, image: 5, containerSHA: 1 }, imageless],
    [
      { ...entry, containerSHA: 'sha256:1' },
      { ...entry, containerSHA: 'sha256:1' },
    ],
    [{ ...entry, stage: 7 }, stageless],
    [
      { ...entry, stage: 'of tomorrow' },
      { ...entry, stage: 'of tomorrow' },
    ],
    [{ ...entry, state: ['complete'] }, stateless],
    [
      { ...entry, restarts: 3 },
      { ...entry, restarts: 3 },
    ],
    ...[0, -1, 1.5, 2 ** 31, '3', {}, null].map((restarts): [unknown, PublishedEntry] => [
      { ...entry, restarts },
      entry,
    ]),
    [{ ...entry, more: 'x' }, entry],
  ])('the entry %j says what is of the right type', (written, found) => {
    expect(parseState(JSON.stringify({ 'a|1.0.0': written }))).toEqual(new Map([['a|1.0.0', found]]))
  })

  test('entries under names that every object has are entries like others', () => {
    const text = `{"__proto__":${JSON.stringify(entry)},"constructor":${JSON.stringify(entry)}}`
    const entries = read({ state: text }).entries
    expect([...(entries ?? [])]).toEqual([
      ['__proto__', entry],
      ['constructor', entry],
    ])
    expect(entries?.has('toString')).toBe(false)
  })

  test.each(notObjects)('the state %s has no entries, and is there', (text) => {
    expect(read({ state: text })).toMatchObject({ state: text, entries: undefined })
  })
})

describe('reasons', () => {
  const { since, ...fields } = reason
  test.each<[unknown, Published['reason']]>([
    [reason, { ...fields, sinceMs: Date.parse(since) }],
    [
      { ...reason, reason: 'OfTomorrow' },
      { ...fields, reason: 'OfTomorrow', sinceMs: Date.parse(since) },
    ],
    [
      { ...reason, since: undefined },
      { ...fields, sinceMs: undefined },
    ],
    [
      { ...reason, since: 5 },
      { ...fields, sinceMs: undefined },
    ],
    [
      { ...reason, since: 'yesterday' },
      { ...fields, sinceMs: undefined },
    ],
    [{ ...reason, reason: 5 }, undefined],
    [{ ...reason, reason: 'lower' }, undefined],
    [{ ...reason, reason: 'Two Words' }, undefined],
    [{ ...reason, reason: `A${'b'.repeat(64)}` }, undefined],
    [{ ...reason, message: 5 }, undefined],
    [{ ...reason, message: undefined }, undefined],
  ])('the reason %j is read as %j, of the node and of a package', (written, found) => {
    const texts = { reason: JSON.stringify(written), reasons: JSON.stringify({ a: written, b: 'x', c: null }) }
    expect(read(texts).reason).toEqual(found)
    expect([...packageReasonsOf(nodeWith(texts), 's')]).toEqual(found === undefined ? [] : [['a', found]])
  })

  const about = { name: 'a-b', version: 'v1.2.3-rc.1+x' }
  test.each<[object, ReasonSubject]>([
    [{}, {}],
    [{ code: 'not-found' }, { code: 'not-found' }],
    [
      { code: 'other-operator', package: 'a-b|v1.2.3-rc.1+x' },
      { code: 'other-operator', package: about },
    ],
    [{ code: 'of-tomorrow', package: 'a-b|v1.2.3-rc.1+x' }, { package: about }],
    [{ code: 'constructor' }, {}],
    [{ code: 'NOT-FOUND' }, {}],
    [{ code: ['not-found'], package: { name: 'a' } }, {}],
    [{ code: 5, package: 5 }, {}],
    [{ package: 'a' }, {}],
    [{ package: 'a|' }, {}],
    [{ package: '|1' }, {}],
    [{ package: 'a|1|2' }, {}],
    [{ package: 'a|1\n' }, {}],
    [{ package: '$(reboot)|1' }, {}],
    [{ package: 'a|1;reboot' }, {}],
    [{ package: `${'a'.repeat(64)}|1` }, {}],
    [{ package: `a|1${'0'.repeat(128)}` }, {}],
  ])('a reason that says %j is about %j, on the Node and in an Event', (written, found) => {
    const text = JSON.stringify({ ...reason, ...written })
    const { code, package: key } = read({ reason: text }).reason ?? {}
    expect({ ...(code && { code }), ...(key && { package: key }) }).toEqual(found)
    expect(packageReasonsOf(nodeWith({ reasons: `{"a":${text}}` }), 's').get('a')).toMatchObject(found)
    const annotations = Object.entries(written).map(([field, value]) => [
      `skyhook.nvidia.com/${field}`,
      value as string,
    ])
    expect(subjectOfEvent(Object.fromEntries(annotations))).toEqual(found)
  })

  test.each(notObjects)('the text %s is not a reason', (text) => {
    expect(read({ reason: text }).reason).toBeUndefined()
    expect(packageReasonsOf(nodeWith({ reasons: text }), 's').size).toBe(0)
  })

  test.each(Object.entries(hostileTexts))('a message with %s has no effect, and fills no screen', (_, text) => {
    const { message } = read({ reason: JSON.stringify({ ...reason, message: text }) }).reason ?? {}
    expect(message?.length).toBeLessThanOrEqual(1_024)
    expect(effectsOf(message ?? '')).toEqual([])
  })
})

describe('the report of a host', () => {
  const finding = { id: 'noexec', severity: 'error', message: 'no', remedy: 'mount it' }
  test.each([
    ['{}', { facts: {}, findings: [] }],
    ['{"os":"Debian","findings":5}', { facts: { os: 'Debian' }, findings: [] }],
    [JSON.stringify({ findings: [finding, null, 'x', []] }), { findings: [finding] }],
    ['{"findings":[{"id":5}]}', { findings: [{ id: '', severity: '', message: '', remedy: '' }] }],
  ])('the report %s is read', (text, found) => expect(hostReportOf(nodeWith({ host: text }))).toMatchObject(found))

  test.each(notObjects)('the text %s is not a report', (text) => {
    expect(hostReportOf(nodeWith({ host: text }))).toBeUndefined()
  })
})

test('a reader of many Nodes reads what one of a single Node does, and a state that they share once', () => {
  const reader = createPublishedReader()
  const texts: Texts = { ...signed(), status: 'complete', reason: JSON.stringify(reason) }
  for (const one of [texts, { ...texts, state: '{}' }, {}]) expect(reader(nodeWith(one), 's')).toEqual(read(one))
  expect(reader(nodeWith(texts), 's').entries).toBe(reader(nodeWith({ state }), 's').entries)
  expect(reader(nodeWith(texts), 'other')).toEqual(read({}))
})
