/** The script of requests that a real and a simulated API server must answer alike, and how to run it. */
import { semanticsOfCompaction } from './semantics-of-compaction.ts'
import { semanticsOfCustomResources } from './semantics-of-custom-resources.ts'
import { semanticsOfLeases } from './semantics-of-leases.ts'
import { semanticsOfNodes } from './semantics-of-nodes.ts'
import { semanticsOfPods } from './semantics-of-pods.ts'
import { semanticsOfReads } from './semantics-of-reads.ts'
import type { Step, Wire, WireAnswer, WireRequest } from './semantics-step.ts'

export type TranscriptEntry = { readonly title: string; readonly summary: string; readonly answer: unknown }

export const semanticsScript: readonly Step[] = [
  ...semanticsOfLeases,
  ...semanticsOfReads,
  ...semanticsOfNodes,
  ...semanticsOfPods,
  ...semanticsOfCustomResources,
  ...semanticsOfCompaction,
]

/** Runs the steps one after another; the watches side by side, at the end of each part: they repeat what has happened. */
export async function runSemantics(wire: Wire): Promise<TranscriptEntry[]> {
  const saved = new Map<string, unknown>()
  const entries: TranscriptEntry[] = []
  let watches: (() => Promise<TranscriptEntry>)[] = []
  const runWatches = async (): Promise<void> => {
    entries.push(...(await Promise.all(watches.map(async (run) => await run()))))
    watches = []
  }
  for (const step of semanticsScript) {
    const { title, save } = step
    if (step.request === 'COMPACT') {
      await runWatches()
      await wire.compact()
      entries.push({ title, summary: '', answer: undefined })
    } else if (step.request.startsWith('WATCH ')) {
      const request = requestOf(step, saved)
      watches.push(async () => {
        const events = await wire.watch(request)
        return { title, summary: events.map(typeOf).join(''), answer: events }
      })
    } else {
      const answer = await wire.send(requestOf(step, saved))
      if (save !== undefined) saved.set(save, answer.body)
      entries.push({ title, summary: summaryOf(answer), answer })
    }
  }
  await runWatches()
  return entries
}

/** A watch is a GET. */
function requestOf({ request, body, contentType, accept }: Step, saved: ReadonlyMap<string, unknown>): WireRequest {
  const filled = JSON.parse(
    JSON.stringify({ request, body }).replace(/\{\{(.+?)\}\}/g, (_, path: string) => String(valueAt(saved, path))),
  ) as { request: string; body?: unknown }
  const [method = '', path = ''] = filled.request.split(' ')
  return {
    method: (method === 'WATCH' ? 'GET' : method) as WireRequest['method'],
    path,
    ...(filled.body !== undefined && { body: filled.body }),
    ...(contentType !== undefined && { contentType }),
    ...(accept !== undefined && { accept }),
  }
}

function valueAt(saved: ReadonlyMap<string, unknown>, path: string): unknown {
  const [name = '', ...fields] = path.split('.')
  const value = fields.reduce((one, field) => (one as Record<string, unknown> | undefined)?.[field], saved.get(name))
  if (value === undefined) throw new Error(`nothing was saved as ${path}`)
  return value
}

function summaryOf({ code, body }: WireAnswer): string {
  const reason = (body as { reason?: string }).reason
  return code < 400 || reason === undefined ? String(code) : `${code} ${reason}`
}

/** `A` for ADDED. */
const typeOf = (event: unknown): string => (event as { type?: string }).type?.[0] ?? '?'
