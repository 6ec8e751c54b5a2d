/** Faults of a host: power, disk, clock, reboots, services, steps, images, kubelet, and its registration as a Node. */
import type { ImageErrorCode } from '../../../src/schemas/catalogue/reason-codes.ts'
import { errno } from '../host/inodes.ts'
import type { ServiceRestart } from '../host/systemd.ts'
import type { ActionKind, Target } from './action-kind.ts'
import { nodePath } from './cluster-writer.ts'
import type { HostConditions } from './host-conditions.ts'

const isDown = { down: 'the host is down already' }
const changed = ({ host }: Target, changes: Partial<HostConditions>): (() => void) => host.conditions.change(changes)

/** The Node is deleted, its agent ends with its pod, and a kubelet that starts registers the next Node. */
function replaceNode({ world, host }: Target, nextName: (name: string) => string): () => void {
  const unfreeze = host.supervisor.freeze()
  host.supervisor.terminate()
  world.admin.send('DELETE', nodePath(host.nodeName()))
  return () => {
    const former = host.nodeName()
    const name = nextName(former)
    if (name === former) host.restartKubelet()
    else {
      host.rename(name)
      world.admin.send('DELETE', nodePath(former)) // a boot has registered it again meanwhile
    }
    unfreeze()
  }
}

export const hostFaults = {
  'host-crashed': {
    draw: (chance) => ({ downMs: chance.integer(1_000, 60_000), loss: chance.pick(['some', 'all']) }),
    start({ host: { host }, detail }) {
      if (host.power() === 'down') return 'skipped'
      host.cutPower({ downMs: Number(detail['downMs']), loss: detail['loss'] as 'some' | 'all' })
    },
  },
  'host-rebooted': {
    start({ host: { host } }) {
      if (host.power() !== 'up') return 'skipped'
      host.reboot()
    },
    impossible: isDown,
  },
  'host-wiped': { start: ({ host: { host } }) => host.wipe() },
  'host-wiped-and-registered': {
    lastsMs: [5_000, 40_000],
    start(target) {
      target.host.host.wipe()
      return replaceNode(target, (name) => name)
    },
  },
  'node-deleted': {
    lastsMs: [1_000, 30_000],
    draw: (chance) => ({ keepsAgent: chance.isHit(0.5) }),
    start(target) {
      if (target.detail['keepsAgent'] !== true) return replaceNode(target, (name) => name)
      target.world.admin.send('DELETE', nodePath(target.host.nodeName()))
      return () => target.host.restartKubelet()
    },
  },
  'node-renamed': {
    lastsMs: [1_000, 30_000],
    start: (target) => replaceNode(target, (name) => `${name}x`),
  },
  'clock-jumped': {
    draw: (chance) => ({ byMs: chance.pick([-1, 1]) * chance.pick([2_000, 60_000, 600_000, 7_200_000]) }),
    start: ({ host: { host }, detail }) => host.setWallOffsetMs(Number(detail['byMs'])),
  },
  'reboots-refused': {
    lastsMs: [10_000, 60_000],
    start({ host: { host } }) {
      host.logind.setInhibitors([{ who: 'apt', why: 'upgrading' }])
      return () => host.logind.setInhibitors([])
    },
  },
  'reboots-lost': {
    lastsMs: [10_000, 60_000],
    start({ host: { host } }) {
      host.logind.setFate('lost')
      return () => host.logind.setFate('carried-out')
    },
  },
  'reboots-slow': {
    lastsMs: [30_000, 90_000],
    draw: (chance) => ({ shutdownMs: chance.integer(5_000, 90_000), bootMs: chance.integer(20_000, 120_000) }),
    start: (target) =>
      changed(target, { shutdownMs: Number(target.detail['shutdownMs']), bootMs: Number(target.detail['bootMs']) }),
  },
  'kubelet-late': {
    lastsMs: [30_000, 90_000],
    draw: (chance) => ({ readyMs: chance.integer(10_000, 60_000) }),
    start: (target) => changed(target, { readyMs: Number(target.detail['readyMs']) }),
  },
  'services-fail': {
    lastsMs: [5_000, 40_000],
    draw: (chance) => ({
      result: chance.pick(['failed', 'dies', 'condition']),
      durationMs: chance.integer(100, 20_000),
    }),
    start: (target) => changed(target, { restart: target.detail as unknown as ServiceRestart }),
  },
  'steps-fail': {
    lastsMs: [3_000, 30_000],
    draw: (chance) => ({ mode: chance.pick(['apply', 'config', 'check', '']) }),
    start: (target) => changed(target, { isFailing: ({ mode }) => mode.endsWith(String(target.detail['mode'])) }),
  },
  'steps-slow': {
    lastsMs: [10_000, 60_000],
    draw: (chance) => ({ stepMs: chance.integer(5_000, 30_000) }),
    start: (target) => changed(target, { stepMs: Number(target.detail['stepMs']) }),
  },
  'images-slow': {
    lastsMs: [10_000, 60_000],
    draw: (chance) => ({ durationMs: chance.integer(5_000, 60_000) }),
    start: (target) => changed(target, { fetch: { durationMs: Number(target.detail['durationMs']) } }),
  },
  'images-fail': {
    lastsMs: [5_000, 40_000],
    draw: (chance) => ({ code: chance.pick(['unreachable', 'unavailable', 'not-found', 'rate-limited', 'ENOSPC']) }),
    start(target) {
      const code = String(target.detail['code'])
      const failure =
        code === 'ENOSPC' ? { errno: errno(code, 'write', '/var/lib/skyhook') } : { code: code as ImageErrorCode }
      return changed(target, { fetch: { durationMs: 500, ...failure } })
    },
  },
} satisfies Readonly<Record<string, ActionKind>>

/** For plans of clusters that grow and shrink. */
export const sizeFaults = {
  /** All Nodes but the one that it is about go, and register again. */
  'cluster-shrunk': {
    lastsMs: [30_000, 90_000],
    start(target) {
      const others = [...target.world.hosts.values()].filter(({ name }) => name !== target.host.name)
      const endings = others.map((host) => replaceNode({ ...target, host }, (name) => name))
      return () => {
        for (const end of endings) end()
      }
    },
  },
} satisfies Readonly<Record<string, ActionKind>>
