/** Skyhooks that come and go: what a few of the seeds have besides all else, drawn apart, so that others stay as they are. */
import { lifeFaults } from '../../kit/fleet/api-faults.ts'
import { createChance } from '../../kit/fleet/chance.ts'
import { lifeEdits } from '../../kit/fleet/edits.ts'
import type { PlannedAction } from '../../kit/fleet/plan.ts'
import { firstActionAtMs, rolloutMs, skyhooksAtMs } from '../../kit/fleet/plan-time.ts'

const share = 0.08

/** Their ids are for the caller to give. */
export function planLives(
  seed: number,
  { nodes, skyhooks }: { readonly nodes: readonly string[]; readonly skyhooks: readonly string[] },
): readonly Omit<PlannedAction, 'id'>[] {
  const chance = createChance(seed, 21)
  if (!chance.isHit(share)) return []
  const [node, skyhook] = [chance.pick(nodes), chance.pick(skyhooks)]
  const { draw, lastsMs } = lifeEdits['skyhook-replaced']
  const replaced = {
    kind: 'skyhook-replaced',
    atMs: chance.integer(...rolloutMs),
    node,
    skyhook,
    forMs: chance.integer(...lastsMs),
    detail: draw(chance),
  }
  if (chance.isHit(0.4)) return [replaced]
  if (chance.isHit(0.3)) {
    const atMs = chance.integer(skyhooksAtMs, skyhooksAtMs + 20_000)
    const detail = lifeFaults['node-writes-refused'].draw?.(chance) ?? {}
    const fault = { kind: 'node-writes-refused', atMs, node, forMs: chance.integer(5_000, 30_000), detail }
    return [fault, { ...replaced, atMs: atMs + chance.integer(0, 5_000), during: 'step' }]
  }
  const blind = {
    kind: 'census-blind',
    atMs: chance.integer(firstActionAtMs - 3_000, skyhooksAtMs + 5_000),
    node,
    forMs: chance.integer(30_000, 110_000),
  }
  const deleted = {
    kind: 'skyhook-deleted',
    atMs: chance.integer(blind.atMs + 15_000, blind.atMs + blind.forMs + 10_000),
    node,
    skyhook,
    forMs: chance.integer(3_000, 40_000),
    detail: { isCreatedAgain: chance.isHit(0.5) },
  }
  return chance.isHit(0.5) ? [blind, deleted] : [blind, { ...replaced, atMs: deleted.atMs }]
}
