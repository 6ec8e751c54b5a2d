import { describe, expect, test } from 'vitest'
import type { HostFacts } from './facts.ts'
import { type Finding, hostReport, maxReportBytes, preflight, whyUnfit } from './findings.ts'

const fit: HostFacts = {
  systemd: '252.39-1~deb12u2',
  bus: 'dbus.service',
  cgroup: 'v2',
  kernel: '6.1.0',
  os: 'Debian GNU/Linux 12 (bookworm)',
  selinux: 'disabled',
  isUserNamespaced: false,
  missingPrograms: [],
  copyDirRoot: {
    path: '/var/lib/skyhook',
    mount: { point: '/', fileSystem: 'ext4', options: ['rw', 'relatime'] },
  },
  otherFolders: [],
}
const enforcing = (domain: string): Partial<HostFacts> => ({
  selinux: 'enforcing',
  agentContext: `system_u:system_r:${domain}:s0:c1,c2`,
})
const refusedBy = (code: string): Partial<HostFacts> => ({
  otherFolders: [{ path: '/var/log/skyhook', refusedWith: code }],
})
const onMount = (...options: string[]): Partial<HostFacts> => ({
  copyDirRoot: { path: '/var/lib/skyhook', mount: { point: '/var', fileSystem: 'xfs', options } },
})

describe('an unfit host', () => {
  test.each<[string, Partial<HostFacts>, string, string]>([
    [
      'an old systemd',
      { systemd: '239 (239-82.el8)' },
      'systemd-version',
      "the host runs systemd 239, and steps need 240 or later. Upgrade the host's systemd, or exclude the node from " +
        "the Skyhook's nodeSelectors",
    ],
    [
      'no shell',
      { missingPrograms: ['/bin/sh'] },
      'missing-program',
      'the host has no /bin/sh, and every step needs it. Install it on the host',
    ],
    [
      'a folder where nothing can be executed',
      onMount('rw', 'noexec'),
      'noexec',
      '/var/lib/skyhook is on /var, which the host mounts noexec: no step can be executed there. Mount it with exec, ' +
        "or set the chart's copyDirRoot to a folder where programs may run",
    ],
    [
      'a read-only folder',
      refusedBy('EROFS'),
      'read-only',
      'files cannot be created in /var/log/skyhook (EROFS). Mount it read-write, or set copyDirRoot and ' +
        'agentLogRoot of the chart elsewhere',
    ],
    [
      'a folder that the host mounts read-only, and the container of the agent does not',
      onMount('ro', 'relatime'),
      'read-only',
      'files cannot be created in /var/lib/skyhook (EROFS). Mount it read-write, or set copyDirRoot and agentLogRoot ' +
        'of the chart elsewhere',
    ],
    [
      'an immutable folder',
      refusedBy('EPERM'),
      'immutable',
      'files cannot be created in /var/log/skyhook (EPERM). Look for an immutable or append-only flag with ' +
        'lsattr -d, and remove it with chattr',
    ],
    [
      'a file in place of a folder',
      refusedBy('ENOTDIR'),
      'not-writable',
      'files cannot be created in /var/log/skyhook (ENOTDIR). Make it a folder in which root can create files',
    ],
    [
      'SELinux that confines the agent',
      enforcing('container_t'),
      'selinux-domain',
      "SELinux is enforced, and the agent runs in the domain container_t, which may not write the host's files. " +
        "Set the chart's seLinuxOptions.type to spc_t, or to a domain with the same rights",
    ],
    [
      'an agent that is not root on the host',
      { isUserNamespaced: true },
      'user-namespace',
      'the agent runs in its own user namespace, where its root is not root on the host. Run its pod in the ' +
        'user namespace of the host (hostUsers), and not under a rootless kubelet',
    ],
  ])('a host with %s is unfit, and the message has the remedy', (_, change, id, message) => {
    const findings = preflight({ ...fit, ...change })
    expect(findings.map((found) => [found.id, found.severity])).toEqual([[id, 'error']])
    expect(whyUnfit(findings)).toBe(message)
  })

  test('several findings become one message', () => {
    const findings = preflight({ ...fit, ...onMount('noexec', 'ro'), ...refusedBy('EROFS') })
    expect(whyUnfit(findings)).toMatch(
      /noexec: .* may run; files cannot be created in \/var\/lib\/skyhook, \/var\/log\/skyhook \(EROFS\)/,
    )
  })
})

