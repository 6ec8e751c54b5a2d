/** What is wrong with hosts: disks, system bus, systemd, reboots, services. */
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { nodeStateKey, reasonKey } from '../../../src/schemas/annotations.ts'
import type { FleetScene } from '../../kit/fleet/fleet-scene.ts'
import type { DiskFault } from '../../kit/host/disk.ts'
import { errno } from '../../kit/host/inodes.ts'
import type { BrokenScene } from './broken-scene.ts'
import { awaitReason, beforeWork, failStep, nextVersion, one, packageOf, rebooting } from './breakage.ts'

/** The disk of host1 fails so, from before the work on. */
const diskFault = (fault: DiskFault) => (scene: FleetScene) => {
  const { disk } = scene.host('host1').host
  beforeWork(scene, () => disk.setFault(fault))
  return () => disk.setFault(undefined)
}
const changes: ReadonlySet<string> = new Set(['write', 'create', 'rename'])

const unusable = {
  nodes: one,
  reason: 'HostUnusable',
  cause: 'host-unusable',
  objects: ['Node/node1'],
  doctor: ['host-reason'],
  status: 1,
} as const

const restarting = (...services: readonly string[]): Partial<SkyhookSpec> => ({
  packages: packageOf({ interrupt: { type: 'service', services: [...services] } }),
})

