import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { createLocalRoot } from '../../host/fs/host-root.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import { formatReference, parseReference } from '../../packages/oci/reference.ts'
import { pushImages } from '../../packages/oci/write/push.ts'
import type { Context } from '../framework/command.ts'
import { CommandError, usageError, type ExitCode, exitCodes } from '../framework/command-error.ts'
import type { RegistryFlags } from '../registry/flags.ts'
import { openRegistry, type RegistryAccess } from '../registry/settings.ts'
import { buildPackageImages } from './image.ts'

/** As `make release` takes them: for the registry of the reference, and no other. Flags count more. */
function accessIn(environment: Context['environment'], { ca }: RegistryFlags): Partial<RegistryAccess> {
  const { REGISTRY_USER: username, REGISTRY_PASSWORD: password = '', REGISTRY_CA } = environment
  const file = ca ?? REGISTRY_CA
  return { ...(username !== undefined && { login: { username, password } }), ...(file !== undefined && { ca: file }) }
}

const remedies: Partial<Record<ImageError['code'], string>> = {
  unauthorized: 'run "docker login" for this registry',
  tls: "name the registry's authority with --ca FILE; --plain-http is for a registry without TLS",
}

/** Builds, pushes and prints the reference with its digest. @throws CommandError */
export async function pushPackage(
  context: Context,
  { folder, reference: text }: { readonly folder: string; readonly reference: string },
  flags: RegistryFlags & { readonly arch: readonly string[] },
): Promise<ExitCode> {
  const root = createLocalRoot(context.random)
  const workFolder = await root.makeUniqueFolder(`${tmpdir()}/skyhook-push-`, 0o700)
  try {
    const architectures = flags.arch.length > 0 ? flags.arch : ['amd64', 'arm64']
    const { images, package: about } = await buildPackageImages(root, resolve(folder), architectures, workFolder)
    const place = parseReference(text)
    if (place.digest !== undefined)
      throw usageError(`${text} has a digest`, 'write a tag: the content decides the digest')
    const tag = place.tag ?? about.version
    if (tag.includes('+'))
      throw usageError(
        `version ${tag} is not a legal tag`,
        'write a tag, and name the image by its digest in containerSHA',
      )
    if (tag !== about.version && tag !== `v${about.version}`)
      context.stderr.write(`warning: the tag ${tag} differs from package_version ${about.version} of config.json\n`)
    const client = await openRegistry(context, { ...flags, ...accessIn(context.environment, flags) }, place.host)
    try {
      const digest = await pushImages(client, { ...place, tag }, images, context.signal)
      context.stdout.write(`${formatReference({ ...place, tag })}@${digest}\n`)
    } finally {
      client.close()
    }
    return exitCodes.ok
  } catch (error) {
    if (!(error instanceof ImageError)) throw error
    throw new CommandError(exitCodes.failed, error.message, remedies[error.code], { cause: error })
  } finally {
    await root.remove(workFolder)
  }
}
