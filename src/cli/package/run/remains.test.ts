import { expect, test } from 'vitest'
import { changesBetween, isIgnored, type Snapshot } from './remains.ts'

const filesAt = (...paths: readonly string[]): Record<string, string> =>
  Object.fromEntries(paths.map((path) => [path, 'f 644 0:0 1']))
const at = (change: Partial<Snapshot>): Snapshot => ({ files: {}, settings: {}, units: [], ...change })

test('added, changed and removed files, settings and units are distinguished', () => {
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

test('changes of hosts and agents themselves are not of the package', () => {
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

test('a folder whose name only starts like one of the host is of the package', () => {
  expect(changesBetween(at({}), at({ files: filesAt('/var/log2/x', '/var/lib/skyhook-mine') }))).toHaveLength(2)
})

test('records of package managers, of accounts and of systemd are not of the package, but installed files are', () => {
  const records = filesAt(
    '/etc/passwd-',
    '/etc/.pwd.lock',
    '/usr/lib/sysimage/rpm/rpmdb.sqlite',
    '/usr/lib/sysimage/libdnf5/packages.toml',
    '/var/lib/apt/extended_states',
    '/var/lib/apt/lists/deb.debian.org_InRelease',
    '/var/lib/dnf/history.sqlite',
    '/var/lib/dpkg/available',
    '/var/lib/dpkg/diversions-old',
    '/var/lib/dpkg/status-old',
    '/var/lib/dpkg/triggers/Unincorp',
    '/var/lib/private',
    '/var/lib/rpm/rpmdb.sqlite',
    '/var/lib/systemd/deb-systemd-helper-enabled/hello.service.dsh-also',
  )
  const installed = ['/etc/passwd', '/usr/bin/hello', '/var/lib/dpkg/info/hello.list', '/var/lib/dpkg/status']
  const after = at({ files: { ...records, ...filesAt(...installed) } })
  expect(changesBetween(at({}), after).map(({ name }) => name)).toEqual(installed)
})

test.each([
  ['/etc/x.conf', '/etc/x.conf', true],
  ['/etc/*.conf', '/etc/x.conf', true],
  ['/etc/*.conf', '/etc/x/y.conf', false],
  ['/var/lib/x', '/var/lib/x/y/z', true],
  ['/var/lib/x/', '/var/lib/x', true],
  ['/var/*/x', '/var/lib/x/y', true],
  ['/var/lib/x', '/var/lib/xy', false],
  ['/', '/etc/x', false],
  ['net.ipv4.*', 'net.ipv4.ip_forward', true],
  ['mine-*.timer', 'mine-1.timer', true],
])('the pattern %s for %s: %s', (pattern, name, isMeant) => {
  expect(isIgnored(['nothing', pattern], { kind: 'file', name, change: 'added' })).toBe(isMeant)
})
