/** Opens a support archive from a file, in place of a cluster. */
import { resolve } from 'node:path'
import { createLocalRoot } from '../../host/fs/host-root.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'
import { usageError } from '../framework/command-error.ts'
import { unpackBundle } from './archive.ts'
import { archivedApi, archivedClock } from './archived-api.ts'
import type { BundleIndex } from './bundle.ts'

export type OpenBundle = {
  readonly transport: KubeTransport
  /** The namespace of the agents. */
  readonly namespace: string
  /** Its wall clock stands at the time at which the archive was made. */
  readonly clock: Clock
  readonly index: BundleIndex
}

/** @throws CommandError for a file that cannot be read or is not a support archive */
export async function openBundle(
  file: string,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Promise<OpenBundle> {
  const root = createLocalRoot(random)
  const packed = await root.readFile(resolve(file)).catch((error: unknown) => {
    throw usageError(`cannot read ${file}: ${messageOf(error)}`, 'name a file that kubectl skyhook bundle wrote')
  })
  const bundle = await unpackBundle(packed, file)
  const { index } = bundle
  return { transport: archivedApi(bundle), namespace: index.namespace, clock: archivedClock(clock, bundle), index }
}
