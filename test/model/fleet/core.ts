/**
 * One node of the model without its slots: journal, Node object and host, as the real `decide` sees and changes them.
 * States are interned: equal ones have one number, and what follows from a number is computed once.
 *
 * Time is taken out: whatever was remembered with a time is long past at the next decision, so no pause is waited for.
 */
import { emptyJournal, type Journal } from '../../../src/schemas/journal.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { decide } from '../../../src/stages/decide.ts'
import { hasMark } from '../../../src/stages/drain/drain.ts'
import { type Action, preparationKey } from '../../../src/stages/model/plan.ts'
import {
  type AttemptObservation,
  type InterruptObservation,
  known,
  type OwnSlot,
  type Preparation,
  type SkyhookView,
  type SlotDenial,
} from '../../../src/stages/model/snapshot.ts'
import { idleSnapshot } from '../../kit/objects/plan-builder.ts'
import { plainStep, simplePackage } from '../../kit/node-simulator/package-content.ts'

export type Core = {
  readonly journal: Journal
  /** Undefined while it is deleted. */
  readonly node: KubernetesNode | undefined
  /**
   * From the first step until the interrupt ran, the host is half changed. `given up`: half changed when the Skyhook
   * stopped to select the node. Nobody asks for the rest, and the capacity is back until the next step.
   */
  readonly host: 'clean' | 'half changed' | 'given up' | 'done'
  /** Packages whose step ran. */
  readonly applied: readonly string[]
  readonly attempts: Readonly<Record<string, AttemptObservation>>
  readonly interrupts: Readonly<Record<string, InterruptObservation>>
}

export type CoreId = number

/** What is to be done now. The journal comes first: where it changes, nothing else happens before. */
export type CorePlan =
  | { readonly next: 'journal'; readonly core: CoreId }
  | { readonly next: 'actions'; readonly actions: readonly Action[] }

export const skyhook = 's'
export const skyhookUid = 's-uid'
const nowMs = 1_000_000_000
export const masterLabel = 'node-role.kubernetes.io/control-plane'
/** Of the Nodes that the Skyhook selects. */
export const poolLabel = 'pool'

export const newNode = (registration: number, labels: Readonly<Record<string, string>>): KubernetesNode => ({
  metadata: { name: 'node', uid: `node-${registration}`, resourceVersion: '1', labels, annotations: {} },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID: 'boot' } },
})

/** The nodes of one model share it: all of them work on the same Skyhook. */
export class Cores {
  readonly #spec: SkyhookSpec
  readonly #cores: Core[] = []
  readonly #ids = new Map<string, CoreId>()
  readonly #plans = new Map<string, CorePlan>()
  /** Every image is on every host. */
  readonly #preparations = new Map<string, Preparation>()

  constructor(spec: SkyhookSpec) {
    this.#spec = spec
  }

  get count(): number {
    return this.#cores.length
  }

  initial(labels: Readonly<Record<string, string>>): CoreId {
    const node = newNode(0, labels)
    const journal = emptyJournal('node-0')
    return this.intern({ journal, node, host: 'clean', applied: [], attempts: {}, interrupts: {} })
  }

  at(id: CoreId): Core {
    const core = this.#cores[id]
    if (!core) throw new Error(`no core ${id}`)
    return core
  }

  with(id: CoreId, change: Partial<Core>): CoreId {
    return this.intern({ ...this.at(id), ...change })
  }

  intern(core: Core): CoreId {
    const text = JSON.stringify(core, withoutTimes)
    const existing = this.#ids.get(text)
    if (existing !== undefined) return existing
    this.#ids.set(text, this.#cores.length)
    this.#cores.push(JSON.parse(text) as Core)
    return this.#cores.length - 1
  }

  /** `view`: what the agent knows of the Skyhook. Decisions see the first generation: they compare it with slots alone. */
  view(generation = 1): SkyhookView {
    return {
      metadata: { name: skyhook, uid: skyhookUid, resourceVersion: '1', generation },
      spec: this.#spec,
      budget: {},
      stale: false,
    }
  }

  plan(id: CoreId, slots: readonly OwnSlot[], isDenied: boolean): CorePlan {
    const slotTexts = slots.map(
      ({ uid, lease, ownership, admittedUnder, isFormer }) =>
        `${uid}:${lease}:${ownership}:${admittedUnder?.generation}:${isFormer}`,
    )
    const key = `${id}|${isDenied}|${slotTexts.join()}`
    let plan = this.#plans.get(key)
    if (!plan) this.#plans.set(key, (plan = this.#computePlan(id, slots, isDenied)))
    return plan
  }

  #computePlan(id: CoreId, slots: readonly OwnSlot[], isDenied: boolean): CorePlan {
    const core = this.at(id)
    if (!core.node) return { next: 'actions', actions: [] }
    const denied: SlotDenial = { message: 'taken', nextRequestAtMs: 0, sinceMs: 0, waitsFor: 'control-plane' }
    const plan = decide(
      idleSnapshot({
        nowMs,
        bootId: 'boot',
        node: core.node,
        skyhooks: known([this.view()]),
        journal: core.journal,
        attempts: new Map(Object.entries(core.attempts)),
        preparations: new Map(this.#preparations),
        slots: known(slots.map((slot) => ({ ...slot, renewedAtMs: slot.renewedAtMs === 0 ? 0 : nowMs }))),
        slotDenials: new Map(isDenied ? [[skyhook, denied]] : []),
        interrupts: new Map(Object.entries(core.interrupts)),
      }),
      new Map(),
    )
    const unprepared = plan.actions.filter((action) => action.do === 'prepare')
    if (unprepared.length > 0) {
      for (const { image } of unprepared) this.#prepare(image)
      return this.#computePlan(id, slots, isDenied)
    }
    const { attempts, interrupts } = afterRecords(core, plan.actions)
    const next = this.intern({ ...core, journal: plan.journal, attempts, interrupts })
    return next === id ? { next: 'actions', actions: plan.actions } : { next: 'journal', core: next }
  }

  #prepare(image: Extract<Action, { do: 'prepare' }>['image']): void {
    const config = simplePackage({ apply: [plainStep('run.sh')] })
    const ready: Preparation = { state: 'ready', digest: 'sha256:0', config, contentHashes: new Map() }
    this.#preparations.set(preparationKey(image), ready)
    this.#preparations.set(preparationKey({ image: image.image, version: image.version, digest: 'sha256:0' }), ready)
  }
}

/** Our mark is on the Node, or the host is half changed: the node is out. */
export const isOut = ({ node, host }: Core): boolean =>
  host === 'half changed' || (node !== undefined && hasMark(node, skyhook))

export const isSelected = ({ node }: Core): boolean => node !== undefined && poolLabel in (node.metadata.labels ?? {})

export const hasBegun = ({ journal }: Core): boolean => journal.skyhooks[skyhook]?.lifecycle !== undefined

/** What is in the journal is taken off the host. */
function afterRecords(core: Core, actions: readonly Action[]): Pick<Core, 'attempts' | 'interrupts'> {
  const attempts = { ...core.attempts }
  const interrupts = { ...core.interrupts }
  for (const action of actions) {
    if (action.do === 'recordStep' || action.do === 'forgetStep') delete attempts[action.step.id]
    if (action.do === 'recordInterrupt') delete interrupts[action.run.id]
  }
  return { attempts, interrupts }
}

/** Times, and what only an edit of nodeState by a person is compared with, which nobody makes here. */
function withoutTimes(key: string, value: unknown): unknown {
  if (key === 'published') return { ...(value as object), before: undefined }
  return typeof value === 'number' && value >= nowMs ? 0 : value
}
