import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { appliedHash } from '../../../src/stages/model/package-inputs.ts'
import type { HostEvidence } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A Node shows `complete` for a spec only if the host is what the spec asks for. */
export const completeIsTrue: Invariant = (evidence) => ({
  published({ annotations }) {
    const { node } = evidence
    const shown = (key: string): string | null | undefined =>
      annotations[`skyhook.nvidia.com/${key}`] ?? node.annotation(key)
    for (const [name, { spec, metadata }] of node.views) {
      if (metadata.deletionTimestamp !== undefined) continue // nothing is asked of it any more
      const isForSpec = shown(`journal_${name}`)?.includes(`"applied":"${appliedHash(spec)}"`)
      if (shown(`status_${name}`) === 'complete' && isForSpec) assertComplete(evidence, name, spec)
    }
  },
})

export function assertComplete({ node, host, isDone }: HostEvidence, skyhook: string, spec: SkyhookSpec): void {
  const unit = node.running().find(({ view }) => view.metadata.name === skyhook)
  if (unit) violate(`complete is published while ${unit.record.name} ${unit.attempt.mode} runs`)
  for (const [name, wanted] of Object.entries(spec.packages ?? {})) {
    const key = `${skyhook}/${name}`
    if (!isDone(key, wanted))
      violate(
        `complete is published, but of ${name} the host has ${JSON.stringify(host.get(key))}, ` +
          `not ${JSON.stringify(wanted)}`,
      )
  }
}