describe('a fit host', () => {
  test.each<[string, Partial<HostFacts>]>([
    ['the oldest systemd that has been tried', { systemd: '247.3-7+deb11u7' }],
    ['a systemd that does not say its version', { systemd: undefined }],
    ['SELinux that is permissive', { ...enforcing('container_t'), selinux: 'permissive' }],
    ['SELinux and a super-privileged agent', enforcing('spc_t')],
    ['SELinux and an agent whose domain is unknown', { selinux: 'enforcing', agentContext: undefined }],
    ['mounts that cannot be read', { copyDirRoot: { path: '/var/lib/skyhook' }, cgroup: undefined }],
    ['user namespaces that cannot be compared', { isUserNamespaced: undefined }],
  ])('nothing stands against a host with %s', (_, change) => {
    expect(preflight({ ...fit, ...change })).toEqual([])
  })

  test.each(['240', '246.16'])('a host with systemd %s is fit, with a warning', (systemd) => {
    const findings = preflight({ ...fit, systemd })
    expect(findings).toMatchObject([{ id: 'systemd-untried', severity: 'warning' }])
    expect(whyUnfit(findings)).toBeUndefined()
  })

  test('a container with the boot id of its machine is fit, with a warning that it is not rebooted', () => {
    const findings = preflight({ ...fit, container: { manager: 'docker', hasOwnBootId: false } })
    expect(findings).toMatchObject([
      { id: 'no-reboot', severity: 'warning', message: expect.stringContaining('docker') as string },
    ])
    expect(whyUnfit(findings)).toBeUndefined()
    expect(preflight({ ...fit, container: { manager: 'systemd-nspawn', hasOwnBootId: true } })).toEqual([])
  })

  test('a host whose file about containers cannot be read is fit, with a warning that it is not rebooted', () => {
    const findings = preflight({ ...fit, container: 'unreadable' })
    expect(findings).toMatchObject([{ id: 'no-reboot', severity: 'warning' }])
    expect(whyUnfit(findings)).toBeUndefined()
  })

  test.each(['v1', 'hybrid'] as const)('a host with cgroup %s is fit, with a warning', (cgroup) => {
    const findings = preflight({ ...fit, cgroup })
    expect(findings).toMatchObject([{ id: 'cgroup-v1', severity: 'warning' }])
    expect(whyUnfit(findings)).toBeUndefined()
  })
})

const facts: HostFacts = {
  systemd: '255.4',
  bus: 'dbus-broker.service',
  cgroup: 'v2',
  kernel: '6.8.0',
  os: 'Ubuntu 24.04',
  selinux: 'disabled',
  missingPrograms: [],
  copyDirRoot: { path: '/p', mount: { point: '/', fileSystem: 'ext4', options: ['rw', 'nosuid'] } },
  otherFolders: [],
}
const finding = (id: string, message: string): Finding => ({ id, severity: 'error', message, remedy: 'r' })

test('the report has what is known, and nothing for what is not', () => {
  expect(hostReport(facts, [])).toBe(
    '{"systemd":"255.4","bus":"dbus-broker.service","cgroup":"v2","kernel":"6.8.0","os":"Ubuntu 24.04",' +
      '"selinux":"disabled","copyDirRoot":{"fileSystem":"ext4","flags":"rw,nosuid"},"findings":[]}',
  )
  const unknown = { missingPrograms: [], copyDirRoot: { path: '/p' }, otherFolders: [] }
  expect(hostReport(unknown, [])).toBe('{"findings":[]}')
})

test('a long text is seen to be cut, between characters', () => {
  const report: unknown = JSON.parse(hostReport({ ...facts, os: `x${'\u{1F600}'.repeat(100)}` }, []))
  expect(report).toMatchObject({ os: `x${'\u{1F600}'.repeat(63)}…` })
})

test('the report stays within 2 KiB, and counts the findings that it leaves out', () => {
  const long = { ...facts, os: 'x'.repeat(5_000), kernel: 'ü'.repeat(5_000) }
  const findings = [finding('one', 'm'), finding('two', 'é'.repeat(700)), finding('three', 'm')]
  const text = hostReport(long, findings)
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxReportBytes)
  expect(JSON.parse(text)).toMatchObject({ findings: [{ id: 'one' }], omittedFindings: 2 })
})
