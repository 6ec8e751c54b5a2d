/** What is wrong with nodes, hosts and settings of nodes, and that the printed remedy lets agents complete. */
import { expect, test } from 'vitest'
import { type FleetScene, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import {
  annotateAtOnce,
  type BrokenScene,
  stateAfterRemedy,
  one,
  packageOf,
  sayReady,
} from '../../../test/kit/tool/broken-scene.ts'
import { commandLine } from '../../../test/kit/tool/command-line.ts'
import { disableKey, ignoreLabel, pauseKey, reasonKey, statusKey } from '../../schemas/annotations.ts'

const situations: readonly BrokenScene[] = [
  {
    title: 'a paused Skyhook',
    broken: (scene) => annotateAtOnce(scene, pauseKey),
    nodes: one,
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    reason: 'Paused',
    cause: 'paused',
    objects: ['Skyhook/s', 'Skyhook/s'],
    also: ['budget-zero'],
    remedy: 'command',
    mend: (scene) => scene.editSkyhook('s', { spec: { interruptionBudget: { count: 1 } } }),
  },
  {
    title: 'a disabled Skyhook',
    broken: (scene) => annotateAtOnce(scene, disableKey),
    nodes: one,
    reason: 'Disabled',
    cause: 'disabled',
    objects: ['Skyhook/s'],
    remedy: 'command',
  },
  {
    title: 'an ignored node',
    broken: (scene) =>
      scene.simulation.clock.startTimer(8_500, () =>
        scene.editNode('node1', { metadata: { labels: { [ignoreLabel]: 'true' } } }),
      ) && undefined,
    reason: 'Ignored',
    cause: 'ignored',
    objects: ['Node/node1'],
    remedy: 'command',
  },
  ...(
    [
      ['remove the taint', (scene: FleetScene) => scene.editNode('node1', { spec: { taints: [] } })],
      [
        'add it to spec.additionalTolerations',
        (scene: FleetScene) =>
          scene.editSkyhook('s', { spec: { additionalTolerations: [{ key: 'gpu', operator: 'Exists' }] } }),
      ],
    ] as const
  ).map(
    ([remedy, mend]): BrokenScene => ({
      title: `a tainted node (remedy: ${remedy})`,
      broken: (scene) =>
        scene.simulation.clock.startTimer(8_500, () =>
          scene.editNode('node1', { spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }] } }),
        ) && undefined,
      reason: 'TaintNotTolerated',
      cause: 'taint',
      objects: ['Node/node1'],
      remedy,
      mend,
    }),
  ),
  {
    title: 'a kubelet that dies before the work',
    broken: (scene) => scene.simulation.clock.startTimer(8_500, () => sayReady(scene, 'Unknown')) && undefined,
    reason: 'NodeNotReady',
    cause: 'node-not-ready',
    objects: ['Node/node1'],
    says: ['node node1 is NotReady since', 'Kubelet stopped posting node status', 'systemctl status kubelet'],
    never: ['additionalTolerations', 'remove the taint', 'logs'],
    doctor: ['node-not-ready'],
    remedy: 'start the kubelet of node1',
    mend: (scene) => sayReady(scene, 'True'),
  },
  {
    title: 'a kubelet that dies during the work',
    skyhooks: { s: { packages: packageOf({ interrupt: { type: 'service', services: ['web.service'] } }) } },
    async reach(scene) {
      scene.host('host1').conditions.change({ stepMs: 6_000 })
      await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'work')
      await scene.pass(1_000)
      sayReady(scene, 'Unknown')
      await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('NodeNotReady') === true, 'the end')
    },
    cause: 'node-not-ready',
    objects: ['Node/node1'],
    says: ['node node1 is NotReady since', 'its host outlived it', 'systemctl status kubelet'],
    never: ['logs', 'does not answer'],
    doctor: ['node-not-ready'],
    remedy: 'start the kubelet of node1',
    mend: (scene) => sayReady(scene, 'True'),
  },
  {
    title: 'a host that is cut off during the work',
    async reach(scene) {
      scene.host('host1').conditions.change({ stepMs: 60_000 })
      await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'work')
      scene.host('host1').network.cut()
      await scene.pass(50_000)
      sayReady(scene, 'Unknown')
      await scene.pass(5_000)
    },
    broken: (scene) => () => {
      scene.host('host1').network.heal('reset')
      sayReady(scene, 'True')
    },
    cause: 'node-not-ready',
    objects: ['Node/node1'],
    never: ['logs', 'does not answer', 'its host outlived it'],
    doctor: ['node-not-ready'],
    remedy: 'start the host of node1, its network or its kubelet',
  },
  {
    title: 'a disk that is full',
    broken(scene) {
      const { disk } = scene.host('host1').host
      scene.simulation.clock.startTimer(8_500, () => disk.setFull(true))
      return () => disk.setFull(false)
    },
    reason: 'HostUnusable',
    cause: 'host-unusable',
    objects: ['Node/node1'],
    says: ['ENOSPC', "'/var/lib/skyhook/"],
    doctor: ['host-reason'],
    remedy: 'free space',
  },
  {
    title: 'a host without a shell',
    nodes: one,
    broken(scene) {
      const { disk } = scene.host('host1').host
      disk.remove(disk.locate('/bin/sh'))
      return () => void disk.create(disk.locate('/bin/sh'), 0o755)
    },
    reason: 'HostUnusable',
    cause: 'host-unusable',
    objects: ['Node/node1'],
    says: ['/bin/sh'],
    doctor: ['host-error'],
    remedy: 'Do what the message says',
  },
  {
    title: 'a node whose label was changed',
    reach: async (scene) => {
      await scene.pass(6_000)
      scene.editNode('node1', { metadata: { labels: { pool: 'b' } } })
      await scene.pass(4_000)
    },
    cause: 'not-selected',
    objects: ['Node/node1'],
    remedy: 'command',
  },
]

test.each(situations)('$title is named, nothing else is blamed, and its remedy helps', async (situation) => {
  expect(await stateAfterRemedy(situation)).toBe('complete')
})

test('a Skyhook that selects no node is explained with what the nearest node lacks', async () => {
  const selector = { matchLabels: { pool: 'a', zone: 'z' } }
  const scene = startScene({ skyhooks: { s: { nodeSelectors: selector } } })
  await scene.pass(12_000)
  const tool = commandLine({ client: scene.transport, clock: scene.simulation.clock })
  const { stdout } = await tool.run('explain s -n skyhook')
  expect(stdout).toContain('spec.nodeSelectors selects none of 2 nodes: the nearest, node1, lacks zone=z')
})
