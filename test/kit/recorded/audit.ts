/** The API server's audit log: which agent asked for what, when, and what it was answered. */
import { createReadStream, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export type AuditedRequest = {
  /** The agent's node; its census has the same. */
  readonly node: string
  readonly verb: string
  readonly resource: string
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  readonly name: string | undefined
  /** With its query. */
  readonly uri: string
  readonly receivedMs: number
  readonly answeredMs: number
  readonly status: number
}

type Entry = {
  readonly auditID: string
  readonly stage: string
  readonly verb: string
  readonly requestURI: string
  readonly user: { readonly extra?: Readonly<Record<string, readonly string[]>> }
  readonly objectRef?: {
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code?: number }
  readonly requestReceivedTimestamp: string
  readonly stageTimestamp: string
}

const agentUser = '"system:serviceaccount:skyhook:skyhookd"'

/** Every request of the agents, in the order in which the API server received them. A watch counts when it starts. */
export async function readAudit(folder: string): Promise<AuditedRequest[]> {
  const requests = new Map<string, AuditedRequest>()
  const files = readdirSync(folder).filter((name) => /^audit.*\.log$/.test(name)) // a full one is renamed
  for (const file of files) {
    for await (const line of createInterface(createReadStream(join(folder, file)))) {
      const request = line.includes(agentUser) ? parse(line) : undefined
      if (request && !requests.has(request.id)) requests.set(request.id, request)
    }
  }
  return [...requests.values()].toSorted((a, b) => a.receivedMs - b.receivedMs)
}

function parse(line: string): (AuditedRequest & { readonly id: string }) | undefined {
  try {
    const entry = JSON.parse(line) as Entry
    const { resource = '', subresource, namespace, name } = entry.objectRef ?? {}
    return {
      id: entry.auditID,
      node: entry.user.extra?.['authentication.kubernetes.io/node-name']?.[0] ?? '',
      verb: entry.verb,
      resource,
      subresource,
      namespace,
      name,
      uri: entry.requestURI,
      receivedMs: Date.parse(entry.requestReceivedTimestamp),
      answeredMs: Date.parse(entry.stageTimestamp),
      status: entry.responseStatus?.code ?? 0,
    }
  } catch {
    return undefined // the last line before a kill
  }
}

/** Reads what is committed, instead of what some cache has. */
export const isConsistentRead = ({ uri }: AuditedRequest): boolean => !uri.includes('resourceVersion=')
