import { expect, test } from 'vitest'
import type { CommandLine } from '../../../test/kit/tool/command-line.ts'
import { exampleCluster } from '../../../test/kit/tool/example-cluster.ts'
import { ApiError } from '../../kube/errors.ts'
import { statusKey } from '../../schemas/annotations.ts'

const of = {
  skyhook: 'tuning',
  package: 'tuned',
  version: '1.0.0',
  mode: 'apply',
  step: 'run.sh',
  stepId: 'x',
  attempt: 2,
}
const startedAt = '2026-03-01T11:00:00.000Z'
const ended = { ...of, startedAt, endedAt: '2026-03-01T11:00:02.500Z', durationMs: 2_500 }
const failed = { ...ended, result: 'failed', exitCode: 3, message: 'step ended' }
const output = (text: string, more: object = {}): object => ({ ...of, stream: 'stdout', message: text, ...more })

/** The example cluster, whose agents have logged this. */
async function withLog(lines: readonly (object | string)[]): Promise<CommandLine> {
  const { tool, clock } = await exampleCluster()
  tool.answer(
    ({ path }) => path.endsWith('/log'),
    ({ query }) => {
      if (query?.['previous'] === true)
        throw new ApiError({ status: 400, reason: 'BadRequest', message: 'previous terminated container not found' })
      return lines
        .map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
        .map((line) => `2026-03-01T11:30:00.000000000Z ${line}\n`)
        .join('')
    },
  )
  return { ...tool, clock }
}

test('starts, ends, gaps and output of a step are told apart', async () => {
  const tool = await withLog([
    { message: 'agent starting' },
    'no JSON',
    { ...of, startedAt, message: 'step started' },
    output('hello'),
    output('output skipped', { skippedBytes: 9, log: '/var/log/skyhook/x.log' }),
    output('output truncated, showing the tail', { log: '/var/log/skyhook/x.log' }),
    failed,
  ])
  expect(await tool.run('logs tuning --node n1')).toEqual({
    code: 0,
    stdout: [
      '[tuned] --- apply run.sh of tuned 1.0.0 (attempt 2) started 2026-03-01T11:00:00.000Z ---',
      '[tuned] hello',
      '[tuned] --- 9 bytes of output left out; the host has all of it in /var/log/skyhook/x.log ---',
      '[tuned] --- some output left out; the host has all of it in /var/log/skyhook/x.log ---',
      '[tuned] --- apply run.sh of tuned 1.0.0 (attempt 2) ended: failed after 2.5s, exit code 3 ---',
      '',
    ].join('\n'),
    stderr: '',
  })
})

test.each(['logs tuning --package tuned', 'package logs tuned --skyhook tuning'])(
  'what one node writes does not look like the words of another: %s',
  async (call) => {
    const tool = await withLog([output('a\n[n2] b\r[n2] c'), output('')])
    const { stdout } = await tool.run(`${call} --node n.*`)
    const ofOne = ['[n1] a', '[n1] [n2] b', '[n1] [n2] c', '[n1] ']
    expect(stdout.split('\n').filter((line) => line.startsWith('[n1]'))).toEqual(ofOne)
    expect(stdout.split('\n').filter((line) => !/^\[n\d\] /.test(line))).toEqual([''])
  },
)

test.each([
  ['--package tuned', 'apply\ncheck\nconfig\n'],
  ['--package other', ''],
  ['--stage apply', '[tuned] apply\n[tuned] check\n'],
  ['--stage config --package tuned', 'config\n'],
])('%s chooses lines', async (flags, expected) => {
  const tool = await withLog([
    output('apply'),
    output('check', { mode: 'apply-check' }),
    output('config', { mode: 'config' }),
    output('of another', { skyhook: 'another' }),
  ])
  expect((await tool.run(`logs tuning --node n1 ${flags}`)).stdout).toBe(expected)
})

const tooShort =
  'node n1: the log of its agent goes back to 2026-03-01T11:30:00Z; ' +
  'earlier output is on the host, in /var/log/skyhook/tuning (the newest five logs of each step)\n'

test.each<[string, readonly object[], string]>([
  ['has nothing', [{ message: 'agent starting' }], ''],
  ['repeats what ended before', [{ ...failed, repeated: true }], ''],
  [
    'found a step running',
    [{ ...of, startedAt, message: 'step is running' }, output('hello')],
    '[tuned] --- apply run.sh of tuned 1.0.0 (attempt 2) is running since 2026-03-01T11:00:00.000Z ---\n' +
      '[tuned] hello\n',
  ],
])('where an agent %s, the place of earlier output is said', async (_, lines, stdout) => {
  const tool = await withLog(lines)
  expect(await tool.run('logs tuning --node n1')).toEqual({ code: 0, stdout, stderr: tooShort })
})

