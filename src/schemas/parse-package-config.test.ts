import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parsePackageConfig } from './parse-package-config.ts'
import { problemText } from './validation.ts'

const step = {
  name: 'run',
  path: 'run.sh',
  arguments: [] as string[],
  returncodes: [0],
  on_host: true,
  idempotence: true,
  upgrade_step: false,
}
const both = { apply: [step], 'apply-check': [step] }
const base = {
  schema_version: 'v1',
  package_name: 'probe',
  package_version: '1.0.0',
  expected_config_files: [] as string[],
  modes: both,
}

const parse = (change: object) => parsePackageConfig(JSON.stringify({ ...base, ...change }))
const parseStep = (change: object) => parse({ modes: { apply: [{ ...step, ...change }], 'apply-check': [step] } })
const without = (key: string) => Object.fromEntries(Object.entries(step).filter(([name]) => name !== key))

/** The problems as a person reads them. */
function problems(result: ReturnType<typeof parsePackageConfig>): string[] {
  return result.outcome === 'invalid' ? result.problems.map((problem) => problemText('config.json', problem)) : []
}

describe('valid files', () => {
  test.each([
    ['a key at the top that nobody knows', { root_dir: '/tmp' }],
    ['an empty interrupt mode', { modes: { ...both, interrupt: [] } }],
    ['an interrupt mode with anything in it', { modes: { ...both, interrupt: [{ odd: 1 }] } }],
    ['an empty apply with checks', { modes: { apply: [], 'apply-check': [step] } }],
    ['an orphan check mode', { modes: { ...both, 'config-check': [step] } }],
    ['equal steps', { modes: { apply: [step, step], 'apply-check': [step] } }],
    ['a date as version', { package_version: '2024.12.19' }],
    ['a pre-release and a build', { package_version: '1.0.0-dev.1+build1' }],
    ['one expected file twice', { expected_config_files: ['a', 'a'] }],
    ['a name with an underscore', { package_name: 'nvidia_setup' }],
  ])('a file with %s loads, as in the operator', (_, change) => {
    expect(problems(parse(change))).toEqual([])
  })

  test.each([
    ['requires_interrupt', { requires_interrupt: true }],
    ['one return code twice', { returncodes: [0, 0] }],
    ['a nested path', { path: 'sub/run.sh' }],
    ['step environment', { env: { MODE: '' } }],
  ])('a step with %s loads, as in the operator', (_, change) => {
    expect(problems(parseStep(change))).toEqual([])
  })
})

describe('invalid files', () => {
  test.each([
    ['no version of the schema', { schema_version: undefined }, 'config.json /schema_version: is missing'],
    ['latest as schema version', { schema_version: 'latest' }, 'config.json /schema_version = "latest": must be "v1"'],
    ['an unknown mode', { modes: { ...both, install: [] } }, 'config.json /modes/install: is not known'],
    ['no modes', { modes: {} }, 'config.json /modes: has no step in any mode'],
    ['checks only', { modes: { 'apply-check': [step] } }, 'config.json /modes: has none of apply, config'],
    ['an interrupt only', { modes: { interrupt: [step] } }, 'config.json /modes: has no step in any mode'],
    [
      'an action without check',
      { modes: { config: [step] } },
      'config.json /modes/config-check: has no step although config has',
    ],
    [
      'a version of two numbers',
      { package_version: '1.0' },
      'config.json /package_version = "1.0": must be a semantic version',
    ],
    ['a version with leading zeros', { package_version: '2024.05.10' }, 'config.json /package_version = "2024.05.10"'],
    ['a version with a v', { package_version: 'v1.0.0' }, 'config.json /package_version'],
    [
      'expected files that are not a list',
      { expected_config_files: 'a' },
      'config.json /expected_config_files = "a": must be a list',
    ],
  ])('a file with %s is refused with place and value', (_, change, message) => {
    expect(problems(parse(change)).join('\n')).toContain(message)
  })

  test.each([
    ['an unknown key', { retries: 1 }, '/modes/apply/0/retries: is not known; known here: name, path'],
    ['a blank in its name', { name: 'a b' }, '/modes/apply/0/name = "a b": must be letters, digits'],
    ['an accent in its name', { name: 'é' }, '/modes/apply/0/name'],
    [
      'no return codes',
      { returncodes: [] },
      '/modes/apply/0/returncodes = []: must be a list of at least one exit code',
    ],
    ['true as return code', { returncodes: [true] }, '/modes/apply/0/returncodes/0 = true: must be an integer'],
    ['null as environment', { env: null }, '/modes/apply/0/env = null: must be an object of strings'],
    ['a number in its environment', { env: { A: 1 } }, '/modes/apply/0/env/A = 1: must be a string'],
    [
      'upgrade_step in apply',
      { upgrade_step: true },
      '/modes/apply/0/upgrade_step: can be true in upgrade and upgrade-check only',
    ],
  ])('a step with %s is refused with place and value', (_, change, message) => {
    expect(problems(parseStep(change)).join('\n')).toContain(`config.json ${message}`)
  })

  test.each(['name', 'path', 'arguments', 'returncodes', 'on_host', 'idempotence', 'upgrade_step'])(
    'a step without %s is refused',
    (key) => {
      expect(problems(parse({ modes: { apply: [without(key)], 'apply-check': [step] } }))).toEqual([
        `config.json /modes/apply/0/${key}: is missing`,
      ])
    },
  )

  test('an upgrade step with arguments is refused', () => {
    const upgrade = { ...step, upgrade_step: true, arguments: ['x'] }
    expect(problems(parse({ modes: { upgrade: [upgrade], 'upgrade-check': [step] } }))).toEqual([
      'config.json /modes/upgrade/0/arguments = ["x"]: ' +
        'must be empty with upgrade_step: the two versions are its arguments',
    ])
  })
})

