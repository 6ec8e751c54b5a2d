import { defineCommand } from '../framework/command.ts'

/** A package folder as an archive with its image. */
export const packageBuild = defineCommand({
  name: 'package build',
  summary: 'build the image of a package, without a container engine',
  description:
    'Writes an OCI archive, which ctr, skopeo and podman read. The same files give the same digest on every machine. ' +
    'The package is validated first.',
  arguments: { folder: { summary: 'folder of the package', complete: 'files' } },
  flags: {
    file: {
      type: 'text',
      short: 'f',
      placeholder: 'FILE',
      summary: 'archive to write; by default NAME-VERSION.tar',
      complete: 'files',
    },
    tag: { type: 'text', short: 't', placeholder: 'REFERENCE', summary: 'name of the image in the archive' },
    arch: { type: 'list', placeholder: 'ARCH', summary: 'architectures: amd64, arm64; by default both' },
  },
  example: 'kubectl skyhook package build my-tuning --file my-tuning.tar',
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { buildPackage } = await import('../package/build.ts')
    return await buildPackage(context, given, flags)
  },
})
