import { readFileSync, statSync } from 'node:fs'

type Entry = {
  readonly auditID: string
  readonly verb: string
  readonly user: { readonly username: string; readonly extra?: Readonly<Record<string, readonly string[]>> }
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string; readonly name?: string }
  readonly requestReceivedTimestamp: string
}

export const sizeOfAudit = (file: string): number => statSync(file).size

/** The election of the census; candidates read it from time to time, regardless of work. */
const electionLease = 'skyhookd-census'

/**
 * The requests of one node's agent between two wall clock times, from the API server's audit log: `verb resource`, once
 * per request. `fromByte`: the end of the log at the start of that time. Watches count when they start; requests of the
 * election count, as `verb election`, only `withElection`.
 */
export function requestsOf(
  file: string,
  fromByte: number,
  node: string,
  fromMs: number,
  toMs: number,
  { withElection = false } = {},
): string[] {
  const requestsById = new Map<string, string>()
  for (const line of readFileSync(file).subarray(fromByte).toString('utf8').split('\n')) {
    if (!line.includes('"system:serviceaccount:skyhook:skyhookd"')) continue
    const { auditID, verb, user, objectRef, requestReceivedTimestamp } = JSON.parse(line) as Entry
    const atMs = Date.parse(requestReceivedTimestamp)
    if (atMs < fromMs || atMs > toMs || user.extra?.['authentication.kubernetes.io/node-name']?.[0] !== node) continue
    const { resource = '', subresource, name } = objectRef ?? {}
    const isElection = name === electionLease
    if (isElection && !withElection) continue
    const kind = isElection ? 'election' : `${resource}${subresource === undefined ? '' : `/${subresource}`}`
    requestsById.set(auditID, `${verb} ${kind}`)
  }
  return [...requestsById.values()]
}

/** What an idle agent may send: requests of the election, and watches that the API server has ended. */
export const isRenewal = (request: string): boolean => request.endsWith(' election') || request.startsWith('watch ')

/** `2 get skyhooks, 1 patch nodes/status`. */
export function summaryOf(requests: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const request of requests) counts.set(request, (counts.get(request) ?? 0) + 1)
  return [...counts]
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .map(([request, count]) => `${count} ${request}`)
    .join(', ')
}
