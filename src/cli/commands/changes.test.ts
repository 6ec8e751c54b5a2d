import { describe, expect, test } from 'vitest'
import { ApiError } from '../../kube/errors.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { nodeStateKey, statusKey } from '../../schemas/annotations.ts'
import { type CommandLine, commandLine } from '../../../test/kit/tool/command-line.ts'
import { passUntil } from '../../../test/kit/event-loop.ts'

type Fields = {
  readonly metadata: { readonly annotations?: Record<string, string>; readonly labels?: Record<string, string> }
  readonly spec?: { readonly unschedulable?: boolean }
}

const entry = (name: string, version: string, stage = 'config', state = 'complete') => ({
  [`${name}|${version}`]: { name, version, image: `registry/${name}`, stage, state },
})
const merge = 'application/merge-patch+json'
const createSkyhook = async ({ admin }: CommandLine, name: string, spec: object = {}): Promise<void> => {
  const packages = { shellscript: { version: '1.2.0', image: 'registry/shellscript' } }
  await admin.json('POST', skyhooksPath, { body: { metadata: { name }, spec: { packages, ...spec } } })
}
const createNode = async (
  { admin }: CommandLine,
  name: string,
  annotations: Record<string, string> = {},
  more = {},
) => {
  await admin.json('POST', '/api/v1/nodes', { body: { metadata: { name, annotations, ...more }, spec: {} } })
}
const withState = (...entries: object[]): Record<string, string> => ({
  [nodeStateKey('tuning')]: JSON.stringify(Object.assign({}, ...entries)),
})
const skyhook = async ({ admin }: CommandLine, name: string) =>
  await admin.json<Fields>('GET', `${skyhooksPath}/${name}`)
const node = async ({ admin }: CommandLine, name: string) => await admin.json<Fields>('GET', `/api/v1/nodes/${name}`)
const patchesOf = ({ sent }: CommandLine) => sent.filter(({ method }) => method === 'PATCH')

test.each([
  ['pause tuning --yes', 'skyhook.nvidia.com/pause', 'skyhook/tuning paused\n'],
  ['pause tuning --confirm', 'skyhook.nvidia.com/pause', 'skyhook/tuning paused\n'],
  ['disable tuning -y', 'skyhook.nvidia.com/disable', 'skyhook/tuning disabled\n'],
])('%s sets its annotation', async (line, key, stdout) => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  expect(await tool.run(line)).toEqual({ code: 0, stdout, stderr: '' })
  expect((await skyhook(tool, 'tuning')).metadata.annotations).toEqual({ [key]: 'true' })
})

test('resume and enable ask nothing and leave each other alone', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  await tool.run('pause tuning --yes')
  await tool.run('disable tuning --yes')
  expect(await tool.run('resume tuning')).toEqual({ code: 0, stdout: 'skyhook/tuning resumed\n', stderr: '' })
  expect((await skyhook(tool, 'tuning')).metadata.annotations).toEqual({ 'skyhook.nvidia.com/disable': 'true' })
  expect(await tool.run('enable tuning')).toMatchObject({ code: 0 })
  expect(await tool.run('enable tuning')).toMatchObject({ code: 0, stdout: 'skyhook/tuning already enabled\n' })
})

test('pause --all pauses every Skyhook and says which in its question', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'a')
  await createSkyhook(tool, 'b')
  const { code, stderr } = await tool.run('pause --all', { answer: 'yes' })
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('pause all 2 Skyhooks (a, b)?') })
  for (const name of ['a', 'b'])
    expect((await skyhook(tool, name)).metadata.annotations).toEqual({ 'skyhook.nvidia.com/pause': 'true' })
})

test.each(['pause', 'pause tuning --all'])('"%s" names neither one Skyhook nor all', async (line) => {
  expect(await commandLine().run(line)).toMatchObject({ code: 2, stdout: '' })
})

test.each(['n', '', 'no', 'yes please'])('the answer "%s" changes nothing and is a refusal', async (answer) => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  const { code, stdout } = await tool.run('pause tuning', { answer })
  expect({ code, stdout, patches: patchesOf(tool) }).toEqual({ code: 4, stdout: '', patches: [] })
})

