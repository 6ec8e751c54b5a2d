/**
 * When faults and edits have ended, every node completes within a bound, or waits for something that only people end:
 * a pause, a budget that lets nobody start, a package that keeps failing.
 */
import { statusKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { HostView } from '../kit/fleet/world-view.ts'
import { hasRequiredTaint } from '../../src/stages/drain/node-spec.ts'
import { requiredTaint } from '../kit/fleet/fleet-host.ts'
import { allowedNow, isSelected, marksOf, nodeOf, skyhooksOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Invariant } from './promised.ts'
import { reasonOf } from './reasons-true.ts'

/** Of one node that starts at once, with the longest pause between two attempts of the API and of a reboot. */
const baseMs = 180_000
/** Of each that has to wait for another: a drain, steps, a reboot. */
const perTurnMs = 75_000
/** A package fails as long as its last failure is not older: the pause between two attempts, and a bit. */
const failingMs = 5.5 * 60_000

const heldUp: ReadonlySet<string> = new Set(['DrainBlocked', 'ProtectedPods'])

export const completes: Invariant = {
  name: 'completes',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By `host/skyhook`: the last failure of a step or an interrupt. */
    const failedAtMs = new Map<string, number>()
    /** By host: when pods held up its drain last. Nodes that are drained together share a disruption budget. */
    const heldUpAtMs = new Map<string, number>()
    const judged = new Set<string>()
    let checks = 0

    /** The one budget that everybody shares, or the control plane's. */
    function boundMs(skyhook: Skyhook): number {
      const nodes = [...world.hosts.values()].filter((view) => isSelected(skyhook, nodeOf(world, view)))
      const allowed = allowedNow(world, skyhook)
      const batch = skyhook.spec.deploymentPolicy ? 1 : Infinity // of the smallest size
      const width = Math.min(batch, typeof allowed === 'number' && allowed > 0 ? allowed : nodes.length)
      const controlPlanes = nodes.filter(({ isControlPlane }) => isControlPlane).length
      const turns = Math.max(Math.ceil(nodes.length / Math.max(1, width)), controlPlanes)
      const { pauseSeconds = 0, minReadySeconds = 0 } = skyhook.spec.pace ?? {}
      const turnMs = perTurnMs + 1_000 * (pauseSeconds + minReadySeconds)
      return baseMs + turnMs * turns * Math.max(1, skyhooksOf(world).length)
    }

    const isFailing = (host: string, skyhook: string, atMs: number): boolean =>
      atMs - (failedAtMs.get(`${host}/${skyhook}`) ?? -Infinity) < failingMs

    /** Its work after the drain is not over yet. */
    const wasHeldUp = ({ name }: HostView, atMs: number): boolean => atMs - (heldUpAtMs.get(name) ?? -Infinity) < baseMs

    /** A wait that no time ends, for itself or for one that it waits for. */
    function isWaitingForPeople(view: HostView, skyhook: Skyhook, atMs: number): boolean {
      const reason = reasonOf(nodeOf(world, view), skyhook.metadata.name)?.reason
      if (wasHeldUp(view, atMs)) return true
      if (isFailing(view.name, skyhook.metadata.name, atMs) || reason === undefined) return reason !== undefined
      switch (reason) {
        case 'Paused':
        case 'Disabled':
        case 'Ignored':
        case 'ProtectedPods':
        case 'DrainBlocked':
        case 'TaintNotTolerated':
        case 'InvalidSpec':
        case 'RebootLoop':
          return true
        case 'WaitingForPriority':
        case 'WaitingForOtherSkyhook':
          return skyhooksOf(world).some((other) => other !== skyhook && isStuck(view, other, atMs))
        case 'WaitingForBatch':
        case 'WaitingForSlot':
          if (allowedNow(world, skyhook) === 0) return true
          return [...world.hosts.values()].some(
            (other) =>
              other !== view && (wasHeldUp(other, atMs) || skyhooksOf(world).some((one) => isStuck(other, one, atMs))),
          )
        default:
          return false
      }
    }

    const isStuck = (view: HostView, skyhook: Skyhook, atMs: number): boolean => {
      const reason = reasonOf(nodeOf(world, view), skyhook.metadata.name)?.reason
      if (reason === undefined || reason === 'WaitingForOtherSkyhook') return false
      if (reason === 'WaitingForPriority' || reason === 'WaitingForSlot' || reason === 'WaitingForBatch')
        return allowedNow(world, skyhook) === 0
      return isWaitingForPeople(view, skyhook, atMs)
    }

    const problemOf = (view: HostView, skyhook: Skyhook): string | undefined => {
      const node = nodeOf(world, view)
      const { name } = skyhook.metadata
      if (node === undefined) return `${view.name} has no Node`
      const unfinished = evidence.work.unfinished(view.name, skyhook)
      if (unfinished.length > 0) return `${view.name} has not finished ${unfinished.join(', ')} of ${name}`
      if (marksOf(node).includes(name)) return `${view.name} is still cordoned for ${name}`
      const status = node.metadata.annotations?.[statusKey(name)]
      if (status !== 'complete') return `${view.name} has finished ${name} and says ${status ?? 'nothing'}`
      return isTaintLeft(view, node) ? `${view.name} has finished all that it joins for and has its taint` : undefined
    }

    const isTaintLeft = (view: HostView, node: KubernetesNode): boolean => {
      const required = skyhooksOf(world).filter((one) => one.spec.runtimeRequired === true && isSelected(one, node))
      const isFinished = required.every((one) => evidence.work.unfinished(view.name, one).length === 0)
      return required.length > 0 && isFinished && hasRequiredTaint(node, requiredTaint)
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        if (event.kind !== 'host') return
        const { host, event: what } = event
        if (what.event === 'stepEnded' && (what.end.outcome !== 'exited' || what.end.code !== 0))
          failedAtMs.set(`${host}/${what.step.skyhook}`, atMs)
        const isRefused =
          (what.event === 'rebootRequested' && what.answer === 'refused') ||
          (what.event === 'restartEnded' && what.result !== 'done')
        if (isRefused) for (const { name } of world.plan.skyhooks) failedAtMs.set(`${host}/${name}`, atMs)
      },
      tick(atMs) {
        evidence.tick(atMs)
        const endedAtMs = world.faultsEndedAtMs()
        if (endedAtMs === undefined) return judged.clear()
        for (const view of world.hosts.values())
          for (const { metadata } of skyhooksOf(world))
            if (heldUp.has(reasonOf(nodeOf(world, view), metadata.name)?.reason ?? '')) heldUpAtMs.set(view.name, atMs)
        for (const skyhook of skyhooksOf(world)) {
          const { name } = skyhook.metadata
          if (judged.has(name) || atMs - endedAtMs < boundMs(skyhook)) continue
          judged.add(name)
          for (const view of world.hosts.values()) {
            if (!isSelected(skyhook, nodeOf(world, view))) continue
            checks++
            const problem = problemOf(view, skyhook)
            if (problem === undefined || isWaitingForPeople(view, skyhook, atMs)) continue
            const reason = reasonOf(nodeOf(world, view), name)
            const said = reason ? `; it says ${reason.reason} (${reason.message})` : '; it says no reason'
            return violate(`${problem}, ${boundMs(skyhook)} ms after the last fault${said}`)
          }
        }
      },
      /** A run ends when all is complete, mostly before the time is over. */
      end() {
        for (const skyhook of skyhooksOf(world)) {
          if (judged.has(skyhook.metadata.name)) continue
          for (const view of world.hosts.values()) if (isSelected(skyhook, nodeOf(world, view))) checks++
        }
      },
      /** A Node may say complete while its host is not. */
      pending() {
        for (const skyhook of skyhooksOf(world))
          for (const view of world.hosts.values()) {
            const problem = isSelected(skyhook, nodeOf(world, view)) ? problemOf(view, skyhook) : undefined
            if (problem !== undefined) return problem
          }
        return undefined
      },
      checks: () => checks,
    }
  },
}
