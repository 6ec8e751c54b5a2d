/** Faults of the API server and of what is stored in it. */
import type { Chance } from './chance.ts'
import type { Fault } from '../api-server/faults.ts'
import type { RoutedRequest } from '../api-server/request.ts'
import type { ActionKind } from './action-kind.ts'
import { readSlot } from '../../../src/lease/slot.ts'

const leasesFolder = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'

/** Some requests of agents and censuses meet the fault while it lasts. */
export const requestFault = (
  faultOf: (chance: Chance) => Fault,
  options: { readonly matches?: (request: RoutedRequest) => boolean; readonly likely?: readonly number[] } = {},
): ActionKind => {
  const { matches = () => true, likely = [0.05, 0.3, 1] } = options
  return {
    lastsMs: [3_000, 45_000],
    draw: (chance) => ({
      isEverywhere: chance.isHit(0.4),
      probability: chance.pick(likely),
      fault: faultOf(chance),
    }),
    start({ world, host, detail }) {
      const isEverywhere = detail['isEverywhere'] === true
      const rule = {
        name: 'planned',
        fault: detail['fault'] as Fault,
        probability: Number(detail['probability']),
        matches: (request: RoutedRequest) =>
          (request.client === `agent:${host.name}` ||
            request.client === `census:${host.name}` ||
            (isEverywhere && /^(agent|census):/.test(request.client))) &&
          matches(request),
      }
      const { faults } = world.server
      faults.rules.push(rule)
      return () => void (faults.rules = faults.rules.filter((one) => one !== rule))
    },
  }
}

const isOf =
  (...names: readonly string[]) =>
  ({ location }: RoutedRequest): boolean =>
    names.includes(location?.resource.plural ?? '')
const isWrite = ({ verb }: RoutedRequest): boolean => verb !== 'get' && verb !== 'list' && verb !== 'watch'

export const apiFaults = {
  'api-overloaded': requestFault((chance) => ({
    kind: 'refuse',
    code: 429,
    reason: 'TooManyRequests',
    retryAfterSeconds: chance.integer(1, 5),
  })),
  'api-errors': requestFault((chance) => ({ kind: 'refuse', code: chance.pick([500, 502, 503, 504]) })),
  'api-refusals': requestFault((chance) => ({ kind: 'refuse', code: chance.pick([403, 422]), reason: 'Forbidden' }), {
    matches: (request) => isWrite(request) && isOf('leases', 'nodes', 'pods')(request),
  }),
  'api-fails-after-commit': requestFault((chance) => ({ kind: 'fail-after-commit', code: chance.pick([500, 504]) })),
  'api-answers-lost': requestFault(() => ({ kind: 'lose-answer' })),
  'api-requests-lost': requestFault(() => ({ kind: 'lose-request' })),
  'api-commits-late': requestFault((chance) => ({ kind: 'commit-late', afterMs: chance.integer(100, 40_000) }), {
    likely: [0.1, 0.5, 1],
    matches: isOf('leases', 'nodes'),
  }),
  'api-silent': requestFault(() => ({ kind: 'silent' }), { likely: [0.05, 0.3] }),
  'api-slow': requestFault((chance) => ({ kind: 'slow', byMs: chance.integer(500, 20_000) })),
  'api-reads-stale': requestFault((chance) => ({ kind: 'stale', byMs: chance.integer(1_000, 60_000) }), {
    likely: [0.5, 1],
  }),
  'watches-slow': requestFault((chance) => ({ kind: 'slow-watch', byMs: chance.integer(1_000, 20_000) }), {
    likely: [1],
  }),
  'watches-cut': requestFault(
    (chance) => ({
      kind: 'cut-watch',
      afterMs: chance.integer(200, 8_000),
      how: chance.pick(['end', 'break', 'tear'] as const),
    }),
    { likely: [1] },
  ),
  'watches-expired': requestFault((chance) => ({ kind: 'expire-watch', afterMs: chance.integer(200, 8_000) }), {
    likely: [1],
  }),
  'api-server-down': {
    lastsMs: [1_000, 60_000],
    draw: (chance) => ({ isEverywhere: true, hasEmptyCache: chance.isHit(0.5) }),
    start({ world: { server }, detail }) {
      if (server.isAway()) return 'skipped'
      server.stop()
      return () => server.start({ hasEmptyCache: detail['hasEmptyCache'] === true })
    },
  },
  'etcd-restored': {
    draw: (chance) => ({ ageMs: chance.pick([2_000, 10_000, 30_000, 90_000]), isBumped: chance.isHit(0.5) }),
    start({ world, detail }) {
      const backup = world.backupFrom(Number(detail['ageMs'])) ?? world.backupFrom(2_000)
      if (backup === undefined) return 'skipped'
      world.server.restore(backup, detail['isBumped'] === true ? world.server.revision() + 1_000 : undefined)
    },
  },
  'lease-deleted': {
    draw: (chance) => ({ kind: chance.pick(['own-slot', 'own-slot', 'any', 'any']) }),
    start({ world, host, detail }) {
      const leases = world.server.objects('leases')
      const own = leases.filter((lease) => readSlot(lease as never)?.holder === host.nodeName())
      const isOwn = detail['kind'] === 'own-slot' && own.length > 0
      const names = (isOwn ? own : leases).map(({ metadata }) => metadata.name)
      if (names.length === 0) return 'skipped'
      world.admin.send('DELETE', `${leasesFolder}/${world.chance.pick(names)}`)
    },
  },
} satisfies Readonly<Record<string, ActionKind>>

/** Of a few seeds, by plan-lives.ts. */
export const lifeFaults = {
  /** An agent works and cannot say so. */
  'node-writes-refused': requestFault(
    (chance) => ({ kind: 'refuse', code: 429, reason: 'TooManyRequests', retryAfterSeconds: chance.integer(1, 5) }),
    { likely: [1], matches: (request) => request.verb === 'patch' && isOf('nodes')(request) },
  ),
} satisfies Readonly<Record<string, ActionKind>>
