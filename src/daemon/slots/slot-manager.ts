import { disableKey, pauseKey } from '../../schemas/annotations.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import type { Skyhook, SlotPhase } from '../../schemas/skyhook.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { labelKeys, skyhookScope, type Scope } from '../../lease/names.ts'
import type { NodeIdentity, SlotProgress, Slot } from '../../lease/slot.ts'
import { type Leases, listOwnSlots } from '../../lease/slot-reads.ts'
import { type SlotRequest, acquire, createRecoverySlot, confirm, release, renew } from '../../lease/slots.ts'
import { type OwnSlot, type SkyhookView, known } from '../../stages/model/snapshot.ts'
import { acquireControlPlaneSlot, needsControlPlaneSlot, releaseControlPlaneSlot } from './control-plane-slot.ts'
import { limitOf } from './budget.ts'
import { errorField, type Log } from '../telemetry/log.ts'
import type { State } from '../state/state.ts'

/** The slots that this node holds, kept with what the next request about them needs. */
export type SlotManager = {
  /** What a starting agent goes on from; must succeed once before anything is asked for. */
  load(signal: AbortSignal): Promise<void>
  acquire(view: SkyhookView, phase: SlotPhase): Promise<void>
  createRecovery(view: SkyhookView, phase: SlotPhase): Promise<void>
  confirm(slot: OwnSlot, view: SkyhookView): Promise<void>
  renew(slot: OwnSlot, phase: SlotPhase): Promise<void>
  /** One successful PUT of the Skyhook's slot right now; false = it is not ours any more. */
  report(skyhookUid: string, phase: SlotPhase): Promise<boolean>
  release(slot: OwnSlot): Promise<void>
  kinds(): readonly { readonly phase: string; readonly kind: string }[]
}

type HeldSlot = {
  slot: Slot
  skyhook: string
  skyhookUid: string
  confirmed: boolean
  renewedAtMs: number
  grantedAtMs: number
}

/** The request is repeated at the latest after this, in case the change that frees a slot is not observed. */
const maxRetryDelayMs = 30_000
const unknownRetryDelayMs = 2_000
const lostRetryDelayMs = 200

