/** Output of steps, as `kubectl skyhook logs -f` shows it, in pieces for a page. */
import { startInterval } from '../../schemas/clock.ts'
import { followSteps } from '../agent-log/node-log.ts'
import type { LogPorts } from '../agent-log/read-log.ts'
import { hostFolderOf, textOf } from '../agent-log/step-texts.ts'
import type { OutputLine, OutputPart } from './page-data.ts'
import type { NodeOfSkyhook } from './source.ts'

/** Lines are sent together. */
const sendIntervalMs = 250

/** Follows the logs of the node's agents until the signal of the ports aborts. Throws what the API server answers. */
export async function followStepOutput(
  ports: LogPorts,
  { skyhook, node }: NodeOfSkyhook,
  onPart: (part: OutputPart) => void,
): Promise<void> {
  let pending: OutputLine[] = []
  const flush = (): void => {
    if (pending.length > 0) onPart({ lines: pending })
    pending = []
  }
  const cancel = startInterval(ports.clock, sendIntervalMs, flush)
  try {
    await followSteps(
      { ports, node, selection: { skyhook }, folder: hostFolderOf({ skyhook }) },
      ({ line }) => {
        const { of, atMs } = line
        const time = Number.isNaN(atMs) ? {} : { atMs }
        pending.push({ ...time, package: of.package, stage: of.mode, text: textOf(line) })
      },
      (note) => onPart({ note }),
    )
  } finally {
    cancel()
    flush()
  }
}
