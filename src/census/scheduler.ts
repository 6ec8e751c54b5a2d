/** All Skyhooks at the census: which of them to count again when something changed, and how soon. */
import type { Change } from '../kube/store.ts'
import type { KubeObject } from '../kube/objects.ts'
import { ledgerName } from '../lease/names.ts'
import type { Leases } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import { ignoreLabel } from '../schemas/annotations.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { selects } from '../schemas/selectors.ts'
import { createDesk, type Desk, type DeskOptions } from './skyhook-reconciler.ts'
import { skyhookOfKey, type CensusNode } from './node-facts.ts'
import type { Agents } from './agent-liveness.ts'

export type CensusOptions = {
  readonly leases: Leases
  readonly nodes: ReadonlyMap<string, CensusNode>
  readonly skyhooks: ReadonlyMap<string, Skyhook>
  readonly ledgers: ReadonlyMap<string, Lease>
  readonly agents: () => Agents
  /** Whether lists and watches can be believed at the moment; when not, nothing is counted and nothing written. */
  readonly isTrusted: () => boolean
  readonly tell: DeskOptions['tell']
  readonly onFailed: (skyhook: string, error: unknown) => void
  readonly nowMs?: () => number
  readonly wallMs?: () => number
  readonly signal: AbortSignal
}

export type Census = {
  skyhooksChanged(changes: readonly Change<Skyhook & KubeObject>[]): void
  ledgersChanged(changes: readonly Change<Lease>[]): void
  /** `before` and `after` are undefined for a node that was not, or is no more. */
  nodeChanged(before: CensusNode | undefined, after: CensusNode | undefined): void
  /** Something that concerns all of them: agents fell silent, or what could not be believed can be again. */
  countAll(): void
}

/** Changes come in bursts; one count serves all that came within this time. */
const GATHER_MS = 50
/** Counting takes at most a fifth of the time, however many nodes and Skyhooks there are. */
const REST_PER_WORK = 4
const LONGEST_TIMER_MS = 2 ** 31 - 1

const beginsMs = ({ isBusy, dueMs }: Place): number => (isBusy ? Infinity : dueMs)

type Place = {
  readonly skyhook: string
  readonly desk: Desk
  dueMs: number
  isBusy: boolean
}

export function startCensus(options: CensusOptions): Census {
  const { leases, nodes, skyhooks, ledgers, signal, nowMs = () => performance.now(), wallMs = Date.now } = options
  const places = new Map<string, Place>()
  let timer: NodeJS.Timeout | undefined
  let restUntilMs = -Infinity
  signal.addEventListener('abort', () => clearTimeout(timer))

  const placeOf = (skyhook: Skyhook): Place => {
    const { name, uid } = skyhook.metadata
    const known = places.get(uid)
    if (known !== undefined) return known
    const desk = createDesk({
      leases,
      look() {
        const present = skyhooks.get(name)
        if (!options.isTrusted() || present?.metadata.uid !== uid) return undefined
        return { nodes, agents: options.agents(), skyhook: present, ledger: ledgers.get(ledgerName({ name, uid })) }
      },
      tell: options.tell,
      onFailed: (error) => options.onFailed(name, error),
      nowMs,
      wallMs,
      signal,
    })
    const place: Place = { skyhook: name, desk, dueMs: Infinity, isBusy: false }
    places.set(uid, place)
    return place
  }

  const due = (place: Place, atMs: number): void => {
    if (atMs >= place.dueMs) return
    place.dueMs = atMs
    arm()
  }
  const soon = (place: Place): void => due(place, nowMs() + GATHER_MS)

  const arm = (): void => {
    clearTimeout(timer)
    const next = Math.min(...[...places.values()].map(beginsMs))
    if (signal.aborted || next === Infinity) return
    timer = setTimeout(run, Math.min(LONGEST_TIMER_MS, Math.max(0, Math.max(next, restUntilMs) - nowMs())))
  }

  /** One turn at a time begins; its requests overlap with those of others. */
  const run = (): void => {
    const startedMs = nowMs()
    const [place] = [...places.values()].filter((one) => beginsMs(one) <= startedMs).toSorted((a, b) => beginsMs(a) - beginsMs(b))
    if (place !== undefined) {
      place.isBusy = true
      place.dueMs = Infinity
      void turn(place)
      restUntilMs = nowMs() + (nowMs() - startedMs) * REST_PER_WORK
    }
    arm()
  }

  const turn = async (place: Place): Promise<void> => {
    const againMs = await place.desk.turn()
    place.dueMs = Math.min(place.dueMs, againMs) // news may have come meanwhile
    place.isBusy = false
    arm()
  }

  return {
    skyhooksChanged(changes) {
      for (const { type, object } of changes) {
        if (type === 'deleted') {
          places.delete(object.metadata.uid)
          continue
        }
        const place = placeOf(object)
        place.desk.seen('skyhook', object.metadata.resourceVersion)
        soon(place)
      }
    },
    ledgersChanged(changes) {
      for (const { object } of changes) {
        for (const skyhook of skyhooks.values()) {
          if (ledgerName(skyhook.metadata) !== object.metadata.name) continue
          const place = placeOf(skyhook)
          place.desk.seen('ledger', object.metadata.resourceVersion)
          soon(place)
        }
      }
    },
    nodeChanged(before, after) {
      for (const skyhook of skyhooks.values()) if (concerns(skyhook, before, after)) soon(placeOf(skyhook))
    },
    countAll() {
      for (const skyhook of skyhooks.values()) soon(placeOf(skyhook))
    },
  }
}

/** Whether a change of a node can change the count for a Skyhook. Nodes change all the time; few of it is anybody's business. */
export function concerns({ metadata, spec }: Skyhook, before: CensusNode | undefined, after: CensusNode | undefined): boolean {
  const was = before !== undefined && selects(spec.nodeSelectors, before.labels)
  const is = after !== undefined && selects(spec.nodeSelectors, after.labels)
  if (was !== is) return true
  if (!is || before === undefined || after === undefined) return false
  if (before.uid !== after.uid || before.labels[ignoreLabel] !== after.labels[ignoreLabel]) return true
  const keys = new Set([...Object.keys(before.annotations), ...Object.keys(after.annotations)])
  return [...keys].some((key) => {
    if (before.annotations[key] === after.annotations[key]) return false
    return skyhookOfKey(key) === metadata.name || key.includes('/cordon_') // any cordon takes the node out of service
  })
}
