import type { HostRoot } from '../../host/fs/host-root.ts'
import { getIfExists } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { type HostFolders, stateDir } from '../../packages/layout.ts'
import { fileOfOperator } from '../../packages/operator-compat/last-writer.ts'
import { nodeWrightGroupPath } from '../../schemas/nodewright.ts'
import { noOtherOperator, type OtherOperator } from '../../stages/model/snapshot.ts'

/** State of an operator whose records agents cannot read. The agent looks for it once, at its start. */
export type OtherOperatorSource = {
  /** Requests the API group from the API server. Rejects if it does not answer. */
  askForGroup(): Promise<void>
  /** Checks the folders of these Skyhooks on the host. */
  lookAtFolders(skyhooks: Iterable<string>): Promise<void>
  readonly current: () => OtherOperator
}

/** `isIgnored`: the settings ignore all of it, so nothing is checked. */
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
      // the list of all groups is incomplete while an API server starts; the path of one group then answers 503
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
