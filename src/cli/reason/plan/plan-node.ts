/** What an edit would do on one node, and which parts of the spec ask for its interrupts. Pure. */
import { labelKeys } from '../../../lease/names.ts'
import type { Slot } from '../../../lease/slot.ts'
import type { Journal } from '../../../schemas/journal.ts'
import { isEqual, ownValue } from '../../../schemas/json.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { matchesGlob, selects } from '../../../schemas/selectors.ts'
import type { Interrupt, PackageSpec, Skyhook } from '../../../schemas/skyhook.ts'
import { hasMark } from '../../../stages/drain/drain.ts'
import { changedKeys } from '../../../stages/model/package-inputs.ts'
import type { Snapshot } from '../../../stages/model/snapshot.ts'
import { agentFinding } from '../explain/agent-finding.ts'
import { nodeView } from '../explain/node-snapshot.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import type { NodeDetail } from '../../fleet/fleet-view/node-detail.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import { type Rehearsal, type RehearsedStep, rehearse } from './rehearsal.ts'

/** One Skyhook, before and after. Without `before` the edit creates it, without `after` it is gone at once. */
export type Edit = {
  readonly name: string
  readonly before: Skyhook | undefined
  readonly after: Skyhook | undefined
}

/** The cluster before the edits and after them; their nodes are the same. */
export type Fleets = { readonly before: FleetView<KubernetesNode>; readonly after: FleetView<KubernetesNode> }

export type NodePlan = Rehearsal & {
  readonly node: string
  /** The change of the selection. `leaves`: also of a node that was deselected before and is still at work. */
  readonly selection: 'stays' | 'joins' | 'leaves'
  /** Without the edit, the node would do the same. */
  readonly isDueAnyway: boolean
  /** What is done if all packages ask for the interrupts that they make only if required; undefined: the same. */
  readonly stepsIfAsked: readonly RehearsedStep[] | undefined
  /** What asks for the interrupts, and what may do so. */
  readonly causes: readonly InterruptCause[]
  /** Why nothing happens on the node for now: it has no agent that acts. */
  readonly agent: string | undefined
  /** What the node shows cannot be trusted: it may do more, or less. */
  readonly doubt: string | undefined
}

/** Plans of the edits that select the node, before or after; or it is still at work for them. */
export function planNode(
  fleets: Fleets,
  edits: readonly Edit[],
  { node, detail }: { readonly node: KubernetesNode; readonly detail: NodeDetail },
): ReadonlyMap<string, NodePlan> {
  const labels = node.metadata.labels ?? {}
  const selected = (skyhook: Skyhook | undefined): boolean =>
    skyhook !== undefined && selects(skyhook.spec.nodeSelectors, labels)
  const isAtWork = (name: string): boolean =>
    hasMark(node, name) || holdsSlot(valueOr(fleets.before.slots, []), node.metadata.name, name)
  const concerned = edits.filter(({ name, before, after }) => selected(before) || selected(after) || isAtWork(name))
  if (concerned.length === 0) return new Map()
  const after = valueOr(fleets.after.skyhooks, [])
  const skyhooks = valueOr(fleets.before.skyhooks, [])
  const found = nodeView(fleets.before, skyhooks, node, detail, after)
  const edited = nodeView(fleets.after, after, node, detail)
  const present = { ...found.snapshot, rolledOutConfigs: rolledOutBy(skyhooks) }
  const start = { ...present, skyhooks: edited.snapshot.skyhooks }
  const planOf = rehearse(start)
  // what asked for an interrupt before the edit may still do so: keys that it removes count by their patterns then
  const planIfAsked = hasConditional([...skyhooks, ...after], found.snapshot.journal) ? rehearse(start, true) : planOf
  const presentPlanOf = rehearse(present)
  const agent = agentFinding(fleets.before, node)?.message
  return new Map(
    concerned.map(({ name, before, after }) => {
      const rehearsal = planOf(name)
      const present = presentPlanOf(name)
      const { steps: stepsIfAsked } = planIfAsked(name)
      const { trust, record, guess } = found.records.get(name) ?? {}
      const installed = new Set(Object.keys(record?.packages ?? {}).map((key) => key.split('|')[0]))
      const touched = new Set(rehearsal.steps.flatMap((step) => (step.do === 'stage' ? [step.package] : [])))
      const packages = Object.entries(after?.spec.packages ?? {}).filter(([one]) => touched.has(one))
      const plan: NodePlan = {
        ...rehearsal,
        stepsIfAsked: isEqual(stepsIfAsked, rehearsal.steps) ? undefined : stepsIfAsked,
        node: node.metadata.name,
        selection: !selected(after) ? 'leaves' : selected(before) ? 'stays' : 'joins',
        isDueAnyway: isEqual(rehearsal.steps, present.steps),
        causes: packages.flatMap(([one, spec]) =>
          interruptCauses(one, installed.has(one) ? ownValue(before?.spec.packages, one) : undefined, spec),
        ),
        agent,
        doubt: trust?.known === false ? trust.why : guess,
      }
      return [name, plan]
    }),
  )
}

