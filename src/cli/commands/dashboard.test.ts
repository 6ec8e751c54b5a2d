/** `dashboard --from`: a page of an archive, and what is refused. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { commandContext } from '../../../test/support/command-context.ts'
import { commandLine } from '../../../test/support/command-line.ts'
import { createSeededRandom, createVirtualClock } from '../../../test/support/virtual-clock.ts'
import { sampleServer } from '../../../test/fleet/api-server/sample-server.ts'
import { systemClock } from '../../daemon/platform/system-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { packBundle } from '../bundle/archive.ts'
import type { Bundle, BundleIndex } from '../bundle/bundle.ts'
import { collectBundle } from '../bundle/collect.ts'
import { openBundle } from '../bundle/open.ts'
import { dashboard } from './dashboard.ts'

let folder: string
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'dashboard-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const file = (): string => join(folder, 'b.tar.gz')

/** Of a cluster with a Skyhook and a node. */
async function collected(): Promise<Bundle> {
  const { admin } = sampleServer()
  const spec = { nodeSelectors: {}, packages: { tuned: { version: '1.0.0', image: 'registry.test/tuned' } } }
  await admin.json('POST', skyhooksPath, { body: { metadata: { name: 'tuning' }, spec } })
  await admin.json('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } })
  const { signal } = new AbortController()
  const clock = { ...createVirtualClock(), wallMs: () => Date.parse('2026-03-01T12:00:00Z') }
  return await collectBundle(admin, { namespace: 'skyhook', clock, signal, nodes: [], documents: new Map() })
}

/** Writes an archive whose index says something else. */
async function writeArchive(changes: object = {}): Promise<void> {
  const { index, files } = await collected()
  writeFileSync(file(), await packBundle({ index: { ...index, ...changes } as BundleIndex, files }))
}

/** Starts it without any cluster; ends with the test. */
function serve() {
  const ending = new AbortController()
  const noCluster = new Proxy({} as KubeTransport, { get: () => expect.unreachable('a request') as never })
  const { context, stdout } = commandContext({ transport: noCluster, clock: systemClock, signal: ending.signal })
  const connect = () => Promise.reject(new Error('a kubeconfig was read'))
  const run = dashboard.run({ ...context, connect }, { arguments: {}, flags: { from: file(), port: 0 } })
  run.catch(() => undefined)
  const end = async () => {
    ending.abort(new DOMException('ctrl-C', 'AbortError'))
    return await run
  }
  onTestFinished(async () => void (await end().catch(() => undefined)))
  return { run, stdout, end }
}

test('an archive is served without a kubeconfig and without any request to a cluster', async () => {
  await writeArchive()
  const { stdout, end } = serve()
  await expect.poll(stdout, { timeout: 20_000 }).toMatch(/^http:.*\n$/)
  const { origin, href } = new URL(stdout().trim())
  const entered = await fetch(href)
  const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? ''
  const ask = async (path: string, rest: RequestInit = {}) =>
    await fetch(`${origin}${path}`, { ...rest, headers: { cookie, origin } })
  const events = (await ask('/api/events')).body?.getReader()
  let text = ''
  while (!text.includes('event: nodes')) text += Buffer.from((await events?.read())?.value ?? []).toString()
  await events?.cancel()
  expect(text).toContain(`"isLive":false,"file":${JSON.stringify(file())},"takenAtMs":1772366400000`)
  expect(text).toContain('"changed":[{"node":"n1","status":"unknown","reason":"AgentNotReady"')
  expect(await (await ask('/api/node?skyhook=tuning&node=n1')).json()).toMatchObject({ nowMs: 1772366400000 })
  const body = JSON.stringify({
    text: ((await (await ask('/api/manifest?skyhook=tuning')).json()) as { text: string }).text,
  })
  expect(await (await ask('/api/plan', { method: 'POST', body })).json()).toMatchObject({ isRefused: false })
  expect(await end()).toBe(0)
})

test.each([
  [
    'is not there',
    async () => await Promise.resolve(),
    /^cannot read .*b\.tar\.gz/,
    'name a file that kubectl skyhook bundle has written',
  ],
  ['is something else', async () => await writeFile(file(), 'hello'), /is no support archive: /, 'make one with'],
  [
    'is another archive',
    async () => await writeFile(file(), gzipSync('')),
    /is no support archive: it has no index/,
    'make one',
  ],
  ['is cut off', async () => await cutOff((packed) => packed), /is cut off: its end is missing$/, 'copy it again'],
  [
    'is cut off before it was packed',
    async () => await cutOff(gunzipSync, (part) => gzipSync(part)),
    /is cut off: its end is missing$/,
    'copy it again',
  ],
  [
    'has a newer format',
    async () => await writeArchive({ apiVersion: 'cli.skyhookd/v2', toolVersion: '9.1.0' }),
    /cannot read: expected cli\.skyhookd\/v1, got cli\.skyhookd\/v2$/,
    'read it with kubectl skyhook 9.1.0, which made it, or a later one',
  ],
  ['is damaged', async () => await writeArchive({ sources: [{}] }), /is damaged: its index.json/, 'make one with'],
  ['has no time', async () => await writeArchive({ takenAt: 'x' }), /is damaged: its index.json/, 'make one with'],
  [
    'has a namespace that is none',
    async () => await writeArchive({ namespace: '$(x)' }),
    /is damaged/,
    'make one with',
  ],
])('a file that %s is refused with a remedy', async (_, write, message, remedy) => {
  await write()
  await expect(serve().run).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(message) as string,
    remedy: expect.stringContaining(remedy) as string,
  })
})

async function cutOff(open: (packed: Buffer) => Buffer, close = (part: Buffer): Buffer => part): Promise<void> {
  await writeArchive()
  const whole = open(await readFile(file()))
  writeFileSync(file(), close(whole.subarray(0, Math.floor(whole.length / 2) + 7)))
}

test('a name that would be a command in a shell is not read from an archive', async () => {
  const { index, files } = await collected()
  const evil = JSON.stringify({ items: [{ metadata: { name: 'n1; reboot' } }] })
  writeFileSync(file(), await packBundle({ index, files: new Map([...files, ['nodes.json', evil]]) }))
  const { transport } = await openBundle(file(), { clock: systemClock, random: createSeededRandom(1) })
  await expect(transport.json('GET', '/api/v1/nodes')).rejects.toThrow('nodes.json of the bundle cannot be read')
})

test.each(['--context prod', '-n other', '--as vera', '--as-group ops', '--server https://api.test', '--kubeconfig f'])(
  'an archive beside %s is refused: the page would not show that cluster',
  async (flags) => {
    for (const call of ['dashboard', 'explain tuning']) {
      const { code, stderr } = await commandLine().run(`${call} --from b.tar.gz ${flags}`)
      expect(code).toBe(2)
      expect(stderr).toMatch(/^error: --from needs no cluster, got --[a-z-]+ too\n/)
      expect(stderr).toContain('leave out --')
    }
  },
)
