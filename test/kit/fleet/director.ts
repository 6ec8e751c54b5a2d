/** Carries out the actions of a plan at their times and in their phases, and ends all of them when it is time to heal. */
import { actionKinds, otherKinds } from './action-kinds.ts'
import { healObjects } from './heal.ts'
import type { Phase } from './phase.ts'
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

/** An action that finds nothing to do in its phase is tried again: an agent may start in a moment. */
const retryMs = 300
const maxTries = 30
/** Phases of a large fleet are looked up for a few of its hosts. */
const maxHosts = 4

export function direct(world: World, onHealed: () => void): Director {
  const { clock, plan, active } = world
  const waiting = new Set<PlannedAction>()
  const early = new Set(plan.actions.filter(({ follows }) => follows === undefined))
  const endings = new Map<PlannedAction, () => void>()
  const tries = new Map<number, number>()
  const names = [...world.hosts.keys()].slice(0, maxHosts)
  let isHealed = false

  /** The host that it is about; undefined while its phase has not come. */
  function hostFor({ node, during }: PlannedAction, phaseFor = phaseAt): string | undefined {
    if (during === undefined) return node
    return (node === undefined ? names : [node]).find((name) => phaseFor(name) === during)
  }

  const phaseAt = (name: string): Phase | undefined => phaseOf(world, name)

  function begin(planned: PlannedAction): void {
    early.delete(planned)
    if (isHealed) return
    const kind = actionKinds[planned.kind] ?? otherKinds[planned.kind]
    const node = kind?.victim?.(world) ?? hostFor(planned)
    if (node === undefined) return void waiting.add(planned)
    waiting.delete(planned)
    const action = planned.node === node ? planned : { ...planned, node }
    const phase = phaseAt(node)
    const host = world.hosts.get(node)
    const skyhook = action.skyhook ?? ''
    if (host === undefined || kind === undefined) return world.tell({ kind: 'action', action, what: 'skipped', phase })
    active.add(action)
    world.tell({ kind: 'action', action, what: 'begins', phase })
    const ending = kind.start({ world, host, skyhook, detail: action.detail ?? {} })
    if (ending !== 'skipped') beginFollowers(action)
    if (typeof ending !== 'function') {
      active.delete(action)
      if (ending === 'skipped') skip(planned, action, phase)
      return
    }
    endings.set(action, ending)
    clock.startTimer(action.forMs ?? 0, () => end(action))
  }

  function beginFollowers({ id }: PlannedAction): void {
    for (const one of plan.actions) if (one.follows?.id === id) clock.startTimer(one.follows.afterMs, () => begin(one))
  }

  function skip(planned: PlannedAction, action: PlannedAction, phase: Phase | undefined): void {
    world.tell({ kind: 'action', action, what: 'skipped', phase })
    const tried = (tries.get(planned.id) ?? 0) + 1
    tries.set(planned.id, tried)
    if (planned.during !== undefined && tried < maxTries)
      clock.startTimer(retryMs, () => begin(planned), { isBackground: true })
    else beginFollowers(action)
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
      const known = new Map<string, Phase | undefined>()
      const phaseFor = (name: string): Phase | undefined => {
        if (!known.has(name)) known.set(name, phaseAt(name))
        return known.get(name)
      }
      for (const action of waiting)
        if (hostFor(action, phaseFor) !== undefined) clock.startTimer(0, () => waiting.has(action) && begin(action))
      isLooking = false
    },
  }
}
