/** Which hosts are out for which Skyhook, by what happens on hosts and by cordon marks on Nodes alone. */
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import type { HostEvent, HostStep } from '../kit/host/observer.ts'
import type { Fact, Host, World } from './facts.ts'
import { type OpenPackages, packageKeyOf } from './open-packages.ts'
import type { Interrupt } from '../../src/schemas/skyhook.ts'
import { isSelected, marksOf, nodeOf, skyhookOf } from './cluster.ts'

/** A host went out for a Skyhook, or is not any more. `cause`: what was seen. */
export type OutChange = {
  readonly host: string
  readonly skyhook: string
  readonly isOut: boolean
  readonly cause: string
}

export type Disruption = ReturnType<typeof followDisruption>

type HostState = {
  readonly running: Map<string, HostStep>
  /** Changes that the cluster has given up half way: nobody finishes them, and they count no more. */
  readonly left: Set<string>
  /** By `skyhook/package`: the uid of the Skyhook that the change was begun for. */
  readonly begunFor: Map<string, string>
  /** Skyhooks whose state on this host a person has cleared. */
  readonly resets: Set<string>
  readonly failedUninstalls: Map<string, number>
  /** Skyhooks for whose sake a service restarts or the host reboots. */
  readonly restarting: Map<string, readonly string[]>
  rebootingFor: readonly string[]
  readonly out: Map<string, boolean>
}

/** The agent gives up an uninstall of a package that left the spec after so many. */
const maxUninstallAttempts = 3

