import { expect, test } from 'vitest'
import { runTool } from '../../../test/kit/tool/run-tool.ts'
import { startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { commandContext } from '../../../test/kit/tool/command-context.ts'
import { cordonKey } from '../../schemas/annotations.ts'
import { ApiError } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { doctor } from './doctor.ts'

const input = (flags: object = {}) => ({ arguments: {}, flags: { node: undefined, ...flags } }) as never

type Checks = { items: { check: string; verdict: string; findings: { id: string }[]; unknown: string[] }[] }

test('doctor looks at a node at work without a finding, and finds a cordon that is left over after a second look', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }, { name: 'host2' }] })
  const { clock } = scene.simulation
  await scene.pass(60_000)
  const look = async () => {
    const shown = commandContext({ transport: scene.transport, clock, format: 'json' })
    const ended = doctor.run(shown.context, input({ node: 'node1' }))
    await scene.pass(6_000)
    return { code: await ended, document: JSON.parse(shown.stdout()) as Checks }
  }
  const before = await look()
  expect(before.document.items.map(({ check, verdict }) => [check, verdict])).toEqual([
    ['agents', 'ok'],
    ['cordons', 'ok'],
    ['slots', 'ok'],
    ['taints', 'ok'],
    ['hosts', 'ok'],
  ])
  expect(before.code).toBe(0)
  scene.host('host1').supervisor.freeze()
  for (const process of scene.host('host1').host.processes()) process.kill()
  scene.editNode('node1', { metadata: { annotations: { [cordonKey('gone')]: 'true' } } })
  const after = await look()
  expect(after.document.items.flatMap(({ findings }) => findings.map(({ id }) => id))).toEqual(['cordon-left-over'])
  expect(after.code).toBe(1)
})

test('a caller who may only read Skyhooks sees what is unknown, without findings', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(1_000)
  const viewer: KubeTransport = {
    ...scene.transport,
    async json(method, path, options) {
      if (!/\/skyhooks$|\/deploymentpolicies$|^\/version$|selfsubject/.test(path))
        throw new ApiError({ status: 403, reason: 'Forbidden', message: 'you may not' })
      return await scene.transport.json(method, path, options)
    },
  }
  const shown = commandContext({ transport: viewer, clock: scene.simulation.clock, format: 'json' })
  expect(await doctor.run(shown.context, input())).toBe(0)
  const { items } = JSON.parse(shown.stdout()) as Checks
  expect(items.filter(({ verdict }) => verdict !== 'unknown')).toEqual([])
  expect(items.every(({ unknown }) => unknown.length > 0)).toBe(true)
})

test('a node that does not exist is said to be missing', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(1_000)
  const { context } = commandContext({ transport: scene.transport, clock: scene.simulation.clock })
  await expect(doctor.run(context, input({ node: 'gone' }))).rejects.toMatchObject({ exitCode: 3 })
})

test('doctor --takeover looks at what an operator has left, excludes other looks, and says what it may not read', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(60_000)
  const shown = commandContext({ transport: scene.transport, clock: scene.simulation.clock, format: 'json' })
  expect(await doctor.run(shown.context, input({ takeover: true }))).toBe(0)
  const { items } = JSON.parse(shown.stdout()) as { items: (Checks['items'][number] & { about: string })[] }
  expect(items.map(({ check, verdict }) => [check, verdict])).toEqual([
    ['nodewright', 'unknown'],
    ['skyhook', 'unknown'],
    ['operator', 'unknown'],
    ['jobs', 'unknown'],
    ['webhooks', 'unknown'],
    ['pods', 'ok'],
    ['cordons', 'ok'],
    ['finalizers', 'ok'],
    ['state', 'ok'],
    ['release', 'unknown'],
  ])
  expect(items[1]?.about).toBe('s has an agent already on node1')
  await expect(doctor.run(shown.context, input({ takeover: true, node: 'node1' }))).rejects.toMatchObject({
    message: '--takeover excludes --host and --node',
  })
})

test('doctor looks at one thing at a time', async () => {
  expect(await runTool(['doctor', '--host', '--node', 'n1'])).toMatchObject({
    code: 2,
    stderr: 'error: --host and --node exclude each other\n',
  })
})
