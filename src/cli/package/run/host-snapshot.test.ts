import { expect, test } from 'vitest'
import { parseSnapshot } from './host-snapshot.ts'

const hash = 'a'.repeat(64)

test('the output of the script becomes files with their content and settings with their values', () => {
  const files = `/etc\0d 755 0:0 \0/etc/a b\nc\0f 644 0:0 \0/etc/l\0l 777 0:0 a\0\0`
  const settings = '/proc/sys/vm/swappiness\x0060\n/proc/sys/a/b\x00one\n/proc/sys/a/b\x00two\n'
  const text = `${files}${hash}  /etc/a b\nc\0\0${settings}`
  expect(parseSnapshot(text)).toEqual({
    files: { '/etc': 'd 755 0:0', '/etc/a b\nc': `f 644 0:0 ${hash}`, '/etc/l': 'l 777 0:0 a' },
    settings: { 'vm.swappiness': '60', 'a.b': 'one\ntwo' },
  })
})
