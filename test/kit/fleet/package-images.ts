/** The packages of simulated fleets: as small as they can be. Each stage with steps has to have a check, too. */
import type { Registry, SimulatedImage } from '../host/images.ts'
import { packageImage } from '../host/package-image.ts'

/** Only one of them has something to apply: each step costs a simulated host as much as a real one. */
const stagesOf = (name: string): readonly string[] => [
  ...(name === 'p0a' ? ['apply', 'upgrade'] : []),
  'config',
  'post-interrupt',
  'uninstall',
]

/** A step of theirs that passed is skipped when its stage runs again. */
const guardedStages = ['apply']

const images = new Map<string, SimulatedImage>()

/** Has every package in every version. */
export const registry: Registry = ({ repository, tag = '' }) => {
  const key = `${repository}:${tag}`
  let image = images.get(key)
  if (image === undefined) images.set(key, (image = packageImage(repository, tag, stagesOf(repository), guardedStages)))
  return image
}
