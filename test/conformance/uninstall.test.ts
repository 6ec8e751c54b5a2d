/** Rows N01 to N08: packages with an uninstall policy. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { conditionOf } from '../../src/census/model/skyhook-status.ts'
import { disableKey, pauseKey } from '../../src/schemas/annotations.ts'
import { uniqueName, type NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths, ignoreNotFound } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { manifest } from '../kit/cluster/skyhooks.ts'
import { entryOf, expectComplete, nodeOf, skyhookOf, statusOf, useConformance } from './conformance.ts'
import { modesOf, withChecks } from '../kit/files/journal-lines.ts'
import { row } from './rows.ts'

const cluster = useConformance()
const node: NodeName = 'node-3'
const enabled = { enabled: true }
const isGone = (view: View, name: string): boolean => skyhookOf(view, name) === undefined
const askToDelete = async (name: string): Promise<unknown> =>
  await ignoreNotFound(cluster.api, 'DELETE', `${paths.skyhooks}/${name}`)

test(row('N01'), async () => {
  const name = uniqueName('explicit')
  const host = cluster.host(node)
  const own = `/var/tmp/${name}.journal`
  const dexter = cluster.pack('1.2.3', {
    uninstall: enabled,
    configMap: { 'uninstall.log': 'goodbye' },
    env: [{ name: 'JOURNAL_FILE', value: own }],
  })
  await cluster.apply(manifest(name, { packages: { dexter } }), node)
  await expectComplete(cluster, name, { 'dexter|1.2.3': 'config' }, [node])
  await cluster.edit(name, { packages: { dexter: { uninstall: { enabled: true, apply: true } } } })
  await expectComplete(cluster, name, {}, [node])
  expect(nodeOf(cluster.history.now, node, name).stateText).toBe('{}')
  const modes = (await host.lines(own)).map((line) => line.split(' ')[4]) // in the file that its env names
  expect(modes).toEqual(withChecks('apply', 'config', 'uninstall'))
  const folder = `/var/log/skyhook/${name}/journal/1.2.3`
  const logs = await Promise.all((await host.list(folder)).map((file) => host.read(`${folder}/${file}`)))
  expect(logs.join('')).toContain('goodbye') // from its configMap
  await cluster.edit(name, { packages: { dexter: null } })
  await expectComplete(cluster, name, {}, [node])
  expect(await host.lines(own)).toHaveLength(modes.length)
})

test(row('N02'), async () => {
  const name = uniqueName('mixed')
  const packages = {
    inn: cluster.pack('1.2.3', { uninstall: enabled }),
    out: cluster.pack('3.2.3', { uninstall: { enabled: false } }),
  }
  await cluster.apply(manifest(name, { packages }), node)
  await expectComplete(cluster, name, { 'inn|1.2.3': 'config', 'out|3.2.3': 'config' }, [node])
  await cluster.edit(name, { packages: { inn: null, out: null } })
  await expectComplete(cluster, name, { 'out|3.2.3': 'config' }, [node])
  const lines = await cluster.lines(node, name)
  expect(modesOf(lines, 'inn')).toEqual(withChecks('apply', 'config', 'uninstall'))
  expect(modesOf(lines, 'out')).toEqual(withChecks('apply', 'config'))
})

test(row('N03'), async () => {
  const name = uniqueName('ondelete')
  const packages = { inn: cluster.pack('1.2.3', { uninstall: enabled }), other: cluster.pack('3.2.3') }
  await cluster.apply(manifest(name, { packages }), node)
  await expectComplete(cluster, name, { 'inn|1.2.3': 'config', 'other|3.2.3': 'config' }, [node])
  expect(skyhookOf(cluster.history.now, name)?.metadata.finalizers).toEqual(['skyhook.nvidia.com/skyhook'])
  await askToDelete(name)
  await cluster.history.eventually('the Skyhook is gone', (view) => isGone(view, name))
  await cluster.history.never('gone before its package is', (moment) => {
    const { type, kind, object } = moment.change
    const isEnd = kind === 'skyhooks' && type === 'DELETED' && object.metadata.name === name
    return isEnd && entryOf(moment, node, name, 'inn|1.2.3') !== 'absent' && entryOf(moment, node, name, 'inn|1.2.3')
  })
  const lines = await cluster.lines(node, name)
  expect(modesOf(lines, 'inn')).toEqual(withChecks('apply', 'config', 'uninstall'))
  expect(modesOf(lines, 'other')).toEqual(withChecks('apply', 'config'))
})

/** Deletes a Skyhook that must uninstall while an annotation blocks it, checks, then removes the annotation. */
async function deleteHeld(
  name: string,
  annotation: string,
  meanwhile: () => Promise<void> = async () => undefined,
): Promise<void> {
  await cluster.apply(manifest(name, { packages: { inn: cluster.pack('1.2.3', { uninstall: enabled }) } }), node)
  await expectComplete(cluster, name, { 'inn|1.2.3': 'config' }, [node])
  await patch(cluster.api, `${paths.skyhooks}/${name}`, { metadata: { annotations: { [annotation]: 'true' } } })
  await askToDelete(name)
  await cluster.history.eventually('it says why it stays', (view) => {
    const stalled = conditionOf(statusOf(view, name), 'Stalled')
    return stalled?.status === 'True' && stalled.reason === 'DeletionBlocked' && stalled.message.includes(annotation)
  })
  await meanwhile()
  await sleep(500)
  expect(modesOf(await cluster.lines(node, name), 'inn')).toEqual(withChecks('apply', 'config'))
  await patch(cluster.api, `${paths.skyhooks}/${name}`, { metadata: { annotations: { [annotation]: null } } })
  await cluster.history.eventually('the Skyhook is gone', (view) => isGone(view, name))
  expect(modesOf(await cluster.lines(node, name), 'inn')).toEqual(withChecks('apply', 'config', 'uninstall'))
}

test(row('N07'), async () => {
  const name = uniqueName('paused')
  await deleteHeld(name, pauseKey, async () => {
    const isReported = ({ events }: View): boolean =>
      [...events.values()].some(
        ({ involvedObject, type, reason }) =>
          involvedObject?.name === name && type === 'Warning' && reason === 'DeletionBlocked',
      )
    // Events are rate-limited, and all earlier rows sent some
    await cluster.history.eventually('a Warning reports it', isReported, 120_000)
  })
  expect(isGone(cluster.history.now, name)).toBe(true)
})

test(row('N08'), async () => {
  const name = uniqueName('disabled')
  await deleteHeld(name, disableKey)
  expect(isGone(cluster.history.now, name)).toBe(true)
})
