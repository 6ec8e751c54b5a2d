import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { createLocalRoot } from '../../host/fs/host-root.ts'
import { rootBlob, writeLayoutArchive } from '../../packages/oci/write/layout.ts'
import { formatReference, parseReference } from '../../packages/oci/reference.ts'
import type { Context } from '../framework/command.ts'
import { type ExitCode, exitCodes } from '../framework/command-error.ts'
import { buildPackageImages } from './image.ts'

export type BuildFlags = {
  readonly file: string | undefined
  readonly tag: string | undefined
  readonly arch: readonly string[]
}

/** Writes the archive and prints its name and digest. @throws CommandError where the package is invalid */
export async function buildPackage(
  { stdout, random }: Context,
  { folder }: { readonly folder: string },
  flags: BuildFlags,
): Promise<ExitCode> {
  const root = createLocalRoot(random)
  const workFolder = await root.makeUniqueFolder(`${tmpdir()}/skyhook-build-`, 0o700)
  try {
    const architectures = flags.arch.length > 0 ? flags.arch : ['amd64', 'arm64']
    const { images, package: about } = await buildPackageImages(root, resolve(folder), architectures, workFolder)
    const file = flags.file ?? `${about.name}-${about.version}.tar`
    const tag = about.version.replaceAll('+', '_') // not legal in a tag
    await writeLayoutArchive(
      resolve(file),
      images,
      formatReference(parseReference(flags.tag ?? `${about.name}:${tag}`)),
    )
    stdout.write(`${file} ${rootBlob(images).descriptor.digest}\n`)
    return exitCodes.ok
  } finally {
    await root.remove(workFolder)
  }
}
