/**
 * When the census lists the slots of a Skyhook with a policy. The Nodes of a compartment hint that its batch may be
 * over. The census then looks, and again after growing pauses until something changes. Pure.
 */
import type { Ledger } from '../lease/ledger.ts'
import { type Backoff, backoffMs } from '../schemas/backoff.ts'
import type { CompartmentCount } from './compartments.ts'

/** By compartment. */
export type SlotLooks = ReadonlyMap<string, Looks>

type Looks = {
  /** What its Nodes and the ledger reported. */
  readonly key: string
  readonly looks: number
  /** Monotonic ms; Infinity: not before something changes. */
  readonly nextAtMs: number
}

/** A node writes its slot a moment after its Node. */
const firstDelayMs = 200
const lookBackoff: Backoff = { initialMs: 500, maxMs: 30_000 }
/** While nodes are at work their batch is open, unless a node that failed before is at work again. */
const busyBackoff: Backoff = { initialMs: 10_000, maxMs: 60_000 }

const isBusy = ({ nodes }: CompartmentCount): boolean => nodes.some(({ status }) => status === 'in_progress')

/** The looks that are due after a change of their inputs; the same ones where nothing has changed. */
export function looksNow(
  before: SlotLooks,
  compartments: readonly CompartmentCount[],
  ledger: Ledger | undefined,
  nowMs: number,
): SlotLooks {
  return new Map(
    compartments.map((compartment) => {
      const { name, nodes } = compartment
      const statuses = nodes.map((node) => `${node.name} ${node.status}`)
      const batch = { ...ledger?.compartments[name]?.batch, waitedSeconds: undefined } // it grows with each look
      const key = JSON.stringify([ledger?.applied, ledger?.policy, batch, statuses])
      const known = before.get(name)
      if (known?.key === key) return [name, known]
      // a newly elected census may not live until the later look
      const delayMs = known !== undefined && isBusy(compartment) ? backoffMs(1, busyBackoff) : firstDelayMs
      return [name, { key, looks: 0, nextAtMs: nowMs + delayMs }]
    }),
  )
}

/** What a look shows of a batch. `nothing`: nothing could be over. `end`: it is over when it has waited long enough. */
export type Expectation = 'nothing' | 'end' | 'by-status'

/** After a look, which showed all compartments. */
export function looksAfter(
  before: SlotLooks,
  compartments: readonly CompartmentCount[],
  expectationOf: (compartment: string) => Expectation,
  nowMs: number,
): SlotLooks {
  const after = new Map(before)
  for (const compartment of compartments) {
    const known = before.get(compartment.name)
    if (known === undefined) continue
    const looks = known.looks + 1
    const expectation = expectationOf(compartment.name)
    const isPatient = isBusy(compartment) && expectation !== 'end'
    const pauseMs = backoffMs(looks, isPatient ? busyBackoff : lookBackoff)
    after.set(compartment.name, { ...known, looks, nextAtMs: expectation === 'nothing' ? Infinity : nowMs + pauseMs })
  }
  return after
}

/** When the next look is due, monotonic ms. */
export const nextLookAtMs = (looks: SlotLooks): number =>
  Math.min(...[...looks.values()].map(({ nextAtMs }) => nextAtMs))
