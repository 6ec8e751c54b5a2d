import { describe, expect, test } from 'vitest'
import { plainStep } from '../../../test/kit/node-simulator/package-content.ts'
import { propertiesOf, stepUnitRequest } from './unit-request.ts'

const step = plainStep('sub/./run.sh', { name: 'run', arguments: ['env:A'] })
const copyDir = '/var/lib/skyhook/demo/tuning-1.0.0-u-1'
const inputs = {
  attempt: { id: '0123456789abcdef', unit: 'skyhookd-tuning-apply-run-0123456789abcdef.service', mode: 'apply' },
  instance: { skyhook: 'demo', name: 'tuning', version: '1.0.0' },
  step,
  composed: { outcome: 'composed' as const, environment: { A: 'b', PATH: '/bin' }, arguments: ['b', ''] },
  copyDir,
  logs: { stdout: '/l/run.log', stderr: '/l/run.log.err' },
  properties: { MemoryMax: 5 },
  stopTimeoutMs: 30_000,
  isSelinuxEnforcing: false,
}

describe('the unit of a step', () => {
  test('the unit of a step runs the script with the composed arguments in the copy dir', () => {
    expect(stepUnitRequest(inputs)).toEqual({
      id: '0123456789abcdef',
      unit: 'skyhookd-tuning-apply-run-0123456789abcdef.service',
      description: 'Skyhook demo: tuning 1.0.0, apply sub/./run.sh',
      command: [`${copyDir}/skyhook_dir/sub/run.sh`, 'b', ''],
      workingDirectory: copyDir,
      environment: { A: 'b', PATH: '/bin' },
      stdoutFile: '/l/run.log',
      stderrFile: '/l/run.log.err',
      stopTimeoutMs: 30_000,
      properties: { MemoryMax: 5 },
    })
  })

  test('the unit of a step has a time limit only where the package has one', () => {
    expect(stepUnitRequest(inputs)).not.toHaveProperty('timeoutMs')
    expect(stepUnitRequest({ ...inputs, timeoutMs: 1500 })).toMatchObject({ timeoutMs: 1500 })
  })

  test('the unit of a step goes through env where SELinux is enforcing', () => {
    expect(stepUnitRequest({ ...inputs, isSelinuxEnforcing: true }).command).toEqual([
      '/usr/bin/env',
      `${copyDir}/skyhook_dir/sub/run.sh`,
      'b',
      '',
    ])
  })

  test('variables that systemd sets for the recorder are passed through env', () => {
    const environment = { A: 'b', EXIT_CODE: '2 3', INVOCATION_ID: 'x' }
    const composed = { ...inputs.composed, environment, arguments: [{ variable: 'EXIT_CODE' }, { variable: 'A' }] }
    expect(stepUnitRequest({ ...inputs, composed })).toMatchObject({
      command: [
        '/usr/bin/env',
        { prefix: 'EXIT_CODE=', variable: 'SKYHOOK_ENV_EXIT_CODE' },
        { prefix: 'INVOCATION_ID=', variable: 'SKYHOOK_ENV_INVOCATION_ID' },
        `${copyDir}/skyhook_dir/sub/run.sh`,
        { variable: 'SKYHOOK_ENV_EXIT_CODE' },
        { variable: 'A' },
      ],
      environment: { A: 'b', SKYHOOK_ENV_EXIT_CODE: '2 3', SKYHOOK_ENV_INVOCATION_ID: 'x' },
    })
  })
})

describe('resources', () => {
  test.each([
    [undefined, {}],
    [{}, {}],
    [{ cpuLimit: 0, memoryLimit: '0', cpuRequest: '0m' }, {}], // what the operator stores for "not set"
    [{ cpuLimit: '500m' }, { CPUQuotaPerSecUSec: 500_000 }],
    [
      { cpuLimit: 2, memoryLimit: '512Mi' },
      { CPUQuotaPerSecUSec: 2_000_000, MemoryMax: 536_870_912 },
    ],
    [
      { cpuRequest: '1', memoryRequest: '64Mi' },
      { CPUWeight: 39, MemoryLow: 67_108_864 },
    ],
    [{ cpuRequest: '1m' }, { CPUWeight: 1 }],
    [{ cpuRequest: '1000' }, { CPUWeight: 10_000 }],
    [{ memoryLimit: '1E' }, { MemoryMax: Number.MAX_SAFE_INTEGER }],
  ])('the resources %j become the properties %j of a step', (resources, properties) => {
    expect(propertiesOf(resources === undefined ? {} : { resources })).toEqual({ outcome: 'properties', properties })
  })

  test('every unreadable resource is named', () => {
    expect(propertiesOf({ resources: { cpuLimit: 'two', memoryLimit: '1 GB' } })).toEqual({
      outcome: 'invalid',
      problems: ['resources.cpuLimit "two" is not a quantity', 'resources.memoryLimit "1 GB" is not a quantity'],
    })
  })
})
