import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import * as fc from 'fast-check'
import { type Header, pack } from 'tar-stream'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { runsOf } from '../../../test/kit/effort.ts'
import { unpackPackage } from './unpack.ts'

type Entry = Partial<Header> & { name: string; content?: string }

let tempDir = ''
let count = 0
beforeEach(() => (tempDir = temporaryFolder()))

const p = (name: string) => `skyhook-package/${name}`
const file = (name: string, content = name, more: Partial<Header> = {}): Entry => ({
  name: p(name),
  content,
  mode: 0o644,
  ...more,
})
const folder = (name: string, mode = 0o755): Entry => ({ name: p(name), type: 'directory', mode })
const link = (name: string, linkname: string): Entry => ({ name: p(name), type: 'symlink', linkname })
const hardLink = (name: string, linkname: string): Entry => ({ name: p(name), type: 'link', linkname })

async function tar(entries: readonly Entry[]): Promise<Buffer> {
  const archive = pack()
  for (const { content, ...header } of entries) archive.entry({ mtime: new Date(0), ...header }, content ?? '')
  archive.finalize()
  return await buffer(archive)
}

function store(bytes: Buffer): string {
  const path = join(tempDir, `layer-${count++}`)
  writeFileSync(path, bytes)
  return path
}

async function unpack(...layers: Entry[][]): Promise<Record<string, string>> {
  const target = join(tempDir, `target-${count++}`)
  const files: string[] = []
  for (const entries of layers) files.push(store(await tar(entries)))
  await unpackPackage({ layers: files, target })
  return listing(target)
}

/** Path → content, `-> target`, or `dir`. Does not use Node's recursive readdir, which follows links. */
function listing(root: string, below = ''): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = join(below, entry.name)
    found[path] = entry.isDirectory()
      ? 'dir'
      : entry.isSymbolicLink()
        ? `-> ${readlinkSync(join(root, path))}`
        : readFileSync(join(root, path), 'utf8')
    if (entry.isDirectory()) Object.assign(found, listing(root, path))
  }
  return found
}

const refusal = (message: RegExp, code = 'bad-image') =>
  expect.objectContaining({ code, message: expect.stringMatching(message) })

describe('the package of an image', () => {
  test('unpacking takes the package folder alone, with contents, links and permissions', async () => {
    const target = join(tempDir, 'target')
    const layer = await tar([
      { name: 'bin/', type: 'directory' },
      { name: 'bin/sh', content: 'not ours' },
      folder(''),
      file('config.json', '{}'),
      file('skyhook_dir/apply.sh', '#!/bin/sh', { mode: 0o755 }),
      link('latest', 'skyhook_dir/apply.sh'),
      hardLink('same', p('config.json')),
      file(`${'long/'.repeat(40)}name`, 'by pax header'),
      file('suid', 'x', { mode: 0o6755 }),
      folder('private', 0o500),
    ])
    expect(await unpackPackage({ layers: [store(layer)], target })).toEqual({ entries: 8 + 41, bytes: 2 + 9 + 13 + 1 })
    const found = listing(target)
    expect(found).toMatchObject({
      'config.json': '{}',
      'skyhook_dir/apply.sh': '#!/bin/sh',
      latest: '-> skyhook_dir/apply.sh',
      same: '{}',
      suid: 'x',
    })
    expect(found[`${'long/'.repeat(40)}name`]).toBe('by pax header')
    expect(Object.keys(found).some((name) => name.includes('bin'))).toBe(false)
    const mode = (name: string) => lstatSync(join(target, name)).mode & 0o7777
    expect([mode(''), mode('skyhook_dir/apply.sh'), mode('config.json'), mode('suid'), mode('private')]).toEqual([
      0o755, 0o755, 0o644, 0o755, 0o700,
    ])
  })

  test.each([
    ['gzip', (bytes: Buffer) => gzipSync(bytes)],
    [
      'gzip in several members',
      (bytes: Buffer) => Buffer.concat([gzipSync(bytes.subarray(0, 700)), gzipSync(bytes.subarray(700))]),
    ],
    ['zstd', (bytes: Buffer) => zstdCompressSync(bytes)],
    ['nothing', (bytes: Buffer) => bytes],
  ])('a layer may be compressed with %s', async (_name, compress) => {
    const layer = store(compress(await tar([file('config.json', '{}')])))
    await unpackPackage({ layers: [layer], target: join(tempDir, 'target') })
    expect(listing(join(tempDir, 'target'))).toEqual({ 'config.json': '{}' })
  })

  test('an image without a package folder is refused', async () => {
    await expect(unpack([{ name: 'bin/sh', content: '' }])).rejects.toEqual(refusal(/no folder \/skyhook-package/))
    await expect(unpack([file('a')], [{ name: '.wh.skyhook-package', content: '' }])).rejects.toEqual(
      refusal(/no folder/),
    )
  })
})

