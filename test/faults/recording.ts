/**
 * What a campaign records of its cluster, for the promises that agents keep in every world: a node may end as if
 * nothing had happened and have broken one on the way.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adminTransport } from '../kit/cluster/kube.ts'
import { record } from '../kit/history.ts'
import { collect } from '../kit/recorded/collect.ts'
import type { Finding, RecordedFault } from '../kit/recorded/evidence.ts'
import { notesOf } from '../kit/recorded/findings.ts'
import { judgeRecord } from '../kit/recorded/judge.ts'
import { everywhere } from '../promises/all.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

export type Recording = {
  /** A fault of the record is over. */
  readonly registerFaults: (faults: readonly RecordedFault[]) => void
  /** Up to now. What was broken is between the changes of a timeline in that file. */
  judge(timelineFile: string): Promise<readonly Finding[]>
  stop(): void
}

/** From now on, by the API server that no fault hits. */
export async function openRecording(box: Sandbox): Promise<Recording> {
  const api = adminTransport(join(box.folder, 'recorder.kubeconfig'))
  const history = await record(api)
  const nodes = [...history.now.nodes.keys()].sort()
  const faults: RecordedFault[] = []
  return {
    registerFaults: (more) => void faults.push(...more),
    async judge(timelineFile) {
      const evidence = await collect({ box, history, nodes }, { faults, deletions: [], ownVersions: new Set() })
      const findings = judgeRecord(evidence, everywhere)
      const isBroken = findings.some(({ violations }) => violations.length > 0)
      if (isBroken) writeFileSync(timelineFile, `${history.format(notesOf(evidence, findings))}\n`)
      return findings
    },
    stop() {
      history.stop()
      api.close()
    },
  }
}
