/** `dashboard --from`: which archives are refused; dashboard.integration.test.ts serves one. */
import { writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { commandContext } from '../../../test/kit/tool/command-context.ts'
import { commandLine } from '../../../test/kit/tool/command-line.ts'
import { sampleBundle } from '../../../test/kit/tool/sample-bundle.ts'
import { createSeededRandom, createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { packBundle, type BundleIndex } from '../bundle/archive.ts'
import { openBundle } from '../bundle/open.ts'
import { dashboard } from './dashboard.ts'

let folder: string
beforeEach(() => (folder = temporaryFolder()))

const file = (): string => join(folder, 'b.tar.gz')

/** Writes an archive whose index says something else. */
async function writeArchive(changes: object = {}): Promise<void> {
  const { index, files } = await sampleBundle()
  writeFileSync(file(), await packBundle({ index: { ...index, ...changes } as BundleIndex, files }))
}

/** Starts it without any cluster. */
async function serve(): Promise<unknown> {
  const noCluster = new Proxy({} as KubeTransport, { get: () => expect.unreachable('a request') as never })
  const { context } = commandContext({ transport: noCluster, clock: createVirtualClock() })
  const connect = () => Promise.reject(new Error('a kubeconfig was read'))
  return await dashboard.run({ ...context, connect }, { arguments: {}, flags: { from: file(), port: 0 } })
}

test.each([
  [
    'is not there',
    async () => await Promise.resolve(),
    /^cannot read .*b\.tar\.gz/,
    'name a file that kubectl skyhook bundle wrote',
  ],
  ['is something else', async () => await writeFile(file(), 'hello'), /is not a support archive: /, 'create one with'],
  [
    'is another archive',
    async () => await writeFile(file(), gzipSync('')),
    /is not a support archive: it has no index/,
    'create one',
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
    'read it with kubectl skyhook 9.1.0, which created it, or later',
  ],
  ['is damaged', async () => await writeArchive({ sources: [{}] }), /is damaged: its index.json/, 'create one with'],
  ['has no time', async () => await writeArchive({ takenAt: 'x' }), /is damaged: its index.json/, 'create one with'],
  [
    'has a namespace that is none',
    async () => await writeArchive({ namespace: '$(x)' }),
    /is damaged/,
    'create one with',
  ],
])('a file that %s is refused with a remedy', async (_, write, message, remedy) => {
  await write()
  await expect(serve()).rejects.toMatchObject({
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
  const { index, files } = await sampleBundle()
  const evil = JSON.stringify({ items: [{ metadata: { name: 'n1; reboot' } }] })
  writeFileSync(file(), await packBundle({ index, files: new Map([...files, ['nodes.json', evil]]) }))
  const { transport } = await openBundle(file(), { clock: createVirtualClock(), random: createSeededRandom(1) })
  await expect(transport.json('GET', '/api/v1/nodes')).rejects.toThrow('nodes.json of the bundle cannot be read')
})

test.each(['--context prod', '-n other', '--as vera', '--as-group ops', '--server https://api.test', '--kubeconfig f'])(
  'an archive beside %s is refused: the page would not show that cluster',
  async (flags) => {
    for (const call of ['dashboard', 'explain tuning']) {
      const { code, stderr } = await commandLine().run(`${call} --from b.tar.gz ${flags}`)
      expect(code).toBe(2)
      expect(stderr).toMatch(/^error: --from needs no cluster, got also --[a-z-]+\n/)
      expect(stderr).toContain('leave out --')
    }
  },
)