test('a question without a terminal is refused and says how to answer it', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  const ended = await tool.run('pause tuning')
  expect(ended).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining('add --yes') })
  expect(patchesOf(tool)).toEqual([])
})

test('a Skyhook that does not exist gives exit code 3', async () => {
  const ended = await commandLine().run('pause nothing --yes')
  expect(ended).toMatchObject({ code: 3, stderr: expect.stringContaining('no Skyhook "nothing"') })
})

test('a refusal of the API server gives exit code 4', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  tool.answer(
    ({ method }) => method === 'PATCH',
    () => {
      throw new ApiError({ status: 403, reason: 'Forbidden', message: 'skyhooks "tuning" is forbidden' })
    },
  )
  expect(await tool.run('pause tuning --yes')).toMatchObject({ code: 4, stderr: expect.stringContaining('forbidden') })
})

test('a dry run on the client sends no change, and one on the server sends the same change to be checked', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  expect(await tool.run('pause tuning --dry-run')).toMatchObject({
    code: 0,
    stdout: 'skyhook/tuning paused (dry run)\n',
  })
  expect(patchesOf(tool)).toEqual([])
  const ended = await tool.run('pause tuning --dry-run=server')
  expect(ended).toMatchObject({ code: 0, stdout: 'skyhook/tuning paused (server dry run)\n' })
  await tool.run('pause tuning --yes')
  const [checked, made] = patchesOf(tool)
  expect(checked?.query).toEqual({ dryRun: 'All' })
  expect(made).toMatchObject({ query: undefined, path: checked?.path })
  const withoutVersion = (body: unknown) => JSON.stringify(body)
  expect(withoutVersion(made?.body)).toBe(withoutVersion(checked?.body))
})

test('a change that races with somebody else is computed again from what is there', async () => {
  const tool = commandLine()
  await createNode(tool, 'n1', withState(entry('a', '1.0.0'), entry('b', '1.0.0')))
  await createSkyhook(tool, 'tuning')
  let interferences = 0
  tool.answer(
    ({ method }) => method === 'PATCH' && interferences < 3,
    async ({ body }) => {
      // the agent publishes between the read and the patch, which then fails its test
      interferences++
      const annotations = withState(entry('a', '1.0.0'), entry('b', '1.0.0', 'config', `state-${interferences}`))
      await tool.admin.json('PATCH', '/api/v1/nodes/n1', { body: { metadata: { annotations } }, contentType: merge })
      return await tool.admin.json('PATCH', '/api/v1/nodes/n1', { body, contentType: 'application/json-patch+json' })
    },
  )
  expect(await passUntil(tool.clock, tool.run('reset tuning --package a --yes'))).toMatchObject({ code: 0, stderr: '' })
  const state = JSON.parse((await node(tool, 'n1')).metadata.annotations?.[nodeStateKey('tuning')] ?? '') as object
  expect(state).toEqual(entry('b', '1.0.0', 'config', 'state-3'))
  expect(interferences).toBe(3)
})

test('a patch that an admission policy refuses is not repeated', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  tool.answer(
    ({ method }) => method === 'PATCH',
    () => {
      throw new ApiError({ status: 422, reason: 'Invalid', message: 'a policy denied it' })
    },
  )
  expect(await passUntil(tool.clock, tool.run('pause tuning --yes'))).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('denied'),
  })
  expect(patchesOf(tool)).toHaveLength(1)
})

test('reset takes the published state off every node that has it and keeps companion and cordon', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning', { deploymentPolicy: 'careful' })
  const kept = { 'skyhook.nvidia.com/journal_tuning': '{}', 'skyhook.nvidia.com/cordon_tuning': 'true' }
  const published = { ...withState(entry('a', '1.0.0')), [statusKey('tuning')]: 'complete', ...kept }
  await createNode(tool, 'n1', published, { labels: { [statusKey('tuning')]: 'complete', other: 'x' } })
  await createNode(tool, 'n2')
  const ended = await tool.run('reset tuning --yes')
  expect(ended).toEqual({ code: 0, stdout: 'node/n1 reset\nskyhook/tuning batches reset\n', stderr: '' })
  expect((await node(tool, 'n1')).metadata).toMatchObject({ annotations: kept, labels: { other: 'x' } })
  expect(Object.keys((await node(tool, 'n1')).metadata.annotations ?? {})).toEqual(Object.keys(kept))
  expect((await node(tool, 'n1')).metadata.labels).toEqual({ other: 'x' })
  expect((await skyhook(tool, 'tuning')).metadata.annotations).toHaveProperty(['skyhook.nvidia.com/reset-batches'])
})

