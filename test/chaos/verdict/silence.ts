/**
 * A node that a Skyhook selects and that is not complete shows progress every minute, or the reason for its wait. What
 * disturbs the node or the API server starts the minute again.
 */
import { disableKey, ignoreLabel, pauseKey } from '../../../src/schemas/annotations.ts'
import { apiGroup } from '../../../src/schemas/api.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { selects } from '../../../src/schemas/selectors.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { publishedState } from '../../e2e/skyhooks.ts'
import { disturbancesOf } from './disturbances.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'

const maxSilenceMs = 60_000
/** An agent that lost the API server for a moment sees an edit later; a wrong reason may last this long. */
const maxStaleReasonMs = 45_000

export function judgeSilence(evidence: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  for (const skyhook of evidence.skyhooks) {
    for (const node of evidence.steps.keys()) {
      checked++
      const found = silencesOf(evidence, skyhook, node)
      violations.push(...found)
    }
  }
  return { checked, violations }
}

function silencesOf(evidence: Evidence, skyhook: string, node: string): Violation[] {
  const violations: Violation[] = []
  const disturbances = disturbancesOf(evidence, node)
  let shown = ''
  let quietSinceMs = -1
  let wrongSinceMs = -1
  let isSilent = false
  const lastDisturbanceMs = (atMs: number): number => disturbances.findLast((each) => each <= atMs) ?? 0
  const look = (atMs: number, found: KubernetesNode | undefined, spec: Skyhook | undefined): void => {
    const isDue =
      found !== undefined && spec !== undefined && selects(spec.spec.nodeSelectors, found.metadata.labels ?? {})
    const { status, reason } = publishedState(found, skyhook)
    const now = found ? appearanceOf(found) : ''
    if (now !== shown || !isDue || status === 'complete' || reason !== undefined) {
      quietSinceMs = -1
      isSilent = false
    }
    shown = now
    if (isDue && status !== 'complete' && reason === undefined && quietSinceMs < 0) quietSinceMs = atMs
    const sinceMs = Math.max(quietSinceMs, lastDisturbanceMs(atMs))
    if (quietSinceMs >= 0 && atMs - sinceMs > maxSilenceMs && !isSilent) {
      isSilent = true
      const seconds = Math.round((atMs - sinceMs) / 1000)
      violations.push({ atMs, text: `${node} is ${status} for ${skyhook} and silent for ${seconds} s` })
    }
    const isWrong = reason !== undefined && !isTrue(reason.reason, found, spec)
    if (!isWrong) wrongSinceMs = -1
    else if (wrongSinceMs < 0) wrongSinceMs = atMs
    else if (atMs - Math.max(wrongSinceMs, lastDisturbanceMs(atMs)) > maxStaleReasonMs) {
      violations.push({ atMs, text: `${node} says ${reason.reason} for ${skyhook}, which is not true` })
      wrongSinceMs = -1
    }
  }
  for (const { change, nodes, skyhooks } of evidence.moments) look(change.atMs, nodes.get(node), skyhooks.get(skyhook))
  return violations
}

/** What of it an agent writes; heartbeats of the kubelet are not progress. */
function appearanceOf({ metadata, spec, status }: KubernetesNode): string {
  const own = (entries: Readonly<Record<string, string>> = {}): unknown[] =>
    Object.entries(entries).filter(([key]) => key.startsWith(apiGroup))
  const boot = status?.nodeInfo?.bootID
  return JSON.stringify([metadata.uid, own(metadata.annotations), own(metadata.labels), spec?.unschedulable, boot])
}

/** Only of the reasons that an edit gives. */
function isTrue(reason: string, node: KubernetesNode | undefined, skyhook: Skyhook | undefined): boolean {
  switch (reason) {
    case 'Paused':
      return skyhook?.metadata.annotations?.[pauseKey] === 'true'
    case 'Disabled':
      return skyhook?.metadata.annotations?.[disableKey] === 'true'
    case 'Ignored':
      return node?.metadata.labels?.[ignoreLabel] !== undefined
    default:
      return true
  }
}
