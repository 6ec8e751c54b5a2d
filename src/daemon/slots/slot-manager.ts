import { disableKey, pauseKey } from '../../schemas/annotations.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { Transport } from '../../kube/transport.ts'
import { skyhookScope } from '../../lease/names.ts'
import type { Scope } from '../../lease/names.ts'
import type { NodeIdentity, Progress, Slot } from '../../lease/slot.ts'
import type { Leases } from '../../lease/slot-reads.ts'
import { listOwnSlots } from '../../lease/slot-reads.ts'
import type { SlotRequest } from '../../lease/slots.ts'
import { acquire, adoptRecovery, confirm, release, renew } from '../../lease/slots.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { OwnSlot, SkyhookView } from '../../stages/model/snapshot.ts'
import { known } from '../../stages/model/snapshot.ts'
import { acquireControlPlane, needsControlPlane, releaseControlPlane } from './control-plane-slot.ts'
import { limitOf } from './budget.ts'
import { errorField } from '../telemetry/log.ts'
import type { Log } from '../telemetry/log.ts'
import { skyhooksPath } from '../state/skyhooks.ts'
import type { State } from '../state/state.ts'

/** The slots that this node holds, kept with what the next request about them needs. */
export type SlotKeeper = {
  /** What a starting agent goes on from; must succeed once before anything is asked for. */
  load(signal: AbortSignal): Promise<void>
  acquire(view: SkyhookView, phase: SlotPhase): Promise<void>
  adopt(view: SkyhookView, phase: SlotPhase): Promise<void>
  confirm(slot: OwnSlot, view: SkyhookView): Promise<void>
  renew(slot: OwnSlot, phase: SlotPhase): Promise<void>
  /** One successful PUT of the Skyhook's slot right now; false = it is not ours any more. */
  report(skyhookUid: string, phase: SlotPhase): Promise<boolean>
  release(slot: OwnSlot): Promise<void>
  kinds(): readonly { readonly phase: string; readonly kind: string }[]
}

type Held = { slot: Slot; skyhook: string; skyhookUid: string; confirmed: boolean; renewedAtMs: number; grantedAtMs: number }

/** Asked again at the latest after this, should the news of a freed slot be lost. */
const askAgainMs = 30_000
const unknownAgainMs = 2_000
const lostAgainMs = 200