export function createSlotManager(options: {
  readonly transport: KubeTransport
  readonly leases: Leases
  readonly state: State
  readonly node: () => NodeIdentity
  readonly log: Log
  readonly signal: AbortSignal
  readonly onReleased: (phase: string, seconds: number) => void
  readonly onAcquired: (seconds: number) => void
}): SlotManager {
  const { transport, leases, state, node, log, signal } = options
  const heldSlots = new Map<string, HeldSlot>()
  let controlPlaneSlot: Slot | undefined

  const publish = (): void => {
    state.slots = known([...heldSlots.values()].map(view))
  }

  const progress = (phase: SlotPhase, generation: number, skyhook: string): SlotProgress => ({
    phase,
    generation,
    packages: packagesOf(state, skyhook),
  })

  const request = (view: SkyhookView, phase: SlotPhase): SlotRequest => {
    const { name, uid, generation = 0 } = view.metadata
    return {
      scope: skyhookScope({ name, uid }),
      node: node(),
      progress: progress(phase, generation, name),
      admissionFrom: (ledgers) => ({ limit: limitOf(view, ledgers) }),
    }
  }

  function recordAcquired(slot: Slot, view: SkyhookView, confirmed: boolean): void {
    const { name, uid } = view.metadata
    const nowMs = Date.now()
    heldSlots.set(slot.name, {
      slot,
      skyhook: name,
      skyhookUid: uid,
      confirmed,
      renewedAtMs: nowMs,
      grantedAtMs: nowMs,
    })
    const pendingRequest = state.slotDenials.get(name)
    options.onAcquired(pendingRequest ? (nowMs - pendingRequest.sinceMs) / 1000 : 0)
    state.slotDenials.delete(name)
    publish()
  }

  function recordReleased(name: string): void {
    const removed = heldSlots.get(name)
    heldSlots.delete(name)
    if (removed) options.onReleased(removed.slot.phase, (Date.now() - removed.grantedAtMs) / 1000)
    publish()
  }

  /** With the last slot that needed it; `except` is on its way out. */
  async function releaseUnusedControlPlane(except?: string): Promise<void> {
    if (controlPlaneSlot === undefined || [...heldSlots.keys()].some((name) => name !== except)) return
    await releaseControlPlaneSlot(transport, leases, controlPlaneSlot, node(), signal)
    controlPlaneSlot = undefined
  }

  function setWaiting(view: SkyhookView, message: string, retryInMs: number): void {
    const { name } = view.metadata
    const nowMs = Date.now()
    state.slotDenials.set(name, {
      message,
      nextRequestAtMs: nowMs + retryInMs,
      sinceMs: state.slotDenials.get(name)?.sinceMs ?? nowMs,
    })
  }

  return {
    async load(loadSignal) {
      const { own } = await listOwnSlots(leases, node(), loadSignal)
      controlPlaneSlot = own.find(({ kind }) => kind === 'control-plane')
      for (const slot of own) {
        if (slot === controlPlaneSlot) continue
        const owner = ownerOf(slot, state)
        heldSlots.set(slot.name, {
          slot,
          skyhook: owner.name,
          skyhookUid: owner.uid,
          confirmed: slot.kind === 'recovery',
          renewedAtMs: 0,
          grantedAtMs: Date.now(),
        })
      }
      await releaseUnusedControlPlane() // of an agent that was killed between its two slots
      publish()
    },

    async acquire(view, phase) {
      const pendingRequest = request(view, phase)
      if (controlPlaneSlot === undefined && needsControlPlaneSlot(state.node, view)) {
        const granted = await acquireControlPlaneSlot(
          leases,
          { scope: pendingRequest.scope, limitFrom: (ledgers) => limitOf(view, ledgers) },
          pendingRequest.node,
          pendingRequest.progress,
          signal,
        )
        if (granted.outcome !== 'held')
          return setWaiting(
            view,
            granted.outcome === 'unknown' ? errorField(granted.error).error : granted.reason,
            maxRetryDelayMs,
          )
        controlPlaneSlot = granted.slot
      }
      const result = await acquire(leases, pendingRequest, signal)
      switch (result.outcome) {
        case 'held':
          return recordAcquired(result.slot, view, false)
        case 'waiting': {
          const holderList =
            result.holders.length === 0
              ? ''
              : `: ${result.holders.slice(0, 5).join(', ')}${result.holders.length > 5 ? ', …' : ''}`
          await releaseUnusedControlPlane()
          return setWaiting(view, `${result.reason}${holderList}`, maxRetryDelayMs)
        }
        case 'lost':
          await releaseUnusedControlPlane()
          return setWaiting(view, result.reason, lostRetryDelayMs)
        case 'unknown':
          log.warn({ skyhook: view.metadata.name, ...errorField(result.error) }, 'no answer to the request for a slot')
          return setWaiting(
            view,
            `the API server did not answer: ${errorField(result.error).error}`,
            unknownRetryDelayMs,
          )
      }
    },

    async createRecovery(view, phase) {
      const result = await createRecoverySlot(leases, request(view, phase), signal)
      if (result.outcome === 'held') {
        log.warn(
          { skyhook: view.metadata.name, lease: result.slot.name },
          'half-changed node without a slot: took a recovery slot',
        )
        return recordAcquired(result.slot, view, true)
      }
      throw new Error(
        result.outcome === 'unknown'
          ? `recovery slot: ${errorField(result.error).error}`
          : `recovery slot: ${result.reason}`,
      )
    },

    async confirm(own, view) {
      const entry = heldSlots.get(own.lease)
      if (!entry) return
      // the budget and the pause of this moment count, not those of the watch
      const current = await transport.json<Skyhook>('GET', `${skyhooksPath}/${view.metadata.name}`, { signal })
      if (
        current.metadata.uid !== view.metadata.uid ||
        (current.metadata.generation ?? 0) !== (view.metadata.generation ?? 0)
      )
        return // the watch brings the news
      if (current.metadata.annotations?.[pauseKey] === 'true' || current.metadata.annotations?.[disableKey] === 'true')
        return
      const result = await confirm(
        leases,
        entry.slot,
        request({ ...view, spec: current.spec ?? {} }, own.phase),
        signal,
      )
      switch (result.outcome) {
        case 'held':
          heldSlots.set(own.lease, { ...entry, slot: result.slot, confirmed: true, renewedAtMs: Date.now() })
          return publish()
        case 'yield':
          log.info(
            { skyhook: own.skyhook, lease: own.lease, detail: result.reason },
            'slot given back before anything began',
          )
          await release(leases, result.slot, node(), signal)
          await releaseUnusedControlPlane(own.lease)
          recordReleased(own.lease)
          return setWaiting(view, result.reason, lostRetryDelayMs)
        case 'lost':
          recordReleased(own.lease)
          return setWaiting(view, result.reason, lostRetryDelayMs)
        case 'unknown':
          throw new Error(`slot ${own.lease} could not be confirmed`, { cause: result.error })
      }
    },

    async renew(own, phase) {
      const entry = heldSlots.get(own.lease)
      if (!entry) return
      const result = await renew(
        leases,
        entry.slot,
        node(),
        progress(phase, entry.slot.generation, own.skyhook),
        signal,
      )
      if (result.outcome === 'held') {
        heldSlots.set(own.lease, { ...entry, slot: result.slot, renewedAtMs: Date.now() })
        return publish()
      }
      if (result.outcome === 'lost') {
        log.warn({ skyhook: own.skyhook, lease: own.lease, detail: result.reason }, 'slot lost')
        return recordReleased(own.lease)
      }
      throw new Error(`slot ${own.lease} could not be renewed`, { cause: result.error })
    },

    async report(skyhookUid, phase) {
      const own = [...heldSlots.values()].find((entry) => entry.skyhookUid === skyhookUid)
      if (!own) return false
      await this.renew(view(own), phase)
      return heldSlots.has(own.slot.name)
    },

    async release(own) {
      const entry = heldSlots.get(own.lease)
      if (!entry) return
      const result = await release(leases, entry.slot, node(), signal)
      if (result.outcome === 'unknown')
        throw new Error(`slot ${own.lease} could not be given back`, { cause: result.error })
      await releaseUnusedControlPlane(own.lease) // before this one is forgotten: a failure is tried again with it
      recordReleased(own.lease)
    },

    kinds: () => [...heldSlots.values()].map(({ slot }) => ({ phase: slot.phase, kind: slot.kind })),
  }
}

