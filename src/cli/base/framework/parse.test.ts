import { describe, expect, test } from 'vitest'
import { errorOf } from '../../../../test/kit/tool/command-error.ts'
import { defineCommand } from './command.ts'
import { exitCodes } from './command-error.ts'
import { connectionHelp, parseCall, exitCodesOf } from './parse.ts'
import { version } from '../../../schemas/version.ts'

const run = async () => exitCodes.ok

const pause = defineCommand({
  name: 'pause',
  summary: 'pause a Skyhook',
  example: 'kubectl skyhook pause tuning --yes',
  arguments: { skyhook: { summary: 'the Skyhook' } },
  isAction: true,
  run,
})

const status = defineCommand({
  name: 'package status',
  summary: 'show a package',
  example: 'kubectl skyhook package status shellscript --skyhook tuning',
  arguments: { package: { summary: 'the package' }, more: { summary: 'others', isVariadic: true, isOptional: true } },
  flags: {
    skyhook: { type: 'text', placeholder: 'NAME', isRequired: true, summary: 'its Skyhook' },
    node: { type: 'list', placeholder: 'NODE', summary: 'only these' },
    tail: { type: 'integer', placeholder: 'LINES', minimum: -1, default: -1, summary: 'only the last lines' },
    timeout: { type: 'duration', placeholder: 'DURATION', summary: 'longest wait' },
    stage: { type: 'text', placeholder: 'STAGE', choices: ['apply', 'config'], summary: 'only this stage' },
  },
  formats: ['table', 'json'],
  run,
})

const commands = [pause, status]

function callOf(line: string) {
  const result = parseCall(line.split(' ').filter(Boolean), commands)
  if (result.outcome !== 'call') throw new Error(`help:\n${result.text}`)
  return result
}

test('a call names its command and gives arguments and flags their types', () => {
  const { command, input } = callOf(
    'package status one two three --skyhook tuning --node a,b --node c --tail 5 --timeout 1m30s --stage config',
  )
  expect(command.name).toBe('package status')
  expect(input.arguments).toEqual({ package: 'one', more: ['two', 'three'] })
  expect(input.flags).toEqual({
    skyhook: 'tuning',
    node: ['a', 'b', 'c'],
    tail: 5,
    timeout: 90_000,
    stage: 'config',
  })
})

test('a flag that is not given has its default, or the empty value of its type', () => {
  const { input, globals } = callOf('package status one --skyhook tuning')
  expect(input.flags).toEqual({ skyhook: 'tuning', node: [], tail: -1, timeout: undefined, stage: undefined })
  expect(globals).toMatchObject({ dryRun: 'none', verbose: false, namespace: undefined, asGroup: [] })
})

test.each([
  '--context c -n ns pause tuning',
  'pause tuning --context c -n ns',
  'pause --context=c tuning --namespace=ns',
])('global flags stand before and after the command: %s', (line) => {
  expect(callOf(line).globals).toMatchObject({ context: 'c', namespace: 'ns' })
})

test.each(['-y', '--yes', '--confirm', '--yes=true', '--confirm=true', '-y=true'])('%s agrees', (flag) => {
  expect(callOf(`pause tuning ${flag}`).input.flags).toEqual({ yes: true })
})

test.each(['', '--yes=false', '--confirm=false'])('agreement is not assumed from "%s"', (flag) => {
  expect(callOf(`pause tuning ${flag}`).input.flags).toEqual({ yes: false })
})

test.each([
  ['pause --dry-run tuning', 'client'],
  ['pause tuning --dry-run', 'client'],
  ['pause tuning --dry-run=client', 'client'],
  ['pause --dry-run=server tuning', 'server'],
  ['pause tuning --dry-run=none', 'none'],
  ['pause tuning', 'none'],
])('"%s" is a dry run of the kind %s', (line, kind) => {
  const { globals, input } = callOf(line)
  expect(globals.dryRun).toBe(kind)
  expect(input.arguments).toEqual({ skyhook: 'tuning' })
})

test.each(['-o json', '-ojson', '-o=json', '--output json', '--output=json'])('%s sets the output format', (flag) => {
  expect(callOf(`package status one --skyhook tuning ${flag}`).globals.output).toBe('json')
})

test('line after two dashes are arguments', () => {
  expect(callOf('pause -- --yes').input).toEqual({ arguments: { skyhook: '--yes' }, flags: { yes: false } })
})

test('an alias of a group names it', () => {
  expect(callOf('packages status one --skyhook tuning').command.name).toBe('package status')
})

