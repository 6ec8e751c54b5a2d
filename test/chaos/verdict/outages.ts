/**
 * When a node was out of service for a Skyhook, by what its host did and its Node showed, never by its slots: from the
 * cordon mark or the first step, whichever came first, until the mark is gone and the work complete.
 */
import { cordonKey } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { selects } from '../../../src/schemas/selectors.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { publishedState } from '../../e2e/skyhooks.ts'
import { type AuditedRequest, isConsistentRead } from '../audit.ts'
import type { StepLine } from '../steps.ts'
import type { Evidence } from './evidence.ts'

export type Outage = {
  readonly node: string
  readonly skyhook: string
  readonly startedMs: number
  /** Until the end of the recording: Infinity. */
  readonly endedMs: number
  /** The version of the Node that ended it. */
  readonly endVersion: number
  /** The agent's last consistent read of the Skyhook before; absent if the recording began later. */
  readonly admission: AuditedRequest | undefined
}

type NodeSight = {
  readonly atMs: number
  readonly version: number
  readonly isMarked: boolean
  readonly isSelected: boolean
  readonly isDone: boolean
  readonly revision: number
}

const isFinal = ({ stage, state }: { readonly stage?: string; readonly state?: string }): boolean =>
  state === 'complete' && (stage === 'config' || stage === 'post-interrupt')

const finalModes: readonly string[] = ['config_check', 'post_interrupt_check']

/** A step that was killed writes no end; none of ours takes longer. */
const maxStepMs = 5_000

export function outagesOf(evidence: Evidence): Outage[] {
  return evidence.skyhooks.flatMap((skyhook) => {
    const sights = sightsOf(evidence, skyhook)
    return [...evidence.steps.keys()].flatMap((node) => {
      const steps = (evidence.steps.get(node) ?? []).filter((step) => step.skyhook === skyhook)
      const reads = evidence.audit.filter(
        (request) =>
          request.node === node &&
          request.verb === 'get' &&
          request.resource === 'skyhooks' &&
          request.name === skyhook &&
          request.status === 200 &&
          isConsistentRead(request),
      )
      return admitted(node, skyhook, intervals(sights.get(node) ?? [], steps), reads)
    })
  })
}

/** What each Node showed of the Skyhook, whenever Node or Skyhook changed. */
function sightsOf({ moments }: Evidence, skyhook: string): Map<string, NodeSight[]> {
  const sights = new Map<string, NodeSight[]>()
  for (const { change, nodes, skyhooks } of moments) {
    const spec = skyhooks.get(skyhook)
    const changed =
      change.kind === 'nodes' && change.type !== 'DELETED'
        ? [change.object]
        : change.kind === 'skyhooks' && change.object.metadata.name === skyhook
          ? [...nodes.values()]
          : []
    for (const node of changed) {
      const { name } = node.metadata
      const sight = sightOf(node, spec, skyhook, change.atMs, change.resourceVersion)
      const ofNode = sights.get(name)
      if (ofNode) ofNode.push(sight)
      else sights.set(name, [sight])
    }
  }
  return sights
}

function sightOf(
  node: KubernetesNode,
  spec: Skyhook | undefined,
  skyhook: string,
  atMs: number,
  version: number,
): NodeSight {
  const { status, companion, state } = publishedState(node, skyhook)
  const entries = Object.values(state)
  return {
    atMs,
    version,
    isMarked: node.metadata.annotations?.[cordonKey(skyhook)] === 'true',
    isSelected: spec !== undefined && selects(spec.spec.nodeSelectors, node.metadata.labels ?? {}),
    isDone:
      status === 'complete' ||
      status === 'disabled' ||
      // the next spec came before it could say complete
      (status === 'waiting' && entries.length > 0 && entries.every(isFinal)),
    revision: companion?.rev ?? -1,
  }
}

type Interval = Pick<Outage, 'startedMs' | 'endedMs' | 'endVersion'>

function intervals(sights: readonly NodeSight[], steps: readonly StepLine[]): Interval[] {
  const found: Interval[] = []
  let open: { startedMs: number; revision: number; hasStep: boolean } | undefined
  let revision = -1
  let lastStepMs = -Infinity
  let isStepRunning = false
  let publishedMs = -Infinity
  /** By package, of this outage. */
  const lastSteps = new Map<string, StepLine>()
  let next = 0
  const takeSteps = (untilMs: number): void => {
    for (let step = steps[next]; step && step.atMs <= untilMs; step = steps[++next]) {
      open ??= { startedMs: step.atMs, revision, hasStep: false }
      open.hasStep = true
      lastStepMs = step.atMs
      isStepRunning = step.what === 'begins'
      lastSteps.set(step.package, step)
    }
  }
  /** The API server was away since, so the Node shows less than the host has done. */
  const isDoneUnseen = (): boolean =>
    publishedMs < lastStepMs &&
    lastSteps.size > 0 &&
    [...lastSteps.values()].every(({ mode, what }) => what === 'ends' && finalModes.includes(mode))
  for (const sight of sights) {
    takeSteps(sight.atMs)
    if (sight.isMarked) open ??= { startedMs: sight.atMs, revision, hasStep: false }
    if (sight.revision > revision) publishedMs = sight.atMs
    revision = Math.max(revision, sight.revision)
    if (!open || sight.isMarked) continue
    const isComplete = (sight.revision > open.revision && sight.isDone) || isDoneUnseen()
    const hasStepEnded = !isStepRunning || sight.atMs - lastStepMs > maxStepMs
    const hasLeft = !sight.isSelected && hasStepEnded // half changed, and nobody asks for the rest
    if (open.hasStep && !isComplete && !hasLeft) continue
    found.push({ startedMs: open.startedMs, endedMs: sight.atMs, endVersion: sight.version })
    open = undefined
    lastSteps.clear()
  }
  takeSteps(Infinity)
  if (open) found.push({ startedMs: open.startedMs, endedMs: Infinity, endVersion: Infinity })
  return found
}

/**
 * One that resumes without another confirming read is one with the previous, also if the node had left the selector
 * meanwhile: it has to have kept its slot.
 */
function admitted(
  node: string,
  skyhook: string,
  found: readonly Interval[],
  reads: readonly AuditedRequest[],
): Outage[] {
  const outages: Outage[] = []
  let usedMs = 0
  for (const { startedMs, endedMs, endVersion } of found) {
    const previous = outages.at(-1)
    const last = reads.findLast(({ answeredMs }) => answeredMs <= startedMs)
    const admission = last && last.receivedMs > usedMs ? last : undefined
    if (previous && !admission) outages[outages.length - 1] = { ...previous, endedMs, endVersion }
    else outages.push({ node, skyhook, startedMs, endedMs, endVersion, admission })
    usedMs = admission?.receivedMs ?? usedMs
  }
  return outages
}