describe('layers', () => {
  const base = [folder(''), file('a', 'old'), file('d/x', 'old'), file('d/sub/y', 'old'), file('keep', 'old')]

  test.each<[string, Entry[], Record<string, string>]>([
    [
      'replace files',
      [file('a', 'new')],
      { a: 'new', d: 'dir', 'd/x': 'old', 'd/sub': 'dir', 'd/sub/y': 'old', keep: 'old' },
    ],
    [
      'replace a folder by a file, a file by a folder',
      [file('d', 'new'), folder('a'), file('a/z', 'new')],
      { a: 'dir', 'a/z': 'new', d: 'new', keep: 'old' },
    ],
    [
      'replace a file by a link',
      [link('a', 'keep')],
      { a: '-> keep', d: 'dir', 'd/x': 'old', 'd/sub': 'dir', 'd/sub/y': 'old', keep: 'old' },
    ],
    ['hide a file', [file('.wh.a', '')], { d: 'dir', 'd/x': 'old', 'd/sub': 'dir', 'd/sub/y': 'old', keep: 'old' }],
    ['hide a folder', [file('.wh.d', '')], { a: 'old', keep: 'old' }],
    [
      'hide what is not there',
      [file('.wh.none', ''), file('no/where/.wh.x', '')],
      { a: 'old', d: 'dir', 'd/x': 'old', 'd/sub': 'dir', 'd/sub/y': 'old', keep: 'old' },
    ],
    [
      'hide the content of a folder',
      [folder('d'), file('d/.wh..wh..opq', ''), file('d/new')],
      { a: 'old', d: 'dir', 'd/new': 'd/new', keep: 'old' },
    ],
    [
      'hide lower layers only, in any order',
      [file('d/sub/z', 'new'), file('d/.wh..wh..opq', ''), file('a', 'new'), file('.wh.a', '')],
      { a: 'new', d: 'dir', 'd/sub': 'dir', 'd/sub/z': 'new', keep: 'old' },
    ],
    [
      'hide the whole package and start again',
      [{ name: '.wh.skyhook-package', content: '' }, file('only')],
      { only: 'only' },
    ],
    [
      'hide the whole image after its own first files',
      [file('only'), { name: '.wh..wh..opq', content: '' }],
      { only: 'only' },
    ],
  ])('the upper of two layers can %s', async (_name, upper, expected) => {
    expect(await unpack(base, upper)).toEqual(expected)
  })
})

