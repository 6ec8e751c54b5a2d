/** The faults of a case, as its record is told of them. */
import { slackMs } from '../kit/recorded/commits.ts'
import type { RecordedFault } from '../kit/recorded/evidence.ts'
import type { FaultName } from './fault-names.ts'

/**
 * What a case did to its node. `hitMs`: the agent was at its failpoint; `overMs`: whatever fails has come back;
 * `endedMs`: the node is complete.
 */
export function faultsOf(
  fault: FaultName,
  node: string,
  { hitMs, overMs, endedMs }: { readonly hitMs: number; readonly overMs: number; readonly endedMs: number },
): readonly RecordedFault[] {
  const times = { startedMs: hitMs - slackMs, endedMs: overMs }
  const recovery = { node, startedMs: overMs, endedMs }
  switch (fault) {
    case 'API server down':
      return [{ node: undefined, ...times }, recovery]
    case 'host rebooted':
      return [{ node, ...times, down: 'shutdown' }, recovery]
    case 'power cut':
      return [{ node, ...times, down: fault }, recovery]
    case 'disk full':
      return [{ node, ...times, isDiskFull: true }, recovery]
    case 'agent killed':
    case 'bus restarted':
      return [{ node, ...times }, recovery]
  }
}
