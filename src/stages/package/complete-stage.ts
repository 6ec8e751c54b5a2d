import type { PackageRecord } from '../../schemas/journal.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import { type PlanBuilder, clearFlags, entriesOf, removeEntry, setEntry } from '../model/plan-builder.ts'
import { packageKey } from '../model/package-key.ts'

/** A stage whose steps and checks passed: what the package is now, and what the host has. */
export function completeStage(builder: PlanBuilder, entry: PackageRecord, config: PackageConfig): void {
  const skyhook = builder.view.metadata.name
  builder.events.push({ type: 'stageCompleted', skyhook, package: entry.name, stage: entry.stage })
  const { attempt: _, retryAtMs: __, failure: ___, ...rest } = entry
  if (entry.stage === 'uninstall') {
    const {
      work: _w,
      startedInputs: _s,
      finishedInputs: _f,
      pendingInterrupt: _o,
      changedKeys: _c,
      interruptRequirement: _i,
      passedAtMs: _p,
      lastRequestedRunAtMs: _wa,
      installedBy: _by,
      ...bare
    } = rest
    setEntry(builder, { ...bare, state: 'complete', restarts: 0 })
    for (const other of entriesOf(builder.record, entry.name)) // what was below it went with it
      if (other.version !== entry.version && !other.retained)
        removeEntry(builder, packageKey(other.name, other.version))
    clearFlags(builder, entry.name)
    setInstalledVersion(builder, entry.name, 'uninstalled')
    return
  }
  const startedInputs = rest.startedInputs ?? { config: {}, env: [] }
  const passedAtMs = builder.snapshot.nowMs
  if (entry.stage === 'post-interrupt') {
    const { changedKeys: _k, ...interrupted } = rest // complete for what it was configured with, whatever the spec says by now
    setEntry(builder, {
      ...interrupted,
      state: 'complete',
      restarts: 0,
      startedInputs,
      finishedInputs: startedInputs,
      passedAtMs,
    })
  } else if (entry.stage === 'apply' || entry.stage === 'upgrade') {
    setEntry(builder, { ...rest, state: 'complete', restarts: 0, installedBy: entry.stage })
    setInstalledVersion(builder, entry.name, config.packageVersion)
    const key = `history/${skyhook}/${entry.name}`
    builder.actions.push({
      do: 'recordHistory',
      key,
      skyhook,
      name: entry.name,
      config,
      version: config.packageVersion,
    })
  } else
    setEntry(builder, {
      ...rest,
      state: 'complete',
      restarts: 0,
      ...(entry.stage === 'config' && { startedInputs, passedAtMs }),
    })
  if (entry.stage === 'upgrade') {
    for (const other of entriesOf(builder.record, entry.name))
      if (other.version !== entry.version && !other.retained)
        removeEntry(builder, packageKey(other.name, other.version))
  }
}

function setInstalledVersion(builder: PlanBuilder, name: string, version: string): void {
  builder.record = { ...builder.record, installedVersions: { ...builder.record.installedVersions, [name]: version } }
}
