/** Gathers the evidence of a campaign. */
import { join } from 'node:path'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { Moment } from '../cluster/moments.ts'
import type { History } from '../history.ts'
import { readAudit } from './audit.ts'
import type { Evidence } from './evidence.ts'
import { readSteps } from './step-lines.ts'

/** `told`: what only the campaign knows. */
export async function collect(
  { box, history, nodes }: { readonly box: Sandbox; readonly history: History; readonly nodes: readonly string[] },
  told: Pick<Evidence, 'faults' | 'deletions' | 'ownVersions'>,
): Promise<Evidence> {
  const endedMs = Date.now()
  const moments: Moment[] = []
  const none = new Map()
  // a copy of all Events per moment would fill the memory; the last has them all
  for (const moment of await history.moments()) moments.push({ ...moment, events: none })
  const last = moments.pop()
  if (last) moments.push({ ...last, events: history.now.events })
  const skyhooks = moments.flatMap(({ change }) => (change.kind === 'skyhooks' ? [change.object.metadata.name] : []))
  return {
    ...told,
    moments,
    skyhooks: [...new Set(skyhooks)],
    audit: await readAudit(join(box.folder, 'control-plane')),
    steps: new Map(nodes.map((node) => [node, readSteps(box, node)])),
    endedMs,
  }
}
