/** Faults of the agent's process, its version, its network and the disk and bus that it uses. */
import type { ActionKind } from './action-kind.ts'

const noAgent = { down: 'no agent runs on a host that is down' }
const transient = ['lost-call', 'lost-answer', 'silent'] as const

export const agentFaults = {
  'agent-killed': {
    start({ host }) {
      if (host.agents().length === 0) return 'skipped'
      host.supervisor.kill()
    },
    impossible: noAgent,
  },
  'agent-killed-at-effect': {
    lastsMs: [60_000, 60_000],
    draw: (chance) => ({ effect: chance.integer(1, 15) }),
    start({ host, detail }) {
      if (host.agents().length === 0) return 'skipped'
      let left = Number(detail['effect'])
      const stop = host.host.observe((one) => {
        if (one.event !== 'effect' || --left > 0) return
        stop()
        host.supervisor.kill()
      })
      return stop
    },
    impossible: noAgent,
  },
  'agent-terminated': {
    start({ host }) {
      if (host.agents().length === 0) return 'skipped'
      host.supervisor.terminate()
    },
    impossible: noAgent,
  },
  'agent-away': {
    lastsMs: [5_000, 60_000],
    start({ host }) {
      const end = host.supervisor.freeze()
      host.supervisor.kill()
      return end
    },
  },
  /** Rolled back to it for a while: it works as long as no newer one has written the journal. */
  'agent-older': {
    lastsMs: [5_000, 90_000],
    start({ host: { supervisor } }) {
      supervisor.replace('older')
      return () => supervisor.replace(supervisor.finalVersion())
    },
  },
  /** For good, where the first agent was an older one. */
  'agent-upgraded': {
    start({ host: { supervisor } }) {
      if (supervisor.nextVersion() !== 'older') return 'skipped'
      supervisor.replace('current')
    },
  },
  /** It works, is rolled back for a while, and stays in the end: only it can read what it wrote. */
  'agent-newer': {
    lastsMs: [10_000, 100_000],
    start({ world, host }) {
      host.supervisor.replace('newer')
      const cancel = world.clock.startTimer(15_000, () => host.supervisor.replace('current'))
      return () => {
        cancel()
        host.supervisor.replace('newer')
      }
    },
  },
  'second-agent': {
    lastsMs: [5_000, 40_000],
    draw: (chance) => ({ isFirstKilled: chance.isHit(0.5) }),
    start({ host, detail }) {
      const [first] = host.agents()
      const second = host.supervisor.startSecond()
      if (first === undefined || second === undefined) {
        second?.kill()
        return 'skipped'
      }
      return () => (detail['isFirstKilled'] === true ? first : second).kill()
    },
    impossible: noAgent,
  },
  'census-killed': {
    draw: (chance) => ({ isEverywhere: chance.isHit(0.7) }),
    start({ world, host, detail }) {
      const hosts = detail['isEverywhere'] === true ? [...world.hosts.values()] : [host]
      if (!hosts.map((one) => one.killCensus()).includes(true)) return 'skipped'
    },
    impossible: noAgent,
  },
  'network-cut': {
    lastsMs: [2_000, 70_000],
    draw: (chance) => ({ how: chance.pick(['resume', 'reset']) }),
    start({ host: { network }, detail }) {
      network.cut()
      return () => network.heal(detail['how'] as 'resume' | 'reset')
    },
  },
  'disk-full': {
    lastsMs: [2_000, 30_000],
    start({ host: { host } }) {
      host.disk.setFull(true)
      return () => host.disk.setFull(false)
    },
  },
  'disk-errors': {
    lastsMs: [2_000, 20_000],
    draw: (chance) => ({ operation: chance.pick(['write', 'create', 'rename', 'sync']), errno: 'EIO' }),
    start({ host: { host }, detail }) {
      host.disk.setFault((operation, path) =>
        operation === detail['operation'] && path.startsWith('/var/lib/skyhook') ? String(detail['errno']) : undefined,
      )
      return () => host.disk.setFault(undefined)
    },
  },
  'bus-away': {
    lastsMs: [500, 20_000],
    start({ host: { host } }) {
      host.bus.setUp(false)
      return () => {
        if (host.power() !== 'down') host.bus.setUp(true)
      }
    },
  },
  'bus-faults': {
    lastsMs: [5_000, 40_000],
    draw: (chance) => ({ fault: chance.pick(transient), probability: chance.pick([0.1, 0.5, 1]) }),
    start({ world, host: { host }, detail }) {
      host.bus.setScript(() =>
        world.chance.isHit(Number(detail['probability'])) ? (detail['fault'] as (typeof transient)[number]) : undefined,
      )
      return () => host.bus.setScript(undefined)
    },
  },
} satisfies Readonly<Record<string, ActionKind>>
