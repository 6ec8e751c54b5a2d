/** Faults and edits that meet budgets: no pair of a seed has them, they are drawn beside what seeds have had before. */
import { policiesPath } from '../../../src/schemas/api.ts'
import type { DeploymentPolicySpec } from '../../../src/schemas/deployment-policy.ts'
import { type ActionKind, specOf, type Target } from './action-kind.ts'
import { requestFault } from './api-faults.ts'
import type { Chance } from './chance.ts'
import { nodePath, skyhookPath } from './cluster-writer.ts'

const budgets = [{ count: 1 }, { count: 2 }, { percent: 34 }, { percent: 67 }] as const

export const drawBudget = (chance: Chance): (typeof budgets)[number] => chance.pick(budgets)

/** The whole budget: a merge leaves what it does not name. */
const asWhole = (budget: unknown): object => ({ count: null, percent: null, ...(budget as object) })

const patch = ({ world, skyhook }: Target, spec: object): void => world.admin.patch(skyhookPath(skyhook), { spec })

function labelAll({ world }: Target, pool: string): void {
  for (const one of world.hosts.values())
    if (world.server.object('nodes', undefined, one.nodeName()) !== undefined)
      world.admin.patch(nodePath(one.nodeName()), { metadata: { labels: { pool } } })
}

/** Two compartments that select the same nodes, beside all others. */
const drawPolicy = (chance: Chance): DeploymentPolicySpec => ({
  default: { budget: drawBudget(chance), strategy: { fixed: { initialBatch: 2 } } },
  compartments: ['x', 'y'].map((name) => ({
    name,
    selector: { matchLabels: { pool: name === 'x' || chance.isHit(0.7) ? 'a' : 'b' } },
    budget: drawBudget(chance),
    strategy: { fixed: { initialBatch: chance.pick([1, 2]) } },
  })),
})

const policyOf = (target: Target): string | undefined => {
  const name = specOf(target)?.deploymentPolicy
  const { server } = target.world
  return name && server.object('deploymentpolicies', undefined, name) !== undefined ? name : undefined
}

export const budgetActions = {
  /** Other writers, or the API server's own limits, are faster than the agents. */
  'node-writes-refused': requestFault(
    (chance) => ({ kind: 'refuse', code: 429, reason: 'TooManyRequests', retryAfterSeconds: chance.integer(1, 3) }),
    {
      matches: ({ client, verb, location }) =>
        client.startsWith('agent:') && verb === 'patch' && location?.resource.plural === 'nodes',
      likely: [0.1, 0.3, 1],
    },
  ),
  /** Most of the fleet goes at once, as when a pool is made smaller. It comes back later. */
  'nodes-removed': {
    draw: (chance) => ({ keeps: chance.pick([1, 2, 4]), downMs: chance.integer(60_000, 200_000) }),
    start({ world, host, detail }) {
      const others = [...world.hosts.values()].filter(({ name }) => name !== host.name)
      const gone = others.slice(Number(detail['keeps']) - 1)
      for (const one of gone) {
        one.host.cutPower({ downMs: Number(detail['downMs']) })
        world.admin.send('DELETE', nodePath(one.nodeName()))
      }
      return gone.length === 0 ? 'skipped' : undefined
    },
  },
  'selector-and-labels': {
    lastsMs: [5_000, 60_000],
    draw: (chance) => ({ isSelectorFirst: chance.isHit(0.5) }),
    start(target) {
      if (specOf(target) === undefined) return 'skipped'
      const move = (pool: string): void => {
        const select = (): void => patch(target, { nodeSelectors: { matchLabels: { pool } } })
        if (target.detail['isSelectorFirst'] === true) select()
        labelAll(target, pool)
        if (target.detail['isSelectorFirst'] !== true) select()
      }
      move('b')
      return () => move('a')
    },
  },
  /** A policy takes the place of the budget for a while, is edited or created again, and goes first or last. */
  'policy-for-a-while': {
    lastsMs: [5_000, 60_000],
    draw: (chance) => ({
      first: drawPolicy(chance),
      next: drawPolicy(chance),
      editMs: chance.pick([500, 4_000, 20_000]),
      isEdited: chance.isHit(0.5),
      isSame: chance.isHit(0.5),
      isDeletedFirst: chance.isHit(0.5),
      budget: drawBudget(chance),
    }),
    start(target) {
      const { world, detail, skyhook } = target
      if (specOf(target) === undefined || specOf(target)?.deploymentPolicy) return 'skipped'
      const name = `short-policy-of-${skyhook}`
      const path = `${policiesPath}/${name}`
      const create = (spec: unknown): void => world.admin.send('POST', policiesPath, { metadata: { name }, spec })
      create(detail['first'])
      patch(target, { interruptionBudget: null, deploymentPolicy: name })
      world.clock.startTimer(Number(detail['editMs']), () => {
        if (policyOf(target) !== name) return
        const next = detail['next'] as DeploymentPolicySpec
        const budget = asWhole(next.default.budget)
        if (detail['isEdited'] === true)
          return world.admin.patch(path, { spec: { ...next, default: { ...next.default, budget } } })
        world.admin.send('DELETE', path)
        create(detail['isSame'] === true ? detail['first'] : next)
      })
      return () => {
        const drop = (): void => world.admin.send('DELETE', path)
        if (detail['isDeletedFirst'] === true) drop()
        patch(target, { deploymentPolicy: null, interruptionBudget: asWhole(detail['budget']) })
        if (detail['isDeletedFirst'] !== true) drop()
      }
    },
  },
  /** Agent by agent, as a DaemonSet rolls out. For plans whose Skyhooks name no budget. */
  'default-budget': {
    draw: (chance) => ({ budget: drawBudget(chance), everyMs: chance.pick([0, 1_000, 8_000]) }),
    start({ world, detail }) {
      if (world.plan.defaultBudget === undefined) return 'skipped'
      for (const [index, one] of [...world.hosts.values()].entries())
        world.clock.startTimer(index * Number(detail['everyMs']), () =>
          one.supervisor.setDefault(detail['budget'] as (typeof budgets)[number]),
        )
      return undefined
    },
  },
} satisfies Readonly<Record<string, ActionKind>>