const view = ({ slot, skyhook, skyhookUid, confirmed, renewedAtMs }: HeldSlot): OwnSlot => ({
  skyhook,
  skyhookUid,
  lease: slot.name,
  phase: slot.phase as SlotPhase,
  confirmed,
  renewedAtMs,
})

/** Which Skyhook a slot found at start belongs to: the one whose uid hashes to its scope, of those we know. */
function ownerOf(slot: Slot, state: State): { readonly name: string; readonly uid: string } {
  const candidates = [
    ...(state.skyhooks.known
      ? state.skyhooks.value.map(({ metadata }) => ({ name: metadata.name, uid: metadata.uid }))
      : []),
    ...Object.entries(state.journal.skyhooks).map(([name, { uid }]) => ({ name, uid })),
  ]
  const scopeOf = (skyhook: { name: string; uid: string }): Scope => skyhookScope(skyhook)
  return (
    candidates.find((skyhook) => scopeOf(skyhook).hash === slot.scope) ?? {
      name: slot.lease.metadata.labels?.[labelKeys.name] ?? '',
      uid: '',
    }
  )
}

/** `name:version` of what is not complete, for people reading the Lease. */
function packagesOf(state: State, skyhook: string): string[] {
  const view = state.skyhooks.known ? state.skyhooks.value.find(({ metadata }) => metadata.name === skyhook) : undefined
  const record = state.journal.skyhooks[skyhook]
  return Object.entries(view?.spec.packages ?? {})
    .filter(([name, { version }]) => record?.packages[`${name}|${version}`]?.finishedInputs === undefined)
    .map(([name, { version }]) => `${name}:${version}`)
    .sort()
}
