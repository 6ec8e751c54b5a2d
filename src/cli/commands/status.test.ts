import { expect, test } from 'vitest'
import { pod, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { commandContext } from '../../../test/kit/tool/command-context.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { explain } from './explain.ts'
import { status } from './status.ts'

const input = (args: object, flags: object = {}) => ({ arguments: { ...args }, flags: { ...flags } }) as never

test('status shows a rollout, and --wait returns when it is complete', async () => {
  const scene = startScene()
  const { clock } = scene.simulation
  await scene.pass(9_500)
  const waiting = commandContext({ transport: scene.transport, clock })
  const ended = status.run(waiting.context, input({ skyhook: 's' }, { wait: true }))
  await scene.until(
    () => ['node1', 'node2'].every((name) => scene.annotation(name, statusKey('s')) === 'complete'),
    'complete',
  )
  await scene.pass(60_000)
  expect(await ended).toBe(0)
  expect(waiting.stdout()).toBe('Skyhook s is complete\n')
  const shown = commandContext({ transport: scene.transport, clock })
  expect(await status.run(shown.context, input({ skyhook: undefined }))).toBe(0)
  expect(shown.stdout()).toContain('s  [##############################] 2 of 2 nodes complete (100%)')
})

test('--wait fails at once when the Skyhook is stalled, and after --timeout', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  const { clock } = scene.simulation
  scene.host('host1').conditions.change({ isFailing: ({ mode }) => mode === 'apply' })
  await scene.pass(9_200)
  const { context } = commandContext({ transport: scene.transport, clock })
  const tooShort = status.run(context, input({ skyhook: 's' }, { wait: true, timeout: 500 }))
  const stalled = status.run(context, input({ skyhook: 's' }, { wait: true, timeout: 3_600_000 }))
  const codes = Promise.all(
    [tooShort, stalled].map((run) => run.catch((error: { exitCode: number }) => error.exitCode)),
  )
  await scene.pass(120_000)
  expect(await codes).toEqual([5, 6])
})

test('--wait outlasts a step that fails once', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  const { clock } = scene.simulation
  const stopFailing = scene.host('host1').conditions.change({ isFailing: ({ mode }) => mode === 'apply' })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'erroring', 'the first attempt has failed')
  const { context } = commandContext({ transport: scene.transport, clock })
  const ended = status.run(context, input({ skyhook: 's' }, { wait: true }))
  await scene.pass(3_000)
  stopFailing()
  await scene.pass(60_000)
  expect(await ended).toBe(0)
})

test('--wait ends with 8 where no node is selected, and with 0 if that is allowed', async () => {
  const scene = startScene({
    nodes: [{ name: 'host1' }],
    skyhooks: { s: { nodeSelectors: { matchLabels: { pool: 'typo' } } } },
  })
  const { clock } = scene.simulation
  await scene.pass(12_000)
  const allowed = commandContext({ transport: scene.transport, clock })
  const strict = commandContext({ transport: scene.transport, clock })
  expect(await status.run(allowed.context, input({ skyhook: 's' }, { wait: true, allowNoNodes: true }))).toBe(0)
  expect(allowed.stdout()).toBe('Skyhook s is complete: it selects no node\n')
  await expect(status.run(strict.context, input({ skyhook: 's' }, { wait: true }))).rejects.toMatchObject({
    exitCode: 8,
    message: 'Skyhook s selects no node',
  })
})

test('--watch writes a line for each change without a terminal, and draws the screen again on one', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  const { clock } = scene.simulation
  await scene.pass(9_100)
  const ending = new AbortController()
  const plain = commandContext({ transport: scene.transport, clock, signal: ending.signal })
  const screen = commandContext({ transport: scene.transport, clock, signal: ending.signal, isTerminal: true })
  const runs = [plain, screen].map(({ context }) => status.run(context, input({ skyhook: undefined }, { watch: true })))
  const ended = Promise.allSettled(runs)
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'complete')
  await scene.pass(5_000)
  ending.abort(new Error('ctrl-C'))
  await ended
  const lines = plain.stdout().trimEnd().split('\n')
  expect(lines.at(-1)).toMatch(/^\S+Z s: 1\/1 complete \(1 complete\), 0 out$/)
  expect(lines.length).toBeLessThan(12)
  expect(plain.stdout()).not.toContain('\u001b')
  expect(screen.stdout().split('\u001b[H\u001b[J').length).toBeGreaterThan(2)
})

test('a name that does not exist is reported as missing', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(9_500)
  const { context } = commandContext({ transport: scene.transport, clock: scene.simulation.clock })
  for (const run of [
    status.run(context, input({ skyhook: 'gone' })),
    status.run(context, input({ skyhook: 'gone' }, { wait: true })),
    explain.run(context, input({ skyhook: 'gone', node: undefined })),
    explain.run(context, input({ skyhook: 's', node: 'gone' })),
  ])
    await expect(run).rejects.toMatchObject({ exitCode: 3 })
})

test('explain shows the chain of one node, and groups the nodes of a fleet by their cause', async () => {
  const scene = startScene({
    nodes: [{ name: 'host1', pods: [pod('shop')] }, { name: 'host2' }, { name: 'host3' }],
    skyhooks: {
      s: { packages: { p0a: { version: '1.0.0', image: 'registry.test/p0a', interrupt: { type: 'reboot' } } } },
    },
  })
  const { clock, admin } = scene.simulation
  admin.send('POST', '/apis/policy/v1/namespaces/apps/poddisruptionbudgets', {
    metadata: { name: 'strict' },
    spec: { selector: {}, maxUnavailable: 0 },
  })
  const drained = (): boolean => scene.annotation('node1', statusKey('s')) === 'in_progress'
  for (const name of ['host2', 'host3']) scene.host(name).conditions.change({ fetch: { durationMs: 4_000 } })
  await scene.until(drained, 'node1 drains')
  await scene.pass(8_000)
  const fleet = commandContext({ transport: scene.transport, clock })
  await explain.run(fleet.context, input({ skyhook: 's', node: undefined }))
  expect(fleet.stdout()).toContain('Skyhook s: 0 of 3 selected nodes are complete')
  expect(fleet.stdout()).toContain('1 node held up (disruption-budget): node1')
  expect(fleet.stdout()).toContain('2 nodes held up (budget-full): node2, node3')
  expect(fleet.stdout().indexOf('disruption-budget')).toBeLessThan(fleet.stdout().indexOf('budget-full'))
  const one = commandContext({ transport: scene.transport, clock })
  await explain.run(one.context, input({ skyhook: 's', node: 'node1' }))
  expect(one.stdout()).toContain('Skyhook s on node node1: held up (disruption-budget)')
  expect(one.stdout()).toMatch(/^slot +open$/m)
  expect(one.stdout()).toMatch(/^drain +CLOSED {4}pod apps\/shop-1 may not leave/m)
  expect(one.stdout()).toContain('run:     kubectl -n apps describe poddisruptionbudget strict')
  const json = commandContext({ transport: scene.transport, clock, format: 'json' })
  await explain.run(json.context, input({ skyhook: 's', node: 'node1' }))
  expect(JSON.parse(json.stdout())).toMatchObject({
    apiVersion: 'cli.skyhookd/v1',
    kind: 'NodeExplanation',
    items: [{ node: 'node1', verdict: { cause: 'disruption-budget' } }],
  })
})
