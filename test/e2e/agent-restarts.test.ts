/**
 * Agents that end during a step: the step belongs to the host, and the next agent continues where the last one stopped.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { hostKey } from '../../src/schemas/annotations.ts'
import {
  agentOn,
  deleteAgent,
  hasReadyAgent,
  killAgent,
  rollAgents,
  rollBackAgents,
  withoutAgents,
} from '../kit/cluster/agents.ts'
import { uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import {
  journaled,
  journalOf,
  releaseFileOf,
  manifest,
  onceEach,
  shellscript,
  publishedState,
  type Scripts,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import type { View } from '../kit/cluster/moments.ts'
import { slotsOf } from '../kit/cluster/slots.ts'
import { createWorkloads } from '../kit/cluster/workloads.ts'

const cluster = useCluster()

/** Applies a package whose `mode` waits for the release file, and returns once it waits. */
async function startUntilWaiting(node: NodeName, mode: keyof Scripts): Promise<WaitingStep> {
  const name = uniqueName('restart')
  onTestFinished(async () => await cluster.remove(name))
  await cluster.apply(
    manifest(name, { packages: { work: shellscript(cluster.registry, journaled(name, mode)) } }),
    node,
  )
  await cluster.host(node).awaitLine(journalOf(name), `${mode} begins`)
  return { name, node, mode, lease: slotsOf(cluster.history.now, name)[0]?.uid }
}

type WaitingStep = {
  readonly name: string
  readonly node: NodeName
  readonly mode: keyof Scripts
  readonly lease: string | undefined
}

const journal = async ({ name, node }: WaitingStep): Promise<string[]> =>
  withoutTimes(await cluster.host(node).lines(journalOf(name)))

const runningSteps = async (node: NodeName): Promise<string> =>
  await cluster
    .host(node)
    .exec('systemctl', 'list-units', '--plain', '--no-legend', '--state=activating,active', 'skyhookd-*')

test.each<[string, (nodes: readonly NodeName[]) => Promise<unknown>]>([
  ['is deleted', async (nodes) => await Promise.all(nodes.map((node) => deleteAgent(cluster, node)))],
  ['is killed', async (nodes) => await Promise.all(nodes.map((node) => killAgent(cluster, node)))],
  [
    'is replaced by an upgrade, and by its rollback',
    async () => {
      await rollAgents(cluster)
      await rollBackAgents(cluster)
    },
  ],
])(
  'an agent that %s during a step leaves it running, and the next agent collects its end without a second run',
  async (_, disturb) => {
    const steps = await Promise.all([startUntilWaiting('node-1', 'apply'), startUntilWaiting('node-2', 'config_check')])
    await disturb(['node-1', 'node-2'])
    for (const step of steps) {
      expect((await journal(step)).at(-1)).toBe(`${step.mode} begins`) // still the same one, still waiting
      expect(slotsOf(cluster.history.now, step.name)).toMatchObject([{ uid: step.lease, holder: step.node }])
      await cluster.host(step.node).write(releaseFileOf(step.name), '')
      await cluster.history.eventually(
        'it is complete',
        ({ nodes }) => publishedState(nodes.get(step.node), step.name).status === 'complete',
      )
      expect(await journal(step)).toEqual(onceEach('apply', 'apply_check', 'config', 'config_check'))
      expect(
        publishedState(cluster.history.now.nodes.get(step.node), step.name).state['work|1.1.0'],
      ).not.toHaveProperty('restarts')
    }
  },
)

describe('a step that ends while there is no agent', () => {
  test.each([
    ['succeeds', 'exit 0', 'complete', undefined],
    [
      'fails',
      'echo "no more room" >&2; exit 3',
      'erroring',
      expect.stringMatching(/exited 3, expected 0: no more room/) as string,
    ],
  ])('a step that %s while no agent runs is known to the next agent', async (_, end, status, message) => {
    const node = 'node-2'
    const name = uniqueName('absent')
    onTestFinished(async () => await cluster.remove(name))
    const apply = `echo begins >>${journalOf(name)}; until [ -e ${releaseFileOf(name)} ]; do sleep 0.05; done; ${end}`
    await cluster.apply(manifest(name, { packages: { work: shellscript(cluster.registry, { apply }) } }), node)
    await cluster.host(node).awaitLine(journalOf(name), 'begins')
    await withoutAgents(cluster, async () => {
      await cluster.host(node).write(releaseFileOf(name), '')
      await expect.poll(async () => await runningSteps(node), { timeout: 5_000 }).toBe('')
    })
    await cluster.history.eventually('the Node shows how it ended', ({ nodes }) => {
      const now = publishedState(nodes.get(node), name)
      return now.status === status && (now.reason === undefined) === (message === undefined)
    })
    expect(publishedState(cluster.history.now.nodes.get(node), name).reason?.message).toEqual(message)
    expect(await cluster.host(node).lines(journalOf(name))).toEqual(['begins'])
  })
})

