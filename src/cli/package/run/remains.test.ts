import { expect, test } from 'vitest'
import { changesBetween, type Snapshot } from './remains.ts'

const filesAt = (...paths: readonly string[]): Record<string, string> =>
  Object.fromEntries(paths.map((path) => [path, 'f 644 0:0 1']))
const at = (change: Partial<Snapshot>): Snapshot => ({ files: {}, settings: {}, units: [], ...change })

test('added, changed and removed files, settings and units are told apart', () => {
  const before = at({
    files: filesAt('/etc/a', '/etc/b', '/etc/c'),
    settings: { 'vm.swappiness': '60', 'net.core.somaxconn': '4096' },
    units: ['cron.service'],
  })
  const after = at({
    files: { ...filesAt('/etc/a', '/etc/d'), '/etc/b': 'f 644 0:0 2' },
    settings: { 'vm.swappiness': '10', 'net.core.somaxconn': '4096' },
    units: ['mine.timer'],
  })
  expect(changesBetween(before, after)).toEqual([
    { kind: 'file', name: '/etc/b', change: 'changed' },
    { kind: 'file', name: '/etc/c', change: 'removed' },
    { kind: 'file', name: '/etc/d', change: 'added' },
    { kind: 'setting', name: 'vm.swappiness', change: 'changed' },
    { kind: 'unit', name: 'cron.service', change: 'removed' },
    { kind: 'unit', name: 'mine.timer', change: 'added' },
  ])
})

test('what hosts and agents change by themselves is not the package', () => {
  const after = at({
    files: filesAt(
      '/var/log/skyhook/x',
      '/var/lib/skyhook/y',
      '/run/z',
      '/etc/machine-id',
      '/var/lib/systemd/random-seed',
    ),
    settings: { 'kernel.random.uuid': 'x', 'fs.file-nr': '1', '/sys/kernel/mm/transparent_hugepage/a/stats/b': '1' },
    units: ['skyhookd-p-apply-0.service', 'session-1.scope'],
  })
  expect(changesBetween(at({}), after)).toEqual([])
})

test('a folder whose name only begins like one of the host is the package', () => {
  expect(changesBetween(at({}), at({ files: filesAt('/var/log2/x', '/var/lib/skyhook-mine') }))).toHaveLength(2)
})
