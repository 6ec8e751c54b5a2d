import { expect, test } from 'vitest'
import { plainStep } from '../../../test/kit/node-simulator/package-content.ts'
import { tuning } from '../../../test/kit/objects/sample-specs.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import { checkedTogether, type ExaminedTarget } from './validate.ts'

const needy: Partial<PackageConfig> = {
  expectedConfigFiles: ['a.txt', 'b.txt'],
  modes: { config: [plainStep('run.sh', { arguments: ['env:SITE'] })] },
}
const packageOf = (version: string, config: Partial<PackageConfig> = needy, ...own: string[]): ExaminedTarget => ({
  subject: `tuning-${version}`,
  kind: 'package',
  findings: [],
  package: {
    name: 'tuning',
    version,
    config: { packageName: 'tuning', packageVersion: version, expectedConfigFiles: [], modes: {}, ...config },
    ownConfigFiles: own,
    hostFiles: new Map(),
  },
})
const image = 'registry.example.com/packages/tuning'
const skyhookOf = (fields: object): ExaminedTarget => ({
  subject: 'a.yaml',
  kind: 'Skyhook demo',
  findings: [],
  skyhook: {
    packages: { mine: { ...tuning, image, version: '1.1.0', ...fields } },
    placeOf: (pointer) => ({ file: 'a.yaml', line: 1, pointer }),
  },
})
const found = (...examined: readonly ExaminedTarget[]): readonly string[] =>
  checkedTogether(examined)
    .flatMap(({ findings }) => findings)
    .map(({ severity, file, pointer, message }) => `${severity} ${file} ${pointer}: ${message}`)

test('what a package expects and its Skyhook lacks are errors of the Skyhook, in whatever order they are given', () => {
  const errors = [
    'error a.yaml /spec/packages/mine/configMap: lacks a.txt, b.txt, which tuning-1.1.0 expects',
    'error a.yaml /spec/packages/mine/env: lacks SITE, which arguments of steps of tuning-1.1.0 name',
  ]
  expect(found(packageOf('1.1.0'), skyhookOf({}))).toEqual(errors)
  expect(found(skyhookOf({}), packageOf('1.0.0'), packageOf('1.1.0'))).toEqual(errors)
  expect(found(skyhookOf({ version: 'v1.1.0' }), packageOf('1.1.0'))).toEqual(errors)
})

test('a Skyhook that has what its packages expect has no finding', () => {
  const fields = { configMap: { 'a.txt': '' }, env: [{ name: 'SITE', value: 'lab' }] }
  expect(found(skyhookOf(fields), packageOf('1.1.0', needy, 'b.txt'))).toEqual([])
})

test('a Skyhook with another version than the given package has a warning that they were not checked together', () => {
  expect(found(skyhookOf({}), packageOf('1.2.0'))).toEqual([
    'warning a.yaml /spec/packages/mine/version: ' +
      'is not 1.2.0, the version of tuning-1.2.0: they were not checked against each other',
  ])
})

test('a package does not belong to a Skyhook that names another image', () => {
  expect(found(skyhookOf({ image: 'registry.example.com/tuning/other' }), packageOf('1.1.0'))).toEqual([])
})
