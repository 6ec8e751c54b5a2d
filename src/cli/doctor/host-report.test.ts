import { expect, test } from 'vitest'
import { known, unknown } from '../../stages/model/snapshot.ts'
import { catalogue, type FindingId } from './finding.ts'
import { hostReport, type LocalHost } from './host-report.ts'

const gibibyte = 1 << 30
const disk = (availableBytes: number) => ({
  folder: '/var/lib/skyhook',
  mount: '/',
  sizeBytes: 40 * gibibyte,
  availableBytes,
})

const fit: LocalHost = {
  platform: 'linux',
  architecture: 'arm64',
  hostname: 'host1',
  memory: known({ totalBytes: 8 * gibibyte, availableBytes: 4 * gibibyte }),
  disks: known([disk(20 * gibibyte)]),
  facts: {
    systemd: '252',
    os: 'Debian GNU/Linux 12 (bookworm)',
    kernel: '6.1.0',
    cgroup: 'v2',
    missingPrograms: [],
    copyDirRoot: { path: '/var/lib/skyhook' },
    otherFolders: [],
  },
  bus: known('bus'),
  journal: known('readable'),
  disputes: known([]),
}

test('nothing is found on a fit host', () => {
  const checks = hostReport(fit)
  expect(checks.map(({ check, verdict, about }) => [check, verdict, about])).toEqual([
    ['host', 'ok', 'host1, Debian GNU/Linux 12 (bookworm), kernel 6.1.0, systemd 252'],
    ['bus', 'ok', 'the system bus answers'],
    ['memory', 'ok', '4.0 GiB of 8.0 GiB available'],
    ['disk', 'ok', '/var/lib/skyhook: 20.0 GiB of 40.0 GiB free'],
    ['journal', 'ok', 'readable'],
    ['files', 'ok', 'no two packages bring different contents for a file'],
  ])
})

const rows: readonly [FindingId, string, Partial<LocalHost>, RegExp][] = [
  ['host-error', 'an old systemd', { facts: { ...fit.facts, systemd: '239' } }, /^systemd-version: .* systemd 239/],
  ['host-warning', 'cgroup v1', { facts: { ...fit.facts, cgroup: 'v1' } }, /^cgroup-v1: /],
  ['host-platform', 'another architecture', { architecture: 'ppc64' }, /this host is linux ppc64/],
  ['host-platform', 'another system', { platform: 'darwin' }, /this host is darwin arm64/],
  ['host-bus-silent', 'no bus', { bus: unknown('ENOENT') }, /does not answer: ENOENT/],
  [
    'host-memory-low',
    'little memory',
    { memory: known({ totalBytes: gibibyte, availableBytes: gibibyte / 8 }) },
    /^128 MiB of 1\.0 GiB available; .* 256 MiB/,
  ],
  ['host-disk-low', 'little room', { disks: known([disk(gibibyte)]) }, /^1\.0 GiB are free on \//],
  ['host-disk-full', 'a full disk', { disks: known([disk(1 << 20)]) }, /^1 MiB are free on \//],
  ['host-journal-damaged', 'a damaged journal', { journal: known('damaged') }, /journal is not JSON/],
  [
    'host-files-disputed',
    'two packages with one file',
    { disputes: known([{ owners: ['a/one', 'b/two'], paths: ['/etc/x.conf'] }]) },
    /^a\/one and b\/two bring different contents for \/etc\/x\.conf$/,
  ],
]

test.each(rows)('%s is found: %s', (id, _, change, message) => {
  const findings = hostReport({ ...fit, ...change }).flatMap((check) => check.findings)
  expect(findings).toMatchObject([
    { id, severity: catalogue[id].severity, message: expect.stringMatching(message) as unknown },
  ])
  expect(findings[0]?.remedy).toMatch(/\w{4}/)
})

test('what cannot be read of a host is unknown', () => {
  const no = unknown('EACCES')
  const checks = hostReport({ ...fit, memory: no, disks: no, journal: no, disputes: no })
  expect(checks.map(({ check, verdict }) => [check, verdict])).toEqual([
    ['host', 'ok'],
    ['bus', 'ok'],
    ['memory', 'unknown'],
    ['disk', 'unknown'],
    ['journal', 'unknown'],
    ['files', 'unknown'],
  ])
})

test('a host without a journal is new', () => {
  expect(hostReport({ ...fit, journal: known('absent') }).find(({ check }) => check === 'journal')).toMatchObject({
    verdict: 'ok',
    about: 'no agent has worked on this host',
  })
})