export function followDisruption(
  world: World,
  packages: OpenPackages,
  hostNamed: (nodeName: string) => Host | undefined,
) {
  const states = new Map<string, HostState>()
  const skyhooks = new Set<string>()
  /** `skyhook/package` of packages that stay on the host when they leave the spec. */
  const kept = new Set<string>()
  const listeners: ((change: OutChange) => void)[] = []

  const stateOf = (host: string): HostState => {
    let state = states.get(host)
    if (state === undefined) {
      state = {
        running: new Map(),
        left: new Set(),
        begunFor: new Map(),
        resets: new Set(),
        failedUninstalls: new Map(),
        restarting: new Map(),
        rebootingFor: [],
        out: new Map(),
      }
      states.set(host, state)
    }
    return state
  }

  const keysOf = (view: Host, skyhook: string): readonly string[] =>
    packages.keysOf(view.name).filter((key) => key.startsWith(`${skyhook}/`))

  const openPackages = (view: Host, skyhook: string): readonly string[] => {
    const { left } = stateOf(view.name)
    return keysOf(view, skyhook).filter((key) => !left.has(key))
  }

  const runs = (state: HostState, test: (step: HostStep) => boolean): boolean => {
    for (const step of state.running.values()) if (test(step)) return true
    return false
  }

  /** Whether nobody has to finish the change any more. */
  function isGivenUp(view: Host, state: HostState, skyhook: string, key: string): boolean {
    const object = skyhookOf(world, skyhook)
    const name = key.slice(skyhook.length + 1)
    // another Skyhook of the same name starts the work over
    const isOfAnother = object !== undefined && (state.begunFor.get(key) ?? object.metadata.uid) !== object.metadata.uid
    if (isOfAnother || !isSelected(object, nodeOf(world, view)) || state.resets.has(skyhook))
      return !runs(state, (step) => step.skyhook === skyhook)
    // nothing is asked of a Skyhook that is being deleted but its uninstalls
    const isDeleting = object?.metadata.deletionTimestamp !== undefined
    const isLet = isDeleting && object.spec.packages?.[name]?.uninstall?.enabled !== true
    const isGone = isDeleting || !(name in (object?.spec.packages ?? {}))
    const isOver = isLet || kept.has(key) || (state.failedUninstalls.get(key) ?? 0) >= maxUninstallAttempts
    return isGone && isOver && !runs(state, (step) => packageKeyOf(step) === key)
  }

  /**
   * For whose sake an interrupt is requested, of the Skyhooks with a mark: one that is finished may only wait to be in
   * service again, and one that asks for another interrupt has not caused this one. After a change of configuration, a
   * package is not open any more when its interrupt comes. `unit`: of a restart; undefined: a reboot.
   */
  function interruptedBy(view: Host, unit?: string): readonly string[] {
    const marks = marksOf(nodeOf(world, view))
    const packagesOf = (skyhook: string) => Object.values(skyhookOf(world, skyhook)?.spec.packages ?? {})
    const hasConfigInterrupts = (skyhook: string): boolean =>
      packagesOf(skyhook).some((one) => one.configInterrupts !== undefined)
    const isAsked = (skyhook: string): boolean =>
      packagesOf(skyhook).some(({ interrupt, configInterrupts = {} }) =>
        [interrupt, ...Object.values(configInterrupts)].some((one) => one !== undefined && causes(one, unit)),
      )
    const atWork = marks.filter((one) => openPackages(view, one).length > 0 || hasConfigInterrupts(one))
    return [atWork.filter(isAsked), atWork].find((possible) => possible.length > 0) ?? marks
  }

  function recompute(view: Host, cause: string): void {
    const state = stateOf(view.name)
    const marks = marksOf(nodeOf(world, view))
    for (const skyhook of new Set([...skyhooks, ...marks])) {
      for (const key of openPackages(view, skyhook)) if (isGivenUp(view, state, skyhook, key)) state.left.add(key)
      const isOut =
        marks.includes(skyhook) ||
        openPackages(view, skyhook).length > 0 ||
        state.rebootingFor.includes(skyhook) ||
        [...state.restarting.values()].some((names) => names.includes(skyhook))
      if (isOut === (state.out.get(skyhook) ?? false)) continue
      state.out.set(skyhook, isOut)
      for (const listener of listeners) listener({ host: view.name, skyhook, isOut, cause })
    }
  }

  const recomputeAll = (cause: string): void => {
    for (const view of world.hosts.values()) recompute(view, cause)
  }

  /** True if it may matter. */
  function takeIn(view: Host, state: HostState, event: HostEvent): boolean {
    switch (event.event) {
      case 'stepStarted':
        skyhooks.add(event.step.skyhook)
        state.running.set(event.step.unit, event.step)
        state.left.delete(packageKeyOf(event.step))
        if (event.step.skyhookUid !== undefined) state.begunFor.set(packageKeyOf(event.step), event.step.skyhookUid)
        state.resets.delete(event.step.skyhook)
        return true
      case 'stepEnded': {
        state.running.delete(event.step.unit)
        const isFailed = event.end.outcome !== 'exited' || event.end.code !== 0
        const key = packageKeyOf(event.step)
        if (event.step.mode.startsWith('uninstall') && isFailed)
          state.failedUninstalls.set(key, (state.failedUninstalls.get(key) ?? 0) + 1)
        else if (!event.step.mode.startsWith('uninstall')) state.failedUninstalls.delete(key)
        return true
      }
      case 'stepLost':
        state.running.delete(event.step.unit)
        return true
      case 'restartRequested':
        state.restarting.set(event.unit, interruptedBy(view, event.unit))
        return true
      case 'restartEnded':
        state.restarting.delete(event.unit)
        return true
      case 'rebootRequested':
        if (event.answer === 'accepted' && !event.isLost) state.rebootingFor = interruptedBy(view)
        return true
      case 'booted':
        state.rebootingFor = []
        state.restarting.clear()
        return true
      case 'wiped':
        state.left.clear()
        return true
      case 'runRequested':
      case 'agentStarted':
      case 'agentEnded':
      case 'shutdownStarted':
      case 'wentDown':
      case 'staticPodsRun':
      case 'stepRefused':
      case 'imageStored':
      case 'effect':
        return false
    }
  }

  function seeCommit({ change, client }: Extract<Fact, { kind: 'commit' }>): void {
    const { resource, version, previous, type } = change
    if (resource.plural === 'nodes') {
      const { name } = version.object.metadata
      const view = hostNamed(name)
      if (view === undefined) return
      const before = previous?.object.metadata.annotations ?? {}
      const after = version.object.metadata.annotations ?? {}
      if (client === 'admin')
        for (const skyhook of skyhooks)
          if (before[nodeStateKey(skyhook)] !== after[nodeStateKey(skyhook)]) stateOf(view.name).resets.add(skyhook)
      recompute(view, `Node ${name} ${type.toLowerCase()} by ${client}`)
    } else if (resource.plural === 'skyhooks') {
      const isSpecChange = version.object.metadata.generation !== previous?.object.metadata.generation
      if (!isSpecChange && type === 'MODIFIED') return
      const { name } = version.object.metadata
      skyhooks.add(name)
      for (const [key, { uninstall }] of Object.entries(skyhookOf(world, name)?.spec.packages ?? {}))
        if (uninstall?.enabled === false) kept.add(`${name}/${key}`)
        else kept.delete(`${name}/${key}`)
      recomputeAll(`Skyhook ${name} ${type.toLowerCase()}`)
    }
  }

  return {
    onChange: (listener: (change: OutChange) => void) => void listeners.push(listener),
    isOut: (host: string, skyhook: string): boolean => states.get(host)?.out.get(skyhook) ?? false,
    openPackages: (host: string, skyhook: string): readonly string[] => {
      const view = world.hosts.get(host)
      return view === undefined ? [] : openPackages(view, skyhook)
    },
    runningSteps: (host: string): readonly HostStep[] => [...(states.get(host)?.running.values() ?? [])],
    see(event: Fact): void {
      if (event.kind === 'restored') return recomputeAll('etcd restored')
      if (event.kind === 'commit') return seeCommit(event)
      if (event.kind !== 'host') return
      const view = world.hosts.get(event.host)
      if (view === undefined || !takeIn(view, stateOf(event.host), event.event)) return
      recompute(view, event.event.event)
    },
  }
}

const causes = ({ type, services = [] }: Interrupt, unit: string | undefined): boolean =>
  unit === undefined
    ? type === 'reboot'
    : type === 'restartAllServices' || services.some((name) => name === unit || `${name}.service` === unit)