test('reset --skip-batch-reset and a Skyhook without a policy leave batches alone', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning', { deploymentPolicy: 'careful' })
  await createSkyhook(tool, 'plain')
  await createNode(tool, 'n1', { ...withState(entry('a', '1.0.0')), [nodeStateKey('plain')]: '{}' })
  expect(await tool.run('reset tuning --yes --skip-batch-reset')).toMatchObject({ stdout: 'node/n1 reset\n' })
  expect(await tool.run('reset plain --yes')).toMatchObject({ stdout: 'node/n1 reset\n' })
})

test('reset clears what a deleted Skyhook has left, and fails for a name that nobody knows', async () => {
  const tool = commandLine()
  await createNode(tool, 'n1', withState(entry('a', '1.0.0')))
  expect(await tool.run('reset tuning --yes')).toMatchObject({ code: 0, stdout: 'node/n1 reset\n' })
  expect(await tool.run('reset tuning --yes')).toMatchObject({ code: 3 })
})

test.each(['a', 'a:1.0.0'])('reset --package %s takes only that package out of the state', async (name) => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  await createNode(tool, 'n1', withState(entry('a', '1.0.0'), entry('b', '1.0.0')))
  await createNode(tool, 'n2', withState(entry('a', '1.0.0')))
  await createNode(tool, 'n3', withState(entry('ab', '1.0.0'), entry('a', '2.0.0', 'uninstall', 'erroring')))
  const { code, stdout } = await tool.run(`reset tuning --package ${name} --yes`)
  expect(code).toBe(0)
  expect(stdout.includes('node/n3')).toBe(name === 'a')
  const state = async (one: string) => (await node(tool, one)).metadata.annotations?.[nodeStateKey('tuning')]
  expect(await state('n1')).toBe(JSON.stringify(entry('b', '1.0.0')))
  expect(await state('n2')).toBe('{}') // absent would reset the whole Skyhook
})

test.each(['shelscript', 'shellscript:9.9.9', 'b:1.0.0'])(
  'reset --package %s, which neither the Skyhook nor a node has, fails with those that there are',
  async (name) => {
    const tool = commandLine()
    await createSkyhook(tool, 'tuning')
    await createNode(tool, 'n1', withState(entry('b', '2.0.0')))
    expect(await tool.run(`reset tuning --package ${name} --yes`)).toEqual({
      code: 3,
      stdout: '',
      stderr: `error: Skyhook "tuning" has no package "${name}"\n       it has: b:2.0.0, shellscript:1.2.0\n`,
    })
    expect(patchesOf(tool)).toEqual([])
  },
)

test('reset --package of a package that is on no node says so and exits with 0', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  await createNode(tool, 'n1', withState(entry('b', '2.0.0')))
  expect(await tool.run('reset tuning --package shellscript --yes')).toMatchObject({
    code: 0,
    stderr: 'no node has state of package "shellscript" of Skyhook "tuning"\n',
  })
})

test('reset --package of a deleted Skyhook knows its packages by the state that nodes have', async () => {
  const tool = commandLine()
  await createNode(tool, 'n1', withState(entry('b', '2.0.0')))
  expect(await tool.run('reset tuning --package a --yes')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('it has: b:2.0.0'),
  })
  expect(await tool.run('reset tuning --package b --yes')).toMatchObject({ code: 0 })
  expect(await tool.run('reset other --package b --yes')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('there is no Skyhook "other"'),
  })
})

