/** What a campaign does and when, by its seed. Where an action hits depends on what it meets, so it draws numbers only. */
import type { RecordedFault } from '../kit/recorded/evidence.ts'
import type { ActionRecord } from './arena.ts'
import { seededRandom, shuffled } from './random.ts'

export const faultKinds = [
  'agent killed',
  'agent pod deleted',
  'census killed',
  'host rebooted',
  'power cut',
  'network cut',
  'API server restarted',
  'API server paused',
  'registry paused',
  'D-Bus restarted',
  'logind restarted',
  'slot deleted by hand',
  'Node deleted',
] as const

export const editKinds = [
  'budget changed',
  'budget cut in mid-reboot',
  'paused',
  'paused in mid-reboot',
  'paused, then a holder of a slot loses its agent',
  'disabled',
  'disabled in mid-reboot',
  'selector changed',
  'node leaves the selector',
  'node ignored',
  'priorities swapped',
  'package version changed',
  'package configuration changed',
  'package added or removed',
  'interrupt added or removed',
  'node cordoned by the administrator',
  'node uncordoned by the administrator',
  'protected pod runs for a while',
] as const

export type FaultKind = (typeof faultKinds)[number]
export type EditKind = (typeof editKinds)[number]
export type ActionKind = FaultKind | EditKind

/** What the actions were for those whom they hit; an edit is nobody's fault. */
export const faultsIn = (actions: readonly ActionRecord[], nodes: readonly string[]): readonly RecordedFault[] =>
  actions.flatMap(({ kind, detail, startedMs, endedMs }): readonly RecordedFault[] => {
    if (kind.startsWith('API server') || kind === 'census killed') return [{ node: undefined, startedMs, endedMs }]
    if (!(faultKinds as readonly string[]).includes(kind)) return []
    const down = kind === 'host rebooted' ? 'shutdown' : kind === 'power cut' ? kind : undefined
    return nodes.filter((node) => detail.includes(node)).map((node) => ({ node, startedMs, endedMs, down }))
  })

export type PlannedAction = {
  readonly number: number
  readonly atMs: number
  readonly kind: ActionKind
  /** From 0 to 1: which of the possible targets. */
  readonly target: number
  /** From 0 to 1: which of the possible values, such as the new budget. */
  readonly value: number
  /** How long what it does lasts, where it ends by itself. */
  readonly lastsMs: number
}

const minGapMs = 1_500
const maxGapMs = 4_500
const minLastsMs = 3_000
const maxLastsMs = 18_000

/** Every kind comes once before any comes again. */
export function planOf(seed: number, durationMs: number): PlannedAction[] {
  const random = seededRandom(seed)
  const between = (from: number, to: number): number => Math.round(from + random() * (to - from))
  const actions: PlannedAction[] = []
  let rest: ActionKind[] = []
  for (let atMs = between(0, maxGapMs); atMs < durationMs; atMs += between(minGapMs, maxGapMs)) {
    if (rest.length === 0) rest = shuffled([...faultKinds, ...editKinds], random)
    const kind = rest.pop() as ActionKind
    const lastsMs = between(minLastsMs, maxLastsMs)
    actions.push({ number: actions.length + 1, atMs, kind, target: random(), value: random(), lastsMs })
  }
  return actions
}
