/** Images of packages for simulated hosts: one script in each mode. */
import { digestOf } from '../../../src/packages/oci/reference.ts'
import type { SimulatedImage } from './images.ts'

const stepOf = (path: string, isGuarded: boolean) => ({
  name: path,
  path,
  arguments: [],
  returncodes: [0],
  on_host: true,
  idempotence: !isGuarded,
  upgrade_step: false,
})

/** Those of a package that uses all of them. */
const allStages = ['apply', 'config', 'post-interrupt', 'uninstall', 'upgrade']

/**
 * A package with a step and a check in each of the stages. The agent sees to it that the steps of `guarded` are not
 * repeated.
 */
export function packageImage(
  name: string,
  version: string,
  stages: readonly string[] = allStages,
  guarded: readonly string[] = [],
): SimulatedImage {
  const modes = stages.flatMap((stage) => [stage, `${stage}-check`])
  const config = {
    schema_version: 'v1',
    package_name: name,
    package_version: version,
    expected_config_files: [],
    modes: Object.fromEntries(modes.map((mode) => [mode, [stepOf(`${mode}.sh`, guarded.includes(mode))]])),
  }
  const scripts = modes.map((mode) => [`skyhook_dir/${mode}.sh`, `#!/bin/sh\n# ${name} ${version} ${mode}\n`])
  return {
    digest: digestOf(`${name}:${version}`),
    files: { 'config.json': JSON.stringify(config), ...Object.fromEntries(scripts) },
  }
}