test('deployment-policy reset makes another text of each call and needs a policy', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning', { deploymentPolicy: 'careful' })
  await createSkyhook(tool, 'plain')
  expect(await tool.run('deployment-policy reset tuning --confirm')).toMatchObject({ code: 0 })
  const first = (await skyhook(tool, 'tuning')).metadata.annotations?.['skyhook.nvidia.com/reset-batches']
  await tool.clock.advance(5)
  expect(await tool.run('dp reset tuning --confirm')).toMatchObject({ stdout: 'skyhook/tuning batches reset\n' })
  expect((await skyhook(tool, 'tuning')).metadata.annotations?.['skyhook.nvidia.com/reset-batches']).not.toBe(first)
  expect(await tool.run('dp reset plain --yes')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('no DeploymentPolicy'),
  })
})

test('the dots in the name of a node are not a pattern', async () => {
  const tool = commandLine()
  for (const name of ['a.b', 'axb']) await createNode(tool, name)
  expect(await tool.run('node ignore a.b')).toMatchObject({ code: 0, stdout: 'node/a.b ignored\n' })
  expect((await node(tool, 'a.b')).metadata.labels).toEqual({ 'skyhook.nvidia.com/ignore': 'true' })
  expect((await node(tool, 'axb')).metadata.labels ?? {}).toEqual({})
  expect(await tool.run('node unignore a.*')).toMatchObject({
    stdout: 'node/a.b unignored\nnode/axb already unignored\n',
  })
})

test.each(['node ignore nothing', 'node ignore n1 not.*', 'node reset nothing --skyhook tuning --yes'])(
  '"%s" changes nothing, because a name without a node may be a mistake',
  async (line) => {
    const tool = commandLine()
    await createNode(tool, 'n1')
    expect(await tool.run(line)).toMatchObject({ code: 3, stdout: '' })
    expect(patchesOf(tool)).toEqual([])
  },
)

test('node hold keeps a node cordoned and node release gives it back', async () => {
  const tool = commandLine()
  await createNode(tool, 'n1')
  await createNode(tool, 'atwork', { 'skyhook.nvidia.com/cordon_tuning': 'true' })
  expect(await tool.run('node hold n1 atwork')).toMatchObject({ code: 0, stdout: 'node/atwork held\nnode/n1 held\n' })
  for (const name of ['n1', 'atwork'])
    expect(await node(tool, name)).toMatchObject({
      metadata: { annotations: { 'skyhook.nvidia.com/keep-cordoned': 'true' } },
      spec: { unschedulable: true },
    })
  expect(await tool.run('node release n1 atwork')).toMatchObject({ code: 0 })
  expect((await node(tool, 'n1')).spec?.unschedulable ?? false).toBe(false)
  // its agent decides, when the work is done
  expect((await node(tool, 'atwork')).spec?.unschedulable).toBe(true)
})

test('node release does not uncordon a node that nobody has held', async () => {
  const tool = commandLine()
  await createNode(tool, 'n1')
  await tool.admin.json('PATCH', '/api/v1/nodes/n1', { body: { spec: { unschedulable: true } }, contentType: merge })
  expect(await tool.run('node release n1')).toMatchObject({ stdout: 'node/n1 already released\n' })
  expect((await node(tool, 'n1')).spec?.unschedulable).toBe(true)
})

test('node reset takes the state of one Skyhook off the named nodes', async () => {
  const tool = commandLine()
  for (const name of ['n1', 'n2']) await createNode(tool, name, withState(entry('a', '1.0.0')))
  expect(await tool.run('node reset n1 --skyhook tuning --confirm')).toMatchObject({
    code: 0,
    stdout: 'node/n1 reset\n',
  })
  expect((await node(tool, 'n1')).metadata.annotations ?? {}).toEqual({})
  expect((await node(tool, 'n2')).metadata.annotations).toHaveProperty([nodeStateKey('tuning')])
})

test('package rerun removes the entry, or sets its stage, and leaves other packages alone', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  const state = withState(entry('other', '1.0.0'), entry('shellscript', '1.2.0'))
  for (const name of ['n1', 'n2']) await createNode(tool, name, state)
  const line = 'package rerun shellscript --skyhook tuning --yes'
  expect(await tool.run(`${line} --node n1`)).toMatchObject({ code: 0 })
  expect(await tool.run(`${line} --node n2 --stage post-interrupt`)).toMatchObject({ code: 0 })
  const stateOf = async (name: string) =>
    JSON.parse((await node(tool, name)).metadata.annotations?.[nodeStateKey('tuning')] ?? '') as object
  expect(await stateOf('n1')).toEqual(entry('other', '1.0.0'))
  expect(await stateOf('n2')).toEqual({
    ...entry('other', '1.0.0'),
    ...entry('shellscript', '1.2.0', 'post-interrupt', 'in_progress'),
  })
})

