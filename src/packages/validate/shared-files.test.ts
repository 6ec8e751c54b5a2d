import { expect, test } from 'vitest'
import { type ExaminedPackage, withSharedFiles } from './examine.ts'

const packageOf = (name: string, files: Readonly<Record<string, string>>, subject = name): ExaminedPackage => ({
  subject,
  kind: 'package',
  findings: [],
  package: {
    name,
    version: '1.0.0',
    config: { packageName: name, packageVersion: '1.0.0', expectedConfigFiles: [], modes: {} },
    ownConfigFiles: [],
    hostFiles: new Map(Object.entries(files)),
  },
})
const messagesOf = (examined: readonly ExaminedPackage[]): readonly string[] =>
  withSharedFiles(examined).flatMap(({ subject, findings }) => findings.map(({ message }) => `${subject}: ${message}`))

test.each([
  [{ '/etc/x.conf': '2', '/etc/same': '1' }, ''],
  [{ '/etc/x.conf': '2', '/etc/y.conf': 'link x.conf', '/etc/same': '1' }, ', as does 1 more file'],
  [{ '/etc/x.conf': '2', '/etc/y.conf': '2', '/etc/z.conf': '2' }, ', as do 2 more files'],
])('the later of two packages with different contents for a file has a finding: %j', (files, also) => {
  const earlier = packageOf('a', { '/etc/x.conf': '1', '/etc/y.conf': '1', '/etc/z.conf': '1', '/etc/same': '1' })
  expect(messagesOf([earlier, packageOf('b', files)])).toEqual([
    `b: root_dir/etc/x.conf has different content in a${also}: a host with both has the content of the last stage`,
  ])
})

test('versions and architectures of one package may differ', () => {
  expect(messagesOf([packageOf('a', { '/x': '1' }, 'a-1'), packageOf('a', { '/x': '2' }, 'a-2')])).toEqual([])
})

test('an invalid package has no files', () => {
  const invalid: ExaminedPackage = { subject: 'c', kind: 'package', findings: [] }
  expect(messagesOf([packageOf('a', { '/x': '1' }), invalid])).toEqual([])
})