type ProbedContainer = { readonly livenessProbe: { readonly httpGet: { readonly port: number } } }

test('no user of a host can take the port of the probes, and one who takes that of the metrics is named', async () => {
  const node = 'node-1'
  const unit = uniqueName('squatter')
  const host = cluster.host(node)
  const perl = ['perl', '-MIO::Socket::INET', '-e']
  const listen = (port: number): string => `my $s = IO::Socket::INET->new(LocalPort => ${port}, Listen => 5)`
  const stop = async (): Promise<unknown> => await host.exec('sh', '-c', `systemctl stop ${unit} || true`)
  const reportOf = ({ nodes }: View): string => nodes.get(node)?.metadata.annotations?.[hostKey] ?? ''
  onTestFinished(async () => void (await stop()))
  const agent = agentOn(cluster.history.now, node)?.spec as { readonly containers: readonly ProbedContainer[] }
  const probedPort = agent.containers[0]?.livenessProbe.httpGet.port ?? 0
  await withoutAgents(cluster, async () => {
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    const answer = await host.exec(...nobody, ...perl, `${listen(probedPort)}; print $s ? 'taken' : $!`)
    expect(answer).toBe('Permission denied')
    await host.exec('systemd-run', `--unit=${unit}`, '--property=User=nobody', ...perl, `${listen(9475)} or die; sleep`)
    await expect.poll(async () => await host.exec('cat', '/proc/net/tcp')).toMatch(/:2503 0+:0000 0A/)
  })
  await cluster.history.eventually(
    'its agent is Ready, and says who has the port',
    (view) => hasReadyAgent(view, node) && reportOf(view).includes('is taken by a program of nobody (uid 65534)'),
  )
  await stop()
  await cluster.history.eventually('the port is its own again', (view) => !reportOf(view).includes('port-taken'))
})

describe('an interrupt of two services', () => {
  /** A unit that writes its name to the Skyhook's journal when it is started. */
  const unitFile = (unit: string, journal: string, wait: string): string =>
    `printf '[Service]\\nType=oneshot\\nRemainAfterExit=yes\\nExecStart=/bin/sh -c "echo ${unit} >>${journal}; ` +
    `${wait}"\\n' >/etc/systemd/system/${unit}.service`

  test('an agent that restarts between two services of an interrupt restarts the second only if no protected pod has arrived', async () => {
    const node = 'node-1'
    const name = uniqueName('between')
    const [first, second] = [`${name}-1`, `${name}-2`]
    const shop = await createWorkloads(cluster, name)
    onTestFinished(async () => {
      await shop.remove()
      await cluster.remove(name)
    })
    const waits = `until [ -e ${releaseFileOf(name)} ]; do sleep 0.05; done`
    const apply = [unitFile(first, journalOf(name), waits), unitFile(second, journalOf(name), 'true')].join('\n')
    const work = shellscript(cluster.registry, { apply }, { interrupt: { type: 'service', services: [first, second] } })
    const podNonInterruptLabels = { matchLabels: { app: 'training' } }
    await cluster.apply(manifest(name, { podNonInterruptLabels, packages: { work } }), node)
    await cluster.host(node).awaitLine(journalOf(name), first)
    await withoutAgents(cluster, async () => {
      await shop.pod('training', node, { tolerations: [{ operator: 'Exists' }] })
      await cluster.host(node).write(releaseFileOf(name), '')
    })
    await cluster.history.eventually(
      'it waits',
      ({ nodes }) => publishedState(nodes.get(node), name).reason?.reason === 'ProtectedPods',
    )
    expect(await cluster.host(node).lines(journalOf(name))).toEqual([first])
    await shop.endPod('training')
    await cluster.history.eventually(
      'it is complete',
      ({ nodes }) => publishedState(nodes.get(node), name).status === 'complete',
    )
    expect(await cluster.host(node).lines(journalOf(name))).toEqual([first, first, second])
  })
})
