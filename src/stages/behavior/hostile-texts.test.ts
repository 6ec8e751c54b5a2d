/** Whatever a registry, a package, a host or another writer says: the Node has room, and its texts do nothing. */
import { describe, expect, test } from 'vitest'
import { effectsOf, hostileTexts } from '../../../test/kit/objects/hostile-texts.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { packageWith, pkg, reboot } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { reasonKey, reasonsKey } from '../../schemas/annotations.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import { parsePackageStatus } from '../../schemas/package-status.ts'

/** What all annotations of an object may have together, keys included. */
const maxAnnotationBytes = 256 * 1024
const maxTextBytes = 6 * 1024
const maxMessageLength = 1_024

const bytesOf = (annotations: Readonly<Record<string, string>>): number =>
  Object.entries(annotations).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0)

const textsOf = (node: NodeSimulator, skyhook: string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(node.node.metadata.annotations ?? {}).filter(
      ([key]) => key === reasonKey(skyhook) || key === reasonsKey(skyhook),
    ),
  )

/** Each string in a JSON text, however deep. */
function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(stringsIn)
  return isObject(value) ? Object.entries(value).flatMap(([key, inner]) => [key, ...stringsIn(inner)]) : []
}

function expectHarmless(node: NodeSimulator, skyhook = 's'): void {
  const texts = textsOf(node, skyhook)
  expect(Object.keys(texts)).not.toEqual([])
  expect(bytesOf(texts)).toBeLessThanOrEqual(maxTextBytes)
  const published = Object.values(texts).flatMap((text) => stringsIn(parseJson(text)))
  const conditions = (node.node.status?.conditions ?? []).map(({ message = '' }) => message)
  const reasons = [...node.lastReasons.values()].flatMap((reason) => [
    reason.message,
    ...[...(reason.packages ?? new Map<string, { message: string }>()).values()].map(({ message }) => message),
  ])
  const events = node.events.flatMap((event) => stringsIn(event))
  for (const text of [...published, ...conditions, ...reasons, ...events]) {
    expect(effectsOf(text)).toEqual([])
    expect(text.length).toBeLessThanOrEqual(maxMessageLength)
  }
  expect(JSON.stringify(node.journal).length).toBeLessThan(64 * 1024)
}

const saysAnything: readonly (readonly [who: string, arrange: (node: NodeSimulator, text: string) => void])[] = [
  ['a registry', (node, text) => void node.images.set('r/pkg:1.0.0', text)],
  ['a host', (node, text) => void (node.startBlocker = text)],
  ['the preflight', (node, text) => void (node.host = { state: 'unusable', reason: 'HostUnusable', message: text })],
  [
    'a step',
    (node, text) => {
      node.hangingPackages.add('a')
      node.settleFor(1_000)
      node.finishHanging('a', { outcome: 'failed-to-start', detail: text })
    },
  ],
  [
    'a check of many',
    (node, text) => {
      node.hangingPackages.add('a')
      for (let step = 0; step < 2; step++) {
        node.settleFor(1_000)
        for (const { attempt } of node.running())
          node.attempts.set(attempt.id, {
            state: 'ended',
            end: { outcome: 'exited', code: attempt.mode.endsWith('check') ? 1 : 0 },
            logTail: text,
          })
      }
    },
  ],
]

describe.each(saysAnything)('what %s says', (who, arrange) => {
  test.each(Object.entries(hostileTexts))(`${who} may say %s, and the Node has room`, (_, text) => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    arrange(node, text)
    let looks = 0
    for (let second = 0; second < 5; second++) {
      node.settleFor(1_000)
      if (Object.keys(textsOf(node, 's')).length === 0) continue // before it has lasted, and after a retry
      expectHarmless(node)
      looks++
    }
    expect(looks).toBeGreaterThan(0)
    const before = node.patches
    node.settleFor(60_000)
    expect(node.patches - before).toBeLessThan(20)
  })
})

test.each(Object.entries(hostileTexts))('what a package says about itself may be %s', (_, message) => {
  const parsed = parsePackageStatus(
    JSON.stringify({ v: 1, package: 'a', bootId: 'boot-1', message, requests: { run: false, interrupt: false } }),
    'a',
  )
  if (parsed.outcome === 'invalid') throw new Error(parsed.problem)
  expect(effectsOf(parsed.status.message)).toEqual([])
  expect(parsed.status.message.length).toBeLessThanOrEqual(256)
})

test.each(Object.entries(hostileTexts))('why a status file cannot be read may be %s', (_, text) => {
  for (const change of [{ v: text }, { package: text }]) {
    const parsed = parsePackageStatus(JSON.stringify({ v: 1, package: 'a', ...change }), 'a')
    const problem = parsed.outcome === 'invalid' ? parsed.problem : ''
    expect(effectsOf(problem)).toEqual([])
    expect(problem.length).toBeLessThanOrEqual(256)
  }
})

test('a Node with twenty Skyhooks that all say their worst is written beside 64 KiB of others', () => {
  const node = new NodeSimulator()
  const worst = hostileTexts['three megabytes of quotes'] ?? ''
  node.edit((annotations) => (annotations['example.com/other'] = 'x'.repeat(64 * 1024)))
  node.images.set('r/gone:1.0.0', worst)
  const names = Array.from({ length: 20 }, (_, index) => `skyhook-${index}`)
  const packages = Object.fromEntries(
    Array.from({ length: 8 }, (_, index) => [`package-${index}`, packageWith(reboot, { image: 'r/gone' })]),
  )
  for (const name of names) node.apply(name, { packages })
  node.settleFor(10_000)
  for (const name of names) expectHarmless(node, name)
  expect(bytesOf(node.node.metadata.annotations ?? {})).toBeLessThan(maxAnnotationBytes)
})
