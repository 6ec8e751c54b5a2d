/**
 * The main job on hosts of other kinds: a machine, by default without a bus daemon and logind, which is rebooted, and a
 * container, which is not. HOST_OS names one alone.
 */
import { describe, expect, test } from 'vitest'
import { type Cluster, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { isCompleteOn, isCordoned, serviceStates } from '../kit/cluster/node-availability.ts'
import {
  journaled,
  journalOf,
  manifest,
  onceEach,
  publishedState,
  shellscript,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const node = 'node-1'
const completeWithinMs = 90_000
const steps = onceEach('apply', 'apply_check', 'config', 'config_check', 'post_interrupt')
const cron = { type: 'service', services: ['cron'] } as const

/** Starts work with an interrupt on the only node; the name of its Skyhook. */
async function apply(cluster: Cluster, interrupt: typeof cron | { readonly type: 'reboot' }): Promise<string> {
  const name = uniqueName(`other-${interrupt.type}`)
  const work = shellscript(cluster.registry, journaled(name), { interrupt })
  await cluster.apply(manifest(name, { packages: { work } }), node)
  return name
}

/** What ran until it was complete. */
async function complete(cluster: Cluster, name: string): Promise<string[]> {
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), completeWithinMs)
  return withoutTimes(await cluster.host(node).lines(journalOf(name)))
}

const invocationOf = async (cluster: Cluster, unit: string): Promise<string> =>
  await cluster.host(node).exec('systemctl', 'show', '--property=InvocationID', unit)

/** What ran, and whether the service did restart. */
async function restartService(cluster: Cluster) {
  const before = await invocationOf(cluster, 'cron.service')
  const name = await apply(cluster, cron)
  const ran = await complete(cluster, name)
  const isRestarted = (await invocationOf(cluster, 'cron.service')) !== before
  await cluster.remove(name)
  return { ran, isRestarted }
}

const chosen = process.env['HOST_OS']
const machine = chosen ?? 'bare'

describe.runIf(machine !== 'container')(`a machine, ${machine}`, () => {
  const cluster = useCluster({ name: 'machine', nodes: 1, env: { HOST_OS: machine } })

  test('a package is installed and a service restarted', async () => {
    expect(await restartService(cluster)).toEqual({ ran: steps, isRestarted: true })
  })

  test('a package reboots the host once', async () => {
    const before = await cluster.host(node).bootId()
    const name = await apply(cluster, { type: 'reboot' })
    expect(await complete(cluster, name)).toEqual(steps)
    const boots = (await serviceStates(cluster.history, node)).map(({ bootId }) => bootId)
    expect([...new Set(boots)]).toEqual([before, await cluster.host(node).bootId()])
  })
})

describe.runIf(chosen === undefined || chosen === 'container')('a container whose boot id is the machine’s', () => {
  const cluster = useCluster({ name: 'container', nodes: 1, env: { HOST_OS: 'container' } })

  test('a reboot is refused before slot, cordon and drain', async () => {
    const name = await apply(cluster, { type: 'reboot' })
    await cluster.history.eventually(
      'the reboot is refused',
      ({ nodes }) => publishedState(nodes.get(node), name).reason?.reason === 'RebootRefused',
    )
    expect(publishedState(cluster.history.now.nodes.get(node), name).reason?.message).toContain('container: docker')
    await cluster.history.never('a slot or a cordon', (view) => {
      const isDisturbed = slotsOf(view, name).length > 0 || isCordoned(view.nodes.get(node))
      return isDisturbed && 'the node was disturbed'
    })
    expect(await cluster.host(node).exists(journalOf(name))).toBe(false)
    await cluster.remove(name)
  })

  test('a package is installed and a service restarted', async () => {
    expect(await restartService(cluster)).toEqual({ ran: steps, isRestarted: true })
  })
})
