import type { Leases } from '../../lease/slot-reads.ts'
import { release, renew } from '../../lease/slots.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { OwnSlot } from '../../stages/model/snapshot.ts'
import { isControlPlaneNode } from '../../stages/model/node-roles.ts'
import { bestSlot } from '../../stages/skyhook/slot.ts'
import type { Log } from '../telemetry/log.ts'
import type { OwnSlots } from './own-slots.ts'
import * as slotBook from './slot-book.ts'
import type { SlotRequests } from './slot-requests.ts'

/** Sends what is to be said about slots that this node holds, and enters what was answered. */
export type HeldSlots = {
  /** What the book says about it; undefined once it has ended. */
  entryOf(slot: OwnSlot): slotBook.HeldSlot | undefined
  /** Proves that it is ours, and writes its phase; false = it is not ours any more. `skyhook`: whom it is held for. */
  renew(entry: slotBook.HeldSlot, skyhook: string, phase: SlotPhase): Promise<boolean>
  /** Writes all slots that an interrupt for this Skyhook needs; false = one of them is not ours any more. */
  readonly report: (skyhookUid: string, phase: SlotPhase) => Promise<boolean>
  /**
   * Nothing goes on under it from now on. `whenReady` comes before the request, and may throw. Throws while it is
   * unknown whether the slot is released.
   */
  release(entry: slotBook.HeldSlot, whenReady?: () => Promise<void>): Promise<void>
  /** An answer said that it is not ours any more. */
  end(entry: slotBook.HeldSlot): void
}

export type HeldSlotsOptions = {
  readonly leases: Leases
  readonly ownSlots: OwnSlots
  readonly node: () => KubernetesNode | undefined
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  readonly onReleased: (phase: string, seconds: number) => void
}

export function createHeldSlots(
  options: HeldSlotsOptions,
  { identity, progress }: Pick<SlotRequests, 'identity' | 'progress'>,
): HeldSlots {
  const { leases, ownSlots, clock, log, signal } = options

  const entryOf = ({ uid }: OwnSlot): slotBook.HeldSlot | undefined => ownSlots.book().held.get(uid)

  function end({ slot, grantedAtMs }: slotBook.HeldSlot): void {
    ownSlots.record((book) => slotBook.ended(book, slot.uid))
    options.onReleased(slot.phase, (clock.steadyMs() - grantedAtMs) / 1000)
  }

  async function renewEntry(entry: slotBook.HeldSlot, skyhook: string, phase: SlotPhase): Promise<boolean> {
    const { slot } = entry
    ownSlots.record((book) => slotBook.writing(book, slot.uid))
    const result = await renew(leases, slot, identity(), progress(phase, slot.generation, skyhook), signal)
    switch (result.outcome) {
      case 'held':
        ownSlots.record((book, nowMs) => slotBook.renewed(book, result.slot, nowMs))
        return ownSlots.book().held.has(slot.uid)
      case 'lost':
        log.warn({ skyhook, lease: slot.name, detail: result.reason }, 'slot lost')
        end(entry)
        return false
      case 'unknown':
        throw new Error(`slot ${slot.name} was not renewed`, { cause: result.error })
    }
  }

  return {
    entryOf,
    renew: renewEntry,
    end,

    async report(skyhookUid, phase) {
      const held = ownSlots.held()
      const slots = held.known ? held.value : []
      const node = options.node()
      const isNeeded = node !== undefined && isControlPlaneNode(node)
      const needed = [
        bestSlot(slots.filter((slot) => slot.skyhookUid === skyhookUid)),
        ...(isNeeded ? [bestSlot(slots.filter(({ scope }) => scope === 'control-plane'))] : []),
      ]
      for (const slot of needed) {
        const entry = slot && entryOf(slot)
        if (!slot || !entry || slot.ownership === 'releasing' || !(await renewEntry(entry, slot.skyhook, phase)))
          return false
      }
      return true
    },

    async release(entry, whenReady) {
      const { slot } = entry
      ownSlots.record((book) => slotBook.releasing(book, slot.uid))
      try {
        await whenReady?.()
      } catch (error) {
        ownSlots.record((book) => slotBook.doubted(book, slot.uid)) // the watch may have shown its deletion meanwhile
        throw error
      }
      // who deletes the slot of an earlier registration is still its holder
      const result = await release(leases, slot, { ...identity(), uid: slot.nodeUid }, signal)
      if (result.outcome === 'unknown') {
        ownSlots.record((book) => slotBook.doubted(book, slot.uid)) // the DELETE may still be carried out
        throw new Error(`slot ${slot.name} was not released`, { cause: result.error })
      }
      end(entry)
    },
  }
}
