import { resourceId, stateDir } from '../../packages/layout.ts'
import { publishInterruptFlags } from '../../packages/operator-compat/flags.ts'
import { writeInterruptLogs } from '../../packages/step/log-files.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { InterruptRun, PackageRecord } from '../../schemas/package-record.ts'
import { ownValue } from '../../schemas/json.ts'
import type { InterruptObservation } from '../../stages/model/snapshot.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { Settings } from '../settings/settings.ts'

type PublicationPorts = {
  readonly root: HostRoot
  readonly settings: Pick<Settings, 'copyDirRoot' | 'agentLogRoot'>
  readonly journal: () => Journal
  readonly clock: Clock
}

/** Writes the logs and flags of an interrupt of one package in the operator's layout. */
export async function publishInterrupt(
  { root, settings, journal, clock }: PublicationPorts,
  skyhook: string,
  { name, version, work, pendingInterrupt, progress }: PackageRecord,
  run: InterruptRun,
  outcome: InterruptObservation | undefined,
): Promise<void> {
  const nowMs = clock.wallMs()
  const failure = progress.state === 'retrying' ? progress.failure.message : undefined
  const failureOf = (service: string | undefined): string | undefined =>
    outcome?.state !== 'failed' || outcome.services.some((failed) => failed === service) ? failure : undefined
  await writeInterruptLogs(root, settings, { skyhook, name, version }, run.interrupt, nowMs, failureOf)
  const skyhookUid = ownValue(journal().skyhooks, skyhook)?.uid
  if (skyhookUid === undefined || !work || pendingInterrupt) return // pending: the interrupt failed for this one
  if (outcome?.state !== 'done' && run.interrupt.type !== 'reboot') return
  const id = resourceId({ skyhook, skyhookUid, generation: work.generation, name, version })
  await publishInterruptFlags(root, stateDir(settings, skyhook), id, run.interrupt, nowMs)
}