/** Where only the operator has worked, it has rolled out the configuration that the Skyhook has before the edit. */
const rolledOutBy = (skyhooks: readonly Skyhook[]): Snapshot['rolledOutConfigs'] =>
  new Map(
    skyhooks.map(({ metadata, spec }) => [
      metadata.name,
      Object.fromEntries(
        Object.entries(spec.packages ?? {}).flatMap(([name, { configMap = {} }]) =>
          Object.keys(configMap).length > 0 ? [[name, configMap]] : [],
        ),
      ),
    ]),
  )

export const holdsSlot = (slots: readonly Slot[], node: string, skyhook: string): boolean =>
  slots.some(({ holder, lease }) => holder === node && lease.metadata.labels?.[labelKeys.name] === skyhook)

const hasConditional = (skyhooks: readonly Skyhook[], { skyhooks: records }: Journal): boolean =>
  [
    ...skyhooks.flatMap(({ spec }) => Object.values(spec.packages ?? {})),
    // of a key that the spec no longer has
    ...Object.values(records).flatMap(({ packages }) =>
      Object.values(packages).map(({ config }) => ({ interrupt: undefined, configInterrupts: config?.interrupts })),
    ),
  ].some(({ interrupt, configInterrupts = {} }) =>
    [interrupt, ...Object.values(configInterrupts)].some((one) => one?.when === 'required'),
  )

export type InterruptCause = {
  readonly package: string
  readonly type: Interrupt['type']
  /** The field of the spec, such as `packages.tuning.configInterrupts["*.conf"]`. */
  readonly field: string
  /** The key of configMap that it matches; absent for the package's own interrupt. */
  readonly key?: string
  /** Only if the package says that it needs it. */
  readonly isConditional: boolean
}

/** What may ask for an interrupt when a package goes from one spec to the other; `before` undefined: it is new. */
function interruptCauses(name: string, before: PackageSpec | undefined, after: PackageSpec): readonly InterruptCause[] {
  const causeOf = ({ type, when }: Interrupt, field: string, key?: string): InterruptCause => ({
    package: name,
    type,
    field: `packages.${name}.${field}`,
    ...(key !== undefined && { key }),
    isConditional: when === 'required',
  })
  const isInstalled = before === undefined || before.version !== after.version
  const own = after.interrupt ? [causeOf(after.interrupt, 'interrupt')] : []
  if (isInstalled) return own
  const keys = changedKeys(before.configMap ?? {}, after.configMap ?? {})
  const patterns = Object.entries({ ...before.configInterrupts, ...after.configInterrupts })
  const keyed = keys.flatMap((key) =>
    patterns.flatMap(([pattern, interrupt]) =>
      matchesGlob(pattern, key) ? [causeOf(interrupt, `configInterrupts[${JSON.stringify(pattern)}]`, key)] : [],
    ),
  )
  return [...keyed, ...own.filter(({ isConditional }) => isConditional)]
}
