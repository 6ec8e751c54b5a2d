/** Carries out a plan, keeps the Skyhooks at work meanwhile, and heals everything at the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readSlot } from '../../src/lease/slot.ts'
import { traces } from '../kit/cluster/skyhooks.ts'
import type { View } from '../kit/cluster/moments.ts'
import { Missed, type ActionRecord, type Arena } from './arena.ts'
import { healEdits, keepBusy, makeEdit } from './edits.ts'
import { healFaults, injectFault } from './faults.ts'
import { faultKinds, type ActionKind, type FaultKind, type PlannedAction } from './plan.ts'
import { incomplete, isReadyNow, skyhookNames } from './scene.ts'

/** Many times what the last rollouts take on an idle machine. */
const completionTimeoutMs = 240_000
const busyPollMs = 1_000

const isFault = (kind: ActionKind): kind is FaultKind => (faultKinds as readonly ActionKind[]).includes(kind)

/** Returns when every action is over and everything has healed. */
export async function runPlan(
  arena: Arena,
  plan: readonly PlannedAction[],
  log: (text: string) => void,
): Promise<ActionRecord[]> {
  const records: ActionRecord[] = []
  const startedMs = Date.now()
  const running: Promise<void>[] = []
  const stopping = new AbortController()
  const busy = keepWorking(arena, records, stopping.signal)
  for (const action of plan) {
    await sleep(Math.max(0, startedMs + action.atMs - Date.now()))
    running.push(carryOut(arena, action, records, log))
  }
  await Promise.all(running)
  stopping.abort()
  await busy
  await healFaults(arena)
  await healEdits(arena)
  return records
}

async function carryOut(
  arena: Arena,
  action: PlannedAction,
  records: ActionRecord[],
  log: (text: string) => void,
): Promise<void> {
  const { kind, number } = action
  const record: ActionRecord = { number, kind, startedMs: Date.now(), endedMs: Infinity, detail: '', hasMissed: false }
  records.push(record)
  try {
    record.detail = isFault(kind) ? await injectFault(arena, kind, action) : await makeEdit(arena, kind, action)
  } catch (error) {
    record.hasMissed = true
    record.detail = error instanceof Error ? error.message : String(error)
    if (!(error instanceof Missed)) log(`action ${number} (${kind}) failed: ${record.detail}`)
  }
  record.endedMs = Date.now()
}

async function keepWorking(arena: Arena, records: ActionRecord[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(busyPollMs)
    for (const detail of await keepBusy(arena).catch(() => [])) {
      const atMs = Date.now()
      records.push({ number: 0, kind: 'next rollout', startedMs: atMs, endedMs: atMs, detail, hasMissed: false })
    }
  }
}

/** Waits until nothing is left to do. Returns what is, in words, when the time is over. */
export async function awaitCompletion(arena: Arena): Promise<string[]> {
  const { history } = arena
  try {
    await history.eventually(
      'everything is complete',
      (view) => remaining(arena, view).length === 0,
      completionTimeoutMs,
    )
    return []
  } catch {
    return remaining(arena, history.now)
  }
}

function remaining({ nodes }: Arena, view: View): string[] {
  const open = skyhookNames.flatMap((name) => incomplete(view, name, nodes))
  for (const skyhook of view.skyhooks.values())
    if (!isReadyNow(skyhook)) open.push(`${skyhook.metadata.name} does not say that it is Ready`)
  for (const lease of view.leases.values())
    if (readSlot(lease)) open.push(`${lease.spec?.holderIdentity} still holds ${lease.metadata.name}`)
  for (const node of view.nodes.values()) {
    if (node.spec?.unschedulable) open.push(`${node.metadata.name} is still cordoned`)
    for (const name of skyhookNames)
      if (traces(node, name).some((key) => key.includes('/cordon_')))
        open.push(`${node.metadata.name} has a mark of ${name}`)
  }
  return open
}