export function keepSlots(options: {
  readonly transport: Transport
  readonly leases: Leases
  readonly state: State
  readonly node: () => NodeIdentity
  readonly log: Log
  readonly signal: AbortSignal
  readonly onHeldFor: (phase: string, seconds: number) => void
  readonly onWaitedFor: (seconds: number) => void
}): SlotKeeper {
  const { transport, leases, state, node, log, signal } = options
  const held = new Map<string, Held>()
  let controlPlane: Slot | undefined

  const publish = (): void => {
    state.slots = known([...held.values()].map(view))
  }

  const progress = (phase: SlotPhase, generation: number, skyhook: string): Progress => ({
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
      termsFrom: (ledgers) => ({ limit: limitOf(view, ledgers) }),
    }
  }

  function take(slot: Slot, view: SkyhookView, confirmed: boolean): void {
    const { name, uid } = view.metadata
    const nowMs = Date.now()
    held.set(slot.name, { slot, skyhook: name, skyhookUid: uid, confirmed, renewedAtMs: nowMs, grantedAtMs: nowMs })
    const asked = state.waiting.get(name)
    options.onWaitedFor(asked ? (nowMs - asked.sinceMs) / 1000 : 0)
    state.waiting.delete(name)
    publish()
  }

  function drop(name: string): void {
    const gone = held.get(name)
    held.delete(name)
    if (gone) options.onHeldFor(gone.slot.phase, (Date.now() - gone.grantedAtMs) / 1000)
    publish()
  }

  /** With the last slot that needed it; `except` is on its way out. */
  async function giveBackControlPlane(except?: string): Promise<void> {
    if (controlPlane === undefined || [...held.keys()].some((name) => name !== except)) return
    await releaseControlPlane(transport, leases, controlPlane, node(), signal)
    controlPlane = undefined
  }

  function wait(view: SkyhookView, message: string, againMs: number): void {
    const { name } = view.metadata
    const nowMs = Date.now()
    state.waiting.set(name, { message, askAgainAtMs: nowMs + againMs, sinceMs: state.waiting.get(name)?.sinceMs ?? nowMs })
  }

  return {
    async load(loadSignal) {
      const { own } = await listOwnSlots(leases, node(), loadSignal)
      controlPlane = own.find(({ kind }) => kind === 'control-plane')
      for (const slot of own) {
        if (slot === controlPlane) continue
        const owner = ownerOf(slot, state)
        held.set(slot.name, {
          slot,
          skyhook: owner.name,
          skyhookUid: owner.uid,
          confirmed: slot.kind === 'recovery',
          renewedAtMs: 0,
          grantedAtMs: Date.now(),
        })
      }
      await giveBackControlPlane() // of an agent that was killed between its two slots
      publish()
    },

    async acquire(view, phase) {
      const asked = request(view, phase)
      if (controlPlane === undefined && needsControlPlane(state.node, view)) {
        const granted = await acquireControlPlane(
          leases,
          { scope: asked.scope, limitFrom: (ledgers) => limitOf(view, ledgers) },
          asked.node,
          asked.progress,
          signal,
        )
        if (granted.outcome !== 'held')
          return wait(view, granted.outcome === 'unknown' ? errorField(granted.error).error : granted.reason, askAgainMs)
        controlPlane = granted.slot
      }
      const answer = await acquire(leases, asked, signal)
      switch (answer.outcome) {
        case 'held':
          return take(answer.slot, view, false)
        case 'waiting': {
          const by =
            answer.holders.length === 0 ? '' : `: ${answer.holders.slice(0, 5).join(', ')}${answer.holders.length > 5 ? ', …' : ''}`
          await giveBackControlPlane()
          return wait(view, `${answer.reason}${by}`, askAgainMs)
        }
        case 'lost':
          await giveBackControlPlane()
          return wait(view, answer.reason, lostAgainMs)
        case 'unknown':
          log.warn({ skyhook: view.metadata.name, ...errorField(answer.error) }, 'no answer to the request for a slot')
          return wait(view, `the API server did not answer: ${errorField(answer.error).error}`, unknownAgainMs)
      }
    },

    async adopt(view, phase) {
      const answer = await adoptRecovery(leases, request(view, phase), signal)
      if (answer.outcome === 'held') {
        log.warn({ skyhook: view.metadata.name, lease: answer.slot.name }, 'half-changed node without a slot: took a recovery slot')
        return take(answer.slot, view, true)
      }
      throw new Error(answer.outcome === 'unknown' ? `recovery slot: ${errorField(answer.error).error}` : `recovery slot: ${answer.reason}`)
    },

    async confirm(own, view) {
      const entry = held.get(own.lease)
      if (!entry) return
      // the budget and the pause of this moment count, not those of the watch
      const fresh = await transport.json<Skyhook>('GET', `${skyhooksPath}/${view.metadata.name}`, { signal })
      if (fresh.metadata.uid !== view.metadata.uid || (fresh.metadata.generation ?? 0) !== (view.metadata.generation ?? 0)) return // the watch brings the news
      if (fresh.metadata.annotations?.[pauseKey] === 'true' || fresh.metadata.annotations?.[disableKey] === 'true') return
      const answer = await confirm(leases, entry.slot, request({ ...view, spec: fresh.spec ?? {} }, own.phase), signal)
      switch (answer.outcome) {
        case 'held':
          held.set(own.lease, { ...entry, slot: answer.slot, confirmed: true, renewedAtMs: Date.now() })
          return publish()
        case 'yield':
          log.info({ skyhook: own.skyhook, lease: own.lease, detail: answer.reason }, 'slot given back before anything began')
          await release(leases, answer.slot, node(), signal)
          await giveBackControlPlane(own.lease)
          drop(own.lease)
          return wait(view, answer.reason, lostAgainMs)
        case 'lost':
          drop(own.lease)
          return wait(view, answer.reason, lostAgainMs)
        case 'unknown':
          throw new Error(`slot ${own.lease} could not be confirmed`, { cause: answer.error })
      }
    },

    async renew(own, phase) {
      const entry = held.get(own.lease)
      if (!entry) return
      const answer = await renew(leases, entry.slot, node(), progress(phase, entry.slot.generation, own.skyhook), signal)
      if (answer.outcome === 'held') {
        held.set(own.lease, { ...entry, slot: answer.slot, renewedAtMs: Date.now() })
        return publish()
      }
      if (answer.outcome === 'lost') {
        log.warn({ skyhook: own.skyhook, lease: own.lease, detail: answer.reason }, 'slot lost')
        return drop(own.lease)
      }
      throw new Error(`slot ${own.lease} could not be renewed`, { cause: answer.error })
    },

    async report(skyhookUid, phase) {
      const own = [...held.values()].find((entry) => entry.skyhookUid === skyhookUid)
      if (!own) return false
      await this.renew(view(own), phase)
      return held.has(own.slot.name)
    },

    async release(own) {
      const entry = held.get(own.lease)
      if (!entry) return
      const answer = await release(leases, entry.slot, node(), signal)
      if (answer.outcome === 'unknown') throw new Error(`slot ${own.lease} could not be given back`, { cause: answer.error })
      await giveBackControlPlane(own.lease) // before this one is forgotten: a failure is tried again with it
      drop(own.lease)
    },

    kinds: () => [...held.values()].map(({ slot }) => ({ phase: slot.phase, kind: slot.kind })),
  }
}

const view = ({ slot, skyhook, skyhookUid, confirmed, renewedAtMs }: Held): OwnSlot => ({
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
    ...(state.skyhooks.known ? state.skyhooks.value.map(({ metadata }) => ({ name: metadata.name, uid: metadata.uid })) : []),
    ...Object.entries(state.journal.skyhooks).map(([name, { uid }]) => ({ name, uid })),
  ]
  const scopeOf = (skyhook: { name: string; uid: string }): Scope => skyhookScope(skyhook)
  return (
    candidates.find((skyhook) => scopeOf(skyhook).hash === slot.scope) ?? {
      name: slot.lease.metadata.labels?.['skyhook.nvidia.com/name'] ?? '',
      uid: '',
    }
  )
}

/** `name:version` of what is not complete, for people reading the Lease. */
function packagesOf(state: State, skyhook: string): string[] {
  const view = state.skyhooks.known ? state.skyhooks.value.find(({ metadata }) => metadata.name === skyhook) : undefined
  const record = state.journal.skyhooks[skyhook]
  return Object.entries(view?.spec.packages ?? {})
    .filter(([name, { version }]) => record?.packages[`${name}|${version}`]?.finished === undefined)
    .map(([name, { version }]) => `${name}:${version}`)
    .sort()
}
