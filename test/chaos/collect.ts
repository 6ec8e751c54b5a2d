/** Gathers the evidence of a campaign. */
import { join } from 'node:path'
import type { Moment } from '../kit/cluster/moments.ts'
import type { ActionRecord, Arena, Deletion } from './arena.ts'
import { readAudit } from './audit.ts'
import { skyhookNames } from './scene.ts'
import { readSteps } from './steps.ts'
import type { Evidence } from './evidence.ts'

export async function collect(
  { box, history, nodes, ownVersions }: Arena,
  actions: readonly ActionRecord[],
  deletions: readonly Deletion[],
): Promise<Evidence> {
  const endedMs = Date.now()
  const moments: Moment[] = []
  const none = new Map()
  // a copy of all Events per moment would fill the memory; the last has them all
  for (const moment of await history.moments()) moments.push({ ...moment, events: none })
  const last = moments.pop()
  if (last) moments.push({ ...last, events: history.now.events })
  return {
    moments,
    audit: await readAudit(join(box.folder, 'control-plane')),
    steps: new Map(nodes.map((node) => [node, readSteps(box, node)])),
    actions,
    deletions,
    ownVersions,
    skyhooks: skyhookNames,
    endedMs,
  }
}
