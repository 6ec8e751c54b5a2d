/** Whether a Node shows what its host does: what a node has not published yet no plan knows. */
import { journalPath } from '../../../src/host/fs/journal-file.ts'
import { nodeStateKey } from '../../../src/schemas/annotations.ts'
import { type Journal, openStepsOf } from '../../../src/schemas/journal.ts'
import { nodeStateText } from '../../../src/stages/publish/node-annotations.ts'
import type { FleetScene } from '../../kit/fleet/fleet-scene.ts'
import type { WorldHost } from '../../kit/fleet/world.ts'
import { filesOf } from '../../kit/files/host-files.ts'

/**
 * The Node shows all stages of the journal, and the journal knows every step and interrupt of the host. `running`:
 * units of the steps that run there.
 */
export function isUpToDate(
  scene: FleetScene,
  { host, nodeName, truth }: WorldHost,
  running: ReadonlySet<string>,
  skyhook: string,
): boolean {
  const files = filesOf(host.disk)
  const { skyhooks } = files.exists(journalPath)
    ? (JSON.parse(files.read(journalPath)) as Journal)
    : { skyhooks: {} as Journal['skyhooks'] }
  const shown = scene.annotation(nodeName(), nodeStateKey(skyhook))
  const { [skyhook]: record } = skyhooks
  if (record === undefined) return shown === undefined && running.size === 0
  const recorded = new Set(openStepsOf(record).map(({ unit }) => unit))
  return (
    shown === nodeStateText(record) &&
    recorded.symmetricDifference(running).size === 0 &&
    truth.isInterrupted() === (record.interrupt !== undefined)
  )
}
