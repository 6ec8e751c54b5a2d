/** The source of a view: a cluster, or a support archive. */
import { openBundle } from '../bundle/open.ts'
import type { Context } from '../framework/command.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Clock } from '../../schemas/clock.ts'

export const fromFlag = {
  type: 'text',
  placeholder: 'FILE',
  complete: 'files',
  replacesCluster: true,
  summary: 'a support archive instead of a cluster; ages are those of the time when it was made',
} as const

export type Source = {
  readonly transport: KubeTransport
  /** Of the agents. */
  readonly namespace: string
  /** Of an archive: stopped at the time of the archive. */
  readonly clock: Clock
}

/** `file`: an archive; undefined: the cluster of the call. */
export async function openSource(context: Context, file: string | undefined): Promise<Source> {
  if (file !== undefined) return await openBundle(file, context)
  const { transport, agentNamespace } = await context.connect()
  return { transport, namespace: await agentNamespace(), clock: context.clock }
}