test('a node that cannot be changed does not stop the changes of the others, and the exit code is 1', async () => {
  const tool = commandLine()
  for (const name of ['n1', 'n2', 'n3']) await createNode(tool, name)
  tool.answer(
    ({ method, path }) => method === 'PATCH' && path.endsWith('/n2'),
    () => {
      throw new ApiError({ status: 403, reason: 'Forbidden', message: 'nodes "n2" is forbidden' })
    },
  )
  const { code, stdout, stderr } = await tool.run('node ignore n.*')
  expect({ code, stdout }).toEqual({ code: 1, stdout: 'node/n1 ignored\nnode/n3 ignored\n' })
  expect(stderr).toContain('nodes "n2" is forbidden')
})

test('changes are printed as JSON, together with what failed', async () => {
  const tool = commandLine()
  await createNode(tool, 'n1')
  const { stdout } = await tool.run('node ignore n1 -o json')
  expect(JSON.parse(stdout)).toEqual({
    apiVersion: 'cli.skyhookd/v1',
    kind: 'ChangeList',
    dryRun: 'none',
    items: [{ kind: 'Node', name: 'n1', result: 'changed', message: 'ignored' }],
  })
  expect((await tool.run('node ignore n1 -o name')).stdout).toBe('node/n1\n')
})

test('an interrupt between changes says how many were made, and is not a failure', async () => {
  const tool = commandLine()
  await createSkyhook(tool, 'tuning')
  for (const name of ['n1', 'n2', 'n3']) await createNode(tool, name)
  const ctrlC = new AbortController()
  tool.answer(
    ({ method, path }) => method === 'PATCH' && path.endsWith('/n2'),
    () => {
      ctrlC.abort(new DOMException('interrupted by SIGINT', 'AbortError'))
      throw ctrlC.signal.reason
    },
  )
  const { code, stderr } = await tool.run('node ignore n.*', { signal: ctrlC.signal })
  expect(code).toBe(130)
  expect(stderr).toMatch(/^interrupted: [0-2] of 3 done\n$/)
})

describe('hand-back', () => {
  const conditions = (...types: readonly string[]) => types.map((type) => ({ type, status: 'True' }))
  const agents = conditions('Ready', 'Reconciling', 'Stalled', 'skyhook.nvidia.com/Converged')
  const others = conditions('skyhook.nvidia.com/Transition', 'example.com/Other')
  const conditionsOf = async (tool: CommandLine) =>
    (await tool.admin.json<{ status?: { conditions?: object[] } }>('GET', `${skyhooksPath}/a`)).status?.conditions

  async function start(...daemonSets: readonly object[]): Promise<CommandLine> {
    const tool = commandLine()
    for (const name of ['a', 'b']) await createSkyhook(tool, name)
    const body = { status: { conditions: [...agents, ...others] } }
    await tool.admin.json('PATCH', `${skyhooksPath}/a/status`, { body, contentType: merge })
    tool.answer(
      ({ path }) => path === '/apis/apps/v1/daemonsets',
      () => ({ items: daemonSets }),
    )
    return tool
  }

  test('hand-back takes the conditions of agents off all Skyhooks, and leaves those of others', async () => {
    const tool = await start()
    const stdout = 'skyhook/a handed back\nskyhook/b already handed back\n'
    expect(await tool.run('hand-back --yes')).toEqual({ code: 0, stdout, stderr: '' })
    expect(await conditionsOf(tool)).toEqual(others)
  })

  test('hand-back refuses while agents are installed', async () => {
    const tool = await start({ metadata: { name: 'skyhookd', namespace: 'infra' } })
    expect(await tool.run('hand-back --yes')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('infra/skyhookd'),
    })
    expect(await conditionsOf(tool)).toEqual([...agents, ...others])
  })
})