describe('an archive that is refused', () => {
  test.each<[string, Entry[], RegExp]>([
    ['climbs', [{ name: 'skyhook-package/../../x', content: '' }], /climbs/],
    ['is absolute', [{ name: '/skyhook-package/x', content: '' }], /absolute/],
    ['writes through a link', [link('l', '/tmp'), file('l/x')], /"?l\/x is below l/],
    ['writes through a link of the same name', [link('l', 'd'), folder('d'), file('l/x')], /is below l/],
    ['writes below a file', [file('f'), file('f/x')], /is below f/],
    ['hides through a link', [link('l', '/tmp'), file('l/.wh.x', '')], /is below l/],
    ['links out of the package', [link('l', '../x')], /leaves the package/],
    [
      'shares a file of the image',
      [{ name: 'etc/passwd', content: '' }, hardLink('h', 'etc/passwd')],
      /outside the package/,
    ],
    ['shares a file through a link', [link('l', '/etc'), hardLink('h', p('l/passwd'))], /is below l/],
    ['shares what is not there', [hardLink('h', p('none'))], /not a file/],
    ['shares itself', [file('h'), hardLink('h', p('h'))], /not a file/],
    ['has a device', [{ name: p('null'), type: 'character-device', devmajor: 1, devminor: 3 }], /character-device/],
    ['has a fifo', [{ name: p('pipe'), type: 'fifo' }], /fifo/],
    ['has a file for its folder', [{ name: 'skyhook-package', content: 'x' }], /not a folder/],
    [
      'has a link for its folder',
      [{ name: 'skyhook-package', type: 'symlink', linkname: 'opt/package' }],
      /not a folder/,
    ],
    ['has sparse files', [{ ...file('s'), pax: { 'GNU.sparse.major': '1' } }], /sparse/],
    ['has a name too long for any disk', [file('n'.repeat(300))], /cannot be read: ENAMETOOLONG/],
  ])('an archive is refused that %s', async (_name, entries, message) => {
    await expect(unpack([folder('')], entries)).rejects.toEqual(refusal(message))
  })

  test.each([
    ['cut short', (bytes: Buffer) => bytes.subarray(0, 700)],
    ['cut short inside gzip', (bytes: Buffer) => gzipSync(bytes).subarray(0, -20)],
    ['no archive', () => Buffer.from('<html>'.repeat(200))],
    [
      'damaged gzip',
      (bytes: Buffer) => Buffer.from(gzipSync(bytes).map((byte, index) => (index === 30 ? byte ^ 0xff : byte))),
    ],
  ])('a damaged layer is refused: %s', async (_name, damage) => {
    const layer = store(damage(await tar([file('a', 'x'.repeat(2000))])))
    await expect(unpackPackage({ layers: [layer], target: join(tempDir, 'target') })).rejects.toEqual(
      refusal(/cannot be read/),
    )
  })

  test('an oversized package is refused before it is written, by count or by bytes', async () => {
    const layers = [store(await tar([file('a', 'x'.repeat(600)), file('b')]))]
    const attempt = (entries: number, bytes: number) =>
      unpackPackage({ layers, target: join(tempDir, `t${count++}`), limits: { entries, bytes } })
    await expect(attempt(1, 1000)).rejects.toEqual(refusal(/more than 1 files/, 'too-large'))
    await expect(attempt(10, 500)).rejects.toEqual(refusal(/more than 500 bytes/, 'too-large'))
    const deep = [store(await tar([folder(''), file(`${'x/'.repeat(20)}a`, ''), file('.wh.b', '')]))]
    const depth = (entries: number) =>
      unpackPackage({ layers: deep, target: join(tempDir, `t${count++}`), limits: { entries, bytes: 9 } })
    expect(await depth(23)).toMatchObject({ entries: 23 })
    await expect(depth(22)).rejects.toEqual(refusal(/more than 22 files/, 'too-large'))
    await expect(attempt(2, 601)).resolves.toBeDefined()
  })
})

describe('whatever an archive says', () => {
  test('no archive creates, changes or removes anything outside the folder', { timeout: 120_000 }, async () => {
    const outside = join(tempDir, 'outside')
    mkdirSync(join(outside, 'd'), { recursive: true })
    writeFileSync(join(outside, 'canary'), 'alive', { mode: 0o640 })
    writeFileSync(join(outside, 'd/canary'), 'alive')
    const snapshot = () => [
      listing(outside),
      lstatSync(join(outside, 'canary')).mode,
      lstatSync(join(outside, 'canary')).nlink,
      readdirSync(tempDir).filter((name) => !/^(?:layer|target)-/.test(name)),
    ]
    const before = snapshot()

    // few names, so that entries collide; malicious names are rare, because each ends its archive
    const part = fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom('a', 'd', 'canary') },
      { weight: 1, arbitrary: fc.constantFrom('..', '.', '.wh.a', '.wh.d', '.wh..wh..opq', '.wh...') },
    )
    const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
    const name = fc.oneof({ weight: 30, arbitrary: path.map(p) }, { weight: 1, arbitrary: path })
    const target = fc.oneof(
      fc.constant(outside),
      path.map((rest) => `${outside}/${rest}`),
      path,
      path.map(p),
      path.map((rest) => `../outside/${rest}`),
    )
    const entry = fc.oneof(
      fc.record({ name, content: fc.constantFrom('', 'new'), mode: fc.constantFrom(0o644, 0o4777) }),
      fc.record({ name, type: fc.constant('directory' as const), mode: fc.constantFrom(0o755, 0o000) }),
      fc.record({
        name,
        type: fc.constantFrom('symlink' as const, 'symlink' as const, 'link' as const),
        linkname: target,
      }),
    )
    let completed = 0
    const runs = runsOf(150, 600)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(entry, { maxLength: 8 }), { minLength: 1, maxLength: 3 }), async (layers) => {
        await unpack([folder('')], ...layers).then(
          () => completed++,
          (error: unknown) => expect(error).toEqual(refusal(/./)),
        )
        expect(snapshot()).toEqual(before)
      }),
      { numRuns: runs },
    )
    expect(completed).toBeGreaterThan(runs / 6) // otherwise the search would see only refusals
  })
})
