import { resolve } from 'node:path'
import { createLocalRoot } from '../../host/fs/host-root.ts'
import type { Context } from '../base/framework/command.ts'
import { refusedError, usageError, type ExitCode, exitCodes } from '../base/framework/command-error.ts'

/** Writes the files of a new package into a folder that is empty or not there. @throws CommandError */
export async function initPackage(
  { stdout, random }: Context,
  { name, folder = name }: { readonly name: string; readonly folder: string | undefined },
  { version }: { readonly version: string },
): Promise<ExitCode> {
  if (!/^[a-z][-a-z0-9]{0,41}[a-z]$/.test(name))
    throw usageError(
      `"${name}" is not the name of a package`,
      'use lower-case letters, digits and -, such as my-tuning',
    )
  if (!/^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/.test(version))
    throw usageError(`"${version}" is not a semantic version`, 'write three numbers, such as 1.0.0')
  const root = createLocalRoot(random)
  const path = resolve(folder)
  if (((await root.list(path)) ?? []).length > 0)
    throw refusedError(`${folder} is not empty`, 'name another folder, or remove this one')
  const files = scaffold(name, version)
  for (const file of files) {
    const target = `${path}/${file.path}`
    await root.makeFolder(target.slice(0, target.lastIndexOf('/')), 0o755)
    await root.writeFile(target, file.text, file.mode)
  }
  stdout.write(files.map((file) => `${folder}/${file.path}\n`).join(''))
  return exitCodes.ok
}

/** A new package: the files of a first version that works, each of which says what it is for. Pure. */
type ScaffoldFile = { readonly path: string; readonly mode: number; readonly text: string }

/** @param name of the package, as a Skyhook would have it */
export function scaffold(name: string, version: string): ScaffoldFile[] {
  return [
    { path: 'config.json', mode: 0o644, text: configText(name, version) },
    { path: 'README.md', mode: 0o644, text: readmeText(name, version) },
    { path: 'skyhook_dir/common.sh', mode: 0o644, text: commonText(name) },
    ...Object.entries(scripts(name)).map(([path, text]) => ({ path: `skyhook_dir/${path}`, mode: 0o755, text })),
    { path: 'skyhook.yaml', mode: 0o644, text: skyhookText(name, version) },
  ]
}

const step = (path: string) => ({
  name: path.replace(/\.sh$/, ''),
  path,
  arguments: [] as string[],
  returncodes: [0],
  on_host: true,
  idempotence: true,
  upgrade_step: false,
})

function configText(name: string, version: string): string {
  const modes = {
    apply: [step('apply.sh')],
    'apply-check': [step('apply_check.sh')],
    config: [step('config.sh')],
    'config-check': [step('config_check.sh')],
    upgrade: [{ ...step('upgrade.sh'), upgrade_step: true }],
    'upgrade-check': [step('upgrade_check.sh')],
    'post-interrupt': [step('post_interrupt.sh')],
    'post-interrupt-check': [step('post_interrupt_check.sh')],
    uninstall: [step('uninstall.sh')],
    'uninstall-check': [step('uninstall_check.sh')],
  }
  const config = {
    schema_version: 'v1',
    package_name: name,
    package_version: version,
    expected_config_files: ['greeting.txt'],
    modes,
  }
  return `${JSON.stringify(config, null, 2)}\n`
}

const header = (purpose: string): string =>
  `#!/bin/bash\n${purpose
    .split('\n')
    .map((line) => `# ${line}\n`)
    .join('')}set -euo pipefail\n. "$SKYHOOK_DIR/skyhook_dir/common.sh"\n`

function scripts(name: string): Readonly<Record<string, string>> {
  return {
    'apply.sh': `${header('apply: installs the package. It may run again at any time, after a crash or a reboot as well.')}
mkdir -p "$folder"
write_file "$folder/installed" <<<"${name}"
`,
    'apply_check.sh': `${header('apply-check: fails until the work of apply is visible on the host. The stage completes when it passes.')}
has_line "$folder/installed" "${name}"
`,
    'config.sh': `${header('config: runs after apply, and again whenever configMap of the Skyhook changes.\nThe keys of configMap are files in configmaps/.')}
write_file "$folder/greeting.txt" <"$SKYHOOK_DIR/configmaps/greeting.txt"
`,
    'config_check.sh': `${header('config-check: fails until the work of config is visible on the host.')}
