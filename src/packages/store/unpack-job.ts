import type { Endpoint } from '../oci/read/endpoints.ts'
import type { Descriptor } from '../oci/manifest.ts'
import { downloadLayers } from './unpack-download.ts'
import type { ImageReference } from '../oci/reference.ts'
import { createRegistryClient, type RegistryPorts, type RegistrySettings } from '../oci/read/registry.ts'
import { type UnpackSummary, unpackPackage } from './unpack.ts'

/**
 * Everything that another process needs to create a package folder from an image. Plain data, so that it can be sent
 * there. The job includes the download, because that leaves memory behind in its process, as unpacking does.
 */
export type UnpackJob = {
  readonly registry: RegistrySettings & { readonly sources: { readonly resolvedEndpoints: readonly Endpoint[] } }
  readonly reference: ImageReference
  /** Lowest first. */
  readonly layers: readonly Descriptor[]
  /** An existing folder for the layers. The caller removes it. */
  readonly workFolder: string
  /** The folder to create. */
  readonly target: string
}

/** Does the job in this process. @throws as {@link downloadLayers} and {@link unpackPackage} */
export async function runUnpackJob(
  { registry, reference, layers, workFolder, target }: UnpackJob,
  ports: RegistryPorts,
  signal: AbortSignal,
): Promise<UnpackSummary> {
  const client = createRegistryClient(registry, ports)
  try {
    const files = await downloadLayers(client, reference, layers, workFolder, signal)
    return await unpackPackage({ layers: files.map(({ path }) => path), target })
  } finally {
    client.close()
  }
}
