/** What the table has no form for: work that nothing holds up, a Skyhook without nodes, and the table's own judgment. */
import { expect, test } from 'vitest'
import { type FleetScene, type SceneOptions, startScene } from '../../kit/fleet/fleet-scene.ts'
import { statusKey } from '../../../src/schemas/annotations.ts'
import { awaitStatus, one } from './breakage.ts'
import { stateAfterRemedy } from './broken-scene.ts'
import { settingRows } from './node-rows.ts'
import { createAgentLogs, startOutside } from './outside.ts'
import { readPrinted } from './printed.ts'
import { openShell, type Shell } from './shell.ts'

function start(options: SceneOptions): { readonly scene: FleetScene; readonly shell: Shell } {
  const logs = createAgentLogs()
  const scene = startScene({ ...options, onFact: logs.note })
  return { scene, shell: openShell(scene, startOutside(scene, logs)) }
}

test('a step that hangs is shown as work, with its age and the command that shows its log, and its end leads to progress', async () => {
  const { scene, shell } = start({ nodes: one })
  const { conditions, host } = scene.host('host1')
  const heal = conditions.change({ stepMs: 100_000_000 })
  await awaitStatus(scene, 'in_progress')
  await scene.pass(600_000)
  const text = await shell.tool('explain s node1')
  expect(text).toMatch(/at work, nothing holds it up\napply apply\.sh of p0a 1\.0\.0 has been running for 10m/)
  const { unblock, command } = readPrinted(text)
  expect(unblock).toContain('end what it waits for')
  expect(command).toBe('kubectl skyhook logs s --node node1 --package p0a --stage apply --follow')
  expect((await shell.run(command.replace(' --follow', ''))).status).toBe(0)
  heal()
  host.reboot()
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'node1 completes')
})

test('a Skyhook that selects no node is explained with what the nearest node lacks, and the label leads to progress', async () => {
  const selector = { matchLabels: { pool: 'a', zone: 'z' } }
  const { scene, shell } = start({ skyhooks: { s: { nodeSelectors: selector } } })
  await scene.pass(12_000)
  const text = await shell.tool('explain s')
  expect(text).toContain('spec.nodeSelectors selects none of 2 nodes: the nearest, node1, lacks zone=z')
  const { unblock, command } = readPrinted(text)
  expect(unblock).toContain('or label nodes')
  expect((await shell.run(command)).output).toContain('"pool": "a"')
  await shell.run('kubectl label node node1 zone=z')
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'node1 completes')
})

const taint = settingRows.find(({ title }) => title.startsWith('a taint of a person'))!

test.each([
  ['whose remedy is not carried out', { mend: undefined }, 'not within 15 minutes: node1 completes'],
  ['with another cause', { cause: 'paused' }, "to deeply equal [ 'paused' ]"],
  ['with words that are not printed', { remedy: 'reboot it' }, "to contain 'reboot it'"],
  ['that heals by itself', { isMended: () => true }, 'it healed by itself'],
] as const)('a row %s fails', async (_, change, message) => {
  await expect(stateAfterRemedy({ ...taint, ...change } as typeof taint)).rejects.toThrow(message)
})
