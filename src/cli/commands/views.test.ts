import { describe, expect, test } from 'vitest'
import { ApiError } from '../../kube/errors.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { nodeStateKey } from '../../schemas/annotations.ts'
import { commandLine } from '../../../test/kit/tool/command-line.ts'

const entry = (name: string, stage: string, state: string, more: object = {}) => ({
  [`${name}|1.0.0`]: { name, version: '1.0.0', image: `registry/${name}`, stage, state, ...more },
})

/** Two nodes with state, one without, one whose state cannot be read. */
async function sample() {
  const tool = commandLine()
  const packages = {
    one: { version: '1.0.0', image: 'registry/one' },
    two: { version: '1.0.0', image: 'registry/two' },
  }
  await tool.admin.json('POST', skyhooksPath, { body: { metadata: { name: 'tuning' }, spec: { packages } } })
  const states = {
    n2: { ...entry('two', 'apply', 'erroring', { restarts: 3 }), ...entry('one', 'config', 'complete') },
    n1: { ...entry('one', 'config', 'complete'), ...entry('two', 'config', 'complete') },
    n3: undefined,
  }
  for (const [name, state] of Object.entries(states)) {
    const annotations = state && { [nodeStateKey('tuning')]: JSON.stringify(state) }
    await tool.admin.json('POST', '/api/v1/nodes', { body: { metadata: { name, annotations }, spec: {} } })
  }
  const annotations = { [nodeStateKey('tuning')]: 'no JSON' }
  await tool.admin.json('POST', '/api/v1/nodes', { body: { metadata: { name: 'n4', annotations }, spec: {} } })
  return tool
}

const tables: readonly [line: string, table: string][] = [
  [
    'node list --skyhook tuning',
    `Skyhook: tuning
Nodes: 2 (1 complete, 1 erroring)

NODE  STATUS    PACKAGES
n1    complete  2/2
n2    erroring  1/2
`,
  ],
  [
    'node list --skyhook tuning -o wide',
    `Skyhook: tuning
Nodes: 2 (1 complete, 1 erroring)

NODE  STATUS    PACKAGES  RESTARTS
n1    complete  2/2       0
n2    erroring  1/2       3
`,
  ],
  ['node list --skyhook tuning -o name', 'node/n1\nnode/n2\n'],
  [
    'node status',
    `NODE  SKYHOOK  STATUS    PACKAGES
n1    tuning   complete  2/2
n2    tuning   erroring  1/2
`,
  ],
  [
    'node status n2 -o wide',
    `NODE  SKYHOOK  PACKAGE  VERSION  STAGE   STATE     RESTARTS  IMAGE
n2    tuning   one      1.0.0    config  complete  0         registry/one
n2    tuning   two      1.0.0    apply   erroring  3         registry/two
`,
  ],
  [
    'package status two --skyhook tuning --node n.*',
    `Skyhook: tuning
Packages: one:1.0.0, two:1.0.0

NODE  PACKAGE  VERSION  STAGE   STATE
n1    two      1.0.0    config  complete
n2    two      1.0.0    apply   erroring
`,
  ],
]

test.each(tables)('%s', async (line, table) => {
  expect(await (await sample()).run(line)).toEqual({ code: 0, stdout: table, stderr: '' })
})

describe("The operator's JSON is kept:", () => {
  const packages = [
    { name: 'one', version: '1.0.0', stage: 'config', state: 'complete', restarts: 0, image: 'registry/one' },
    { name: 'two', version: '1.0.0', stage: 'apply', state: 'erroring', restarts: 3, image: 'registry/two' },
  ]
  test.each([
    [
      'node list --skyhook tuning',
      {
        skyhookName: 'tuning',
        nodes: [
          { nodeName: 'n1', status: 'complete', packagesComplete: 2, packagesTotal: 2, restarts: 0 },
          { nodeName: 'n2', status: 'erroring', packagesComplete: 1, packagesTotal: 2, restarts: 3 },
        ],
      },
    ],
    [
      'node status n2',
      [
        {
          nodeName: 'n2',
          skyhookName: 'tuning',
          status: 'erroring',
          packagesComplete: 1,
          packagesTotal: 2,
          packages,
        },
      ],
    ],
    [
      'package status two --skyhook tuning --node n2',
      [
        {
          nodeName: 'n2',
          packageName: 'two',
          version: '1.0.0',
          stage: 'apply',
          state: 'erroring',
          image: 'registry/two',
        },
      ],
    ],
    ['node status n3', []],
    ['package status one --skyhook tuning --node n3', []],
  ])('%s', async (line, document) => {
    const { code, stdout } = await (await sample()).run(`${line} -o json`)
    expect({ code, document: JSON.parse(stdout) as unknown }).toEqual({ code: 0, document })
  })
})

