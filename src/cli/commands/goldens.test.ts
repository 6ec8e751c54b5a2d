/** Tables and documents as people and programs get them. `vitest -u` writes them again; read the difference. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { schemaErrors, schemaOf } from '../../../test/kit/pages/document-schemas.ts'
import { exampleCluster } from '../../../test/kit/tool/example-cluster.ts'
import { pod, specOf, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { commandLine } from '../../../test/kit/tool/command-line.ts'
import { reasonKey, statusKey } from '../../schemas/annotations.ts'
import { skyhookTypeMeta } from '../../schemas/api.ts'
import { allCommands } from './all.ts'

/** Files of `goldens`, with the call that gives them. */
const goldens: readonly (readonly [file: string, line: string])[] = [
  ['status.txt', 'status'],
  ['status.json', 'status -o json'],
  ['explain.txt', 'explain tuning'],
  ['explain-node.txt', 'explain tuning n2'],
  ['explain-node.json', 'explain tuning n2 -o json'],
  ['plan.txt', 'plan -f tuning.yaml'],
  ['plan.md', 'plan -f tuning.yaml -o markdown'],
  ['plan.json', 'plan -f tuning.yaml -o json'],
  ['plan-delete.txt', 'plan -f tuning.yaml --delete'],
  ['doctor-node.txt', 'doctor --node n2'],
  ['doctor-node.json', 'doctor --node n2 -o json'],
  ['bundle.txt', 'bundle --file support.tar.gz'],
  ['bundle.json', 'bundle --file support.tar.gz -o json'],
  ['events.txt', 'events'],
  ['events-wide.txt', 'events -o wide'],
  ['events.json', 'events -o json'],
  ['logs.txt', 'logs tuning --node n1'],
  ['logs-nodes.txt', 'logs tuning --node n[12]'],
  ['logs.json', 'logs tuning --node n1 -o json'],
  ['history.txt', 'history tuning --node n[12]'],
  ['history-wide.txt', 'history tuning --node n2 -o wide'],
  ['history.json', 'history tuning --node n2 -o json'],
  ['node-list.txt', 'node list --skyhook tuning'],
  ['node-list-wide.txt', 'node list --skyhook tuning -o wide'],
  ['node-list.json', 'node list --skyhook tuning -o json'],
  ['node-status.txt', 'node status'],
  ['node-status-wide.txt', 'node status -o wide'],
  ['node-status.json', 'node status -o json'],
  ['package-status.txt', 'package status tuned --skyhook tuning'],
  ['package-status-wide.txt', 'package status tuned --skyhook tuning -o wide'],
  ['package-status.json', 'package status tuned --skyhook tuning -o json'],
  ['package-rerun.json', 'package rerun tuned --skyhook tuning --node n[12] --yes -o json'],
  ['pause.json', 'pause tuning --yes -o json'],
  ['reset.txt', 'reset tuning --yes'],
  ['reset-dry-run.json', 'reset tuning --yes --dry-run -o json'],
]

async function expectGolden(file: string, line: string, stdout: string): Promise<void> {
  await expect(stdout).toMatchFileSnapshot(join(import.meta.dirname, 'goldens', file))
  if (!file.endsWith('.json')) return
  const command = allCommands.find(({ name }) => `${line} `.startsWith(`${name} `))
  expect(schemaErrors(command === undefined ? file : schemaOf(command), JSON.parse(stdout))).toEqual([])
}

test.each(goldens)('%s is what "%s" writes', async (file, line) => {
  const { code, stdout, stderr } = await (await exampleCluster()).run(`kubectl skyhook ${line}`)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  await expectGolden(file, line, stdout)
})

test('a rollout that a budget of pods holds up is shown by status and explain as in their files', async () => {
  const packages = { p0a: { version: '1.0.0', image: 'registry.test/p0a', interrupt: { type: 'reboot' } } } as const
  const scene = startScene({
    nodes: [{ name: 'host1', pods: [pod('shop')] }, { name: 'host2' }, { name: 'host3' }],
    skyhooks: { s: { packages } },
  })
  const { clock, admin } = scene.simulation
  admin.send('POST', '/apis/policy/v1/namespaces/apps/poddisruptionbudgets', {
    metadata: { name: 'strict' },
    spec: { selector: {}, maxUnavailable: 0 },
  })
  for (const name of ['host2', 'host3']) scene.host(name).conditions.change({ fetch: { durationMs: 4_000 } })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'node1 drains')
  await scene.pass(8_000)
  const tool = commandLine({ clock, client: scene.transport })
  for (const [file, line] of [
    ['rollout-status.txt', 'status'],
    ['rollout-status.json', 'status -o json'],
    ['rollout-explain.txt', 'explain s'],
    ['rollout-explain-node.txt', 'explain s node1'],
    ['rollout-explain-node.json', 'explain s node1 -o json'],
    ['rollout-explain-waiting-node.txt', 'explain s node3'],
  ] as const) {
    const { code, stdout, stderr } = await tool.run(`${line} -n skyhook`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    await expectGolden(file, line, stdout)
  }
})

test('pods that tolerate the cordon are named before the interrupt, those that it ends and one that came back', async () => {
  const pods = [pod('log', { toleratesCordon: true }), pod('train', { toleratesAll: true, isOfJob: true })]
  const scene = startScene({ nodes: [{ name: 'host1', pods }], skyhooks: { s: {} } })
  const status = (): string | undefined => scene.annotation('node1', statusKey('s'))
  await scene.until(() => status() === 'complete', 'node1 is complete')
  const { clock } = scene.simulation
  const edited = { packages: { p0a: { version: '1.1.0', image: 'registry.test/p0a', interrupt: { type: 'reboot' } } } }
  const file = JSON.stringify({ ...skyhookTypeMeta, metadata: { name: 's' }, spec: specOf(edited as object) })
  const tool = commandLine({ clock, client: scene.transport })
  const { stdout: planned } = await tool.run('plan -f s.json -n skyhook', {
    readFile: async () => await Promise.resolve(file),
  })
  await expectGolden('tolerating-plan.txt', 'plan', planned)
  scene.editSkyhook('s', { spec: edited })
  await scene.until(
    () => scene.annotation('node1', reasonKey('s'))?.includes('evicted once') === true,
    'a pod came back',
  )
  for (const [file, line] of [
    ['tolerating-explain.txt', 'explain s node1'],
    ['tolerating-explain.json', 'explain s node1 -o json'],
  ] as const) {
    const { code, stdout, stderr } = await tool.run(`${line} -n skyhook`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    await expectGolden(file, line, stdout)
  }
})
