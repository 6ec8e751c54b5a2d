/**
 * When each alert has to fire, by the recorded history alone. An alert lasts from its trouble plus `delayMs` until the
 * trouble is over plus `lingerMs`; shorter interruptions do not count.
 */
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { Labels } from '../kit/objects/exposition.ts'
import { censusNode, type Moment, nodesFor, skyhooksOf } from './history.ts'

const minuteMs = 60_000

export type AlertTruth = {
  readonly delayMs: number
  readonly lingerMs: number
  /** The trouble is seen only while an agent counts the nodes, and for `lingerMs` afterwards. */
  readonly needsCensus: boolean
  /** Labels of the alert for each trouble there is. */
  readonly troubles: (moment: Moment, atMs: number) => readonly Labels[]
}

type Row = { readonly type: string; readonly status: string; readonly reason: string }
const stalledReason = ({ status = {} }: Skyhook): string | undefined =>
  ((status['conditions'] ?? []) as readonly Row[]).find((row) => row.type === 'Stalled' && row.status === 'True')
    ?.reason

/** The Skyhooks that have a selected node with it. */
const bySkyhook =
  (isTrouble: (node: ReturnType<typeof nodesFor>[number]) => boolean) =>
  (moment: Moment, atMs: number): readonly Labels[] =>
    skyhooksOf(moment)
      .filter((skyhook) => nodesFor(moment, skyhook, atMs).some((node) => node.isSelected && isTrouble(node)))
      .map(({ metadata }) => ({ skyhook_name: metadata.name }))

type Batches = Readonly<Record<string, { readonly batchState?: { readonly shouldStop?: boolean } }>>

export const alertTruths: Readonly<Record<string, AlertTruth>> = {
  SkyhookErroring: {
    delayMs: 25 * minuteMs,
    lingerMs: 10 * minuteMs,
    needsCensus: true,
    troubles: bySkyhook(({ agent, status }) => agent !== 'silent' && status === 'erroring'),
  },
  SkyhookInputMissing: {
    delayMs: 10 * minuteMs,
    lingerMs: 5 * minuteMs,
    needsCensus: true,
    troubles: (moment, atMs) =>
      ['ImagePull', 'ReferenceMissing'].flatMap((name) =>
        bySkyhook(({ reason }) => reason?.reason === name)(moment, atMs).map((labels) => ({ ...labels, reason: name })),
      ),
  },
  SkyhookBudgetHeldByFailures: {
    delayMs: 10 * minuteMs,
    lingerMs: 5 * minuteMs,
    needsCensus: true,
    troubles: (moment) =>
      skyhooksOf(moment)
        .filter((skyhook) => stalledReason(skyhook) === 'FailedNodesHoldBudget')
        .map(({ metadata }) => ({ skyhook_name: metadata.name })),
  },
  SkyhookRolloutStopped: {
    delayMs: minuteMs,
    lingerMs: 5 * minuteMs,
    needsCensus: true,
    troubles: (moment) =>
      skyhooksOf(moment).flatMap(({ metadata, spec, status = {} }) =>
        Object.entries((status['compartmentStatuses'] ?? {}) as Batches)
          .filter(([, { batchState }]) => batchState?.shouldStop === true)
          .map(([compartment]) => ({
            skyhook_name: metadata.name,
            policy_name: spec.deploymentPolicy ?? '',
            compartment_name: compartment,
          })),
      ),
  },
  SkyhookRebootLoop: {
    delayMs: minuteMs,
    lingerMs: 5 * minuteMs,
    needsCensus: true,
    troubles: bySkyhook(({ reason }) => reason?.reason === 'RebootLoop'),
  },
  SkyhookDrainBlocked: {
    delayMs: 30 * minuteMs,
    lingerMs: 5 * minuteMs,
    needsCensus: false,
    troubles: (moment, atMs) =>
      skyhooksOf(moment).flatMap((skyhook) =>
        nodesFor(moment, skyhook, atMs)
          .filter(({ agent, reason }) => agent === 'ready' && reason?.reason === 'DrainBlocked')
          .map(({ name }) => ({ node: name, instance: `${name}:9475` })),
      ),
  },
  SkyhookStaleSlot: {
    delayMs: 5 * minuteMs,
    lingerMs: 5 * minuteMs,
    needsCensus: true,
    troubles: bySkyhook(
      ({ agent, status }) => agent === 'silent' && (status === 'in_progress' || status === 'erroring'),
    ),
  },
  SkyhookAgentMissing: {
    delayMs: 5 * minuteMs,
    lingerMs: 5 * minuteMs,
    needsCensus: true,
    troubles: bySkyhook(({ agent }) => agent === 'silent'),
  },
  SkyhookLeftOverCordon: {
    delayMs: 15 * minuteMs,
    lingerMs: 5 * minuteMs,
    needsCensus: true,
    troubles: (moment, atMs) =>
      skyhooksOf(moment).some((skyhook) =>
        nodesFor(moment, skyhook, atMs).some(
          ({ hasCordonMark, isSelected, status }) => hasCordonMark && (!isSelected || status === 'complete'),
        ),
      )
        ? [{}]
        : [],
  },
  SkyhookCensusMissing: {
    delayMs: 10 * minuteMs,
    lingerMs: 0,
    needsCensus: false,
    troubles: (moment) => (censusNode(moment) === undefined ? [{}] : []),
  },
}

export type Span = { readonly labels: Labels; readonly fromMs: number; readonly toMs: number }

/** Uninterrupted troubles until the last one of `times`, which are in order. */
export function troubleSpans(
  { troubles, lingerMs, needsCensus }: AlertTruth,
  moments: readonly Moment[],
  times: readonly number[],
): readonly Span[] {
  const open = new Map<string, Span>()
  const closed: Span[] = []
  let countedAtMs = -Infinity
  let lastMs = -Infinity
  for (const { moment, atMs } of samples(moments, times)) {
    if (censusNode(moment) !== undefined) countedAtMs = atMs
    for (const labels of troubles(moment, atMs)) {
      const key = JSON.stringify(labels)
      const span = open.get(key)
      if (needsCensus && atMs > countedAtMs && (span === undefined || atMs - countedAtMs > lingerMs)) continue
      const isSame = span !== undefined && (span.toMs >= lastMs || atMs - span.toMs <= lingerMs)
      if (span !== undefined && !isSame) closed.push(span)
      open.set(key, { labels, fromMs: isSame ? span.fromMs : atMs, toMs: atMs })
    }
    lastMs = atMs
  }
  return [...closed, ...open.values()]
}

/** Each moment at its own time, and the last one before each of `times`: what counts time changes by itself. */
function samples(
  moments: readonly Moment[],
  times: readonly number[],
): readonly { readonly moment: Moment; readonly atMs: number }[] {
  const atTimes = times.flatMap((atMs) => {
    const moment = moments.findLast((one) => one.atMs <= atMs)
    return moment === undefined ? [] : [{ moment, atMs }]
  })
  const own = moments.map((moment) => ({ moment, atMs: moment.atMs }))
  const lastMs = times.at(-1) ?? -Infinity
  return [...own, ...atTimes].filter(({ atMs }) => atMs <= lastMs).toSorted((one, other) => one.atMs - other.atMs)
}
