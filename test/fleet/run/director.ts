/** Carries out the actions of a plan at their times and in their phases, and ends all of them when it is time to heal. */
import { actionKinds } from './action-kinds.ts'
import { healObjects } from './heal.ts'
import type { PlannedAction } from './plan.ts'
import { healAtMs } from './plan-time.ts'
import { phaseOf, type World } from './world.ts'

export type Director = {
  /** Something has happened: nodes may be in the phases that actions wait for. */
  look(): void
  /** No action is active or will begin by its time alone. */
  isIdle(): boolean
  /** Ends what is active, and forgets what waits. Without effect when it was done before. */
  heal(): void
}

export function direct(world: World, onHealed: () => void): Director {
  const { clock, plan, active } = world
  const waiting = new Set<PlannedAction>()
  const early = new Set(plan.actions.filter(({ follows }) => follows === undefined))
  const endings = new Map<PlannedAction, () => void>()
  let isHealed = false

  function begin(action: PlannedAction): void {
    early.delete(action)
    if (isHealed) return
    const phase = phaseOf(world, action.node)
    if (action.during !== undefined && phase !== action.during) return void waiting.add(action)
    waiting.delete(action)
    const host = world.hosts.get(action.node ?? '')
    const kind = actionKinds[action.kind]
    const skyhook = action.skyhook ?? ''
    if (host === undefined || kind === undefined) return world.tell({ kind: 'action', action, what: 'skipped', phase })
    active.add(action)
    for (const one of plan.actions)
      if (one.follows?.id === action.id) clock.startTimer(one.follows.afterMs, () => begin(one))
    world.tell({ kind: 'action', action, what: 'begins', phase })
    const ending = kind.start({ world, host, skyhook, detail: action.detail ?? {} })
    if (typeof ending !== 'function') {
      active.delete(action)
      if (ending === 'skipped') world.tell({ kind: 'action', action, what: 'skipped', phase })
      return
    }
    endings.set(action, ending)
    clock.startTimer(action.forMs ?? 0, () => end(action))
  }

  function end(action: PlannedAction): void {
    const ending = endings.get(action)
    if (ending === undefined) return
    endings.delete(action)
    ending()
    active.delete(action)
    world.tell({ kind: 'action', action, what: 'ends', phase: phaseOf(world, action.node) })
  }

  function heal(): void {
    if (isHealed) return
    isHealed = true
    for (const action of endings.keys()) end(action)
    for (const action of waiting) world.tell({ kind: 'action', action, what: 'skipped', phase: undefined })
    waiting.clear()
    world.workload.finish()
    healObjects(world)
    onHealed()
  }

  for (const action of plan.actions)
    if (action.follows === undefined) clock.startTimer(action.atMs, () => begin(action))
  clock.startTimer(healAtMs, heal)

  let isLooking = false
  return {
    isIdle: () => early.size === 0 && active.size === 0,
    heal,
    look() {
      if (waiting.size === 0 || isLooking) return
      isLooking = true
      for (const action of waiting) {
        if (phaseOf(world, action.node) !== action.during) continue
        clock.startTimer(0, () => waiting.has(action) && begin(action))
      }
      isLooking = false
    },
  }
}