test('output of a package that its Skyhook may name otherwise is below the name in its config.json', async () => {
  const tool = await withLog([])
  tool.answer(
    ({ method, path }) => method === 'GET' && path.endsWith('/configmaps'),
    () => ({
      metadata: { resourceVersion: '1' },
      items: [{ metadata: { name: 'skyhookd' }, data: { 'settings.json': '{"agentLogRoot":"/data/logs"}' } }],
    }),
  )
  expect((await tool.run('logs tuning --node n1 --package tuned')).stderr).toMatch(
    /in \/data\/logs\/tuning, below the package_name in the config\.json of tuned \(the newest five logs of each step\)\n$/,
  )
})

test('lines of a step come before those of the next step of its package', async () => {
  const next = { ...of, mode: 'config', stepId: 'y' }
  const tool = await withLog([
    { ...of, startedAt, message: 'step started' },
    { ...next, startedAt, message: 'step started' },
    { ...of, package: 'other', stepId: 'z', stream: 'stdout', message: 'beside it' },
    output('late'),
    { ...failed, result: 'ok', exitCode: 0 },
    { ...output('next'), mode: 'config', stepId: 'y' },
  ])
  const { stdout } = await tool.run('logs tuning --node n1')
  expect(stdout.trimEnd().split('\n')).toEqual([
    expect.stringContaining('apply run.sh of tuned 1.0.0 (attempt 2) started'),
    '[tuned] late',
    '[other] beside it',
    expect.stringContaining('apply run.sh of tuned 1.0.0 (attempt 2) ended: ok'),
    expect.stringContaining('config run.sh of tuned 1.0.0 (attempt 2) started'),
    '[tuned] next',
  ])
})

test.each(['logs', 'history'])(
  '%s of a Skyhook shows the nodes in trouble first if no node is named',
  async (command) => {
    const { tool } = await exampleCluster()
    const { stdout, stderr } = await tool.run(`${command} tuning`)
    const nodes = [...stdout.matchAll(/^\[?(n\d)\b/gm)].map(([, node]) => node)
    expect([...new Set(nodes)]).toEqual(['n2', 'n3', 'n4', 'n1'])
    expect(stdout).toContain('shellscript')
    expect(stderr).toBe('')
  },
)

test('ten of many nodes are shown, those that are in trouble first, and stderr says so', async () => {
  const { tool } = await exampleCluster()
  const pods = Array.from({ length: 12 }, (_, index) => `m${index + 10}`)
  for (const name of pods) {
    const metadata = { name, labels: { pool: 'a' }, annotations: { [statusKey('tuning')]: 'waiting' } }
    await tool.admin.json('POST', '/api/v1/nodes', { body: { metadata, spec: {} } })
  }
  tool.answer(
    ({ path, query }) => path.endsWith('/pods') && query?.['labelSelector'] !== undefined,
    () => ({
      metadata: { resourceVersion: '1' },
      items: [...pods, 'n2'].map((nodeName) => ({ metadata: { name: nodeName, uid: nodeName }, spec: { nodeName } })),
    }),
  )
  const { stdout, stderr } = await tool.run('history tuning')
  const nodes = stdout
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(' ')[0])
  expect([nodes[0], nodes.length]).toEqual(['n2', 10])
  expect(stderr).toBe('10 of 13 nodes, those in trouble first; --node chooses others\n')
})

test('the log before a restart that has not happened is not there, and that is said', async () => {
  const tool = await withLog([])
  expect(await tool.run('logs tuning --node n1 --previous')).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'node n1: no previous log: its agent has not restarted in this pod; ' +
      'earlier output is on the host, in /var/log/skyhook/tuning (the newest five logs of each step)\n',
  })
})

test.each([
  ['logs tuning --node n9', 3, 'no agent runs on n9'],
  ['history tuning --node n9', 3, 'no agent runs on n9'],
  ['logs nothing --node n1', 3, 'there is no Skyhook "nothing"'],
  ['logs tuning --node n1 --previous -f', 2, 'cannot be followed'],
  ['logs tuning --node n1 -f -o yaml', 2, 'not with yaml'],
])('"%s" ends with %i and says %s', async (line, code, text) => {
  const tool = await withLog([])
  const result = await tool.run(line)
  expect([result.code, result.stdout]).toEqual([code, ''])
  expect(result.stderr).toContain(text)
})

