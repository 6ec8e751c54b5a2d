/** The packages of simulated fleets: as small as they can be. Each stage with steps has to have a check, too. */
import { digestOf } from '../../../src/packages/oci/digest.ts'
import type { Registry, SimulatedImage } from '../host/images.ts'

/** Only one of them has something to apply: each step costs a simulated host as much as a real one. */
const stagesOf = (name: string): readonly string[] => [
  ...(name === 'p0a' ? ['apply', 'upgrade'] : []),
  'config',
  'post-interrupt',
  'uninstall',
]

const stepOf = (path: string) => ({
  name: path,
  path,
  arguments: [],
  returncodes: [0],
  on_host: true,
  idempotence: true,
  upgrade_step: false,
})

const images = new Map<string, SimulatedImage>()

/** Has every package in every version. */
export const registry: Registry = ({ repository, tag = '' }) => {
  const key = `${repository}:${tag}`
  let image = images.get(key)
  if (image === undefined) images.set(key, (image = createImage(repository, tag)))
  return image
}

function createImage(name: string, version: string): SimulatedImage {
  const modes = stagesOf(name).flatMap((stage) => [stage, `${stage}-check`])
  const config = {
    schema_version: 'v1',
    package_name: name,
    package_version: version,
    expected_config_files: [],
    modes: Object.fromEntries(modes.map((mode) => [mode, [stepOf(`${mode}.sh`)]])),
  }
  const scripts = modes.map((mode) => [`skyhook_dir/${mode}.sh`, `#!/bin/sh\n# ${name} ${version} ${mode}\n`])
  return {
    digest: digestOf(`${name}:${version}`),
    files: { 'config.json': JSON.stringify(config), ...Object.fromEntries(scripts) },
  }
}
