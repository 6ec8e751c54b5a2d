import type { HostRoot } from '../../host/fs/host-root.ts'
import { getIfExists } from '../../kube/get.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { type HostFolders, stateDir } from '../../packages/layout.ts'
import { fileOfOperator } from '../../packages/operator-compat/last-writer.ts'
import { nodeWrightGroupPath } from '../../schemas/nodewright.ts'
import { noOtherOperator, type OtherOperator } from '../../stages/model/snapshot.ts'

/** What an operator left whose record agents do not read. It is looked for once, when the agent starts. */
export type OtherOperatorSource = {
  /** Asks the API server. Rejects until it answers. */
  askForGroup(): Promise<void>
  /** Looks at the folders of these Skyhooks on the host. */
  lookAtFolders(skyhooks: Iterable<string>): Promise<void>
  readonly current: () => OtherOperator
}

/** `isIgnored`: by the settings nothing of it counts, and nobody looks. */
export function createOtherOperatorSource(options: {
  readonly transport: Pick<KubeTransport, 'json'>
  readonly root: HostRoot
  readonly folders: HostFolders
  readonly isIgnored: boolean
  readonly signal: AbortSignal
}): OtherOperatorSource {
  const { transport, root, folders, isIgnored, signal } = options
  let current = noOtherOperator
  return {
    async askForGroup() {
      if (isIgnored) return
      // the list of all groups is not whole while an API server starts; the path of one then answers 503
      const group = await getIfExists(transport, nodeWrightGroupPath, { signal })
      current = { ...current, isNodeWrightServed: group !== undefined }
    },
    async lookAtFolders(skyhooks) {
      if (isIgnored) return
      const files = new Map<string, string>()
      for (const skyhook of skyhooks) {
        const path = await fileOfOperator(root, stateDir(folders, skyhook))
        if (path !== undefined) files.set(skyhook, path)
      }
      current = { ...current, files }
    },
    current: () => current,
  }
}