describe('unsafe files', () => {
  test.each(['../x', '..', '.', '', 'a/b', 'a\n'])(
    'a package named %j is refused, because it would leave its folder',
    (package_name) => {
      expect(problems(parse({ package_name })).join()).toContain('/package_name')
    },
  )

  test.each(['START', 'check_results', 'apply-check_ALL_CHECKED'])(
    'a package named %s is refused, because it would collide with a file',
    (package_name) => {
      expect(problems(parse({ package_name })).join()).toContain('flags folder')
    },
  )

  test.each(['', '../run.sh', '/bin/sh', 'a/../../b', 'a/..', 'dir/', 'a\nb'])(
    'a step at the path %j is refused',
    (path) => {
      expect(problems(parseStep({ path })).join()).toContain('/modes/apply/0/path')
    },
  )

  test.each(['../etc/passwd', '/etc/passwd'])('an expected file %j is refused', (name) => {
    expect(problems(parse({ expected_config_files: [name] })).join()).toContain('/expected_config_files/0')
  })

  test('a trailing newline in name or version is refused', () => {
    expect(problems(parse({ package_version: '1.0.0\n' }))).toHaveLength(1)
    expect(problems(parseStep({ name: 'a\n' }))).toHaveLength(1)
  })

  test.each([
    [{ env: { 'a.b': 'x' } }, '/modes/apply/0/env/a.b: is not a variable name that systemd can set'],
    [{ env: { '1A': 'x' } }, '/modes/apply/0/env/1A'],
    [{ env: { 'a/b~c': 'x' } }, '/modes/apply/0/env/a~1b~0c'],
    [{ env: { A: '\0' } }, '/modes/apply/0/env/A: contains a NUL character'],
    [{ env: { A: '\ud800' } }, '/modes/apply/0/env/A: contains half a surrogate pair'],
    [{ env: { A: '\ufffe' } }, '/modes/apply/0/env/A: contains a Unicode noncharacter'],
    [{ env: { A: 'x'.repeat(131_072) } }, '/modes/apply/0/env/A: is 131074 bytes long'],
    [{ arguments: ['a', '\0'] }, '/modes/apply/0/arguments/1 = "\\u0000": contains a NUL'],
  ])('a text that no process can be given is refused (%#)', (change, message) => {
    expect(problems(parseStep(change)).join('\n')).toContain(message)
  })
})

test('a newer schema version gives one clear sentence, whatever else is new', () => {
  expect(problems(parse({ schema_version: 'v2', modes: 'by name now' }))).toEqual([
    'config.json /schema_version = "v2": is newer than v1, the newest that this agent reads: ' +
      'upgrade skyhookd or build the package for v1',
  ])
})

test('every problem of the schema is reported at once', () => {
  const result = parse({ package_name: '', modes: { apply: [{ ...step, name: 'a b', returncodes: [] }], typo: [] } })
  expect(problems(result)).toHaveLength(4)
})

test('every problem of the rules is reported at once', () => {
  const result = parse({ modes: { apply: [{ ...step, upgrade_step: true }], config: [{ ...step, env: { '': 'x' } }] } })
  expect(problems(result)).toHaveLength(4)
})

