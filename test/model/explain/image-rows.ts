/** What is wrong with images and registries. */
import type { ImageErrorCode } from '../../../src/schemas/catalogue/reason-codes.ts'
import type { BrokenScene } from './broken-scene.ts'
import { allowWhen, failFetch, image, nextImage, nextVersion, one, withHealthy } from './breakage.ts'

const curl = 'curl -sS https://registry.test/v2/'

/** An image of one of two packages that cannot be had, with what a person finds when the printed command looks. */
const fetchRow = (
  title: string,
  code: ImageErrorCode,
  { remedy, ...rest }: Pick<BrokenScene, 'remedy'> & Partial<BrokenScene>,
): BrokenScene => ({
  title,
  skyhooks: { s: withHealthy() },
  broken(scene, outside) {
    const heal = failFetch(scene, code)
    let isHealed = false
    outside.setHostCommand(curl, () =>
      isHealed ? { status: 0, output: '{}' } : { status: 60, output: `curl: ${code}` },
    )
    outside.setImage('registry.test/p0a:1.0.0', `error: registry.test/p0a:1.0.0: ${code}`)
    if (rest.edit !== undefined || rest.mend !== undefined) return undefined // the next version is correct
    return () => {
      isHealed = true
      heal()
    }
  },
  reason: 'ImagePull',
  cause: 'image-pull',
  objects: ['Package/p0a'],
  says: [code],
  never: ['p0b'],
  remedy,
  ...rest,
})
const ofHost = { doctor: ['host-reason'] } as const
const asksRegistry = { ...ofHost, status: 60, shows: /curl: / } as const
const validates = { status: 1, shows: /registry\.test\/p0a:1\.0\.0/, mend: nextImage } as const

/** The first remedy is enough: the registry has the corrected image. */
export const imageRows: readonly BrokenScene[] = [
  fetchRow('a tag that the registry lacks', 'not-found', {
    remedy: 'correct image and version of the package',
    edit: nextVersion,
  }),
  fetchRow('a name that no image can have', 'bad-reference', {
    remedy: 'correct image and version of the package as the message says',
    edit: nextVersion,
  }),
  fetchRow('a digest that the content does not have', 'digest-mismatch', {
    remedy: 'correct containerSHA of the package',
    edit: nextVersion,
  }),
  fetchRow('a registry that asks for another login', 'unauthorized', {
    ...ofHost,
    remedy: 'add credentials for the registry to imagePullSecrets of the chart',
    shows: /SecretList/,
  }),
  fetchRow('a login that may not read the repository', 'denied', {
    ...ofHost,
    remedy: 'add credentials for the registry to imagePullSecrets of the chart, or correct them',
    shows: /SecretList/,
  }),
  fetchRow('a registry that asks for fewer requests', 'rate-limited', {
    ...ofHost,
    remedy: 'raise the limit with a login',
    shows: /SecretList/,
  }),
  fetchRow('a registry that is not reached', 'unreachable', {
    ...asksRegistry,
    remedy: 'the node must reach the registry: check its name',
  }),
  {
    title: 'a registry whose name is misspelled',
    nodes: one,
    skyhooks: { s: withHealthy({ image: 'regsitry.test/p0a' }) },
    broken(scene, outside) {
      const heal = failFetch(scene, 'unreachable')
      outside.setHostCommand('curl -sS https://regsitry.test/v2/', () => ({ status: 6, output: 'curl: (6)' }))
      const isCorrect = (): boolean => scene.skyhook('s').spec.packages?.['p0a']?.image === image
      scene.simulation.clock.startTimer(10_000, () => allowWhen(scene, isCorrect, heal))
    },
    reason: 'ImagePull',
    cause: 'image-pull',
    objects: ['Package/p0a'],
    says: ['regsitry.test', 'unreachable'],
    never: ['p0b'],
    doctor: ['host-reason'],
    status: 6,
    remedy: 'check its name',
    mend: (scene) => scene.editSkyhook('s', { spec: { packages: { p0a: { image } } } }),
  },
  fetchRow('a certificate that the host does not trust', 'tls', { ...asksRegistry, remedy: 'certificate' }),
  fetchRow('a registry that answers with errors', 'unavailable', {
    ...asksRegistry,
    remedy: 'the registry must recover',
  }),
  fetchRow('a proxy in place of the registry', 'bad-response', { ...asksRegistry, remedy: 'look for a proxy' }),
  fetchRow('a login of the chart that cannot be read', 'misconfigured', {
    ...ofHost,
    defaultBudget: { count: 1 }, // with it the scene has the ConfigMap of the chart
    remedy: 'correct the file, the Secret or the value of the chart that the message names',
    shows: /defaults\.interruptionBudget/,
  }),
  fetchRow('an image of another platform', 'unsupported', {
    ...validates,
    remedy: 'build the image for this platform',
  }),
  fetchRow('an image that is too large', 'too-large', { ...validates, remedy: 'build a smaller image' }),
  fetchRow('an image that is not a package', 'bad-image', {
    ...validates,
    reason: 'InvalidPackage',
    cause: 'invalid-package',
    remedy: 'build a correct image under a new version',
  }),
]