test('a node without an agent is remarked beside one that has one', async () => {
  const tool = await withLog([output('hello')])
  expect(await tool.run('logs tuning --node n1,n9')).toEqual({
    code: 0,
    stdout: '[tuned] hello\n',
    stderr: 'no log: no agent runs on n9\n',
  })
})

test.each(['logs', 'history'])('%s refuses where logs may not be read', async (command) => {
  const tool = await withLog([])
  tool.answer(
    ({ path }) => path.endsWith('/log'),
    () => {
      throw new ApiError({ status: 403, reason: 'Forbidden', message: 'pods/log is forbidden' })
    },
  )
  expect(await tool.run(`${command} tuning --node n1`)).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('error: pods/log is forbidden') as string,
  })
})

test('a node whose log cannot be read does not hide the others', async () => {
  const tool = await withLog([output('hello')])
  tool.answer(
    ({ path }) => path.endsWith('n1/log'),
    () => {
      throw new ApiError({ status: 500, reason: 'InternalError', message: 'the kubelet does not answer' })
    },
  )
  expect(await tool.run('logs tuning --node n1,n2')).toEqual({
    code: 1,
    stdout: '[n2 tuned] hello\n',
    stderr: 'node n1: the log of its agent cannot be read: the kubelet does not answer\n',
  })
})

test('lines that are followed come as JSON, one each, until ctrl-C', async () => {
  const tool = await withLog([output('hello'), failed])
  const controller = new AbortController()
  const running = tool.run('logs tuning --node n1 -f -o json', { signal: controller.signal })
  while (tool.sent.filter(({ path }) => path.endsWith('/log')).length < 2) await tool.clock.advance(100)
  controller.abort(new DOMException('interrupted', 'AbortError'))
  const { code, stdout } = await running
  expect(code).toBe(130)
  expect(stdout.split('\n').map((line) => (line === '' ? '' : (JSON.parse(line) as { what: string }).what))).toEqual([
    'output',
    'ended',
    '',
  ])
})

test('the history has each step once, with the running one and the ends that earlier agents saw', async () => {
  const tool = await withLog([
    { ...failed, repeated: true },
    { ...failed, stepId: 'y', result: 'ok', exitCode: 0, startedAt: '2026-03-01T11:10:00.000Z' },
    { ...failed, stepId: 'y', result: 'ok', exitCode: 0, startedAt: '2026-03-01T11:10:00.000Z' },
    { ...of, stepId: 'z', startedAt: '2026-03-01T11:59:00.000Z', message: 'step started' },
  ])
  const { code, stdout, stderr } = await tool.run('history tuning --node n1')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(5))).toEqual([
    ['AGE', 'DURATION', 'RESULT', 'EXIT CODE'],
    ['1h', '2.5s', 'failed', '3'],
    ['50m', '2.5s', 'ok', '0'],
    ['60s', '60s', 'running', '-'],
    [],
  ])
})

test('the history of an upgrade has the steps of both versions, the older ones first', async () => {
  const ok = { ...failed, result: 'ok', exitCode: 0 }
  const tool = await withLog([
    { ...ok, stepId: 'b', version: '1.1.0', mode: 'upgrade', startedAt: '2026-03-01T11:50:00.000Z' },
    { ...ok, stepId: 'a', repeated: true },
  ])
  const { stdout } = await tool.run('history tuning --node n1')
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
    ['PACKAGE', 'VERSION', 'MODE'],
    ['tuned', '1.0.0', 'apply'],
    ['tuned', '1.1.0', 'upgrade'],
    [''],
  ])
})

test('a history of nothing says how far back it goes', async () => {
  const tool = await withLog([{ message: 'agent starting' }])
  expect(await tool.run('history tuning --node n1')).toEqual({
    code: 0,
    stdout: '',
    stderr: `${tooShort}no steps found in the logs\n`,
  })
})

test('package logs shows the output alone', async () => {
  const tool = await withLog([{ ...of, startedAt, message: 'step started' }, output('one'), output('two'), failed])
  const line = 'package logs tuned --skyhook tuning --node n1'
  expect((await tool.run(line)).stdout).toBe('one\ntwo\n')
  expect((await tool.run(`${line} --tail 1`)).stdout).toBe('two\n')
  expect((await tool.run(`${line} --tail 0`)).stdout).toBe('')
})