test.each(['', '{', 'null', '[]', '"v1"', '\ufeff{}'])('the text %j is an error, not an exception', (text) => {
  expect(parsePackageConfig(text).outcome).toBe('invalid')
})

test('a file with 150,000 problems is an error, not an exception', () => {
  const text = JSON.stringify({ ...base, expected_config_files: Array.from({ length: 150_000 }, () => 7) })
  expect(problems(parsePackageConfig(text))).toHaveLength(150_000)
})

test('the parser never throws', () => {
  const anywhere = fc
    .tuple(fc.constantFrom(...Object.keys(base), ...Object.keys(step)), fc.jsonValue())
    .map(([key, value]) => {
      const change = { [key]: value }
      return key in step
        ? JSON.stringify({ ...base, modes: { apply: [{ ...step, ...change }], 'apply-check': [step] } })
        : JSON.stringify({ ...base, ...change })
    })
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), anywhere), (text) => {
      expect(['valid', 'invalid']).toContain(parsePackageConfig(text).outcome)
    }),
    { numRuns: 500 },
  )
})

test('a problem shows a long value cut', () => {
  expect(problems(parseStep({ name: `${'x'.repeat(500)} ` }))[0]?.length).toBeLessThan(300)
})

test('a value is cut between characters', () => {
  const problem = { pointer: '', message: 'm', rule: 'r', remedy: 'r' }
  const value = `${'x'.repeat(118)}\u{1F600} and more`
  expect(problemText('f', { ...problem, value })).toBe(`f = "${'x'.repeat(118)}\uFFFD…: m`)
})

test('the keys of the file become those of the code', () => {
  const result = parseStep({ idempotence: false, on_host: true, env: { A: 'b' } })
  expect(result.outcome === 'valid' && result.config).toEqual({
    packageName: 'probe',
    packageVersion: '1.0.0',
    expectedConfigFiles: [],
    modes: {
      apply: [
        {
          name: 'run',
          path: 'run.sh',
          arguments: [],
          returncodes: [0],
          onHost: true,
          env: { A: 'b' },
          idempotence: 'agent',
          upgradeStep: false,
        },
      ],
      'apply-check': [
        {
          name: 'run',
          path: 'run.sh',
          arguments: [],
          returncodes: [0],
          onHost: true,
          env: {},
          idempotence: 'step',
          upgradeStep: false,
        },
      ],
    },
  })
})

describe('warnings', () => {
  const warnings = (modes: object): string[] => {
    const result = parse({ modes })
    return result.outcome === 'valid'
      ? result.warnings.map((problem) => problemText('config.json', problem))
      : ['invalid']
  }

  test.each([
    { path: 'run.sh', check: 'run.sh' }, // one script for all modes, as the stock packages do
    { path: 'run.sh', check: 'run_check.sh' },
    { path: 'run', check: 'run_check' },
    { path: 'conf.d/run', check: 'conf.d/run_check' }, // the dot of a folder does not start an extension
    { path: 'conf.d/.run', check: 'conf.d/.run_check' },
  ])('a step $path counts as checked by $check', ({ path, check }) => {
    expect(warnings({ apply: [{ ...step, path }], 'apply-check': [{ ...step, path: check }] })).toEqual([])
  })

  test('a step without a check is warned about', () => {
    expect(warnings({ apply: [step, { ...step, path: 'b.sh' }], 'apply-check': [step] })).toEqual([
      'config.json /modes/apply/1/path = "b.sh": has no check of its own in apply-check (b_check.sh is the usual name)',
    ])
  })

  test('a repeated step that its own flag suppresses is warned about', () => {
    const once = { ...step, idempotence: false }
    expect(warnings({ apply: [once, once], 'apply-check': [step] }).join()).toContain(
      '/modes/apply/1: is the same as an earlier step',
    )
    expect(warnings({ config: [once, once], 'config-check': [step] })).toEqual([])
  })

  test('impossible exit codes, on_host false and an interrupt mode are warned about', () => {
    const text = warnings({
      apply: [{ ...step, returncodes: [0, 256, -1], on_host: false }],
      'apply-check': [step],
      interrupt: [1],
    }).join('\n')
    expect(text).toContain('/modes/apply/0/returncodes = [256,-1]')
    expect(text).toContain('/modes/apply/0/on_host: false has no effect')
    expect(text).toContain('/modes/interrupt: never runs')
  })
})
