import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Snapshot, StageSettings } from '../../stages/model/snapshot.ts'

/** What the owners of the agent's knowledge have at this moment. */
export type Observations = Omit<Snapshot, 'nowMs' | 'node' | 'settings'> & {
  /** Undefined while the own Node has not been read. */
  readonly node: KubernetesNode | undefined
  /** Why the journal cannot be written; nothing starts meanwhile. */
  readonly journalError: string | undefined
}

/** A snapshot for one decision; undefined while the own Node is not known. */
export function takeSnapshot(
  { node, journalError, host, ...observed }: Observations,
  nowMs: number,
  settings: StageSettings,
): Snapshot | undefined {
  if (!node) return undefined
  const isHostUsable = host.state === 'unusable' || journalError === undefined
  return {
    ...observed,
    nowMs,
    node,
    settings,
    host: isHostUsable
      ? host
      : {
          state: 'unusable',
          reason: 'HostUnusable',
          message: `not starting work: the journal cannot be written: ${journalError}`,
        },
  }
}