describe('A wrong call is a usage error that names its help:', () => {
  test.each([
    ['pausé x', /unknown command/, 'see kubectl skyhook --help'],
    ['paus x', /unknown command 'paus'.*pause/s, 'see kubectl skyhook --help'],
    ['pause', /missing required argument/, 'see kubectl skyhook pause --help'],
    ['pause one two', /too many arguments/, 'see kubectl skyhook pause --help'],
    ['pause one --wrong', /unknown option '--wrong'/, 'see kubectl skyhook pause --help'],
    ['package status one', /--skyhook <NAME>/, 'see kubectl skyhook package status --help'],
    ['package stat one', /unknown command 'stat'/, 'see kubectl skyhook package --help'],
    ['pause tuning --context', /argument missing/, 'see kubectl skyhook pause --help'],
    [
      'package status one --skyhook x --dry-run',
      /"package status" changes nothing .*does not take --dry-run/,
      undefined,
    ],
    ['pause tuning --dry-run=maybe', /--dry-run must be one of none, client, server, got "maybe"/, undefined],
    ['package status one --skyhook x --tail many', /--tail must be a whole number, at least -1, got "many"/, undefined],
    ['package status one --skyhook x --tail -2', /--tail must be a whole number/, undefined],
    ['package status one --skyhook x --timeout soon', /--timeout must be a duration such as 90s/, undefined],
    ['package status one --skyhook x --stage drain', /--stage must be one of apply, config, got "drain"/, undefined],
  ])('%s', (line, message, remedy) => {
    const error = errorOf(() => callOf(line))
    expect(error.exitCode).toBe(exitCodes.usage)
    expect(error.message).toMatch(message)
    if (remedy !== undefined) expect(error.remedy).toBe(remedy)
  })
})

test.each(['', '--help', 'help', 'pause --help', 'pause -h', 'help pause', 'package', 'package --help'])(
  'help is an answer: "%s"',
  (line) => {
    const result = parseCall(line.split(' ').filter(Boolean), commands)
    expect(result.outcome === 'help' && result.text).toMatch(/^Usage: kubectl skyhook/)
  },
)

test('the help lists commands before flags, and flags for the connection elsewhere', () => {
  const result = parseCall(['--help'], commands)
  const text = result.outcome === 'help' ? result.text : ''
  expect(text.indexOf('Commands:\n')).toBeLessThan(text.indexOf('Options:\n'))
  expect(text).not.toContain('--kubeconfig')
  expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
  expect(connectionHelp()).toMatch(/^Every command that asks a cluster takes:\n\n {2}-n, --namespace <NAMESPACE>/)
  expect(connectionHelp()).toContain('--cache-dir')
})

test('--version before a command is the version of the tool, and a flag of its own after one that has it', () => {
  expect(parseCall(['--version'], commands)).toEqual({ outcome: 'help', text: `kubectl skyhook ${version}\n` })
  expect(errorOf(() => callOf('pause tuning --version')).message).toMatch(/unknown option/)
})

test('the help of a command has its example, its output formats and its exit codes', () => {
  const result = parseCall(['package', 'status', '--help'], commands)
  const text = result.outcome === 'help' ? result.text : ''
  expect(text).toContain(status.example)
  expect(text).toContain('table, json')
  expect(text).toMatch(/Exit codes:\n {2}0 {4}done\n(?: {2}\d.*\n)+ {2}130 {2}interrupted by ctrl-C\n/)
})

test('any command has the codes of success, failure, wrong use and ctrl-C, in order', () => {
  expect([...exitCodesOf({ isLocal: true }).keys()]).toEqual([0, 1, 2, 130])
  expect([...exitCodesOf({ isLocal: true, exitCodes: { [exitCodes.refused]: 'not empty' } })]).toEqual([
    [0, 'done'],
    [1, 'failed, wholly or in part; the errors are on stderr'],
    [2, 'the call is wrong: unknown flag, missing argument, unreadable file'],
    [4, 'not empty'],
    [130, 'interrupted by ctrl-C'],
  ])
})

test('a command that asks the API server can be refused, to read or to act', () => {
  expect(exitCodesOf({}).get(exitCodes.refused)).toBe('you may not read what it needs')
  expect(exitCodesOf({ isAction: true }).get(exitCodes.refused)).toBe('not confirmed, or refused by the API server')
})

test('a command defines the meaning of a code, or that it never ends with it', () => {
  const own = { [exitCodes.refused]: 'the file exists', [exitCodes.ok]: 'ended by ctrl-C' }
  const codes = exitCodesOf({ exitCodes: own })
  expect([codes.get(exitCodes.ok), codes.get(exitCodes.refused)]).toEqual(['ended by ctrl-C', 'the file exists'])
  expect(exitCodesOf({ exitCodes: { [exitCodes.refused]: null } }).has(exitCodes.refused)).toBe(false)
})
