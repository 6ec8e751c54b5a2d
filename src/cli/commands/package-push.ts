import { defineCommand } from '../framework/command.ts'
import { registryFlags } from '../registry/flags.ts'

/** A package folder as an image in a registry. */
export const packagePush = defineCommand({
  name: 'package push',
  summary: 'build the image of a package and push it to a registry',
  description:
    'Logs in with what "docker login" or "podman login" stored, credential helpers included, or with the variables ' +
    'REGISTRY_USER, REGISTRY_PASSWORD and REGISTRY_CA. The tag is by default the version of the package. Prints the ' +
    'reference with its digest, for containerSHA.',
  arguments: {
    folder: { summary: 'folder of the package', complete: 'files' },
    reference: { summary: '[host[:port]/]repository[:tag]' },
  },
  flags: {
    arch: { type: 'list', placeholder: 'ARCH', summary: 'architectures: amd64, arm64; by default both' },
    ...registryFlags,
  },
  example: 'kubectl skyhook package push my-tuning registry.example.com/packages/my-tuning',
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { pushPackage } = await import('../package/push.ts')
    return await pushPackage(context, given, flags)
  },
})
