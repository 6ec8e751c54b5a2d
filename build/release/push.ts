import type { RegistryClient } from '../../src/packages/oci/read/registry.ts'
import { formatReference, parseReference } from '../../src/packages/oci/reference.ts'
import { pushImages } from '../../src/packages/oci/write/push.ts'
import type { NamedImage } from './layout-folder.ts'

/**
 * Pushes all images of a release, the chart last: everything that a pushed chart names exists. Idempotent.
 * @returns what was pushed, by tag and digest
 * @throws ImageError
 */
export async function pushRelease(
  client: RegistryClient,
  prefix: string,
  named: readonly NamedImage[],
  signal: AbortSignal,
): Promise<string[]> {
  const isChart = ({ name }: NamedImage): boolean => name.startsWith('charts/')
  const pushed: string[] = []
  for (const { name, tag, images } of [...named.filter((one) => !isChart(one)), ...named.filter(isChart)]) {
    const reference = parseReference(`${prefix}/${name}:${tag}`)
    pushed.push(`${formatReference(reference)}@${await pushImages(client, reference, images, signal)}`)
  }
  return pushed
}
