import type { RunningPackage } from '../../schemas/journal.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import { isLeftBehind } from '../model/package-state.ts'
import { keyOf } from '../model/package-key.ts'
import { type PlanBuilder, entriesOf, removeEntry, setEntry, withoutFlags } from '../model/plan-builder.ts'
import { completeStage } from '../model/transitions.ts'

/** A stage whose steps and checks passed: the new state of the package and of the host. */
export function recordCompletedStage(builder: PlanBuilder, entry: RunningPackage, config: PackageConfig): void {
  const { name, progress } = entry
  const { stage } = progress
  const skyhook = builder.view.metadata.name
  builder.events.push({ type: 'stageCompleted', skyhook, package: name, stage })
  const { nowMs, wallOffsetMs } = builder.snapshot
  setEntry(builder, completeStage(entry, nowMs + wallOffsetMs))
  if (stage === 'uninstall') {
    builder.record = { ...builder.record, flags: withoutFlags(builder.record.flags, name) }
    setInstalledVersion(builder, name, 'uninstalled')
  }
  if (stage === 'apply' || stage === 'upgrade') {
    const version = config.packageVersion
    setInstalledVersion(builder, name, version)
    builder.actions.push({ do: 'recordHistory', key: `history/${skyhook}/${name}`, skyhook, name, config, version })
  }
  if (stage === 'uninstall' || stage === 'upgrade' || stage === 'apply') removeOtherVersions(builder, entry)
}

/** Other versions were uninstalled or upgraded. The new version also replaces the leftovers of an uninstall. */
function removeOtherVersions(builder: PlanBuilder, { name, version, progress }: RunningPackage): void {
  const isApply = progress.stage === 'apply'
  for (const other of entriesOf(builder.record, name)) {
    const isGone = isLeftBehind(other) || !(isApply || other.progress.state === 'retained')
    if (other.version !== version && isGone) removeEntry(builder, keyOf(other))
  }
}

function setInstalledVersion(builder: PlanBuilder, name: string, version: string): void {
  builder.record = { ...builder.record, installedVersions: { ...builder.record.installedVersions, [name]: version } }
}
