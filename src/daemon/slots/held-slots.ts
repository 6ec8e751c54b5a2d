import type { Leases } from '../../lease/slot-reads.ts'
import { release, renew } from '../../lease/slots.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import { isControlPlaneNode, type OwnSlot } from '../../stages/model/snapshot.ts'
import { bestSlot } from '../../stages/skyhook/slot.ts'
import type { Log } from '../telemetry/log.ts'
import type { OwnSlots } from './own-slots.ts'
import * as slotBook from './slot-book.ts'
import type { SlotRequests } from './slot-requests.ts'

/** Sends requests about slots that this node holds, and records the answers. */
export type HeldSlots = {
  /** The entry of the slot in the book; undefined after it has ended. */
  entryOf(slot: OwnSlot): slotBook.HeldSlot | undefined
  /**
   * Proves that this node holds the slot, and writes its phase. False: this node no longer holds it. `skyhook` is the
   * Skyhook that the slot is for.
   */
  renew(entry: slotBook.HeldSlot, skyhook: string, phase: SlotPhase): Promise<boolean>
  /** Writes all slots that an interrupt for this Skyhook needs. False: this node no longer holds one of them. */
  readonly report: (skyhookUid: string, phase: SlotPhase) => Promise<boolean>
  /**
   * Releases the slot: no work continues under it from now on. `whenReady` runs before the request, and may throw.
   * Throws while it is unknown whether the slot is released.
   */
  release(entry: slotBook.HeldSlot, whenReady?: () => Promise<void>): Promise<void>
  /** An answer showed that this node no longer holds it. */
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
      // the slot of an earlier registration is deleted in the name of that registration
      const result = await release(leases, slot, { ...identity(), uid: slot.nodeUid }, signal)
      if (result.outcome === 'unknown') {
        ownSlots.record((book) => slotBook.doubted(book, slot.uid)) // the DELETE may still be carried out
        throw new Error(`slot ${slot.name} was not released`, { cause: result.error })
      }
      end(entry)
    },
  }
}
