/** The requests of agents, as the API server wrote them down. */
import { open, stat } from 'node:fs/promises'
import { censusLeaseName } from '../../src/lease/names.ts'

export type AuditedRequest = {
  readonly verb: string
  /** `nodes/status`; `election` for the Lease of the census, which candidates read whatever work there is. */
  readonly resource: string
  readonly name: string
  readonly code: number
  readonly receivedMs: number
  readonly answeredMs: number
}

type Entry = {
  readonly auditID: string
  readonly verb: string
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string; readonly name?: string }
  readonly responseStatus?: { readonly code?: number }
  readonly requestReceivedTimestamp: string
  readonly stageTimestamp: string
}

export const sizeOf = async (file: string): Promise<number> => (await stat(file)).size

/**
 * The requests that came between two places in the log, the first of which was the end of the log at `sinceMs`; each
 * once. A watch is there from its start, and again at its end.
 */
export async function readAuditLog(
  file: string,
  { fromByte, toByte, sinceMs }: { readonly fromByte: number; readonly toByte: number; readonly sinceMs: number },
): Promise<AuditedRequest[]> {
  const requests = new Map<string, AuditedRequest>()
  const handle = await open(file)
  try {
    const stream = handle.createReadStream({ start: fromByte, end: Math.max(fromByte, toByte - 1), encoding: 'utf8' })
    let rest = ''
    for await (const chunk of stream as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const { auditID, ...request } = parse(line)
        if (request.receivedMs >= sinceMs && !requests.has(auditID)) requests.set(auditID, request)
      }
    }
  } finally {
    await handle.close()
  }
  return [...requests.values()]
}

function parse(line: string): AuditedRequest & { readonly auditID: string } {
  const { auditID, verb, objectRef, responseStatus, requestReceivedTimestamp, stageTimestamp } = JSON.parse(
    line,
  ) as Entry
  const { resource = '', subresource, name = '' } = objectRef ?? {}
  const kind = subresource === undefined ? resource : `${resource}/${subresource}`
  return {
    auditID,
    verb,
    resource: name === censusLeaseName ? 'election' : kind,
    name,
    code: responseStatus?.code ?? 0,
    receivedMs: Date.parse(requestReceivedTimestamp),
    answeredMs: Date.parse(stageTimestamp),
  }
}

/** Requests by `verb resource`, the most frequent first. */
export function countsOf(requests: readonly AuditedRequest[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { verb, resource } of requests)
    counts.set(`${verb} ${resource}`, (counts.get(`${verb} ${resource}`) ?? 0) + 1)
  return new Map([...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)))
}
