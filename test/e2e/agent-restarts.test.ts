/** Agents that go away in the middle of a step: the step is the host's, and the next agent picks up where the last one was. */
import { describe, expect, test } from 'vitest'
import { deleteAgent, killAgent, rollAgents, withoutAgents } from './agents.ts'
import { unique, useCluster, type NodeName } from './cluster.ts'
import { journaled, journalOf, leaveOf, manifest, onceEach, shellscript, shown, type Scripts, withoutTimes } from './skyhooks.ts'
import { slotsOf } from './slots.ts'

const cluster = useCluster()

const allModes = onceEach('apply', 'apply_check', 'config', 'config_check')

/** Applies a package whose `mode` waits for leave, and returns once it waits there. */
async function beginAndWait(node: NodeName, mode: keyof Scripts): Promise<string> {
  const name = unique('restart')
  await cluster.apply(manifest(name, { packages: { work: shellscript(cluster.registry, journaled(name, mode)) } }), node)
  await cluster.host(node).awaitLine(journalOf(name), `${mode} begins`)
  return name
}

const complete = async (name: string, node: NodeName): Promise<unknown> =>
  await cluster.history.eventually(`${name} is complete on ${node}`, ({ nodes }) => shown(nodes.get(node), name).status === 'complete')

const journal = async (name: string, node: NodeName): Promise<string[]> => withoutTimes(await cluster.host(node).lines(journalOf(name)))

const runningSteps = async (node: NodeName): Promise<string> =>
  await cluster.host(node).exec('systemctl', 'list-units', '--plain', '--no-legend', '--state=activating,active', 'skyhookd-*')

const disturbances: readonly (readonly [what: string, disturb: (node: NodeName) => Promise<void>])[] = [
  ['is deleted', async (node) => await deleteAgent(cluster, node)],
  ['is killed', async (node) => await killAgent(cluster, node)],
  ['is replaced by another image', async () => await rollAgents(cluster)],
]

describe.each(disturbances)('an agent that %s during a step', (_, disturb) => {
  test.each(['apply', 'config_check'] as const)('(%s) leaves it running; its end is picked up and nothing runs twice', async (mode) => {
    const node = 'node-1'
    const name = await beginAndWait(node, mode)
    const lease = slotsOf(cluster.history.now, name)[0]
    await disturb(node)
    const before = await journal(name, node)
    expect(before.at(-1)).toBe(`${mode} begins`)
    expect(slotsOf(cluster.history.now, name)).toMatchObject([{ uid: lease?.uid }])
    await cluster.host(node).write(leaveOf(name), '')
    await complete(name, node)
    expect(await journal(name, node)).toEqual(allModes)
    expect(shown(cluster.history.now.nodes.get(node), name).state['work|1.1.0']).not.toHaveProperty('restarts')
    await cluster.remove(name)
  })
})

describe('a step that ends while there is no agent', () => {
  test.each([
    ['well', 'exit 0', 'complete', undefined],
    ['badly', 'echo "no more room" >&2; exit 3', 'erroring', expect.stringMatching(/exited 3, expected 0: no more room/) as string],
  ])('%s: is known to the next one', async (_, end, status, message) => {
    const node = 'node-2'
    const name = unique('absent')
    const apply = `echo begins >>${journalOf(name)}; until [ -e ${leaveOf(name)} ]; do sleep 0.05; done; ${end}`
    await cluster.apply(manifest(name, { packages: { work: shellscript(cluster.registry, { apply }) } }), node)
    await cluster.host(node).awaitLine(journalOf(name), 'begins')
    await withoutAgents(cluster, async () => {
      await cluster.host(node).write(leaveOf(name), '')
      await expect.poll(async () => await runningSteps(node), { timeout: 5_000 }).toBe('')
    })
    await cluster.history.eventually('the Node shows how it ended', ({ nodes }) => {
      const now = shown(nodes.get(node), name)
      return now.status === status && (now.reason === undefined) === (message === undefined)
    })
    expect(shown(cluster.history.now.nodes.get(node), name).reason?.message).toEqual(message)
    expect(await cluster.host(node).lines(journalOf(name))).toEqual(['begins'])
    await cluster.remove(name)
  })
})