export const hostRows: readonly BrokenScene[] = [
  {
    title: 'a disk that is full',
    broken(scene) {
      const { disk } = scene.host('host1').host
      beforeWork(scene, () => disk.setFull(true))
      return () => disk.setFull(false)
    },
    ...unusable,
    says: ['ENOSPC', "'/var/lib/skyhook/"],
    remedy: 'free space',
  },
  {
    title: 'a disk that is full when an image is unpacked',
    broken: (scene) =>
      scene.host('host1').conditions.change({
        fetch: { durationMs: 200, errno: errno('ENOSPC', 'write', '/var/lib/skyhook/.agent/images/layer') },
      }),
    ...unusable,
    says: ['ENOSPC', '/var/lib/skyhook/.agent/images/layer'],
    remedy: 'free space',
  },
  {
    title: 'a disk that turned read-only',
    broken: diskFault((operation, path) =>
      changes.has(operation) && path.startsWith('/var/lib/skyhook') ? 'EROFS' : undefined,
    ),
    ...unusable,
    says: ['EROFS', '/var/lib/skyhook'],
    remedy: 'look for mounts',
  },
  {
    title: 'a disk with errors of its medium',
    broken: diskFault((operation, path) =>
      operation === 'sync' && path.startsWith('/var/lib/skyhook') ? 'EIO' : undefined,
    ),
    ...unusable,
    says: ['EIO', '/var/lib/skyhook'],
    remedy: 'Do what the message says',
  },
  {
    title: 'a file that nobody may replace',
    broken: diskFault((operation, path) =>
      operation === 'rename' && path.startsWith('/var/lib/skyhook') ? 'EPERM' : undefined,
    ),
    ...unusable,
    says: ['EPERM', '/var/lib/skyhook'],
    remedy: 'immutable files',
  },
  {
    title: 'a host without a shell',
    broken(scene) {
      const { disk } = scene.host('host1').host
      disk.remove(disk.locate('/bin/sh'))
      return () => void disk.create(disk.locate('/bin/sh'), 0o755)
    },
    ...unusable,
    says: ['/bin/sh'],
    doctor: ['host-error'],
    remedy: 'Do what the message says',
  },
  {
    title: 'a systemd that is too old',
    broken(scene) {
      const { host } = scene.host('host1')
      host.systemd.setVersion('239')
      return () => {
        host.systemd.setVersion('252')
        host.reboot()
      }
    },
    ...unusable,
    says: ['239'],
    doctor: ['host-error'],
    remedy: 'Do what the message says',
  },
  {
    title: 'a system bus that does not answer',
    broken(scene) {
      const { bus } = scene.host('host1').host
      beforeWork(scene, () => bus.setUp(false))
      return () => bus.setUp(true)
    },
    nodes: one,
    reason: 'HostUnreachable',
    cause: 'host-unreachable',
    objects: ['Node/node1'],
    doctor: ['host-reason'],
    remedy: 'Check that dbus and systemd answer on the host',
    status: 1,
  },
  {
    title: 'a reboot that a program of the host inhibits',
    nodes: one,
    skyhooks: { s: rebooting },
    broken(scene, outside) {
      const { logind } = scene.host('host1').host
      logind.setInhibitors([{ who: 'apt', why: 'upgrading' }])
      const output = (): string =>
        logind
          .inhibitors()
          .map(({ who, why }) => `${who} 0 root shutdown ${why} block`)
          .join()
      outside.setHostCommand('systemd-inhibit --list', () => ({ status: 0, output: output() }))
      return () => logind.setInhibitors([])
    },
    reason: 'RebootRefused',
    cause: 'reboot-refused',
    objects: ['Node/node1'],
    doctor: ['host-reason'],
    says: ['apt', 'upgrading'],
    remedy: 'shows which programs hold an inhibitor lock',
    shows: /apt/,
  },
  {
    title: 'a reboot that the host accepts and does not make',
    nodes: one,
    skyhooks: { s: rebooting },
    broken(scene, outside) {
      const { logind } = scene.host('host1').host
      logind.setFate('lost')
      outside.setHostCommand('systemd-inhibit --list', () => ({ status: 0, output: 'No inhibitors.' }))
      return () => logind.setFate('carried-out')
    },
    async reach(scene) {
      // each attempt takes a minute, and the pauses between them grow
      await scene.pass(900_000)
      await scene.until(
        () => scene.annotation('node1', reasonKey('s'))?.includes('RebootPending') === true,
        'an attempt',
      )
      await awaitReason(scene, 'RebootRefused')
    },
    cause: 'reboot-refused',
    objects: ['Node/node1'],
    doctor: ['host-reason'],
    says: ['shutting down'],
    remedy: 'Read the message',
  },
  {
    title: 'a container in place of a host, which must not be rebooted',
    skyhooks: { s: rebooting },
    broken(scene, outside) {
      const { disk } = scene.host('host1').host
      disk.makeFolder(disk.locate('/run/systemd'), 0o755)
      disk.write(disk.create(disk.locate('/run/systemd/container'), 0o644), Buffer.from('docker'), 'container')
      outside.setHostCommand('systemd-inhibit --list', () => ({ status: 0, output: 'No inhibitors.' }))
    },
    reason: 'RebootRefused',
    cause: 'reboot-refused',
    objects: ['Node/node1'],
    doctor: ['host-warning'],
    says: ['container: docker'],
    remedy: 'Exclude containers from the nodeSelectors',
    mend(scene) {
      scene.editNode('node1', { metadata: { labels: { kind: 'container' } } })
      const matchExpressions = [{ key: 'kind', operator: 'NotIn', values: ['container'] }]
      scene.editSkyhook('s', { spec: { nodeSelectors: { matchLabels: { pool: 'a' }, matchExpressions } } })
    },
    isMended: (scene) => scene.annotation('node1', reasonKey('s')) === undefined,
  },
  {
    title: 'a host that would reboot again and again',
    nodes: one,
    skyhooks: { s: rebooting },
    async reach(scene) {
      failStep(scene, 'post-interrupt')
      for (let reboots = 1; reboots <= 3; reboots++) {
        const boot = scene.host('host1').host.bootId()
        const state = (): string => scene.annotation('node1', nodeStateKey('s')) ?? ''
        await scene.until(() => state().includes('"post-interrupt","state":"erroring"'), `failure ${reboots}`)
        const edited = state().replace(/"post-interrupt","state":"erroring"/, '"interrupt","state":"in_progress"')
        scene.editNode('node1', { metadata: { annotations: { [nodeStateKey('s')]: edited } } })
        if (reboots < 3) await scene.until(() => scene.host('host1').host.bootId() !== boot, `reboot ${reboots + 1}`)
      }
      await awaitReason(scene, 'RebootLoop')
    },
    cause: 'reboot-loop',
    objects: ['Package/p0a'],
    remedy: 'Fix the package',
    mend: (scene) => scene.editSkyhook('s', nextVersion),
  },
  {
    title: 'a service that does not restart',
    nodes: one,
    skyhooks: { s: restarting('web.service') },
    broken: (scene) => scene.host('host1').conditions.change({ restart: { durationMs: 100, result: 'failed' } }),
    reason: 'StepFailed',
    cause: 'step-failing',
    objects: ['Package/p0a'],
    says: ['web.service'],
    remedy: 'fix the package or its configuration and apply it',
  },
  {
    title: 'a service that the host does not have',
    nodes: one,
    skyhooks: { s: restarting('wbe.service') },
    reason: 'StepFailed',
    cause: 'step-failing',
    objects: ['Package/p0a'],
    says: ['wbe.service'],
    remedy: 'fix the package or its configuration and apply it',
    mend: (scene) => scene.editSkyhook('s', { spec: restarting('web.service') }),
  },
]
