/** An agent asks for little, also in trouble: a hot loop is a failure. */
import type { AuditedRequest } from '../audit.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'

const windowMs = 60_000
/** Twice what the busiest minute of an agent took here that was elected for the census. */
export const maxRequestsPerMinute = 400

export function judgeRates({ audit }: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  for (const [node, requests] of Map.groupBy(audit, (request) => request.node)) {
    checked++
    const busiest = busiestMinute(requests)
    if (busiest.length <= maxRequestsPerMinute) continue
    const from = busiest[0]?.receivedMs ?? 0
    violations.push({
      atMs: from,
      text: `the agent of ${node} sent ${busiest.length} requests in a minute: ${summaryOf(busiest)}`,
    })
  }
  return { checked, violations }
}

/** The most requests of any 60 s. */
export function busiestMinute(requests: readonly AuditedRequest[]): readonly AuditedRequest[] {
  let best: readonly [number, number] = [0, 0]
  let from = 0
  for (let to = 0; to < requests.length; to++) {
    while ((requests[to]?.receivedMs ?? 0) - (requests[from]?.receivedMs ?? 0) > windowMs) from++
    if (to + 1 - from > best[1] - best[0]) best = [from, to + 1]
  }
  return requests.slice(...best)
}

function summaryOf(requests: readonly AuditedRequest[]): string {
  const groups = [...Map.groupBy(requests, ({ verb, resource, name = '' }) => `${verb} ${resource} ${name}`)]
  return groups
    .toSorted(([, a], [, b]) => b.length - a.length)
    .slice(0, 5)
    .map(([what, each]) => `${each.length} ${what}`.trim())
    .join(', ')
}
