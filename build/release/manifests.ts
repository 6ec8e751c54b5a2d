/** Definitions, agents and samples as files for kubectl, with the images of this release. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PinnedImage } from './chart-package.ts'

/**
 * Writes `crds`, `daemonset`, `overlay`, `samples` and `gitops` as a checkout has them, so that the same commands apply
 * them.
 * @param prefix registry and path of all images: the samples name their packages below it
 */
export function writeManifests(repository: string, out: string, image: PinnedImage, prefix: string): void {
  for (const name of ['crds', 'overlay', 'samples', 'gitops'])
    cpSync(join(repository, name), join(out, name), { recursive: true })
  const registry = join(out, 'samples/registry.yaml')
  writeFileSync(registry, sampleRegistry(readFileSync(registry, 'utf8'), prefix))
  mkdirSync(join(out, 'daemonset'))
  const agents = readFileSync(join(repository, 'daemonset/skyhookd.yaml'), 'utf8')
  writeFileSync(join(out, 'daemonset/skyhookd.yaml'), pinnedAgents(agents, image))
  writeFileSync(join(out, 'daemonset/kustomization.yaml'), kustomization(image))
}

/** The agents' manifests with this image. @throws Error where they do not have exactly one to replace */
export function pinnedAgents(manifests: string, { repository, digest }: PinnedImage): string {
  const at = manifests.indexOf('---\n')
  const [before, after, ...more] = manifests.slice(at).split(/^( +image: )skyhookd:.*$/m)
  const rest = more[0]
  if (before === undefined || after === undefined || rest === undefined || more.length > 1)
    throw new Error('daemonset/skyhookd.yaml must have one image, skyhookd:VERSION')
  const header = '# The agents, for the namespace skyhook. First the definitions: kubectl apply --server-side -f crds\n'
  return `${header}${before}${after}${repository}@${digest}${rest}`
}

/** The ConfigMap from which kustomize takes the registry of the samples. */
export function sampleRegistry(text: string, prefix: string): string {
  const pattern = /^ {2}registry: .*$/gm
  if (text.match(pattern)?.length !== 1) throw new Error('samples/registry.yaml must have one registry')
  return text.replace(pattern, () => `  registry: ${prefix}`)
}

const kustomization = ({ repository, digest }: PinnedImage): string => `\
# The agents, for \`kubectl apply -k daemonset\`. First the definitions: kubectl apply --server-side -f crds
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - skyhookd.yaml
images:
  # Where the agent's image is. In another registry the same image has the same digest.
  - name: ${repository}
    newName: ${repository}
    digest: ${digest}
`
