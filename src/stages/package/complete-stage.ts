import type { PackageRecord } from '../../schemas/journal.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import type { Draft } from '../model/plan-builder.ts'
import { clearFlags, entriesOf, removeEntry, setEntry } from '../model/plan-builder.ts'
import { packageKey } from './next-stage.ts'

/** A stage whose steps and checks passed: what the package is now, and what the host has. */
export function completeStage(draft: Draft, entry: PackageRecord, config: PackageConfig): void {
  const skyhook = draft.view.metadata.name
  draft.events.push({ type: 'stageCompleted', skyhook, package: entry.name, stage: entry.stage })
  const { attempt: _, retryAtMs: __, failure: ___, ...rest } = entry
  if (entry.stage === 'uninstall') {
    const {
      work: _w,
      started: _s,
      finished: _f,
      owes: _o,
      changedKeys: _c,
      interruptRequired: _i,
      passedAtMs: _p,
      wantedAtMs: _wa,
      installedBy: _by,
      ...bare
    } = rest
    setEntry(draft, { ...bare, state: 'complete', restarts: 0 })
    for (const other of entriesOf(draft.record, entry.name)) // what was below it went with it
      if (other.version !== entry.version && !other.kept) removeEntry(draft, packageKey(other.name, other.version))
    clearFlags(draft, entry.name)
    setInstalled(draft, entry.name, 'uninstalled')
    return
  }
  const started = rest.started ?? { config: {}, env: [] }
  const passedAtMs = draft.world.nowMs
  if (entry.stage === 'post-interrupt') {
    const { changedKeys: _k, ...interrupted } = rest // complete for what it was configured with, whatever the spec says by now
    setEntry(draft, { ...interrupted, state: 'complete', restarts: 0, started, finished: started, passedAtMs })
  } else if (entry.stage === 'apply' || entry.stage === 'upgrade') {
    setEntry(draft, { ...rest, state: 'complete', restarts: 0, installedBy: entry.stage })
    setInstalled(draft, entry.name, config.packageVersion)
    const key = `history/${skyhook}/${entry.name}`
    draft.actions.push({ do: 'recordHistory', key, skyhook, name: entry.name, config, version: config.packageVersion })
  } else setEntry(draft, { ...rest, state: 'complete', restarts: 0, ...(entry.stage === 'config' && { started, passedAtMs }) })
  if (entry.stage === 'upgrade') {
    for (const other of entriesOf(draft.record, entry.name))
      if (other.version !== entry.version && !other.kept) removeEntry(draft, packageKey(other.name, other.version))
  }
}

function setInstalled(draft: Draft, name: string, version: string): void {
  draft.record = { ...draft.record, installed: { ...draft.record.installed, [name]: version } }
}
