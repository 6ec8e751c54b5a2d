import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

const chart = join(import.meta.dirname, '..', 'chart')
const read = (...path: string[]): string => readFileSync(join(chart, ...path), 'utf8')
const values = parse(read('values.yaml')) as Record<string, unknown>

describe('the chart', () => {
  test('the chart holds no resource definition that is not in crds/', () => {
    expect(readdirSync(join(chart, 'crd-files')).sort()).toEqual(readdirSync(join(chart, '..', 'crds')).sort())
  })

  test('the chart has the version of the package', () => {
    const { version } = JSON.parse(read('..', 'package.json')) as { version: string }
    expect(parse(read('Chart.yaml'))).toMatchObject({ version, appVersion: version })
  })
})

describe('the schema of the values', () => {
  const validate = new Ajv({ strict: false }).compile(JSON.parse(read('values.schema.json')) as object)
  const problems = (candidate: object) => (validate(candidate) ? [] : validate.errors)

  test('the schema of the values accepts the defaults', () => {
    expect(problems(values)).toEqual([])
  })

  test('the schema of the values names every default', () => {
    const known = Object.keys((JSON.parse(read('values.schema.json')) as { properties: object }).properties)
    expect(Object.keys(values).filter((key) => !known.includes(key))).toEqual([])
  })

  test.each([
    ['a misspelt name', { logLevle: 'info' }],
    ['a taint without effect', { runtimeRequiredTaint: 'skyhook.nvidia.com=runtime-required' }],
    ['a removal of a taint', { runtimeRequiredTaint: 'skyhook.nvidia.com=runtime-required:NoSchedule-' }],
    ['a relative folder', { copyDirRoot: 'var/lib/skyhook' }],
    ['the whole host as folder', { copyDirRoot: '/' }],
    ['a registry with a scheme', { registries: [{ host: 'https://registry.example.com' }] }],
    ['an API server with a scheme', { apiServer: { host: 'https://10.0.0.1', port: 6443 } }],
    ['a pull Secret as a plain name', { imagePullSecrets: ['credentials'] }],
    ['a runbook without a scheme', { metrics: { rules: { runbookUrl: 'docs/usage/alerts.md' } } }],
    ['a scrape interval without a unit', { metrics: { podMonitor: { interval: '30' } } }],
    ['an unknown log level', { logLevel: 'verbose' }],
  ])('the schema of the values refuses %s', (_, change) => {
    expect(problems({ ...values, ...change })).not.toEqual([])
  })

  test.each([
    [
      'a registry with port, mirror and CA',
      { registries: [{ host: 'registry.example.com:5000', mirrors: ['m.example.com'], caSecret: 'ca' }] },
    ],
    ['a taint without value', { runtimeRequiredTaint: 'example.com/new:NoExecute' }],
    ['no SELinux options', { seLinuxOptions: null }],
  ])('the schema of the values accepts %s', (_, change) => {
    expect(problems({ ...values, ...change })).toEqual([])
  })
})
