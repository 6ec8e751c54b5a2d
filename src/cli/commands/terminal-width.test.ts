import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { startBlockedScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { type CommandLine, commandLine } from '../../../test/kit/tool/command-line.ts'
import { exampleCluster } from '../../../test/kit/tool/example-cluster.ts'

const calls = ['status', 'explain tuning', 'explain tuning n2', 'doctor --node n2']
const widths = [80, 200]

/** What stands between blanks; commands stay whole, however wide the terminal is. */
const piecesOf = (text: string): readonly string[] => text.split(/\s+/).filter(Boolean)
const tooWide = (text: string, columns: number): readonly string[] =>
  text.split('\n').filter((line) => line.length > columns && !/^ *(?:run|next): /.test(line))

async function shown(tool: Pick<CommandLine, 'run'>, call: string, columns?: number): Promise<string> {
  const { code, stdout, stderr } = await tool.run(call, columns === undefined ? {} : { columns })
  expect([code, stderr]).toEqual([0, ''])
  return stripVTControlCharacters(stdout)
}

test.each(calls.flatMap((call) => widths.map((columns) => [call, columns] as const)))(
  '"%s" is within a terminal of %i columns, with the same words',
  async (call, columns) => {
    const { tool } = await exampleCluster()
    const text = await shown(tool, call, columns)
    expect(tooWide(text, columns)).toEqual([])
    expect(piecesOf(text)).toEqual(piecesOf(await shown(tool, call)))
  },
)

test('status has color on a terminal, and says the same of a support archive as of the cluster', async () => {
  const scene = await startBlockedScene({
    p0a: { version: '1.0.0', image: 'registry.test/p0a', interrupt: { type: 'reboot' } },
  })
  const tool = commandLine({ clock: scene.simulation.clock, client: scene.transport })
  const file = join(temporaryFolder(), 'support.tar.gz')
  const made = tool.run(`bundle --file ${file} -n skyhook`)
  await scene.pass(6_000) // the second look of doctor
  expect((await made).code).toBe(0)
  const live = await tool.run('status -n skyhook', { columns: 80 })
  expect(live.stdout).toContain('\u001B[')
  const agesOf = (text: string): string => stripVTControlCharacters(text).replaceAll(/\b\d+s\b/g, 'AGE')
  const archived = await tool.run(`status --from ${file}`, { columns: 80 })
  expect(agesOf(archived.stdout)).toBe(agesOf(live.stdout))
  expect(await tool.run(`status --from ${file} --watch`)).toMatchObject({ code: 2 })
})

test('status names a node whose agent cannot start, with what the kubelet says about the agent', async () => {
  const { tool } = await exampleCluster()
  await tool.admin.json('POST', '/api/v1/nodes', {
    body: { metadata: { name: 'm1', labels: { pool: 'a' } }, spec: {} },
  })
  const lastTransitionTime = '2026-03-01T11:59:00Z'
  const pod = {
    metadata: { name: 'skyhookd-m1', uid: 'm1' },
    spec: { nodeName: 'm1' },
    status: {
      conditions: [{ type: 'Ready', status: 'False', lastTransitionTime }],
      containerStatuses: [{ name: 'agent', state: { waiting: { reason: 'ErrImagePull' } } }],
    },
  }
  tool.answer(
    ({ path, query }) => path.endsWith('/pods') && query?.['labelSelector'] !== undefined,
    () => ({ metadata: { resourceVersion: '1' }, items: [pod] }),
  )
  expect((await tool.run('status')).stdout).toContain(
    '1 node AgentNotReady: the agent has not reported anything yet: ErrImagePull [m1]',
  )
})
