import { expect, test } from 'vitest'
import type { HostFacts } from './facts.ts'
import type { Finding } from './findings.ts'
import { hostReport, maxReportBytes } from './report.ts'

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