test('an empty list is an empty list in JSON, otherwise a sentence on stderr', async () => {
  const tool = commandLine()
  await tool.admin.json('POST', skyhooksPath, { body: { metadata: { name: 'tuning' }, spec: {} } })
  const { stdout } = await tool.run('node list --skyhook tuning -o json')
  expect(JSON.parse(stdout)).toEqual({ skyhookName: 'tuning', nodes: [] })
  expect(await tool.run('node list --skyhook tuning')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'no node has state of Skyhook "tuning" yet\n',
  })
})

test('YAML has the same content as JSON', async () => {
  const { stdout } = await (await sample()).run('node list --skyhook tuning -o yaml')
  expect(stdout.split('\n').slice(0, 4)).toEqual([
    'skyhookName: tuning',
    'nodes:',
    '  - nodeName: n1',
    '    status: complete',
  ])
})

test.each([
  ['node list --skyhook nothing', 3],
  ['node status nothing', 3],
  ['package status nothing --skyhook tuning', 3],
  ['package status one --skyhook nothing', 3],
  ['package rerun nothing --skyhook tuning --node n1 --yes', 3],
  ['node list', 2],
  ['node list --skyhook tuning -o markdown', 2],
  ['completion bash -o json', 2],
])('"%s" ends with %i', async (line, code) => {
  expect(await (await sample()).run(line)).toMatchObject({ code, stdout: '' })
})

describe('Versions', () => {
  const daemonSet = {
    metadata: { name: 'skyhookd', namespace: 'hosts', labels: { 'app.kubernetes.io/version': '1.4.0' } },
  }

  test('the version of the agents is that of their DaemonSet, in any namespace', async () => {
    const tool = commandLine()
    tool.answer(
      ({ path }) => path === '/apis/apps/v1/daemonsets',
      () => ({ items: [daemonSet] }),
    )
    const { stdout, code } = await tool.run('version')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^COMPONENT +VERSION +NAMESPACE\nkubectl-skyhook +source\nskyhookd +1\.4\.0 +hosts\n$/)
  })

  test('the version of agents that cannot be read is unknown, with the reason', async () => {
    const tool = commandLine()
    tool.answer(
      ({ path }) => path.includes('daemonsets'),
      () => {
        throw new ApiError({ status: 403, reason: 'Forbidden', message: 'you may not' })
      },
    )
    const { stdout, stderr, code } = await tool.run('version')
    expect({ code, stderr: stderr.includes('you may not') }).toEqual({ code: 0, stderr: true })
    expect(stdout).toMatch(/skyhookd +unknown/)
  })

  test('the version of the tool needs no cluster', async () => {
    const tool = commandLine()
    expect(await tool.run('version --client-only')).toMatchObject({ code: 0, stderr: '' })
    expect(tool.sent).toEqual([])
  })
})

test('events are those of agents and census, oldest first, of one Skyhook if asked', async () => {
  const tool = commandLine()
  const event = (message: string, minute: number, kind = 'Node', name = 'n1') => ({
    metadata: { name: message, resourceVersion: '1' },
    type: 'Normal',
    reason: 'Started',
    message,
    lastTimestamp: `2026-01-01T00:0${minute}:00Z`,
    involvedObject: { kind, name },
  })
  tool.answer(
    ({ path, query }) => path.endsWith('/events') && query?.['fieldSelector'] === 'source=skyhookd',
    () => ({ metadata: { resourceVersion: '7' }, items: [event('tuning: two', 2), event('tuning-2: one', 1)] }),
  )
  tool.answer(
    ({ path, query }) => path.endsWith('/events') && query?.['fieldSelector'] === 'source=skyhookd-census',
    () => ({ metadata: { resourceVersion: '7' }, items: [event('complete', 3, 'Skyhook', 'tuning')] }),
  )
  const messages = async (line: string) =>
    (JSON.parse((await tool.run(line)).stdout) as { items: { message: string }[] }).items.map(({ message }) => message)
  expect(await messages('events -o json')).toEqual(['tuning-2: one', 'tuning: two', 'complete'])
  expect(await messages('events --skyhook tuning -o json')).toEqual(['tuning: two', 'complete'])
  expect(await messages('events --node n1 -o json')).toEqual(['tuning-2: one', 'tuning: two'])
})