cmp "$SKYHOOK_DIR/configmaps/greeting.txt" "$folder/greeting.txt"
`,
    'upgrade.sh': `${header('upgrade: runs instead of apply where an older version is installed.\nWith upgrade_step, the previous and the new version are its arguments.')}
echo "upgrading from $1 to $2"
mkdir -p "$folder"
write_file "$folder/installed" <<<"${name}"
`,
    'upgrade_check.sh': `${header('upgrade-check: fails until the new version is in place.')}
has_line "$folder/installed" "${name}"
`,
    'post_interrupt.sh': `${header('post-interrupt: runs after a reboot or a restart of services, if the Skyhook has an interrupt.')}
echo "nothing to do after an interrupt"
`,
    'post_interrupt_check.sh': `${header('post-interrupt-check: fails where the interrupt did not bring what it was for.')}
has_line "$folder/installed" "${name}"
`,
    'uninstall.sh': `${header('uninstall: removes what the other stages made.\nUnder the Skyhook operator up to 0.15 there is no configmaps/.')}
rm -rf "$folder"
`,
    'uninstall_check.sh': `${header('uninstall-check: fails while something is left.')}
[[ ! -e $folder ]] || fail "$folder is still there"
`,
  }
}

const commonText = (name: string): string => `# Shared by all scripts, which source it; no step runs it.
# shellcheck shell=bash disable=SC2034 # the variables are for those who source this

# Everything of this package is below one folder, so uninstall forgets nothing.
folder=/etc/${name}

fail() {
  echo "$*" >&2
  exit 1
}

# write_file PATH: standard input becomes the file, whole or not at all: a step may be killed at any moment. A killed
# step leaves PATH.new, which the next one replaces. If you remove the file, remove both. For folders of root.
write_file() {
  cat >"$1.new"
  chmod 0644 "$1.new"
  mv "$1.new" "$1"
}

has_line() { # has_line PATH LINE
  grep -qxF -- "$2" "$1" || fail "$1 lacks the line: $2"
}
`

const skyhookText = (
  name: string,
  version: string,
): string => `# Installs the package on nodes with the label ${name}=true.
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: ${name}
spec:
  nodeSelectors:
    matchLabels:
      ${name}: 'true'
  # At most so many nodes are out of service at once.
  interruptionBudget:
    count: 1
  packages:
    ${name}:
      version: ${version} # the tag of the image
      image: registry.example.com/packages/${name}
      configMap:
        greeting.txt: hello
      # Runs the uninstall stage when the package or the Skyhook is removed.
      uninstall:
        enabled: true
      # After apply, on a drained node; remove the comment signs if the package needs it.
      # interrupt:
      #   type: reboot
`

const readmeText = (name: string, version: string): string => `# ${name}

| File | What it is for |
|---|---|
| \`config.json\` | lists the steps of each stage. \`returncodes\`: exit codes that mean success. \`idempotence\`: true, the step may always run again; false, the agent runs it once. \`expected_config_files\`: keys that configMap must have |
| \`skyhook_dir/apply.sh\` | installs |
| \`skyhook_dir/config.sh\` | configures, again after each change of configMap |
| \`skyhook_dir/upgrade.sh\` | replaces an older version |
| \`skyhook_dir/post_interrupt.sh\` | runs after a reboot or a restart of services |
| \`skyhook_dir/uninstall.sh\` | removes |
| \`skyhook_dir/*_check.sh\` | the check of each stage: a stage completes when its check passes |
| \`skyhook_dir/common.sh\` | functions that the scripts share |
| \`skyhook.yaml\` | a Skyhook that installs the package |

Steps run as root on the host, in its own namespaces, with the folder of the package as \`$SKYHOOK_DIR\`. They may be
killed and run again at any moment, so each must be able to finish what an earlier run started.

\`\`\`
kubectl skyhook validate . skyhook.yaml
sudo kubectl skyhook package run . --config greeting.txt=FILE
kubectl skyhook package build . --file ${name}.tar
kubectl skyhook package push . registry.example.com/packages/${name}:${version}
\`\`\`

Write the place to which you pushed it into \`skyhook.yaml\`, as \`image\`. Then apply that file, and label a node:

\`\`\`
kubectl apply -f skyhook.yaml
kubectl label node NODE ${name}=true
kubectl skyhook status ${name}
\`\`\`
`
