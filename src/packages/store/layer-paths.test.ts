import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkSymbolicLink, readHardLink, readLayerName } from './layer-paths.ts'

const refusal = expect.objectContaining({ code: 'bad-image' })

describe('a name in a layer', () => {
  test.each([
    ['skyhook-package', { kind: 'entry', path: '' }],
    ['./skyhook-package/', { kind: 'entry', path: '' }],
    ['skyhook-package/steps//./apply.sh', { kind: 'entry', path: 'steps/apply.sh' }],
    ['skyhook-package/...', { kind: 'entry', path: '...' }],
    ['skyhook-package/.wh.steps', { kind: 'whiteout', path: 'steps' }],
    ['skyhook-package/a/.wh..wh..opq', { kind: 'opaque', path: 'a' }],
    ['skyhook-package/.wh..wh..opq', { kind: 'opaque', path: '' }],
    ['.wh.skyhook-package', { kind: 'whiteout', path: '' }],
    ['.wh..wh..opq', { kind: 'whiteout', path: '' }],
    ['.wh.bin', { kind: 'outside' }],
    ['bin/.wh..wh..opq', { kind: 'outside' }],
    ['.wh..wh.plnk/123', { kind: 'outside' }],
    ['skyhook-package/.wh..wh.aufs', { kind: 'outside' }],
    ['skyhook-package-2/a', { kind: 'outside' }],
    ['etc/skyhook-package/a', { kind: 'outside' }],
    ['./', { kind: 'outside' }],
    ['/', { kind: 'outside' }],
    ['usr/share/caf\uFFFD', { kind: 'outside' }], // not checked here
  ])('the layer name %j is classified', (name, expected) => {
    expect(readLayerName(name)).toEqual(expected)
  })

  test.each([
    '/skyhook-package/a',
    '/etc/passwd',
    '../x',
    'skyhook-package/../x',
    'skyhook-package/..',
    'a/../../b',
    'skyhook-package/.wh.',
    'skyhook-package/.wh..',
    'skyhook-package/.wh...',
    'skyhook-package/a\0b',
    'skyhook-package/\uFFFD',
  ])('the layer name %j is refused', (name) => {
    expect(() => readLayerName(name)).toThrow(refusal)
  })

  test('no layer name gives a path that leaves the package', () => {
    const component = fc.oneof(
      fc.constantFrom('..', '.', '', 'skyhook-package', '.wh.', '.wh...', '.wh..wh..opq', 'a', '.wh.a'),
      fc.string({ maxLength: 6 }),
    )
    const names = fc.array(component, { maxLength: 6 }).map((components) => components.join('/'))
    fc.assert(
      fc.property(names, (name) => {
        let path = ''
        try {
          const read = readLayerName(name)
          if (read.kind !== 'outside') path = read.path
        } catch (error) {
          expect(error).toEqual(refusal)
        }
        expect(path.split('/')).not.toContain('..')
        expect(path).not.toMatch(/^\/|\/\/|\0/)
      }),
    )
  })
})

describe('a symbolic link', () => {
  test.each([
    ['a', 'b'],
    ['a/b/c', '../../d'],
    ['a/b', '../a/../x'],
    ['root_dir/etc/systemd/system/x.service', '/dev/null'], // a masked unit is a legitimate file
    ['a', '/skyhook-package/b'],
  ])('the link %s -> %s is kept', (path, target) => {
    expect(checkSymbolicLink(path, target)).toBe(target)
  })

  test.each([
    ['a', '..'],
    ['a/b', '../../c'],
    ['a/b', 'x/../../../c'],
    ['a', ''],
    ['a', null],
    ['a', 'b\0c'],
  ])('the link %s -> %s is refused', (path, target) => {
    expect(() => checkSymbolicLink(path, target)).toThrow(refusal)
  })
})

describe('a hard link', () => {
  test('a hard link shares a file of the package', () => {
    expect(readHardLink('a', './skyhook-package/b/c')).toBe('b/c')
  })
  test.each(['etc/passwd', '/etc/passwd', '../x', 'skyhook-package', 'skyhook-package/.wh.x', '', null])(
    'a hard link to %j is refused',
    (target) => {
      expect(() => readHardLink('a', target)).toThrow(refusal)
    },
  )
})
