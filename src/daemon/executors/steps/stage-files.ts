import type { HostRoot } from '../../../host/fs/host-root.ts'
import { missingConfigFiles, stepPaths } from '../../../packages/step/load-package.ts'
import { ensureCopyDir } from '../../../packages/install/copy-dir.ts'
import { type HostFolders, type PackageInstance, copyDir } from '../../../packages/layout.ts'
import { nodeMetadata } from '../../../packages/install/node-metadata.ts'
import { type InstalledRootDir, installRootDir } from '../../../packages/install/root-dir.ts'
import { rootDirRecordFile } from '../../../packages/install/root-dir-record.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { StartStep } from '../../../stages/model/plan.ts'
import { version } from '../../../schemas/version.ts'
import type { Log } from '../../telemetry/log.ts'

export type StageFiles = { readonly outcome: 'ready' } | { readonly outcome: 'refused'; readonly why: string }

/** The package's unpacked content with its digest, and the Node for the facts in the copy dir. */
export type StageSource = {
  readonly store: string
  readonly digest: string
  readonly node: KubernetesNode | undefined
}

/**
 * Installs the files of a stage on the host: the copy dir with configuration and facts of the node, and the package's
 * root_dir over the host's root. Runs once per stage, because steps may change the files. Rejects for errors of the
 * disk.
 */
export async function ensureStageFiles(
  { root, folders, log }: { readonly root: HostRoot; readonly folders: HostFolders; readonly log: Log },
  { store, digest, node }: StageSource,
  instance: PackageInstance,
  action: StartStep,
): Promise<StageFiles> {
  const { attempt, config, spec, view, stage } = action
  const dir = copyDir(folders, instance)
  const { labels, annotations } = node?.metadata ?? {}
  const ensured = await ensureCopyDir({
    host: root,
    store,
    digest,
    copyDir: dir,
    stepPaths: stepPaths(config).keys(),
    configMap: spec.configMap ?? {},
    nowMs: attempt.startedAtMs,
    nodeMetadata: nodeMetadata({ labels, annotations, agentVersion: version, packages: view.spec.packages ?? {} }),
  })
  if (ensured.outcome === 'invalid') return { outcome: 'refused', why: ensured.problems.join('; ') }
  if (stage !== 'uninstall') {
    const installed = await installRootDir(root, store, rootDirRecordFile(instance.skyhook, instance.name))
    if (installed.outcome === 'conflict') return { outcome: 'refused', why: installed.problems.join('; ') }
    logInstalled(log, instance, installed)
  }
  const missing = await missingConfigFiles(root, dir, config, attempt.mode)
  if (missing.length > 0)
    return { outcome: 'refused', why: `the package expects ${missing.join(', ')} in the configMap of the Skyhook` }
  return { outcome: 'ready' }
}

/** The most paths in a log line; their folders indicate the rest. */
const maxLoggedPaths = 20

function logInstalled(log: Log, { skyhook, name }: PackageInstance, installed: InstalledRootDir): void {
  const of = { skyhook, package: name }
  if (installed.outcome === 'restored')
    log.warn(
      { ...of, count: installed.paths.length, paths: installed.paths.slice(0, maxLoggedPaths) },
      'files of root_dir were missing on the host, restored them',
    )
  if (installed.outcome !== 'restored' && installed.outcome !== 'copied') return
  for (const { owner, paths } of installed.disputes)
    log.warn(
      { ...of, other: owner, count: paths.length, paths: paths.slice(0, maxLoggedPaths) },
      'another package has files of root_dir with different content; the host has the files of this package',
    )
}
